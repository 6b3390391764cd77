"""The one sentence that a person came for."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TypeGuard

from gpu_report.analyse.context import Context
from gpu_report.analyse.results import thresholds as th
from gpu_report.analyse.results.not_checked import not_checked
from gpu_report.analyse.results.verdict_drops import MergedDrop, drops_sentence, merged_drops, waiting_sentence
from gpu_report.analyse.rules.unused_gpus import idle_gpus
from gpu_report.analyse.signals.clock_throttling import POWER_CAP, THERMAL
from gpu_report.analyse.timeline.activity import outside
from gpu_report.analyse.timeline.thresholds import LEVEL_AT_LEAST_S, LOW_PCT
from gpu_report.analyse.timeseries.gpu_series import unsampled_s
from gpu_report.analyse.timeseries.intervals import as_array, length_s
from gpu_report.catalogue import CAUSES, RULES, UNEXPLAINED, cause_words, row_words
from gpu_report.model import (
    HEALTHY_PCT,
    STARVED_PCT,
    WELL_COVERED,
    Ending,
    Finding,
    LedgerRow,
    Sentence,
    SpeedupLimit,
    Verdict,
)
from gpu_report.wording import counted, ending_words, length, lower_first, upper_first

WAITING = "waiting-for-peer"

Trained = tuple[float, float] | None  # mean utilisation in %, and seconds


def verdict(
    context: Context,
    findings: Sequence[Finding],
    ledger: Sequence[LedgerRow],
    limits: Sequence[SpeedupLimit] = (),
    ending: Ending | None = None,
) -> Verdict:
    """Return what the run comes to, in plain words, with the numbers behind it."""
    trained, unseen = training(context), sum(row.share for row in ledger if row.name == "unmeasured")
    unsampled = _unsampled(context)
    foreign = [f for f in findings if f.rule == "kernel" and any(near.event.of_another for near in f.kernel_events)]
    merged = merged_drops(findings)
    sentences = (
        *_lost(findings),
        *_ended(findings),
        *_stopped_early(ending),
        *_fault([f for f in findings if f not in foreign]),
        *_setup(findings),
        _work(context, trained, unseen, findings),
        *_starved(findings),
        *_speedup(limits, findings),
        *_drops(context, merged, findings, telling=_is_telling(trained, max(unseen, unsampled))),
        *_others(findings, merged),
        *_throttled(findings),
        *_fault(foreign),
        *_unmeasured(trained, unseen, unsampled),
        *_largest_loss(trained, findings, ledger, is_training=_saw_training(context)),
        *_unused(context),
    )
    return Verdict(sentences)


def training(context: Context) -> Trained:
    """Return mean utilisation (%) and length (s) of the training of the used GPUs, None where nothing ran.

    Training is the train phases; where no epochs are known, all outside startup and idle. A GPU that spins for another
    reads as fully busy and does nothing: that counts as no work.
    """
    spans = as_array([p.span for p in context.phases if p.name == "train"])
    weight = busy = 0.0
    for series, usable in zip(context.series, context.usable, strict=True):
        mine = usable & ~outside(series, spans) if len(spans) else usable
        waits = [wait.span for wait in context.busy_waits if wait.gpu == series.gpu]
        weight += float(series.weight_s[mine].sum())
        busy += float((series.weight_s * series.util_pct)[mine & outside(series, waits)].sum())
    return (busy / weight, weight / len(context.activity.used_gpus)) if weight else None


def _lost(findings: Sequence[Finding]) -> Iterator[Sentence]:
    """Yield the first GPU that the driver lost: before the end of a training, which follows from it."""
    lost = min((f for f in findings if f.rule == "gpu-lost"), key=lambda f: f.start_t_s, default=None)
    if lost:
        yield _summary("lost", lost)


def _summary(kind: str, finding: Finding) -> Sentence:
    """Return a finding's summary as a sentence."""
    return Sentence(kind, f"{upper_first(finding.summary)}.", (finding.id,))


def _ended(findings: Sequence[Finding]) -> Iterator[Sentence]:
    """Yield how a training ended that came to no good end, and the growth of memory that led there."""
    ended = [f for f in findings if RULES[f.rule].ending]
    if ended:
        after = f"{length(ended[0].end_t_s)} after the recording began"
        yield Sentence("ended", f"{ended[0].summary}, {after}.", (ended[0].id,))
        yield from (Sentence("ended", f"{f.summary}.", (f.id,)) for f in findings if _led_to(f, ended[0]))


def _stopped_early(ending: Ending | None) -> Iterator[Sentence]:
    """Yield that the last training came to fewer epochs than were asked for, since none got better any more."""
    if ending is not None and ending.name == "early stop":
        yield Sentence("stopped early", f"{ending_words(ending, 'The training')}.")


def _led_to(finding: Finding, ended: Finding) -> bool:
    """Tell whether memory grew until there was no more of it when a training ended."""
    return finding.ran_out and finding.start_t_s < ended.end_t_s


def _starved(findings: Sequence[Finding]) -> Iterator[Sentence]:
    """Yield what holds training back all the time, where that is known."""
    ids: dict[str, list[str]] = {}
    for finding in findings:
        if finding.rule == "starved" and finding.cause and finding.cause.confidence > 0:
            ids.setdefault(finding.cause.explanation, []).append(finding.id)
    yield from (Sentence("starved", f"{upper_first(cause)}.", tuple(mine)) for cause, mine in ids.items())


def _speedup(limits: Sequence[SpeedupLimit], findings: Sequence[Finding]) -> Iterator[Sentence]:
    """Yield what could be won against what holds training back all the time, and what a fix is likely to reach."""
    lasting = {f.cause.name for f in findings if f.rule == "starved" and f.cause and f.severity != "info"}
    limit = next((limit for limit in limits if limit.cause in lasting), None)
    if limit is None:
        return
    without = "If it never waited" if limit.cause == UNEXPLAINED else "Without that"
    at_best = f"{without}, the {epoch_length(limit.epoch_s_now)} of training an epoch become "
    at_best += f"{epoch_length(limit.epoch_s_at_best)} at best, {limit.speed_up_at_most:.1f} times faster"
    expect = ""
    if limit.epoch_s_estimate is not None:
        expect = f"; with {limit.fix} expect about {epoch_length(limit.epoch_s_estimate)}"
    yield Sentence("speed-up", f"{at_best}{expect}.", about=limit.cause)


def epoch_length(seconds: float) -> str:
    """Return an epoch's length: to a tenth of a second where that is worth telling."""
    return f"{seconds:.1f} s" if seconds < 10 else length(seconds)


def _others(findings: Sequence[Finding], merged: Sequence[MergedDrop]) -> Iterator[Sentence]:
    """Yield who else was on the GPUs, who waited for whom, slow epochs, growing memory: the longest of each."""
    ended = [f for f in findings if RULES[f.rule].ending]
    for rule in (rule.id for rule in RULES.values() if rule.mentioned_once):
        mine = [f for f in findings if f.rule == rule and not f.expected]
        mine = [f for f in mine if not ended or not _led_to(f, ended[0])]
        waited = waiting_sentence(merged, mine) if rule == WAITING else ""
        if waited:
            yield Sentence(rule, waited)
        elif mine:
            longest = max(mine, key=lambda f: f.duration_s)
            yield Sentence(rule, f"{longest.summary}{_why(longest)}.", (longest.id,))


def _why(finding: Finding) -> str:
    """Return a finding's cause, in brackets, where its summary has none."""
    known = RULES[finding.rule].without_cause and finding.cause and finding.cause.confidence > 0
    return f" ({lower_first(cause_words(finding.cause.name))})" if known and finding.cause else ""


def _throttled(findings: Sequence[Finding]) -> Iterator[Sentence]:
    """Yield what held clocks down at a cost that matters: the worst of each cause."""
    mine = [f for f in findings if f.rule in {POWER_CAP, THERMAL} and f.severity != "info"]
    worst = {f.rule: f for f in reversed(mine)}  # findings come worst first
    yield from (_summary("throttled", worst[rule]) for rule in sorted(worst))


def _fault(of: Sequence[Finding]) -> Iterator[Sentence]:
    """Yield the worst thing that the kernel said during the run, unless the end or a lost GPU has said it already."""
    said = {near.event.kind for f in of if RULES[f.rule].owns_kernel_lines for near in f.kernel_events}
    messages = [f for f in of if f.rule == "kernel" and f.severity != "info" and f.end_t_s >= 0]
    faults = [f for f in messages if not any(near.event.kind in said for near in f.kernel_events)]
    worst = min(faults, key=lambda f: (f.severity != "critical", f.start_t_s), default=None)
    if worst:
        yield _summary("fault", worst)


def _setup(findings: Sequence[Finding]) -> Iterator[Sentence]:
    """Yield what of the set-up does not fit the machine, where that is more than a note: the worst."""
    issues = (f for f in findings if f.rule == "environment" and f.severity != "info")  # findings come worst first
    yield from (_summary("set-up", issue) for issue in islice(issues, 1))


def _is_marred(findings: Sequence[Finding]) -> bool:
    """Tell whether something went wrong that a healthy utilisation would hide, such as a bad end or another process."""
    return any(not RULES[f.rule].harmless and f.severity != "info" and not f.expected for f in findings)


def _work(context: Context, trained: Trained, unseen: float, findings: Sequence[Finding]) -> Sentence:
    """Return how busy the GPUs were in training, and what to think of that."""
    if trained is None:
        return Sentence("work", _reported_work(context) or _no_work(context, unseen))
    util, seconds = trained
    gpus = len(context.activity.used_gpus)
    the_gpu = "The GPU" if len(context.series) == 1 else f"GPU {min(context.activity.used_gpus)}"
    subject = f"{the_gpu} was" if gpus == 1 else f"{gpus} GPUs were"
    if _saw_training(context):
        what = f"the {length(seconds)} in which {'it' if gpus == 1 else 'they'} trained"
    else:
        what = f"{length(seconds)} after startup" if context.activity.startups else f"the {length(seconds)} recorded"
    reading = ", which is too short to judge"
    if context.too_coarse:
        reading = ", validation included"
    elif seconds >= LEVEL_AT_LEAST_S:
        reading = _reading(util, gpus, marred=_is_marred(findings))
    return Sentence("work", f"{subject} busy {util:.0f} % of {what}{reading}.")


def _reported_work(context: Context) -> str:
    """Return what callbacks reported of a training on GPUs that report no utilisation, empty where that is not so."""
    spans = [phase.span for phase in context.phases if phase.name == "train"]
    waited = context.throughput.data_wait_share(spans) if context.throughput and spans else None
    if waited is None or any(len(series.t_s) for series in context.series):
        return ""
    known = f"in the {length(length_s(spans))} of training the trainer waited for data {100 * waited:.0f} % of the time"
    return f"How busy the GPU was is not known, since it reports no utilisation; {known}."


def _saw_training(context: Context) -> bool:
    return any(phase.name == "train" for phase in context.phases)


def _no_work(context: Context, unseen: float) -> str:
    """Return that no GPU worked, where that is known: of a few readings, or none of utilisation, it is not.

    Nor is it of the share of the time that was not measured (`unseen`, 0 to 1): an idle beginning tells of itself.
    """
    readings = sum(len(series.t_s) for series in context.series)
    if not readings:
        return "Nobody read how busy a GPU was: whether any worked is not known."
    longest_s = max(float(series.weight_s.sum()) for series in context.series)
    busiest = max(float(series.util_pct.max()) for series in context.series if len(series.t_s))
    is_whole = unseen <= 1 - WELL_COVERED
    if longest_s < LEVEL_AT_LEAST_S and (busiest >= LOW_PCT or not is_whole):
        held = f"{counted(readings, 'reading')} of utilisation in {length(longest_s)}"
        return f"Too little was recorded to say whether a GPU worked: {held}, {busiest:.0f} % at most."
    if not is_whole:
        return f"No GPU worked in the {length(longest_s)} that were measured."
    return "No GPU worked during this recording."


def _reading(util: float, gpus: int, *, marred: bool) -> str:
    """Return what to think of mean utilisation in training; it is not called healthy where something went wrong."""
    if util < STARVED_PCT:
        return f": {'it' if gpus == 1 else 'they'} mostly waited"
    if util < HEALTHY_PCT:
        return ": there is room to win"
    if util > th.COMPUTE_BOUND_PCT:
        return ": the time is in the model"
    return "" if marred else ", which is healthy for YOLO"


def _drops(
    context: Context, merged: Sequence[MergedDrop], findings: Sequence[Finding], *, telling: bool
) -> Iterator[Sentence]:
    """Yield the drops together, or that there was none where that is known; else why it is not."""
    unchecked = [each.reason for each in context.cached(not_checked) if each.rule == "drop"]
    if merged:
        yield Sentence("drops", drops_sentence(merged, several_gpus=len(context.activity.used_gpus) > 1))
    elif telling and not unchecked and not _is_marred(findings):
        yield Sentence("drops", "No unexpected drop.")
    yield from (Sentence("not checked", f"Not checked for drops: {reason}.") for reason in unchecked[:1])


def _is_telling(trained: Trained, unseen: float) -> bool:
    """Tell whether a drop would have been seen.

    A GPU that never worked has no level to fall from, in too short a time none is known, and where nobody looked
    nothing is seen to fall; where the driver alone did, nothing tells why, nor whether its readings are credible.
    """
    return _is_long(trained) and trained[0] >= STARVED_PCT and unseen <= 1 - WELL_COVERED


def _is_long(trained: Trained) -> TypeGuard[tuple[float, float]]:
    """Tell whether there was training enough to judge it."""
    return trained is not None and trained[1] >= LEVEL_AT_LEAST_S


def _unsampled(context: Context) -> float:
    """Return which share of all GPU time (0 to 1) no tick sampled, whatever the driver kept of it."""
    total_s = context.run.duration_s * len(context.series)
    missing_s = sum(unsampled_s(series, context.run.duration_s) for series in context.series)
    return missing_s / total_s if total_s > 0 else 0.0


def _unmeasured(trained: Trained, unseen: float, unsampled: float) -> Iterator[Sentence]:
    """Yield how much of the time is not known, or of how much the driver kept readings of utilisation alone."""
    if unseen > 1 - WELL_COVERED:
        text = f"{100 * unseen:.0f} % of the time was not measured: what happened then is not known."
        yield Sentence("unmeasured", text)
    elif trained is not None and unsampled > 1 - WELL_COVERED:
        missing = f"{100 * unsampled:.0f} % of the samples are missing"
        known = "of that time only the driver's own readings of utilisation are known, and no memory or power"
        yield Sentence("unmeasured", f"{missing}: {known}.")


def _largest_loss(
    trained: Trained, findings: Sequence[Finding], ledger: Sequence[LedgerRow], *, is_training: bool
) -> Iterator[Sentence]:
    """Yield where most of the time went when it did not go into work, unless the findings have said more already.

    Startup is none of training's losses: where it is the largest, it is said beside the largest of those.
    """
    lost = sorted((r for r in ledger if r.name not in {"work", "idle", "unmeasured"}), key=lambda r: -r.gpu_seconds)
    if trained is None or trained[0] >= HEALTHY_PCT or not lost:
        return
    startup = f"Start-up took {100 * lost[0].share:.0f} % of all GPU time" if lost[0].name == "startup" else ""
    most = next((row for row in lost if not CAUSES[row.name].paid_once), None)
    if most is None or not _is_long(trained) or _mentioned_s(findings, lost) >= most.gpu_seconds:
        yield from (Sentence("largest loss", f"{text}.", about="startup") for text in (startup,) if text)
        return
    words = lower_first(row_words(most.name, is_training=is_training))
    what = "waiting that nothing recorded explains" if most.name == UNEXPLAINED else words
    took = f"{length(most.gpu_seconds)}, {100 * most.share:.0f} %"
    text = f"{startup}; of what else was lost, {what} took most: {took}." if startup else ""
    yield Sentence("largest loss", text or f"The largest loss is {what}: {took} of all GPU time.", about=most.name)


def _mentioned_s(findings: Sequence[Finding], lost: Sequence[LedgerRow]) -> float:
    """Return the GPU time (s) whose loss findings have said already, with its cause."""
    known = [f for f in findings if f.cause and not f.expected and (f.rule != "starved" or f.cause.confidence > 0)]
    causes = {f.cause.name for f in known if f.cause}
    return sum(row.gpu_seconds for row in lost if row.name in causes)


def _unused(context: Context) -> Iterator[Sentence]:
    """Yield which GPUs did nothing in all of the recording."""
    unused = [str(series.gpu) for series in idle_gpus(context)]
    if unused:
        several = len(unused) > 1
        names = f"GPU{'s' if several else ''} {', '.join(unused)}"
        yield Sentence("unused GPU", f"{names} {'were' if several else 'was'} never used.")
