"""What all outputs of a benchmark say: its sentences, and the rows of its tables."""

import math
from collections.abc import Sequence

from gpu_report.model import BenchResult, BenchRow, LatencyLimit, Quantile, Rate, provider_in_use
from gpu_report.wording import MISSING, amount, counted

STAGES = {
    "start": "its process did not start",
    "model": "the model could not be read",
    "build": "the export failed",
    "load": "it could not be loaded",
    "serve": "it failed while serving",
    "check": "it failed after serving",
}
HEAD = ("#", "Variant", "Images/s", "p50", "p95", "p99", "Worst", "Calls")
INTERVALS_HEAD = ("Images/s, 95 % interval", "p50, 95 % interval", "p95, 95 % interval")
FULL_SPEED_HEAD = ("#", "Variant", "Images/s", "p50", "p95")
PARTS_HEAD = ("#", "Variant", "Pre-processing", "Inference", "Post-processing", "GPU energy an image")
START_HEAD = ("#", "Variant", "Build", "First result", "First call", "Warm-up", "File", "Memory")
OUTPUTS_HEAD = ("#", "Variant", "Same boxes", "Largest score difference", "mAP50-95", "Compared with")
SECONDS_MARGIN = 1.1  # over what calls took until now: the next benchmark may be slower
WAITED_LEAST = 0.01  # of the time: less changes no figure that is shown
SMALLEST_SCORE = 0.00005  # a smaller difference would read zero

# Of a limit only the quantile counts here.
MEDIAN, P95, P99 = LatencyLimit("p50", 0.0), LatencyLimit("p95", 0.0), LatencyLimit("p99", 0.0)

Row = tuple[str, ...]


def headline(result: BenchResult) -> str:
    """Return what to choose, in a sentence."""
    if not any(row.measured for row in result.rows):
        return "No variant could be measured."
    if result.choice is None:
        return _nothing_within(result)
    best = result.rows[result.choice]
    if result.limit is None:
        return f"Most images per second at full speed: {_fastest(best)}."
    measured = milliseconds(result.limit.quantile(best).value_ms)
    within = f"{result.limit.of} of all calls {measured} (limit {result.limit.ms:g} ms)"
    return f"Choose {best.variant.name}: {_rate(best)} at full speed, {within}."


def second_sentence(result: BenchResult) -> str:
    """Return what else decides: whether it was cut short, how sure the choice is, which answers soonest; or empty."""
    return f"{_cut_short(result)} {_how_sure(result)}".strip()


def _cut_short(result: BenchResult) -> str:
    return "" if result.run.finished else "This benchmark was cut short: these are the turns until then."


def _how_sure(result: BenchResult) -> str:
    if result.choice is not None and result.limit is not None and not result.keeps_limit:
        ends = _interval(result.limit.quantile(result.rows[result.choice]))
        return f"Not certain: the interval of its {result.limit.of} reaches over the limit ({ends})."
    if result.rivals:
        others = counted(len(result.rivals), "variant")
        first = result.rows[result.rivals[0]].variant.name
        return f"Not certain: {others} may be as fast (such as {first}). A longer `--seconds` separates them."
    if result.limit is None and result.quickest is not None:
        row = result.rows[result.quickest]
        median_ms = None if row.full_speed is None else row.full_speed.p50_ms
        return f"Lowest latency at full speed: {row.variant.name}, p50 {milliseconds(median_ms)}."
    return ""


def _nothing_within(result: BenchResult) -> str:
    limit, usable = result.limit, [row for row in result.rows if row.may_be_chosen]
    if limit is None or not usable:
        return "No variant can be chosen: each one failed, or its outputs differ."
    if result.is_too_short:
        needed = (
            f"{limit.of} is unknown: it needs {limit.calls_needed:,} calls of each variant. {_longer(usable, limit)}"
        )
        return f"{needed} Fastest at full speed: {_fastest(usable[0])}."
    known = [(value, row) for row in usable if (value := limit.quantile(row).value_ms) is not None]
    of = limit.of if known else "p50"  # which is over the limit already
    known = known or [(row.latency.p50.value_ms or 0.0, row) for row in usable if row.latency is not None]
    value, row = min(known, key=lambda pair: pair[0])
    least = f"The lowest {of} of all calls is {milliseconds(value)}, of {row.variant.name}."
    return f"No variant keeps {limit.of} within {limit.ms:g} ms. {least}"


def _longer(rows: Sequence[BenchRow], limit: LatencyLimit) -> str:
    """Return how long each variant has to serve until the slowest has made the calls that a quantile needs."""
    slowest = min((rate for row in rows if (rate := row.calls_per_s)), default=None)
    return "" if slowest is None else f"Use `--seconds {_seconds(limit.calls_needed / slowest)}`."


def _seconds(least_s: float) -> int:
    """Return some seconds more, rounded up to two digits: 47 becomes 52."""
    wanted_s = least_s * SECONDS_MARGIN
    step = int(10.0 ** max(math.floor(math.log10(wanted_s)) - 1, 0))
    return math.ceil(wanted_s / step) * step


def _fastest(row: BenchRow) -> str:
    return f"{row.variant.name}, {_rate(row)}"


def _rate(row: BenchRow) -> str:
    """Return images a second at full speed."""
    return MISSING if row.full_speed is None else f"{_digits(row.full_speed.images_per_s)} images/s"


def notes(result: BenchResult) -> tuple[str, ...]:
    """Return what a reader has to know of the figures, a sentence or two each."""
    if not measured(result):
        return ()
    said = [
        _device(result),
        "Latency is of one call with one batch, without what `predict` prepares before it; images/s includes that.",
        "# is the rank by images/s at full speed (fastest tenth of turns). Variants that failed or differ come last.",
        "Variants were measured in short turns, in a shuffled order. The first calls of each turn are left out.",
        *_host(result),
        *_unreadable(result),
    ]
    said += [text for row in result.rows if (text := _fell_back(row, result))]
    said += [text for row in result.rows if (text := _differs(row))]
    said += _random(result.rows)
    said += _shapes(result.rows)
    said += _few_calls(result)
    return tuple(said)


def _host(result: BenchResult) -> list[str]:
    """Return how fast the host was, by which two benchmarks can be compared."""
    host = result.host
    if host is None:
        return []
    ends = f"{_digits(host.low_ms)} to {milliseconds(host.high_ms)} in nine of ten turns"
    said = [f"Speed of the host: a fixed loop took {milliseconds(host.ms)} ({ends})."]
    if host.waited_share is not None and host.waited_share >= WAITED_LEAST:
        waited = f"{100 * host.waited_share:.0f} % of the time"
        said.append(f"Calls waited for a core {waited}, since it was in use.")
    return said


def _unreadable(result: BenchResult) -> list[str]:
    most = max((row.variant.unreadable_images for row in result.rows), default=0)
    return [f"{counted(most, 'file')} of `--source` could not be read as images, and were left out."] if most else []


def _device(result: BenchResult) -> str:
    run = result.run
    versions = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    return (
        f"Served on {run.gpu or 'the CPU: no GPU was found, or `--device cpu` was asked for'}. Installed: {versions}."
    )


def _fell_back(row: BenchRow, result: BenchResult) -> str:
    if "provider fell back" not in row.remarks or row.variant.settings is None:
        return ""
    provider = provider_in_use(row.variant.settings)
    used = f"provider in use {provider}" if provider else "CPU in use"
    asked = result.run.device or ""
    asked = f"cuda:{asked}" if asked.isdigit() else asked
    return f"{row.variant.name} did not use the GPU: device asked {asked}, {used}. Install `onnxruntime-gpu`."


def _differs(row: BenchRow) -> str:
    agreed = row.variant.agreement
    if "outputs differ" not in row.remarks or agreed is None:
        return ""
    if row.variant.map50_95 is not None:
        return f"{row.variant.name} has another mAP50-95 than {agreed.reference}. It is not chosen."
    same = amount(None if agreed.share is None else 100 * agreed.share, "%")
    return f"{row.variant.name} finds other boxes than {agreed.reference}: {same} are the same. It is not chosen."


def _random(rows: Sequence[BenchRow]) -> list[str]:
    names = dict.fromkeys(row.variant.short for row in rows if "random weights" in row.remarks)
    text = "the weights are random, because a YAML was given. Speed counts, boxes mean nothing"
    return [f"{', '.join(names)}: {text}."] if names else []


def _shapes(rows: Sequence[BenchRow]) -> list[str]:
    return [f"{row.variant.name} got images of several shapes." for row in rows if "shapes differ" in row.remarks]


def _few_calls(result: BenchResult) -> list[str]:
    few = [row for row in result.rows if row.measured and P95.quantile(row).value_ms is None]
    if not few:
        return []
    which = counted(len(few), "variant")
    return [f"{which} made fewer than {P95.calls_needed} calls: p95 is unknown there. {_longer(few, P95)}"]


def main_rows(result: BenchResult) -> list[Row]:
    """Return a row of each variant that was measured (HEAD)."""
    return [
        (
            str(number),
            row.variant.name,
            images_per_s(row, unit=False),
            *(milliseconds(each.quantile(row).value_ms) for each in (MEDIAN, P95, P99)),
            milliseconds(None if row.latency is None else row.latency.worst_ms),
            f"{row.latency.calls if row.latency is not None else 0:,}",
        )
        for number, row in measured(result)
    ]


def interval_rows(result: BenchResult) -> list[Row]:
    """Return the intervals that stand behind each row of `main_rows` where there is room (INTERVALS_HEAD)."""
    return [
        (_rates(row.images_per_s), *(_interval(each.quantile(row)) for each in (MEDIAN, P95)))
        for _, row in measured(result)
    ]


def wide_rows(result: BenchResult) -> list[Row]:
    """Return both (HEAD and INTERVALS_HEAD)."""
    return [(*row, *ends) for row, ends in zip(main_rows(result), interval_rows(result), strict=True)]


def full_speed_rows(result: BenchResult) -> list[Row]:
    """Return the figures of each variant's fastest turns (FULL_SPEED_HEAD)."""
    return [
        (
            str(number),
            row.variant.name,
            _digits(row.full_speed.images_per_s),
            milliseconds(row.full_speed.p50_ms),
            milliseconds(row.full_speed.p95_ms),
        )
        for number, row in measured(result)
        if row.full_speed is not None
    ]


def part_rows(result: BenchResult) -> list[Row]:
    """Return the parts of a call (PARTS_HEAD)."""
    return [
        (
            str(number),
            row.variant.name,
            *(milliseconds(each) for each in (row.preprocess_ms, row.inference_ms, row.postprocess_ms)),
            MISSING if row.joules is None else f"{row.joules:.2g} J",
        )
        for number, row in measured(result)
    ]


def start_rows(result: BenchResult) -> list[Row]:
    """Return what it takes until a variant serves (START_HEAD)."""
    return [
        (
            str(number),
            row.variant.name,
            _build(row),
            amount(row.variant.load_s, "s"),
            milliseconds(row.first_call_ms),
            _warm_up(row),
            amount(row.variant.size_mib, "MiB"),
            amount(row.variant.gpu_memory_mib or row.variant.memory_mib, "MiB"),
        )
        for number, row in measured(result)
    ]


def output_rows(result: BenchResult) -> list[Row]:
    """Return how far outputs agree (OUTPUTS_HEAD)."""
    found: list[Row] = []
    for number, row in measured(result):
        agreed, score = row.variant.agreement, row.variant.map50_95
        share = None if agreed is None or agreed.share is None else 100 * agreed.share
        difference = None if agreed is None else agreed.score_difference
        found.append(
            (
                str(number),
                row.variant.name,
                "" if agreed is None else amount(share, "%"),
                "" if agreed is None else _score(difference),
                _score(score),
                "" if agreed is None else agreed.reference,
            )
        )
    return found


def _score(value: float | None) -> str:
    if value is None:
        return MISSING
    return "<0.0001" if 0 < value < SMALLEST_SCORE else f"{value:.4f}"


def failed_rows(result: BenchResult) -> list[tuple[str, str]]:
    """Return each variant that failed, and why; also one that has figures and failed later."""
    return [
        (row.variant.name, f"{STAGES.get(row.variant.failed_in, row.variant.failed_in)}: {row.variant.reason or ''}")
        for row in result.rows
        if row.variant.failed_in is not None
    ]


def measured(result: BenchResult) -> list[tuple[int, BenchRow]]:
    """Return the rows with figures, each with the number by which table and chart call it."""
    return list(enumerate((row for row in result.rows if row.measured), start=1))


def _build(row: BenchRow) -> str:
    if row.variant.build_s is None:
        return "none"
    return f"{amount(row.variant.build_s, 's')}{', earlier' if row.variant.reused else ''}"


def _warm_up(row: BenchRow) -> str:
    if row.warm_up_calls is None:
        return MISSING
    return f"{counted(row.warm_up_calls, 'call')}, {amount(row.warm_up_s, 's')}" if row.warm_up_calls else "none"


def milliseconds(value: float | None) -> str:
    """Return milliseconds with three digits: 4.57 ms, 56.1 ms, 1,240 ms."""
    return MISSING if value is None else f"{_digits(value)} ms"


def images_per_s(row: BenchRow, *, unit: bool = True) -> str:
    """Return a throughput with three digits."""
    return MISSING if row.images_per_s is None else f"{_digits(row.images_per_s.value)}{' images/s' if unit else ''}"


def _digits(value: float) -> str:
    decimals = 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
    return f"{value:,.{decimals}f}"


def _interval(quantile: Quantile) -> str:
    if quantile.low_ms is None or quantile.high_ms is None:
        return ""
    return f"{_digits(quantile.low_ms)} to {milliseconds(quantile.high_ms)}"


def _rates(rate: Rate | None) -> str:
    if rate is None or rate.low is None or rate.high is None:
        return ""
    return f"{_digits(rate.low)} to {_digits(rate.high)}"


def limit_words(limit: LatencyLimit) -> str:
    """Return a limit for a chart: p95 10 ms."""
    return f"{limit.of} {limit.ms:g} ms"
