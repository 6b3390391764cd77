"""The sample runs as other GPUs and recordings would have shown them: each signal missing by itself, and all."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd

from gpu_report.analyse import analyse
from gpu_report.model import Run
from support.accuracy import verdicts_of
from support.labels import SETS
from support.matching import Judged, judge
from support.samples import NAMES, analysis_of, labels_of, run_of

GPM = ("sm_active_pct", "sm_occupancy_pct", "tensor_active_pct", "dram_active_pct")
EVERY = 5  # of the ticks, one is kept
RECORDED = ("fitted", "held out")  # sets of runs that our recorder made on real GPUs
HEAD = """\
| as recorded, but | faults found | cause right | false alarms |
|---|---:|---:|---:|"""


def without_gpm(run: Run) -> Run:
    """Return a run as of a GPU before Hopper: no SM, tensor or memory activity."""
    return replace(run, samples=run.samples.assign(**dict.fromkeys((c for c in GPM if c in run.samples), np.nan)))


def without_ring(run: Run) -> Run:
    """Return a run as of a driver that keeps no readings between ticks."""
    return replace(run, ring=run.ring.iloc[:0])


def without_pressure(run: Run) -> Run:
    """Return a run as of a kernel without pressure stall information (PSI), such as RHEL's unless told otherwise."""
    named = [name for name in run.host if name.endswith("_pressure_pct")]
    return replace(run, host=run.host.assign(**dict.fromkeys(named, np.nan)))


def with_few_ticks(run: Run) -> Run:
    """Return a run of which only every fifth tick was recorded, of the host, too."""
    interval_s = EVERY * (run.recording.interval_s or 1.0)
    samples = run.samples.groupby("gpu", sort=False, group_keys=False).nth(slice(None, None, EVERY))
    recording = replace(run.recording, interval_s=interval_s)
    return replace(run, samples=samples, host=_means(run.host), recording=recording)


def _means(host: pd.DataFrame) -> pd.DataFrame:
    """Return the host's rows as a slower recorder has them: each is of the time since the one before."""
    if not len(host):
        return host
    rows = np.arange(len(host)) // EVERY
    means = host.groupby(rows).mean()
    return means.assign(t_s=host["t_s"].groupby(rows).last())


def without_callbacks(run: Run) -> Run:
    """Return a run as it is seen from outside."""
    return replace(run, inside=())


def without_utilisation(run: Run) -> Run:
    """Return a run of a GPU that reports none."""
    return replace(without_ring(run), samples=run.samples.assign(gpu_util_pct=np.nan))


def bare(run: Run) -> Run:
    """Return a run without any of the signals but utilisation."""
    return without_callbacks(with_few_ticks(without_ring(without_gpm(run))))


VARIANTS: Mapping[str, Callable[[Run], Run]] = {
    "nothing is missing": lambda run: run,
    "no GPM (SM, tensor and memory activity)": without_gpm,
    "no readings of the driver's own between ticks": without_ring,
    "no pressure stall information (PSI)": without_pressure,
    "every fifth second only": with_few_ticks,
    "no callbacks": without_callbacks,
    "none of these but pressure": bare,
    "no utilisation": without_utilisation,
}


def names_recorded() -> list[str]:
    """Return the runs that our recorder made on real GPUs."""
    assert set(RECORDED) <= set(SETS)
    return [name for name in NAMES if labels_of(name).of in RECORDED]


@cache
def judged_as(variant: str) -> tuple[Judged, ...]:
    """Return the runs that our recorder made on real GPUs, each with a signal less, analysed and judged."""
    change = VARIANTS[variant]
    judged = []
    for name in names_recorded():
        run = change(run_of(name))
        analysis = analysis_of(name) if run is run_of(name) else analyse(run)
        judged.append(judge(labels_of(name), analysis.findings, run.duration_s))
    return tuple(judged)


def counts(variant: str) -> tuple[int, int, int, int]:
    """Return how many faults there are, how many were found, with the right cause, and how many alarms were false."""
    judged = judged_as(variant)
    verdicts = verdicts_of(judged)
    alarms = sum(len(one.false_alarms) for one in judged)
    return len(verdicts), sum(v.is_found for v in verdicts), sum(v.is_named for v in verdicts), alarms


def table() -> str:
    """Return the table "as another GPU"."""
    return "\n".join([HEAD, *(_row(variant) for variant in VARIANTS)])


def _row(variant: str) -> str:
    faults, found, named, alarms = counts(variant)
    return f"| {variant} | {found} of {faults} | {named} | {alarms} |"
