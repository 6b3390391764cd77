"""What to choose: the most images a second within a limit of latency; and the limit as the command line has it."""

import re
from collections.abc import Callable, Sequence

import numpy as np

from gpu_report.analyse.bench import thresholds as th
from gpu_report.analyse.inference.percentiles import batches_of, variance_of_mean
from gpu_report.analyse.timeseries.student import student_quantile
from gpu_report.errors import UsageError
from gpu_report.model import BenchResult, BenchRow, BenchRun, LatencyLimit

_LIMIT = re.compile(r"(p50|p95|p99):(\d+(?:\.\d+)?)ms")


def parse_limit(text: str) -> LatencyLimit:
    """Return a limit such as p95:10ms; UsageError for what is none."""
    match = _LIMIT.fullmatch(text.strip())
    if match is None or not float(match[2]):
        raise UsageError(f"--limit {text!r} is no limit of latency: write p50, p95 or p99 so: --limit p95:10ms")
    return LatencyLimit(match[1], float(match[2]))  # type: ignore[arg-type] # the pattern has these three


def choose(run: BenchRun, rows: tuple[BenchRow, ...], limit: LatencyLimit | None) -> BenchResult:
    """Return the result, rows in order of rank: of variants that did not fail and whose outputs do not differ."""
    rows = tuple(sorted(rows, key=lambda row: (not row.may_be_chosen, not row.measured, -(_rate(row) or 0.0))))
    usable = [place for place, row in enumerate(rows) if row.may_be_chosen]
    within = [place for place in usable if limit is None or _is_within(rows[place], limit)]
    choice = _best(within, lambda place: _rate(rows[place]))
    keeps = choice is not None and (limit is None or _is_surely_within(rows[choice], limit))
    quickest = _best(usable, lambda place: _quickness(rows[place]))
    rivals = () if choice is None else tuple(place for place in within if _may_be_as_fast(rows, place, choice))
    return BenchResult(run, rows, limit, choice, keeps, quickest, rivals)


def _may_be_as_fast(rows: tuple[BenchRow, ...], place: int, choice: int) -> bool:
    """Tell whether a variant's images a second may be those of the choice: the interval of their ratio, round by round.

    What slows a whole round is in both. Rounds resemble their neighbours, hence batch means.
    """
    pairs = [pair for pair in zip(rows[place].rates, rows[choice].rates, strict=False) if min(pair) > 0]
    if place == choice or len(pairs) < th.TURNS_AT_LEAST:
        return False
    logs = np.log([mine / best for mine, best in pairs])
    batches = batches_of(len(logs))
    far = student_quantile(th.HALF_OF_5_PERCENT, batches - 1) * variance_of_mean(logs, batches) ** 0.5
    return bool(logs.mean() + far >= 0)


def _is_within(row: BenchRow, limit: LatencyLimit) -> bool:
    value = limit.quantile(row).value_ms
    return value is not None and value <= limit.ms


def _is_surely_within(row: BenchRow, limit: LatencyLimit) -> bool:
    high = limit.quantile(row).high_ms
    return high is not None and high <= limit.ms


def _best(places: Sequence[int], value: Callable[[int], float | None]) -> int | None:
    known = [(v, -place) for place in places if (v := value(place)) is not None]
    return -max(known)[1] if known else None


def _rate(row: BenchRow) -> float | None:
    return None if row.full_speed is None else row.full_speed.images_per_s


def _quickness(row: BenchRow) -> float | None:
    return None if row.full_speed is None else -row.full_speed.p50_ms
