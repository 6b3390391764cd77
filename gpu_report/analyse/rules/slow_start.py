"""Rule: a training that took long to begin, or never did: which part of its start-up, and in which lines."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from gpu_report.analyse.causes.candidate import Candidate
from gpu_report.analyse.causes.confidence import CERTAIN
from gpu_report.analyse.causes.host import lacks_cores_at_start
from gpu_report.analyse.causes.slow_modes import AUTOTUNES, switch_off
from gpu_report.analyse.causes.start_work import (
    CACHES,
    COMPILES,
    SCANS,
    SEARCHES,
    SPAWNS,
    StartWork,
    resets_loader,
    runs_backward,
    work_of,
)
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.signals.code.idle_stacks import IdleStacks
from gpu_report.analyse.signals.code.stack_kinds import kind_of
from gpu_report.analyse.signals.host.filesystems import mount_of
from gpu_report.analyse.timeline.ranks import RankGroup
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.analyse.timeseries.intervals import Floats, Indices, Span, length_s, union
from gpu_report.analyse.timeseries.sums import sums_by_key
from gpu_report.catalogue import LOADER, START_AGAIN_KEY, START_WORK_KEY
from gpu_report.model import FROM_CALLBACKS, Advice, Cause, Evidence, Finding, Frame, Phase, Setting, Stack
from gpu_report.wording import place_words, setting_location_words

FIRST_BATCH = "first batch"
SPAWNING = "start_method"  # the name of the lines that set it
# What people call the parts of a start-up, as callbacks tell them.
BEFORE_YOLO = "before YOLO"
WHAT = {
    BEFORE_YOLO: "ran imports and other code before YOLO",
    FIRST_BATCH: "was at its first batch",
    "data set": "prepared its data set",
    "model": "built its model",
}
WAITED, WORKED = "waited for its first batch", "worked on its first batch"
OTHERWISE = "was set up"


class Did(NamedTuple):
    """What a training did for most of a part of its start-up: None where nothing known took half of the notes.

    `share` (0 to 1) of what was noted; `again_s` (s) is the median of what each of `epochs` later ones took for it, 0
    where that is little. `in_loader` tells whether it stood in its loader, None where nothing was noted.
    """

    work: StartWork | None = None
    share: float = 0.0
    again_s: float = 0.0
    epochs: int = 0
    in_loader: bool | None = None


def slow_starts(context: Context) -> list[Finding]:
    """Report the longest part of a start-up, where it takes SLOW_START_S or more and SLOW_START_SHARE of the training.

    Of what comes before YOLO it takes SLOW_BEFORE_S. What each later epoch does again counts with it, and is a warning.

    A training that never began has nothing else to be looked at: that is a warning, and otherwise a note. So is a
    start-up that still goes on: it may be compiling its model. One on a few CPU cores that it fills is a warning, too.
    """
    return [finding for training in context.rank_groups for finding in _of_training(context, training)]


def _of_training(context: Context, training: RankGroup) -> Iterator[Finding]:
    parts: dict[str, list[Phase]] = {}
    for phase in (*_before_yolo(context, training), *training.main.phases):
        if phase.name == "startup":
            parts.setdefault(phase.detail, []).append(phase)
    began = any(phase.name != "startup" for phase in training.main.phases)
    longest = max(parts, key=lambda detail: _seconds(parts[detail]), default=None)
    crashed = training.crashed is not None and not training.is_interrupted
    if longest is None or (crashed and not began):  # what ended it says more
        return
    took_s, whole_s = _seconds(parts[longest]), training.end_t_s - training.start_t_s
    least_s = th.SLOW_BEFORE_S if longest == BEFORE_YOLO else th.SLOW_START_S
    spans = union([phase.span for phase in parts[longest]])
    did = _did(context, training, spans)
    if took_s + did.again_s * did.epochs >= max(least_s, th.SLOW_START_SHARE * whole_s):
        over = training.main.ended is not None or took_s >= th.HANG_FIRST_S
        yield _finding(context, longest, spans, did, "began" if began else "over" if over else "going on")


def _before_yolo(context: Context, training: RankGroup) -> Iterator[Phase]:
    """Yield the time from the start of the command to the first thing that YOLO reported, of its first training.

    A command that used the GPU in it did something else first.
    """
    first_s = min(each.start_t_s for each in context.rank_groups)
    started = [event.t_s for event in context.run.events if event.kind == "command_started" and event.t_s < first_s]
    if training.start_t_s == first_s and started and not context.worked((started[-1], first_s)):
        yield Phase("startup", None, started[-1], first_s, FROM_CALLBACKS, BEFORE_YOLO)


def _seconds(phases: Sequence[Phase]) -> float:
    return length_s([phase.span for phase in phases])


def _finding(context: Context, part: str, spans: Sequence[Span], did: Did, state: str) -> Finding:
    took_s = length_s(spans)
    in_loader = did.in_loader if part == FIRST_BATCH else None
    what = WHAT.get(part, OTHERWISE) if in_loader is None else WAITED if in_loader else WORKED
    text = {
        "began": "The training",
        "over": "The training never began: it",
        "going on": "The training has not begun: it",
    }
    work = did.work
    mostly = f", {100 * did.share:.0f} % of it {work.words}" if work else ""
    longest = max(spans, key=lambda span: span[1] - span[0])
    found = context.finding(
        "slow-start",
        "warning" if state == "over" or did.again_s else "info",
        longest,
        f"{text[state]} {what} for {took_s:.0f} s{mostly}",
        epoch=None,
        phase="startup",
        evidence=evidence((f"the training {what}", took_s, "s"), *_of_work(did, took_s), *_cpu(context, longest)),
        cause=Cause("startup", CERTAIN, f"it {what}"),
        waited_for=LOADER if in_loader and work is None else "",
        advice=(*_of_storage(context, work, longest), *_of_kind(context, work, longest)),
    )
    few_cores = _few_cores(context, longest, began=state == "began")
    if few_cores is None:
        return found
    return _on_few_cores(found, few_cores, f"{text[state]} {what} for {took_s:.0f} s")


def _on_few_cores(found: Finding, few: Candidate, summary: str) -> Finding:
    """Return a slow start whose reason is few CPU cores: what it did then is none."""
    return replace(
        found,
        severity="warning",
        summary=f"{summary}; {few.explanation}",
        evidence=(*found.evidence[:1], *few.evidence),
        cause=Cause("cpu-limit", few.confidence, few.explanation),
        waited_for="",
        advice=few.advice,
    )


def _few_cores(context: Context, span: Span, *, began: bool) -> Candidate | None:
    """Return that a start-up had too few CPU cores in a span: whatever it did then took its time for that."""
    gpu = next((series.gpu for series in context.series), 0)
    return lacks_cores_at_start(context.signals.of(gpu, *span), began=began)


def _of_kind(context: Context, work: StartWork | None, span: Span) -> Iterator[Advice]:
    """Yield what to do about a kind of work, unless the run is set so already."""
    training = context.training_at(span[0])
    if work is SEARCHES and training is not None and training.args:
        yield from _of_sizes(training)
    elif work is SPAWNS:
        yield _of_spawning(context, training)
    elif work is not None and not _keeps(context, span, work):
        yield work.advice if training is None else _as_argument(work.advice, work, training.args)


def _of_spawning(context: Context, training: Training | None) -> Advice:
    """Return how to start workers, or to keep them, with the lines that set the method and that reset the loader."""
    fork = f"Start workers by `fork`{setting_location_words(training.setting_locations if training else (), SPAWNING)}"
    at = _resets_loader(context)
    keep = "keep them: `persistent_workers=True`" if at is None else f"do not reset the loader in {place_words(at)}"
    return replace(SPAWNS.advice, short=f"{fork}, or {keep}")


def _resets_loader(context: Context) -> Frame | None:
    """Return the line of the user's that makes YOLO's loader start its workers anew, None where none was noted."""
    mains = (each.process for each in context.signals.idle_stacks if not each.process.is_worker)
    calls = (pair for process in mains for stack in process.stacks.values() for pair in pairwise(stack))
    return next((outer for inner, outer in calls if resets_loader(inner) and kind_of(outer) == "own"), None)


def _of_sizes(training: Training) -> Iterator[Advice]:
    """Yield what keeps cuDNN from its search for each new image size; nothing of a size that never changes."""
    again = SEARCHES.advice.text
    if training.image_sizes > 1:
        again = f"{again}. Each of {training.image_sizes} sizes (`multi_scale`) needs this once"
    if AUTOTUNES & training.slow_modes:
        yield from (replace(switch_off(name, training.setting_locations), text=again) for name in AUTOTUNES)
    elif training.image_sizes > 1:
        yield replace(SEARCHES.advice, text=again, also=(Setting("multi_scale", None, "0.0"),))
    elif training.args.get("rect") is True:
        yield SEARCHES.advice


def _as_argument(advice: Advice, work: StartWork, args: Mapping[str, object]) -> Advice:
    """Return advice with the argument of the run's own that makes this work, where it has one."""
    argument, to = {COMPILES: ("compile", "False"), CACHES: ("cache", "disk")}.get(work, ("", ""))
    asked = args.get(argument)
    return replace(advice, argument=argument, from_value=str(asked), to_value=to) if asked else advice


def _of_storage(context: Context, work: StartWork | None, span: Span) -> Iterator[Advice]:
    """Yield to copy the data where threads that checked images used hardly any CPU: they waited for the storage.

    Not where other programs had the cores, or where the data lie on an SSD of this machine.
    """
    signals = context.signals.of(next((series.gpu for series in context.series), 0), *span)
    cpu_pct = signals.within("main_cpu_pct") if work is SCANS else None
    waited_pct = signals.within("cpu_pressure_pct") or 0.0
    if cpu_pct is None or cpu_pct >= th.SCAN_WAITS_PCT or waited_pct >= th.CORES_WAITED_PCT:
        return
    training = context.training_at(span[0])
    folder = training.text("data_folder") if training is not None else None
    mount = mount_of(folder, context.run.recording.mounts) if folder else None
    if mount is None or mount.rotational is not False:
        short = "Copy the data set to a local disk: its storage answered slowly"
        text = f"{short} (the process used {cpu_pct:.0f} % of a core while it checked the images)"
        yield Advice(text, short=short, of_slow_scan=True)


def _of_work(did: Did, took_s: float) -> Iterator[Evidence]:
    """Yield how long its kind of work took, at the start and again in each later epoch."""
    if did.work is not None:
        yield Evidence(did.work.words, did.share * took_s, "s", key=START_WORK_KEY)
    if did.again_s:
        yield Evidence("again in each later epoch (median)", did.again_s, "s", key=START_AGAIN_KEY)


def _cpu(context: Context, span: Span) -> Iterator[tuple[str, float | None, str]]:
    """Yield the CPU that the processes of the training used meanwhile."""
    gpu = next((series.gpu for series in context.series), 0)
    signals = context.signals.of(gpu, *span)
    yield "CPU of the main process", signals.within("main_cpu_pct"), "% of a core"
    yield "CPU of all workers", signals.within("workers_cpu_pct"), "% of a core"
    yield "CPU, all cores", signals.within("cpu_pct"), "%"


def _did(context: Context, training: RankGroup, spans: Sequence[Span]) -> Did:
    pids = {rank.pid for rank in training.ranks}
    seconds, waited_s = _stood(context, pids, spans)
    noted_s = sum(seconds.values())
    if noted_s <= 0:
        return Did()
    by_work = sums_by_key((work, stood_s) for stack, stood_s in seconds.items() if (work := work_of(stack)) is not None)
    forward = next((work for work in (COMPILES, SEARCHES) if work in by_work), None)
    if forward is not None:  # what is compiled of the backward, or looked for, is so on a thread of autograd's
        by_work[forward] += sum(stood_s for stack, stood_s in seconds.items() if runs_backward(stack))
    in_loader = waited_s > noted_s / 2
    most = max(by_work, key=lambda work: by_work[work], default=None)
    if most is None or by_work[most] <= noted_s / 2:
        return Did(in_loader=in_loader)
    later = [phase.span for phase in training.main.phases if phase.name == "train"][1:]
    again_s = _again(context, pids, later, most)
    return Did(most, by_work[most] / noted_s, again_s, len(later), in_loader)


def _again(context: Context, pids: Set[int], later: Sequence[Span], work: StartWork) -> float:
    """Return what a later epoch took for a kind of work (s, median; of ranks the mean), 0 where that is little of it.

    Convolutions are none: an ordinary step stands in the same lines.
    """
    if work is SEARCHES:
        return 0.0
    ranks = max(len(pids), 1)
    took = [
        sum(stood_s for stack, stood_s in _stood(context, pids, [span])[0].items() if work_of(stack) is work) / ranks
        for span in later
    ]
    again_s = median(took) if took else 0.0
    return again_s if later and again_s >= th.SLOW_START_SHARE * median(end - start for start, end in later) else 0.0


def _stood(context: Context, pids: Set[int], spans: Sequence[Span]) -> tuple[dict[Stack, float], float]:
    """Return how long the main processes stood in each stack in some spans (s), and in their loaders."""
    mains = list(_noted_of_mains(context, pids, spans))
    waited_s = sum(float(noted[each.waits[rows]].sum()) for each, rows, noted in mains)
    return sums_by_key(pair for each, rows, noted in mains for pair in each.by_stack(rows, noted)), waited_s


def _keeps(context: Context, span: Span, work: StartWork) -> bool:
    """Tell whether what fills a cache of images is kept for later runs already."""
    training = context.training_at(span[0])
    return work is CACHES and training is not None and training.args.get("cache") == "disk"


def _noted_of_mains(
    context: Context, pids: Set[int], spans: Sequence[Span]
) -> Iterator[tuple[IdleStacks, Indices, Floats]]:
    """Yield each main process, the pieces of its notes in some spans, and how long it stood in each there (s).

    Of those of other pids, such as a compiler's process, only where the training's own noted nothing.
    """
    found = []
    for each in context.signals.idle_stacks:
        if not each.process.is_worker:
            rows, share = each.within(spans)
            found.append((each, rows, each.seconds(rows) * share))
    mine = [one for one in found if one[0].process.pid in pids and len(one[1])]
    yield from mine or found
