"""The figures of a variant: from the calls within its turns, each with what is not known left out."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpu_report.analyse.bench import thresholds as th
from gpu_report.analyse.inference.percentiles import latency
from gpu_report.analyse.inference.warm_up import warm_up_calls
from gpu_report.analyse.timeseries.gpu_series import Floats
from gpu_report.analyse.timeseries.student import student_quantile
from gpu_report.model import BenchRow, BenchRun, BenchVariant, ModelCalls, Rate, Remark, Turn, fell_back_to_cpu

COLUMNS = ("start_s", "images", "height", "width", "preprocess_ms", "inference_ms", "postprocess_ms", "total_ms")
CPU = "cpu"
HALF_OF_5_PERCENT = 0.975
POWER_HOLD_S = 2.0  # seconds that a reading of power counts at most: the recorder's tick is shorter


@dataclass(frozen=True, eq=False)
class _Calls:
    """Columns of calls, one element each, in order of their beginnings."""

    columns: dict[str, Floats]

    def __getitem__(self, name: str) -> Floats:
        return self.columns[name]

    def within(self, turns: Sequence[Turn]) -> "_Calls":
        """Return those that began and ended in a turn."""
        start, end = self["start_s"], self["start_s"] + self["total_ms"] / 1000
        inside = np.zeros(len(start), dtype=bool)
        for begin_s, end_s in turns:
            inside |= (start >= begin_s) & (end <= end_s)
        return _Calls({name: column[inside] for name, column in self.columns.items()})


def figures(run: BenchRun, variant: BenchVariant) -> BenchRow:
    """Return a variant's figures; of one that has not served none but what is known before."""
    every = _joined(variant.calls)
    first_ms = float(every["total_ms"][0]) if len(every["total_ms"]) else None
    counted = every.within(variant.turns)
    total = counted["total_ms"]
    if not len(total):
        return BenchRow(variant, first_call_ms=first_ms, remarks=_remarks(run, variant, counted))
    warm_calls, warm_s = _warm_up(every, variant)
    return BenchRow(
        variant,
        images_per_s=_throughput(counted, variant.turns),
        latency=latency(total),
        preprocess_ms=_median(counted["preprocess_ms"]),
        inference_ms=_median(counted["inference_ms"]),
        postprocess_ms=_median(counted["postprocess_ms"]),
        first_call_ms=first_ms,
        warm_up_calls=warm_calls,
        warm_up_s=warm_s,
        joules=_joules(run, counted, variant.turns),
        remarks=_remarks(run, variant, counted),
    )


def _joined(calls: Sequence[ModelCalls]) -> _Calls:
    """Return all calls of a process: a setting that changed for a while has made a model of its own of it."""
    columns = {name: np.concatenate([np.empty(0), *(getattr(each, name) for each in calls)]) for name in COLUMNS}
    order = np.argsort(columns["start_s"], kind="stable")
    return _Calls({name: column[order] for name, column in columns.items()})


def _warm_up(every: _Calls, variant: BenchVariant) -> tuple[int | None, float | None]:
    """Return how many calls at the beginning were warm-up and how long they took; of all until the first turn."""
    if variant.warm_up is None:
        return None, None
    before = every["start_s"] < variant.warm_up[1]
    total = every["total_ms"][before]
    calls = warm_up_calls(total)
    return calls, float(total[:calls].sum()) / 1000


def _throughput(counted: _Calls, turns: Sequence[Turn]) -> Rate:
    """Return images a second of the turns' time, with the interval of the mean of turns (Student's t)."""
    rates = np.array([counted.within([turn])["images"].sum() / (turn[1] - turn[0]) for turn in turns])
    mean = float(rates.mean())
    if len(rates) < th.TURNS_AT_LEAST:
        return Rate(mean)
    far = student_quantile(HALF_OF_5_PERCENT, len(rates) - 1) * float(rates.std(ddof=1)) / len(rates) ** 0.5
    return Rate(mean, mean - far, mean + far)


def _joules(run: BenchRun, counted: _Calls, turns: Sequence[Turn]) -> float | None:
    """Return the board's energy in the turns for each image, None with power of less than POWER_READ_SHARE.

    A reading counts until the next one. The first second of a turn has the readings of the one before on cards whose
    driver averages power; settling before a turn takes half of it.
    """
    images = float(counted["images"].sum())
    if len(run.power_t_s) < 2 or not images:
        return None
    lasts = np.minimum(np.diff(run.power_t_s, append=run.power_t_s[-1]), POWER_HOLD_S)
    ends = run.power_t_s + lasts
    joules = seconds = 0.0
    for start_s, end_s in turns:
        shared = np.clip(np.minimum(ends, end_s) - np.maximum(run.power_t_s, start_s), 0.0, None)
        joules += float((shared * run.power_w).sum())
        seconds += float(shared.sum())
    length = sum(end_s - start_s for start_s, end_s in turns)
    return joules / seconds * length / images if seconds > th.POWER_READ_SHARE * length else None


def _remarks(run: BenchRun, variant: BenchVariant, counted: _Calls) -> tuple[Remark, ...]:
    """Return what is to be known beside the figures."""
    shapes = {(h, w) for h, w in zip(counted["height"], counted["width"], strict=True) if np.isfinite(h + w)}
    agreed = variant.agreement
    told: list[tuple[bool, Remark]] = [
        (_fell_back(run, variant), "provider fell back"),
        (_differs(run, variant), "outputs differ"),
        (agreed is not None and agreed.share is None, "no boxes"),
        (len(shapes) > 1, "shapes differ"),
        (variant.random_weights, "random weights"),
    ]
    return tuple(remark for holds, remark in told if holds)


def _differs(run: BenchRun, variant: BenchVariant) -> bool:
    """Tell whether a variant's outputs differ from the reference's: by mAP where both are known, else by boxes."""
    agreed = variant.agreement
    if agreed is None:
        return False
    reference = next((each.map50_95 for each in run.variants if each.name == agreed.reference), None)
    if reference is not None and variant.map50_95 is not None:
        return abs(variant.map50_95 - reference) > th.SAME_MAP
    return agreed.share is not None and agreed.share < th.SAME_OUTPUTS_SHARE


def _fell_back(run: BenchRun, variant: BenchVariant) -> bool:
    """Tell whether a GPU was asked for and the CPU has served."""
    if variant.settings is None or run.device in {None, CPU}:
        return False
    return fell_back_to_cpu(variant.settings) or variant.settings.get("device") == CPU


def _median(values: Floats) -> float | None:
    known = values[np.isfinite(values)]
    return float(np.median(known)) if len(known) else None
