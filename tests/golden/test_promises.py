"""No report promises more than there is: what is saved was idle GPU time, but where its own work gets faster."""

import tarfile
from functools import cache

import pytest
from conftest import REPOSITORY
from support.archives import unpacked
from support.samples import NAMES, OF_A_JOB, analysis_of

from gpu_report.analyse import analyse
from gpu_report.analyse.advice.judged_epochs import judged_epochs
from gpu_report.analyse.timeseries.gpu_series import gpu_series
from gpu_report.load import load_run
from gpu_report.model import Analysis
from gpu_report.wording import where_it_is

ARCHIVES = "unseen_h200", "unseen_h100", "unseen_more", "unseen_h200_four"
# Without these causes the GPU's own work takes less time; small steps are filled up in fewer, larger kernels.
FASTER_WORK = frozenset({"other-process", "power-cap", "thermal", "lower-clock", "waiting-for-peer"})
SLACK = 1.05  # a mean of epochs against a median, and readings of 0.2 s at their edges


@cache
def unseen():
    """Return the names of the recordings in the archives, each with what it is in."""
    names = {}
    for name in ARCHIVES:
        with tarfile.open(REPOSITORY / "tests" / "data" / f"{name}.tar.xz") as archive:
            names |= dict.fromkeys((each.name.split("/")[0] for each in archive if each.isdir()), name)
    return names


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return unpacked(tmp_path_factory.mktemp("promised"), *ARCHIVES)


def idle_shares(analysis: Analysis) -> list[tuple[float, float]]:
    """Return of each epoch that limits are of how long it trained (s), and the idle share of the least busy GPU."""
    used = {summary.gpu.index for summary in analysis.gpus if summary.used}
    series = [each for each in gpu_series(analysis.run) if each.gpu in used]
    mine = [each for each in judged_epochs(analysis.epochs) if each.train_s] or [
        e for e in analysis.epochs if e.train_s
    ]
    found = []
    for epoch in mine:
        span = epoch.start_t_s, epoch.start_t_s + (epoch.train_s or 0.0)
        busy = [each.mean_util_pct(*span) / 100 for each in series if each.mean_util_pct(*span) >= 0]
        found += [(epoch.train_s or 0.0, 1 - min(busy))] if busy else []
    return found


def by_idle_time(analysis: Analysis) -> dict[str, float]:
    """Return what each limit saves at most of the training part of an epoch (s) that no faster work of the GPU is."""
    return {
        f"{limit.cause} {where_it_is(limit.location) if limit.location else ''}": limit.saves_at_most_s
        for limit in analysis.speedup_limits
        if not limit.at_epoch_ends and limit.cause not in FASTER_WORK and "filled" not in limit.basis
    }


def check(analysis: Analysis) -> None:
    epochs, saved = idle_shares(analysis), by_idle_time(analysis)
    if not epochs or not saved:
        return
    expected = max(limit.epoch_s_now for limit in analysis.speedup_limits)
    most_s = max(share * max(train_s, expected) for train_s, share in epochs)
    assert {name: seconds for name, seconds in saved.items() if seconds > SLACK * most_s} == {}
    assert sum(saved.values()) <= SLACK * most_s
    for limit in analysis.speedup_limits:
        assert 0 < limit.epoch_s_at_best <= (limit.epoch_s_estimate or limit.epoch_s_at_best) <= limit.epoch_s_now


@pytest.mark.parametrize("name", [*NAMES, *OF_A_JOB])
def test_what_limits_save_together_was_idle_time(name):
    check(analysis_of(name))


@pytest.mark.parametrize("name", sorted(unseen()))
def test_what_limits_of_unseen_runs_save_together_was_idle_time(folder, name):
    check(analyse(load_run(folder / name), with_code_time=False))
