"""The section on inference: how fast each model answered, which part of a call is slow, and what lies between calls."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpu_report.gpu_words import gpu_words
from gpu_report.model import (
    Analysis,
    CallGroup,
    GroupKind,
    ModelCalls,
    Quantile,
    ServedModel,
    calls_needed,
    fell_back_to_cpu,
    provider_in_use,
)
from gpu_report.render.formatting import clean, duration, known, number, share
from gpu_report.render.page.sections.latency_chart import chart, latency_data, slowest
from gpu_report.render.page.views.inference import InferenceView, ServedView, SlowCall
from gpu_report.render.page.views.tables import Fact, LedgerItem, NamedTable, TextTable
from gpu_report.render.run_clock import WallClock
from gpu_report.render.samples.columns import Blob
from gpu_report.render.served_words import (
    PART_WORDS,
    PARTS,
    calls_in_all,
    energy_per_million,
    format_words,
    interval_words,
    longest_part,
    milliseconds,
    money_per_million,
    parts_ms,
    precision_words,
    speed_words,
)
from gpu_report.wording import counted, upper_first, where_words

Json = dict[str, Any]
IN_FULL = 6  # models; what more there are has a row each
SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
MEDIAN = "Latency, median"
LABELS = {"p50": MEDIAN, "p95": "Latency, p95", "p99": "Latency, p99"}
LABEL_PCT = 9.0  # of the bar's width, from which on a part has room for its share
MOSTLY_CALLED = 0.5  # of the time in calls: a service that waits for most of it is judged by its latency, not its speed
MUCH_ELSE = 0.1  # of a call: with more of it nobody should wonder what else there is
NEXT_TO_NO_GAP = 0.02  # of the time: with less between calls nobody asks what it went to

# Parts of a call by the colours that the same work has in the ledger.
FILLS = {"preprocess": "preprocessing", "inference": "work", "postprocess": "postprocessing", "other": "own-code"}
GROUPS: dict[GroupKind, tuple[str, str]] = {
    "batch": ("By batch", "Batch"),
    "shape": ("By shape of the input", "Shape"),
    "gap": ("By the pause before a call", "Pause"),
    "sm-clock": ("By SM clock as a call begins", "SM clock"),
}


def inference(analysis: Analysis, clock: WallClock) -> InferenceView | None:
    """Return the section, None where no model was called."""
    served = analysis.served
    if not served:
        return None
    return InferenceView(
        note=_note(analysis),
        served=tuple(_served(each, analysis, clock) for each in served[:IN_FULL]),
        others=_others(served[IN_FULL:]),
        comes_first=analysis.is_inference,
    )


def latencies(analysis: Analysis, blob: Blob) -> list[list[Json]]:
    """Return where the columns lie in `blob` from which the charts of the models in full are read off, in order."""
    return [latency_data(each, analysis.run.duration_s, blob) for each in analysis.served[:IN_FULL]]


def _note(analysis: Analysis) -> str:
    """Return what all models come to, and how long exporting them took; empty where one model says it all."""
    exported_s = sum(phase.end_t_s - phase.start_t_s for phase in analysis.phases if phase.name == "export")
    exported = f"Exporting a model (building its engine) took {duration(exported_s)}." if exported_s else ""
    if len(analysis.served) == 1:
        return exported
    models, calls = counted(len(analysis.served), "model"), counted(calls_in_all(analysis), "call")
    return f"{models}, {calls} in all. {exported}".rstrip()


def _served(served: ServedModel, analysis: Analysis, clock: WallClock) -> ServedView:
    return ServedView(
        title=clean(served.name),
        about=_about(served),
        warning="ONNX Runtime fell back to the CPU: the GPU is not used."
        if fell_back_to_cpu(served.calls.settings)
        else "",
        tiles=_tiles(served),
        parts_title=_parts_title(served),
        parts=_parts(served),
        parts_note=_parts_note(served),
        warm_up=_warm_up(served),
        chart=chart(served, analysis.run.duration_s, clock),
        slow_columns=_SLOW_COLUMNS,
        slow=_slow(served, clock),
        between=_between(served),
        gaps=_gaps(served),
        groups=tuple(table for kind in GROUPS for table in _groups(served, kind)),
        settings=_settings(served),
    )


# --- what stands on top ---------------------------------------------------------------------------------------


def _about(served: ServedModel) -> tuple[str, ...]:
    """Return how a model ran, in a few words each."""
    calls = served.calls
    how = " ".join(filter(None, (format_words(served), precision_words(served))))
    where = gpu_words(calls.gpu) if calls.gpu is not None else clean(str(calls.settings.get("device") or ""))
    task = clean(str(calls.settings.get("task") or ""))
    return tuple(part for part in (task, how, _batch(served), where, f"process {calls.pid}") if part)


def _batch(served: ServedModel) -> str:
    """Return how many images a call has: of one, or on average."""
    sizes = served.steady_calls.images
    same = len(sizes) > 0 and float(sizes.min()) == float(sizes.max())
    return f"batch {number(served.batch)}" if same else f"batch {number(served.batch, 1)} on average"


def _tiles(served: ServedModel) -> tuple[Fact, ...]:
    quantiles = tuple(_quantile(served, name) for name in SHARES if name == "p50" or _is_known(served, name))
    speed = Fact("Images a second", speed_words(served.images_per_s), _speed_note(served))
    return (
        *((*quantiles, speed) if served.in_calls_share < MOSTLY_CALLED else (speed, *quantiles)),
        Fact("Worst call", milliseconds(served.latency.worst_ms), _worst_note(served)),
        Fact(
            "Time in calls",
            share(served.in_calls_share),
            f"of the time from the first call to the last; {duration(served.gap_s)} between calls",
        ),
        *_gpu_busy(served),
        *_energy(served),
    )


def _speed_note(served: ServedModel) -> str:
    """Return of how many calls that is, and how fast it is without the time between them where that differs."""
    calls = f"{counted(served.images, 'image')} in {counted(served.latency.calls, 'call')}"
    inside = speed_words(served.images_per_s_in_calls)
    differs = known(served.images_per_s_in_calls) is not None and inside != speed_words(served.images_per_s)
    return f"{calls}; {inside} within calls" if differs else calls


def _is_known(served: ServedModel, name: str) -> bool:
    """Tell whether there were calls enough for a quantile; the verdict says of how many it needs."""
    quantile: Quantile = getattr(served.latency, name)
    return known(quantile.value_ms) is not None


def _quantile(served: ServedModel, name: str) -> Fact:
    quantile: Quantile = getattr(served.latency, name)
    if known(quantile.value_ms) is None:
        return Fact(LABELS[name], milliseconds(None), f"needs {calls_needed(SHARES[name]):,} calls")
    ends = interval_words(quantile)
    return Fact(LABELS[name], milliseconds(quantile.value_ms), f"95 % confidence interval {ends}" if ends else "")


def _worst_note(served: ServedModel) -> str:
    median = known(served.latency.p50.value_ms)
    return f"{number(served.latency.worst_ms / median, 1)}\u00d7 the median" if median else ""


def _gpu_busy(served: ServedModel) -> tuple[Fact, ...]:
    if known(served.gpu_busy_share) is None:
        return ()
    each = f"{milliseconds(served.gpu_ms)} a call" if known(served.gpu_ms) is not None else "by all that use it"
    return (Fact("GPU busy", share(served.gpu_busy_share), each),)


def _energy(served: ServedModel) -> tuple[Fact, ...]:
    joules = known(served.joules_per_image)
    if joules is None:
        return ()
    money = money_per_million(served)
    each = f"{number(joules, 2 if joules < 10 else 0)}\u00a0J an image"
    cost = f"; a million cost {money}" if money else ""
    return (Fact("Energy, a million images", energy_per_million(served), each + cost),)


def _warm_up(served: ServedModel) -> str:
    """Return what warming up took, empty where no call was slower than those after it."""
    count = served.warm_up_calls
    if not count:
        return ""
    took = duration(served.warm_up_s)
    if count == 1:
        return f"Warm-up: the first call took {took}. It is left out."
    first = milliseconds(served.first_ms)
    return f"Warm-up: the first {count:,} calls took {took}, the very first {first}. They are left out."


# --- the parts of a call --------------------------------------------------------------------------------------


def _parts_title(served: ServedModel) -> str:
    whole = f"A call takes {milliseconds(served.parts.total_ms)} on average"
    longest = longest_part(served.parts)
    return f"{whole}: {longest}" if longest else whole


def _parts(served: ServedModel) -> tuple[LedgerItem, ...]:
    """Return the parts of a call as parts of one bar."""
    found, items, start = parts_ms(served.parts), [], 0.0
    whole = sum(found.values())
    for part, value in found.items():
        if value <= 0 or whole <= 0:
            continue
        width, words = 100 * value / whole, share(value / whole)
        label = words if width >= LABEL_PCT else ""
        took = milliseconds(value)
        items.append(
            LedgerItem(PART_WORDS[part], FILLS[part], round(start, 3), round(width, 3), label, words, took, "", "")
        )
        start += width
    return tuple(items)


def _parts_note(served: ServedModel) -> str:
    """Return what of a call was work of the GPU, and what else there is in it where that is much."""
    found, gpu_ms, total_ms = parts_ms(served.parts), known(served.gpu_ms), served.parts.total_ms
    if not found:
        return "YOLO does not report the parts of these calls."
    said = []
    if gpu_ms is not None:
        rest = milliseconds(max(total_ms - gpu_ms, 0.0))
        said.append(f"The GPU worked {milliseconds(gpu_ms)} of it. For {rest} it waited for the CPU.")
    if found.get("other", 0.0) >= MUCH_ELSE * total_ms:
        said.append(f"{PART_WORDS['other']}: tracking, drawing, saving, callbacks.")
    return " ".join(said)


_SLOW_COLUMNS = ("Call", *(PART_WORDS[part] for part in PARTS[:3]), "Rest", "Images", "Shape", "Pause before")


def _slow(served: ServedModel, clock: WallClock) -> tuple[SlowCall, ...]:
    """Return the slowest calls after warming up, the slowest first."""
    calls, first = served.calls, served.warm_up_calls
    total_ms = np.nan_to_num(calls.total_ms[first:], nan=0.0)
    worst = (slowest(total_ms) + first).tolist() if len(total_ms) else []
    return tuple(SlowCall(clock.moment(float(calls.start_s[at])), _slow_cells(calls, at)) for at in worst)


def _slow_cells(calls: ModelCalls, at: int) -> tuple[str, ...]:
    total = float(calls.total_ms[at])
    parts = [float(getattr(calls, f"{part}_ms")[at]) for part in PARTS[:3]]
    rest = max(total - sum(parts), 0.0)  # NaN where a part is not known
    shape = f"{number(float(calls.width[at]))} \u00d7 {number(float(calls.height[at]))}"
    return (
        *map(milliseconds, (total, *parts, rest)),
        number(float(calls.images[at])),
        shape.replace(",", ""),
        milliseconds(float(calls.gap_ms[at])),
    )


# --- between calls, and by kind -------------------------------------------------------------------------------


def _between(served: ServedModel) -> str:
    whole_s = served.end_s - served.start_s
    if whole_s <= 0:
        return ""
    gap = served.gap_s / whole_s
    if gap < NEXT_TO_NO_GAP:
        return f"Calls follow each other: {share(gap)} of the time lies between them."
    return f"No call was going on for {duration(served.gap_s)}, {share(gap)} of the time."


def _gaps(served: ServedModel) -> TextTable:
    """Return what the process did between calls, and what of it is not known."""
    columns, numeric = ("Between calls", "Time", "Share", "Line of code"), (False, True, True, False)
    if not served.gap_parts or served.gap_s <= 0:
        return TextTable(columns, numeric, ())
    rows = [
        (
            upper_first(part.kind) + (", in another thread" if part.waited_for else ""),
            duration(part.seconds),
            share(part.seconds / served.gap_s),
            clean(where_words(part.where)) if part.where else "",
        )
        for part in served.gap_parts
    ]
    rest_s = served.gap_s - sum(part.seconds for part in served.gap_parts)
    if rest_s >= max(NEXT_TO_NO_GAP * served.gap_s, 0.05):
        rows.append(("Unknown", duration(rest_s), share(rest_s / served.gap_s), ""))
    return TextTable(columns, numeric, tuple(rows))


def _groups(served: ServedModel, kind: GroupKind) -> list[NamedTable]:
    """Return the table of groups of one kind, none where there is but one group."""
    groups = served.groups_by(kind)
    if len(groups) < 2:
        return []
    title, head = GROUPS[kind]
    names = [name for name in SHARES if any(getattr(group.latency, name).value_ms is not None for group in groups)]
    columns = (head, "Calls", "Images", "Mean", *("Median" if name == "p50" else name for name in names), "Worst")
    rows = tuple(_group(group, names) for group in groups)
    return [NamedTable(title, "", TextTable(columns, (False, *[True] * (len(columns) - 1)), rows))]


def _group(group: CallGroup, names: Sequence[str]) -> tuple[str, ...]:
    latency = group.latency
    return (
        clean(group.label),
        number(latency.calls),
        number(group.images),
        milliseconds(latency.mean_ms),
        *(milliseconds(getattr(latency, name).value_ms) for name in names),
        milliseconds(latency.worst_ms),
    )


# --- settings, and the models beyond those in full ----------------------------------------------------------------


def _settings(served: ServedModel) -> tuple[Fact, ...]:
    """Return what a model ran with, as far as it is known."""
    calls, told = served.calls, served.calls.settings
    size = told.get("imgsz")
    sides = " \u00d7 ".join(map(str, size)) if isinstance(size, list | tuple) else str(size or "")
    facts = (
        Fact("Model", calls.name),
        Fact("Task", str(told.get("task") or "")),
        Fact("Mode", str(told.get("mode") or "")),
        Fact("Format", format_words(served)),
        Fact("Precision", precision_words(served)),
        Fact("Compiled", "torch.compile" if told.get("compile") else ""),
        Fact("NMS", "part of the model (end2end)" if told.get("end2end") else ""),
        Fact("Image size", sides),
        Fact("Images a call", number(served.batch, 0 if served.batch == round(served.batch) else 1)),
        Fact("Device", str(told.get("device") or "")),
        Fact("Provider in use", provider_in_use(told), "fell back to the CPU" if fell_back_to_cpu(told) else ""),
        Fact("Model objects made", number(calls.predictors) if (calls.predictors or 0) > 1 else "", "in its process"),
        Fact("Calls that never ended", number(calls.failed) if calls.failed else ""),
    )
    return tuple(Fact(fact.label, clean(fact.value), fact.note) for fact in facts if fact.value)


def _others(served: Sequence[ServedModel]) -> TextTable:
    columns = ("Model", "Process", "Calls", "Images a second", "Median", "p95", "p99", "Worst", "Longest part")
    rows = tuple(
        (
            clean(each.name),
            str(each.calls.pid),
            number(each.latency.calls),
            speed_words(each.images_per_s),
            *(milliseconds(getattr(each.latency, name).value_ms) for name in SHARES),
            milliseconds(each.latency.worst_ms),
            longest_part(each.parts),
        )
        for each in served
    )
    return TextTable(columns, (False, *[True] * 7, False), rows)
