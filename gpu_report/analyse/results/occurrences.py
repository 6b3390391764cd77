"""One event is one finding, whichever GPUs felt it, and so is what recurs; its severity is of what all of it took."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from math import gcd
from statistics import median

from gpu_report.analyse.context import Context
from gpu_report.analyse.results import thresholds as th
from gpu_report.analyse.timeline.epoch_ends import EpochEnd
from gpu_report.analyse.timeline.thresholds import EPOCH_END_S
from gpu_report.analyse.timeseries.intervals import Span
from gpu_report.analyse.timeseries.rhythm import period_s
from gpu_report.catalogue import OCCURRED_KEY, RULES, SEVERITIES, STEADY_KEY, USER_CODE_KEY
from gpu_report.gpu_words import gpus_words
from gpu_report.model import GPUS, Evidence, Finding, Occurrence, Severity
from gpu_report.wording import about_length, every_so_often, every_words, fall_words, length

Group = list[Finding]
TENTHS_S = 9.95  # a length under this is said to a tenth of a second


def group_findings(context: Context, findings: Sequence[Finding]) -> list[Group]:
    """Return the findings in groups, in order of their first: what happened at once or recurs, the others alone.

    Each has the severity of its group: by what the group took of the GPU time of training (see `_severity`).
    """
    alone = list(_of_all_gpus([finding for finding in findings if not _may_recur(finding)]))
    events = list(_events([finding for finding in findings if _may_recur(finding)]))
    groups = [*alone, *([one for event in group for one in event] for group in _recurring(events))]
    place = {id(finding): number for number, finding in enumerate(findings)}
    groups.sort(key=lambda group: min(place[id(finding)] for finding in group))
    return [_graded(context, group) for group in groups]


def _of_all_gpus(findings: Sequence[Finding]) -> Iterator[Group]:
    """Yield findings alone, but those of several GPUs together that are true of them at once.

    Of what holds GPUs back all the time those of a training are, with one cause.
    """
    lasting: dict[object, Group] = {}
    alike: dict[object, Group] = {}
    for finding in findings:
        if finding.rule == "starved" and finding.cause is not None:
            kind = finding.cause.name, finding.cause.explanation, finding.span, finding.severity
            lasting.setdefault(kind, []).append(finding)
        elif finding.of_gpus and finding.gpu is not None and not finding.expected:
            own = [(at.file, at.function) for at in finding.where[:1]]
            alike.setdefault((finding.lost_gpu_s is None, *own), []).append(finding)
        else:
            yield [finding]
    yield from lasting.values()
    yield from (event for mine in alike.values() for event in _events(mine))


def groups_of(groups: Sequence[Group], findings: Sequence[Finding]) -> list[Group]:
    """Return the same groups of findings that have been added to since, known by their ids."""
    by_id = {finding.id: finding for finding in findings}
    return [[by_id[finding.id] for finding in group] for group in groups]


def joined(context: Context, group: Group) -> Finding:
    """Return one finding of a group, under the id of its first in time."""
    first = min(group, key=lambda finding: finding.start_t_s)
    gpus = tuple(sorted({gpu for finding in group for gpu in _gpus(finding)}))
    if not _may_recur(first):
        every = first if len(group) == 1 else _of_all(first.id, group, gpus)
        return _with_share(context, replace(every, gpus=gpus))
    occurrences = tuple(_occurrence(event) for event in _events(group))
    known = _with_share(context, replace(first, gpus=gpus, lost_gpu_s=_lost_in_all(occurrences)))
    return known if len(group) == 1 else _of_several(known, group, occurrences)


def _gpus(finding: Finding) -> tuple[int, ...]:
    return finding.gpus if finding.gpu is None else (finding.gpu,)


def _of_all(found_id: str, group: Group, gpus: tuple[int, ...]) -> Finding:
    """Return what is true of several GPUs as one finding, with the numbers of the worst."""
    worst = min(group, key=_badness)
    summary = worst.of_gpus.replace(GPUS, gpus_words(gpus)) if worst.of_gpus else _of_gpus(group, gpus)
    lost = [finding.lost_gpu_s for finding in group if finding.lost_gpu_s is not None]
    return replace(
        worst,
        id=found_id,
        gpu=None,
        start_t_s=min(finding.start_t_s for finding in group),
        end_t_s=max(finding.end_t_s for finding in group),
        summary=summary,
        lost_gpu_s=sum(lost) if lost else None,
    )


def _badness(finding: Finding) -> tuple[int, float, float]:
    return SEVERITIES.index(finding.severity), -(finding.number(USER_CODE_KEY) or 0.0), -finding.duration_s


def _with_share(context: Context, finding: Finding) -> Finding:
    """Return a finding with the share of the training's GPU time that it took, where both are known.

    What holds up the ends of epochs takes none of the time in training steps: it is a share of the epochs with ends, on
    the GPUs that felt it, for all others of the training wait for these.
    """
    at_ends = RULES[finding.rule].at_epoch_ends and context.in_ended_epochs_s
    trained_s = at_ends * max(len(finding.gpus), 1) if at_ends else context.cached(_trained_gpu_s)
    if finding.lost_gpu_s is None or not trained_s:
        return finding
    waits = 1.0 if at_ends else _waits_with_it(context, finding)
    return replace(finding, share_of_training=min(finding.lost_gpu_s * waits / trained_s, 1.0))


def _waits_with_it(context: Context, finding: Finding) -> float:
    """Return for how many GPUs each that lost time stands: all of a training wait where they step together.

    Waits for one that does no work at all are findings of their own.
    """
    if RULES[finding.rule].takes_time:
        return 1.0
    training = context.training_at(finding.start_t_s, finding.gpus[0]) if finding.gpus else None
    if training is None or not training.steps_together or not set(finding.gpus) <= set(training.gpus):
        return 1.0
    return len(training.gpus) / len(finding.gpus)


def _lost_in_all(occurrences: Sequence[Occurrence]) -> float:
    return sum(one.lost_gpu_s or 0.0 for one in occurrences)


def _of_several(first: Finding, group: Group, occurrences: tuple[Occurrence, ...]) -> Finding:
    """Return the first of several findings as all of them; the numbers are those of the longest."""
    longest, every = max(group, key=lambda finding: finding.duration_s), every_words(first.every_epochs)
    return replace(
        first,
        gpu=first.gpus[0] if len(first.gpus) == 1 else None,
        end_t_s=max(finding.end_t_s for finding in group),
        level_pct=longest.level_pct,
        low_pct=longest.low_pct,
        cause=longest.cause,
        advice=longest.advice,
        kernel_events=longest.kernel_events,
        summary=f"{_summary(longest, first.gpus, occurrences)}{every and f',{every}'}",
        evidence=(*_how_often(longest, occurrences), *longest.evidence),
        occurrences=occurrences if len(occurrences) > 1 else (),
    )


def ids_of(groups: Sequence[Group]) -> Mapping[str, str]:
    """Return the id under which each finding is reported."""
    firsts = (min(group, key=lambda finding: finding.start_t_s).id for group in groups)
    return {finding.id: first for group, first in zip(groups, firsts, strict=True) for finding in group}


def _may_recur(finding: Finding) -> bool:
    return RULES[finding.rule].takes_time and not finding.expected and finding.gpu is not None


def _events(findings: Sequence[Finding]) -> Iterator[Group]:
    """Yield what several GPUs felt at once: findings of one rule and cause, each over most of the first's time."""
    in_order, taken = sorted(findings, key=lambda finding: finding.start_t_s), set[int]()
    for place, first in enumerate(in_order):
        if place in taken:
            continue
        event, gpus = [first], {first.gpu}
        for at in range(place + 1, len(in_order)):
            other = in_order[at]
            if other.start_t_s >= first.end_t_s:
                break
            is_new = at not in taken and other.gpu not in gpus
            if is_new and _kind(other) == _kind(first) and _together(first, other):
                event.append(other)
                gpus.add(other.gpu)
                taken.add(at)
        yield event


def _together(one: Finding, other: Finding) -> bool:
    both = min(one.end_t_s, other.end_t_s) - max(one.start_t_s, other.start_t_s)
    return both >= th.SAME_EVENT_SHARE * max(one.duration_s, other.duration_s)


def _kind(finding: Finding) -> tuple[str, str | None, str]:
    return finding.rule, finding.cause.name if finding.cause else None, finding.waited_for


def _recurring(events: Sequence[Group]) -> Iterator[list[Group]]:
    """Yield events of one kind, on the same GPUs and about as long, together where they are RECURS_TIMES or more."""
    kinds: dict[object, list[Group]] = {}
    for event in events:
        kinds.setdefault((_kind(event[0]), frozenset(each.gpu for each in event)), []).append(event)
    for alike in kinds.values():
        if RULES[alike[0][0].rule].at_epoch_ends:  # of all epochs, however long each takes
            yield alike
            continue
        for cluster in [alike] if _ask_for_one(alike) else _with_few(list(_of_a_length(alike))):
            if len(cluster) >= th.RECURS_TIMES:
                yield cluster
            else:
                yield from ([event] for event in cluster)


def _ask_for_one(events: Sequence[Group]) -> bool:
    """Tell whether the same is to be done about all events, whose cause is known: however long each took, it is one."""
    advice = events[0][0].advice
    return bool(advice) and all(each.is_explained and each.advice == advice for event in events for each in event)


def _of_a_length(events: Sequence[Group]) -> Iterator[list[Group]]:
    """Yield events whose lengths lie within RECURS_FACTOR of each other, the shortest first."""
    cluster: list[Group] = []
    for event in sorted(events, key=_length_s):
        if cluster and _length_s(event) > th.RECURS_FACTOR * _length_s(cluster[0]):
            yield cluster
            cluster = []
        cluster.append(event)
    yield cluster


def _with_few(clusters: Sequence[list[Group]]) -> list[list[Group]]:
    """Return clusters, those of a few events with that of most: some of what recurs is cut short or drawn out."""
    most = max(clusters, key=len)
    few = [each for each in clusters if each is not most and len(each) <= th.FEW_SHARE * len(most)]
    rest = [each for each in clusters if each is not most and all(each is not one for one in few)]
    return [[*most, *(event for each in few for event in each)], *rest]


def _span(event: Group) -> Span:
    return min(each.start_t_s for each in event), max(each.end_t_s for each in event)


def _length_s(event: Group) -> float:
    start, end = _span(event)
    return end - start


def _occurrence(event: Group) -> Occurrence:
    start, end = _span(event)
    gpus = tuple(sorted(each.gpu for each in event if each.gpu is not None))
    return Occurrence(start, end, gpus, sum(map(lost_s, event)))


def lost_s(finding: Finding) -> float:
    """Return the seconds of work that a finding took of its GPU: as its rule knows, else at the level before it."""
    if finding.lost_gpu_s is not None:
        return finding.lost_gpu_s
    low, level = finding.low_pct, finding.level_pct
    return finding.duration_s * (1 - low / level if level and low is not None else 1.0)


def _graded(context: Context, group: Group) -> Group:
    """Return a group with the severity of what it took, where that is what its rule goes by."""
    trained_s = context.cached(_trained_gpu_s)
    if not _may_recur(group[0]):
        lost_s = sum(finding.lost_gpu_s or 0.0 for finding in group)
        return [_raised(finding, lost_s, trained_s) for finding in group]
    severity = _severity(sum(f.duration_s for f in group), trained_s, context.run.duration_s)
    every = None if RULES[group[0].rule].at_epoch_ends else _every_epochs(context, list(_events(group)))
    severity = "warning" if every is not None and severity == "critical" else severity
    return [replace(finding, severity=severity, every_epochs=every) for finding in group]


def _every_epochs(context: Context, events: Sequence[Group]) -> int | None:
    """Return at the end of each how many-th epoch events came, None where they keep to no such period.

    What happens to a training falls into any epoch, and any part of it. What comes after each tenth is planned: an
    evaluation of one's own.
    """
    found = [context.epoch_ends.touching(*_span(event)) for event in events]
    ends = [end for end in found if end is not None]
    epochs = sorted({end.row.epoch for end in ends})
    if not len(found) == len(ends) == len(epochs) >= th.RECURS_TIMES or len({end.row.run for end in ends}) > 1:
        return None
    if not _begin_alike(context, [_span(event)[0] for event in events], ends):
        return None
    every = gcd(*(later - before for before, later in pairwise(epochs)))
    turns = (epochs[-1] - epochs[0]) // every + 1
    return every if every > 1 and len(epochs) >= th.TURNS_SHARE * turns else None


def _begin_alike(context: Context, starts_s: Sequence[float], ends: Sequence[EpochEnd]) -> bool:
    """Tell whether events begin as long after the training of their epochs, or after their rows, each time.

    Where epochs are short, nearly all that happens touches the end of one.
    """
    tick_s = max((series.tick_s for series in context.series), default=0.0)
    of_rows = [start_s - end.row.row_t_s for start_s, end in zip(starts_s, ends, strict=True)]
    of_pauses = [start_s - end.pause[0] for start_s, end in zip(starts_s, ends, strict=True) if end.pause]
    early = any(end.from_callbacks for end in ends) and min(of_pauses, default=0.0) < -(EPOCH_END_S + tick_s)
    known = [of_rows, of_pauses] if len(of_pauses) == len(ends) else [of_rows]
    return not early and min(max(each) - min(each) for each in known) <= EPOCH_END_S + 2 * tick_s


def _raised(finding: Finding, lost_s: float, trained_s: float) -> Finding:
    """Return a finding whose rule knows what it took, as critical where that was so much; its rule knows the rest.

    `lost_s` is what it took of all GPUs that felt it.
    """
    if finding.severity != "warning" or finding.lost_gpu_s is None:
        return finding
    return replace(finding, severity="critical") if _is_critical(lost_s, trained_s) else finding


def _severity(took_s: float, trained_s: float, run_s: float) -> Severity:
    """Return how bad it is that something took so many GPU seconds, of those of the training, in a run of a length."""
    if _is_critical(took_s, trained_s):
        return "critical"
    share = took_s / trained_s if trained_s else 1.0
    is_short = run_s < th.SHORT_RUN_S and took_s >= th.WARNING_SHORT_S
    return "warning" if share >= th.WARNING_SHARE or took_s >= th.WARNING_S or is_short else "info"


def _is_critical(took_s: float, trained_s: float) -> bool:
    return took_s >= th.CRITICAL_S and took_s >= th.CRITICAL_SHARE * trained_s


def _trained_gpu_s(context: Context) -> float:
    """Return the GPU seconds of the train phases of all trainings; the whole run's where none is known."""
    spans = [(end - start) * max(len(t.gpus), 1) for t in context.trainings for start, end in t.train_spans]
    return sum(spans) or context.run.duration_s * max(len(context.activity.used_gpus), 1)


def _summary(longest: Finding, gpus: Sequence[int], occurrences: Sequence[Occurrence]) -> str:
    """Return what happened to which GPUs, for how long, and how often."""
    named = gpus_words(gpus)
    took = length(sum(one.duration_s for one in occurrences))
    each_s = median(one.duration_s for one in occurrences)
    each = f"{each_s:.1f} s" if each_s < TENTHS_S else about_length(each_s)
    often = (
        "" if RULES[longest.rule].at_epoch_ends else every_so_often(period_s([each.start_t_s for each in occurrences]))
    )
    times, recurs = f"{len(occurrences):,} times{often}{often and ','}", len(occurrences) > 1
    if longest.level_pct is None or longest.low_pct is None:
        return f"{longest.summary}; {times.removesuffix(',')}, {took} in all" if recurs else longest.summary
    how_far = fall_words(named, longest.level_pct, longest.low_pct)
    return f"{how_far}, {times} for about {each}: {took} in all" if recurs else f"{how_far} for {took}"


def _of_gpus(group: Group, gpus: Sequence[int]) -> str:
    """Return how busy several GPUs were in the steady state of a training, and why."""
    known = [round(pct) for finding in group if (pct := finding.number(STEADY_KEY)) is not None]
    why = group[0].cause.explanation if group[0].cause else ""
    least, most = min(known, default=0), max(known, default=0)
    busy = f"were busy {least if least == most else f'{least} to {most}'} %" if known else "waited for data"
    return f"{gpus_words(gpus)} {busy} in steady state: {why}"


def _how_often(longest: Finding, occurrences: Sequence[Occurrence]) -> tuple[Evidence, ...]:
    if len(occurrences) < 2:
        return ()
    starts = [one.start_t_s for one in occurrences]
    apart_s = median(later - before for before, later in pairwise(starts))
    return (
        Evidence("how often it happened", len(occurrences), "", key=OCCURRED_KEY),
        Evidence("time from one to the next (median)", apart_s, "s"),
        Evidence("length (median)", median(one.duration_s for one in occurrences), "s"),
        *(() if longest.level_pct is None else (_lost(occurrences),)),  # of another level nothing is known
    )


def _lost(occurrences: Sequence[Occurrence]) -> Evidence:
    return Evidence("GPU time lost in all, compared with before", _lost_in_all(occurrences), "s")
