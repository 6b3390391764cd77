"""The figures of a variant: from the calls within its turns, each with what is not known left out."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from gpu_report.analyse.bench import thresholds as th
from gpu_report.analyse.inference.percentiles import latency
from gpu_report.analyse.inference.warm_up import warm_up_calls
from gpu_report.analyse.timeseries.gpu_series import Floats
from gpu_report.analyse.timeseries.student import student_quantile
from gpu_report.model import (
    BenchRow,
    BenchRun,
    BenchVariant,
    FullSpeed,
    Latency,
    ModelCalls,
    Quantile,
    Rate,
    Remark,
    Turn,
    fell_back_to_cpu,
)

TIMES = ("preprocess_ms", "inference_ms", "postprocess_ms", "total_ms")
COLUMNS = ("start_s", "images", "height", "width", *TIMES)
CPU = "cpu"
POWER_HOLD_S = 2.0  # seconds that a reading of power counts at most: the recorder's tick is shorter


@dataclass(frozen=True, eq=False)
class _Calls:
    """Columns of calls, one element each, in order of their beginnings; of those in turns, the place of each turn."""

    columns: dict[str, Floats]
    turn: npt.NDArray[np.intp] = field(default_factory=lambda: np.empty(0, dtype=np.intp))

    def __getitem__(self, name: str) -> Floats:
        return self.columns[name]

    def within(self, turns: Sequence[Turn]) -> "_Calls":
        """Return those that began and ended in a turn."""
        begins, ends = np.array(turns, dtype=float).reshape(-1, 2).T
        turn = np.searchsorted(begins, self["start_s"], side="right") - 1
        last = self["start_s"] + self["total_ms"] / 1000
        inside = (turn >= 0) & (last <= ends[turn]) if len(ends) else np.zeros(len(turn), dtype=bool)
        return _Calls({name: column[inside] for name, column in self.columns.items()}, turn[inside])


def figures(run: BenchRun, variant: BenchVariant) -> BenchRow:
    """Return a variant's figures; of one that has not served none but what is known before."""
    every = _joined(variant.calls)
    first_ms = float(every["total_ms"][0]) if len(every["total_ms"]) else None
    counted = every.within(variant.turns)
    if not len(counted["total_ms"]):
        return BenchRow(variant, first_call_ms=first_ms, remarks=_remarks(run, variant, counted))
    warm_calls, warm_s = _warm_up(every, variant)
    rates = _rates(counted, variant.turns)
    return BenchRow(
        variant,
        images_per_s=_throughput(rates),
        latency=_latency(counted),
        full_speed=_full_speed(counted, rates),
        preprocess_ms=_median(counted["preprocess_ms"]),
        inference_ms=_median(counted["inference_ms"]),
        postprocess_ms=_median(counted["postprocess_ms"]),
        first_call_ms=first_ms,
        warm_up_calls=warm_calls,
        warm_up_s=warm_s,
        joules=_joules_of(run, every, variant),
        remarks=_remarks(run, variant, counted),
        rates=tuple(rates.tolist()),
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


def _rates(counted: _Calls, turns: Sequence[Turn]) -> Floats:
    """Return the images a second of each turn."""
    images = np.bincount(counted.turn, weights=counted["images"], minlength=len(turns))
    rates: Floats = images / np.diff(np.array(turns, dtype=float), axis=1)[:, 0]
    return rates


def _by_turn(counted: _Calls) -> list[Floats]:
    """Return how long the calls of each turn took."""
    _, firsts = np.unique(counted.turn, return_index=True)
    return np.split(counted["total_ms"], firsts[1:])


def _latency(counted: _Calls) -> Latency:
    """Return latencies, with the intervals in which another benchmark's are expected."""
    turns, found = _by_turn(counted), latency(counted["total_ms"])
    return replace(
        found,
        p50=_of_another(found.p50, turns, 0.5),
        p95=_of_another(found.p95, turns, 0.95),
        p99=_of_another(found.p99, turns, 0.99),
    )


def _of_another(quantile: Quantile, turns: Sequence[Floats], share: float) -> Quantile:
    """Return a quantile with the interval in which that of another benchmark is expected, of the same length.

    Calls of a turn resemble each other, and hosts drift: it is judged by what BLOCKS of turns differ. Of fewer turns
    the interval stays that of calls.
    """
    value_ms = quantile.value_ms
    if value_ms is None or len(turns) < th.BLOCKS:
        return quantile
    places = np.array_split(np.arange(len(turns)), th.BLOCKS)
    far = _far([float(np.quantile(np.concatenate([turns[at] for at in block]), share)) for block in places])
    return Quantile(value_ms, value_ms / far, value_ms * far)


def _far(blocks: Sequence[float]) -> float:
    """Return by how many times two benchmarks of such blocks differ at most (95 %): each has the mean of as many."""
    times = student_quantile(th.HALF_OF_5_PERCENT, len(blocks) - 1) * math.sqrt(2 / len(blocks))
    return math.exp(times * float(np.log(blocks).std(ddof=1)))


def _full_speed(counted: _Calls, rates: Floats) -> FullSpeed:
    """Return the figures of the fastest tenth of turns: a host has one full speed, and many slow ones."""
    turns = _by_turn(counted)
    enough = min(len(each) for each in turns) >= th.P95_CALLS_OF_A_TURN
    return FullSpeed(
        p50_ms=_of_fastest(turns, 0.5),
        images_per_s=float(np.quantile(rates, 1 - th.FULL_SPEED_SHARE)),
        p95_ms=_of_fastest(turns, 0.95) if enough else None,
    )


def _of_fastest(turns: Sequence[Floats], quantile: float) -> float:
    """Return a quantile of the calls of a turn that nine turns of ten exceed."""
    return float(np.quantile([np.quantile(each, quantile) for each in turns], th.FULL_SPEED_SHARE))


def _throughput(rates: Floats) -> Rate:
    """Return the mean of turns with the interval in which another benchmark's is expected."""
    mean = float(rates.mean())
    blocks = [float(block.mean()) for block in np.array_split(rates, th.BLOCKS)] if len(rates) >= th.BLOCKS else []
    if not blocks or min(blocks) <= 0:
        return Rate(mean)
    far = _far(blocks)
    return Rate(mean, mean / far, mean * far)


def _joules_of(run: BenchRun, every: _Calls, variant: BenchVariant) -> float | None:
    """Return the energy of an image in the turns; where they are short, behind the first seconds of the warm-up."""
    turns: tuple[Turn, ...] = variant.turns
    if max(end_s - start_s for start_s, end_s in turns) < th.LONG_TURN_S and variant.warm_up is not None:
        start_s, end_s = variant.warm_up
        turns = ((start_s + th.LONG_TURN_S, end_s),) if end_s > start_s + th.LONG_TURN_S else ()
    return _joules(run, every.within(turns), turns)


def _joules(run: BenchRun, counted: _Calls, turns: Sequence[Turn]) -> float | None:
    """Return the board's energy in some turns for each image, None with power of less than POWER_READ_SHARE.

    A reading counts until the next one.
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
