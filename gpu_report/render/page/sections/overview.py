"""The top of the page: where and on what the run ran, its key numbers, and where the GPU time went."""

from collections.abc import Collection, Iterable, Sequence
from functools import partial

import pandas as pd

from gpu_report.catalogue import RULES, SEVERITIES, cause_look, phase_words
from gpu_report.gpu_words import gpu_number, gpu_words
from gpu_report.model import Analysis, Finding, GpuSummary, LedgerRow, Run, Sentence
from gpu_report.render.formatting import (
    clean,
    duration,
    ending_name,
    energy,
    epoch_counts,
    gibibytes,
    how_it_ended,
    known,
    last_epoch_words,
    ledger_rows,
    ledger_words,
    number,
    partly,
    quantity,
    saw_training,
    share,
    with_amounts_unbroken,
)
from gpu_report.render.page.views.report import LegendItem, VerdictView
from gpu_report.render.page.views.tables import Fact, LedgerItem, TextTable
from gpu_report.render.quantity_labels import HEAT_GPUS, LANES, lanes
from gpu_report.render.recorder_events import marked
from gpu_report.render.samples.quantity_series import gpu_indexes
from gpu_report.render.sentence_kinds import OF_LEAD, own_text
from gpu_report.render.served_words import calls_in_all
from gpu_report.wording import MISSING, counted, gpu_models, lower_first

EVENTS, UTILISATION_LANE = "events", LANES[0].title
LOW_PERCENT = 20  # as traces.js draws it: what utilisation was under in a low interval
# Lines of a lane whose title says the rest.
SHORT_LABELS = {
    "cpu_pressure_pct": "for a CPU core",
    "io_pressure_pct": "for I/O",
    "memory_pressure_pct": "for memory",
    "disk_read_mib_s": "from disks",
    "trainer_read_mib_s": "by this run",
}
LABEL_PCT = 8.0  # of the ledger's width, from which on a part has room for its share


def verdict(analysis: Analysis, listed: Collection[str] = ()) -> VerdictView:
    """Return the verdict: its first sentence, those that belong to it, and of the rest what no listed finding says."""
    first, *others = analysis.verdict.sentences or (Sentence("work", ""),)
    advice = first.advice
    copied = advice.typed if advice and first.kind == "fix" else ""
    near = [each for each in others if each.kind in OF_LEAD]
    return VerdictView(
        lead=_text([first]),
        copy=copied,
        rest=_text(near),
        more=_text([each for each in others if each.kind not in OF_LEAD and not _is_listed(each, listed)]),
    )


def _is_listed(sentence: Sentence, listed: Collection[str]) -> bool:
    return bool(sentence.findings) and set(sentence.findings) <= set(listed)


def _text(sentences: Iterable[Sentence]) -> str:
    """Return sentences as one text; in those that may quote somebody else nothing becomes code."""
    return with_amounts_unbroken(clean(" ".join(map(own_text, sentences))))


def subtitle(analysis: Analysis) -> tuple[str, ...]:
    """Return the line under the title: host, GPUs, and how the run ended."""
    recording = analysis.run.recording
    return tuple(part for part in (recording.host, gpu_models(gpu.name for gpu in analysis.run.gpus)) if part)


def tiles(analysis: Analysis) -> tuple[Fact, ...]:
    """Return the key numbers of the run, over all its GPUs; whether readings are missing only where many are."""
    return (
        *(_gpu_tiles(analysis) if analysis.gpus else _host_tiles(analysis.run.host)),
        Fact("Duration", *_duration(analysis)),
        _work(analysis),
        *_ending(analysis),
        *([_readings(analysis)] if partly(analysis.coverage) else []),
    )


def _duration(analysis: Analysis) -> tuple[str, str]:
    """Return how long was recorded and how it ended; while the machine slept nothing was."""
    run = analysis.run
    asleep = f"awake, asleep for {duration(run.slept_s)}; " if run.slept_long else ""
    return duration(run.duration_s), f"{asleep}{how_it_ended(run.recording, analysis.ending)}"


def more_tiles(analysis: Analysis) -> tuple[Fact, ...]:
    """Return the numbers that nobody acts on, and whether readings are missing where hardly any are."""
    return (
        *(_more_of_gpus(analysis) if analysis.gpus else ()),
        *([] if partly(analysis.coverage) else [_readings(analysis)]),
    )


def _more_of_gpus(analysis: Analysis) -> tuple[Fact, ...]:
    return (
        _mean_and_peak(analysis, "Temperature, mean", "temperature_c", "°C"),
        _mean_and_peak(analysis, "Power, mean", "power_w", "W"),
        Fact("Energy", energy(_energy(_own(analysis))), _energy_note(analysis)),
    )


def more_title(facts: Sequence[Fact]) -> str:
    """Return the numbers of `more_tiles` in one line."""
    named = [f"{fact.label.partition(',')[0]} {fact.value}" for fact in facts]
    return ", ".join([*named[:1], *map(lower_first, named[1:])])


def _own(analysis: Analysis) -> tuple[GpuSummary, ...]:
    """Return the GPUs that are not another user's; all where all are."""
    return tuple(gpu for gpu in analysis.gpus if not gpu.of_others) or analysis.gpus


def _readings(analysis: Analysis) -> Fact:
    return Fact("Readings taken", share(analysis.coverage), _coverage_note(analysis))


def _gpu_tiles(analysis: Analysis) -> tuple[Fact, ...]:
    return _utilisation(analysis), _memory(tuple(_meant(_own(analysis))))


def _host_tiles(host: pd.DataFrame) -> tuple[Fact, ...]:
    """Return what a run without a GPU worked on: all cores and the memory of the machine."""
    cpu, memory = host["cpu_pct"].dropna(), host["memory_used_mib"].dropna()
    mean, peak = (float(cpu.mean()), quantity(float(cpu.max()), "%")) if len(cpu) else (None, "")
    return (
        Fact("CPU, mean", quantity(mean, "%"), f"all cores, peak {peak}" if peak else ""),
        Fact("Host memory, peak", gibibytes(float(memory.max()) if len(memory) else None), "all processes"),
    )


def gpu_table(analysis: Analysis) -> TextTable:
    """Return one row of key numbers for each GPU."""
    columns = (
        *("GPU", "Model", "Mean utilisation", "Peak", "Memory, peak", "Mean temperature"),
        *("Mean power", "Peak", "Energy"),
    )
    return TextTable(columns, (False, False, *[True] * 7), tuple(_gpu_row(s) for s in analysis.gpus))


def legend(analysis: Analysis) -> tuple[LegendItem, ...]:
    """Return the signs that the timeline of this run holds, lane by lane."""
    phases = dict.fromkeys(phase.name for phase in analysis.phases)
    signs = [LegendItem("phases", f"swatch phase-{name.replace(' ', '-')}", phase_words(name)) for name in phases]
    kernel = {event.severity for event in analysis.run.kernel.events}
    worst = next((severity for severity in SEVERITIES if severity in kernel), "info")
    falls = [finding for finding in analysis.findings if finding.level_pct is not None]
    ends = [finding for finding in analysis.findings if RULES[finding.rule].at_epoch_ends]
    low = f"under {LOW_PERCENT}\u00a0% for 10\u00a0s: next to idle"
    marks = (
        ([phase for phase in analysis.phases if phase.name == "checkpoint"], EVENTS, "event checkpoint", "epoch end"),
        (kernel, EVENTS, f"event kernel {worst}", "kernel message"),
        (marked(analysis.run.events), EVENTS, "event happening", "recorder event"),
        (analysis.gaps, EVENTS, "swatch gap", "no data"),
        (analysis.low_intervals, UTILISATION_LANE, "line low", low),
        ([fall for fall in falls if not fall.expected], UTILISATION_LANE, "swatch drop", "drop"),
        (ends, UTILISATION_LANE, "swatch drop", "slow end of an epoch"),
        ([fall for fall in falls if has_floor(fall)], UTILISATION_LANE, "line floor", "drop threshold"),
        (
            [fall for fall in falls if fall.expected],
            UTILISATION_LANE,
            "swatch expected",
            "drop in validation or saving",
        ),
    )
    of_lanes = tuple(LegendItem(*item) for present, *item in marks if present)
    return (*signs, *_line_legend(analysis.run), *of_lanes)


def has_floor(finding: Finding) -> bool:
    """Tell whether the line that utilisation fell below is known: that of a drop is, as a share of its level."""
    return finding.rule == "drop" and finding.level_pct is not None and not finding.expected


def _line_legend(run: Run) -> tuple[LegendItem, ...]:
    """Return the lines that are not one for each GPU, as far as they were recorded, and the scale of heat strips."""
    heat = [LegendItem(lane.title, "heat-scale", "0 to 100\u00a0%") for lane in lanes(HEAT_GPUS) if lane.heat]
    sm_activity = [
        LegendItem(UTILISATION_LANE, "line utilisation", "utilisation: anything runs"),
        LegendItem(UTILISATION_LANE, "line sm-activity", "SM activity: how much of the GPU works"),
    ]
    of_host = [
        LegendItem(lane.title, f"line {name}", SHORT_LABELS[name])
        for lane in LANES
        for name in lane.drawn
        if lane.kind == "host" and len(lane.drawn) > 1 and run.host[name].notna().any()
    ]
    has_activity = run.samples["sm_active_pct"].notna().any()
    return (*(heat if has_heat(run) else sm_activity if has_activity else ()), *of_host)


def has_heat(run: Run) -> bool:
    """Tell whether the timeline shows utilisation as a heat strip, for there are many GPUs."""
    return any(lane.heat for lane in lanes(len(gpu_indexes(run))))


def ledger(analysis: Analysis) -> tuple[LedgerItem, ...]:
    """Return where all GPU time went, as parts of one bar: work, what it lost, what belongs to training, the rest."""
    items, start = [], 0.0
    for row in ledger_rows(analysis):
        width = max(known(row.share) or 0.0, 0.0) * 100
        items.append(_ledger_item(row, ledger_words(row, analysis), start, width))
        start += width
    return tuple(items)


def ledger_note(analysis: Analysis) -> str:
    """Return what the ledger's seconds are of."""
    gpus, busy = sum(not gpu.of_others for gpu in analysis.gpus), known(analysis.verdict.busy_pct)
    known_busy = busy is not None and saw_training(analysis)
    alone = f" In training alone the GPU was busy {quantity(busy, '%')}." if known_busy else ""
    if gpus == 1 and len(analysis.gpus) > 1:
        mine = next(gpu.gpu.index for gpu in analysis.gpus if not gpu.of_others)
        return f"All {duration(analysis.run.duration_s)} of {gpu_words(mine)}, start-up included.{alone}"
    if gpus == 1:
        return f"All {duration(analysis.run.duration_s)} of the recording, start-up included.{alone}"
    return f"All GPU time of the recording: {duration(analysis.run.duration_s)} on each of {gpus} GPUs.{alone}"


def _ledger_item(row: LedgerRow, name: str, start_pct: float, width_pct: float) -> LedgerItem:
    return LedgerItem(
        name=name,
        kind=cause_look(row.name),
        start_pct=round(start_pct, 4),
        width_pct=round(width_pct, 4),
        label=share(row.share) if width_pct >= LABEL_PCT else "",
        share=share(row.share),
        time=duration(row.gpu_seconds, aligned=True),
        energy="" if known(row.energy_j) is None else energy(row.energy_j),
        money=_money(row.money),
    )


def _money(amount: float | None) -> str:
    """Return money with cents, nothing where no price was given; less than a cent is not nothing."""
    amount = known(amount)
    if amount is None:
        return ""
    return "< 0.01" if 0 < amount < 0.005 else number(amount, 2)


def _gpu_row(summary: GpuSummary) -> tuple[str, ...]:
    return (
        str(summary.gpu.index),
        summary.gpu.name or MISSING,
        quantity(_stat(summary, "gpu_util_pct", "mean"), "%"),
        quantity(_stat(summary, "gpu_util_pct", "max"), "%"),
        gibibytes(_stat(summary, "memory_used_mib", "max")),
        quantity(_stat(summary, "temperature_c", "mean"), "°C"),
        quantity(_stat(summary, "power_w", "mean"), "W"),
        quantity(_stat(summary, "power_w", "max"), "W"),
        energy(summary.energy_j),
    )


def _utilisation(analysis: Analysis) -> Fact:
    """Return mean utilisation: in training, as the verdict says it, and beside it over the whole recording."""
    gpus, busy = analysis.gpus, known(analysis.verdict.busy_pct)
    mean, peak = _mean(gpus, "gpu_util_pct"), _peak(gpus, "gpu_util_pct", "%")
    if busy is None or mean is None or not saw_training(analysis):
        notes = ("whole recording", _whose(gpus, "gpu_util_pct"), peak) if mean is not None else ()
        return Fact("GPU utilisation, mean", quantity(mean, "%"), ", ".join(filter(None, notes)))
    notes = (f"{quantity(mean, '%')} of the whole recording", _whose(gpus, "gpu_util_pct"), peak)
    return Fact("GPU busy in training", quantity(busy, "%"), ", ".join(filter(None, notes)))


def _whose(gpus: Sequence[GpuSummary], name: str) -> str:
    """Return of which GPUs a mean is, empty where there is but one."""
    used = [gpu.gpu.index for gpu in _meant(gpus) if _stat(gpu, name, "mean") is not None]
    if len(gpus) <= 1 or not used:
        return ""
    return f"GPU\u00a0{used[0]}" if len(used) == 1 else f"mean of {counted(len(used), 'GPU')}"


def _memory(gpus: tuple[GpuSummary, ...]) -> Fact:
    fullest = max(gpus, key=lambda s: _stat(s, "memory_used_mib", "max") or 0.0, default=None)
    if fullest is None:
        return Fact("Memory, peak", MISSING)
    peak, total = _stat(fullest, "memory_used_mib", "max"), known(fullest.gpu.memory_total_mib)
    if peak is None or total is None or total <= 0:
        return Fact("Memory, peak", gibibytes(peak))
    where = f", GPU\u00a0{gpu_number(fullest.gpu.index)}" if len(gpus) > 1 else ""
    return Fact("Memory, peak", gibibytes(peak), f"{share(peak / total)} of {gibibytes(total)}{where}")


def _work(analysis: Analysis) -> Fact:
    """Return what was done: epochs, calls, or images that were validated."""
    if analysis.is_inference:
        return _calls(analysis)
    return _validated(analysis) if analysis.is_validation else _epochs(analysis)


def _validated(analysis: Analysis) -> Fact:
    found = analysis.validations
    return Fact("Images validated", number(sum(each.images or 0 for each in found)), counted(len(found), "validation"))


def _epochs(analysis: Analysis) -> Fact:
    if not analysis.epochs:
        why = "could not be placed in time" if analysis.run.yolo_runs else "no YOLO run found"
        return Fact("Epochs completed", "0") if analysis.run.inside else Fact("Epochs", MISSING, why)
    count, *notes = epoch_counts(analysis.epochs, analysis.epoch_now, partial(duration, aligned=True))
    return Fact("Epochs completed", count, "; ".join(notes))


def _calls(analysis: Analysis) -> Fact:
    """Return how many calls there were, those of warming up included."""
    models = counted(len(analysis.served), "model")
    return Fact("Calls", number(calls_in_all(analysis)), f"{models}, warm-up included")


def _ending(analysis: Analysis) -> tuple[Fact, ...]:
    several = len({epoch.run for epoch in analysis.epochs}) > 1
    label = "End" if not analysis.is_training else "Last training" if several else "Training"
    ending = analysis.ending
    return () if ending is None else (Fact(label, ending_name(ending), last_epoch_words(ending)),)


def _coverage_note(analysis: Analysis) -> str:
    interval = analysis.run.recording.interval_s
    every = "" if interval is None else f"one {'a second' if interval == 1 else f'every {duration(interval)}'}, "
    gap = analysis.longest_gap_s
    return every + (f"longest gap {duration(gap)}" if gap > 0 else "no gaps")


def _energy(gpus: tuple[GpuSummary, ...]) -> float | None:
    joules = [joules for joules in (known(s.energy_j) for s in gpus) if joules is not None]
    return sum(joules) if joules else None


def _energy_note(analysis: Analysis) -> str:
    """Return what the energy was read from, and of which GPUs; where it is not known that the samples are too few."""
    those = [s for s in analysis.gpus if known(s.energy_j) is not None]
    partial = partly(analysis.coverage)
    if not those:
        return f"not known: samples are of {partial}" if partial else ""
    words = {"counter": "from the energy counter", "power": "summed up from power readings"}
    sources = sorted({s.energy_source for s in those} & set(words))
    of = f"{len(those)} of " if len(those) < len(analysis.gpus) else ""
    some = f"{of}{len(analysis.gpus)} GPUs" if len(analysis.gpus) > 1 else ""
    return ", ".join(filter(None, (some, " and ".join(words[source] for source in sources))))


def _mean_and_peak(analysis: Analysis, name: str, column: str, unit: str) -> Fact:
    """Return a mean with the peak, and that it is of a part of the time where that is so."""
    mean, peak = _mean(analysis.gpus, column), _peak(analysis.gpus, column, unit)
    partial = partly(analysis.coverage) if mean is not None else ""
    notes = (f"of {partial}" if partial else "", _whose(analysis.gpus, column), peak)
    return Fact(name, quantity(mean, unit), ", ".join(filter(None, notes)))


def _stat(summary: GpuSummary, name: str, which: str) -> float | None:
    stats = summary.quantities.get(name)
    return None if stats is None else known(getattr(stats, which))


def _stats(gpus: Iterable[GpuSummary], name: str, which: str) -> list[float]:
    return [value for value in (_stat(s, name, which) for s in gpus) if value is not None]


def _mean(gpus: Iterable[GpuSummary], name: str) -> float | None:
    """Return the mean over the GPUs that the run used; over all where it used none."""
    means = _stats(_meant(gpus), name, "mean")
    return sum(means) / len(means) if means else None


def _meant(gpus: Iterable[GpuSummary]) -> list[GpuSummary]:
    every = list(gpus)
    return [gpu for gpu in every if gpu.used] or every


def _max(gpus: Iterable[GpuSummary], name: str) -> float | None:
    return max(_stats(_meant(gpus), name, "max"), default=None)


def _peak(gpus: Iterable[GpuSummary], name: str, unit: str) -> str:
    peak = _max(gpus, name)
    return "" if peak is None else f"peak {quantity(peak, unit)}"
