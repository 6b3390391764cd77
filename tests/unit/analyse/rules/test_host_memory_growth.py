"""Host memory that grows with a training's epochs, and what is none: it fits, it settles, it is not known."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from support.runs import make_run

from gpu_report import schema
from gpu_report.analyse import analyse

EPOCH_S, EPOCHS, STARTUP_S = 20, 12, 10
SECONDS = STARTUP_S + EPOCH_S * EPOCHS
TOTAL_MIB = 64_000.0


def training(used_mib, epochs_asked=300, **recording):
    """Return a training of 12 epochs, of more that were asked for, with the host's memory in use each second."""
    rows = [(n + 1, STARTUP_S + EPOCH_S * (n + 1)) for n in range(EPOCHS)]
    util = [0] * STARTUP_S + [85] * (SECONDS - STARTUP_S)
    run = make_run(util, rows=rows, epochs_asked=epochs_asked)
    seconds = np.arange(SECONDS, dtype=float)
    host = pd.DataFrame({"t_s": seconds, **{c.name: np.nan for c in schema.HOST_QUANTITIES}})
    known = {"memory_mib": TOTAL_MIB, **recording}
    return dataclasses.replace(
        run,
        host=host.assign(memory_used_mib=used_mib(seconds)),
        recording=dataclasses.replace(run.recording, **known),
    )


def grown(run):
    return [finding for finding in analyse(run).findings if finding.rule == "host-memory-growth"]


def leaks(t_s):
    return 14_000 + 20.0 * t_s  # 400 MiB an epoch


def test_host_memory_that_would_be_full_before_the_last_epoch_is_what_leads():
    run = training(leaks)
    (finding,) = grown(run)
    assert (finding.severity, finding.gpu) == ("critical", None)
    assert finding.summary == "Host memory grew 400 MiB an epoch: full after about 113 more epochs"
    said = [each.text for each in analyse(run).verdict.sentences]
    assert said[:2] == [f"{finding.advice[0].short}.", f"{finding.summary}."]


def test_host_memory_of_which_hardly_any_was_left_ran_out():
    (finding,) = grown(training(lambda t_s: 14_000 + 199.0 * t_s))
    assert (finding.summary, finding.ran_out) == (
        "Host memory grew 3.9 GiB an epoch, until hardly any was left",
        True,
    )


@pytest.mark.parametrize(
    "run",
    [
        training(leaks, epochs_asked=100),  # over before it is full
        training(leaks, memory_mib=None),
        training(leaks, memory_limit_mib=32_000.0),
        training(lambda t_s: 14_000 + 4_000 * (1 - np.exp(-t_s / 40))),  # settles
        training(lambda t_s: np.where(t_s < 130, 14_000.0, 20_000.0)),  # one step
        training(lambda t_s: np.full(len(t_s), np.nan)),
    ],
)
def test_memory_that_lasts_or_settles_or_is_not_known_is_none(run):
    assert grown(run) == []


def test_memory_of_the_gpu_that_grows_as_well_is_said_as_well():
    run = training(leaks)
    gpu_mib = 20_000.0 + 50.0 * run.samples["t_s"]
    both = dataclasses.replace(run, samples=run.samples.assign(memory_used_mib=gpu_mib))
    assert sorted(f.rule for f in analyse(both).findings if f.severity == "critical") == [
        "host-memory-growth",
        "memory-growth",
    ]
    said = analyse(both).verdict.text
    assert (said.count("Host memory grew 400 MiB an epoch"), said.count("emory on GPU 0 grew 1000 MiB an epoch")) == (
        1,
        1,
    )
