"""The one sentence that a person came for."""

from collections.abc import Sequence
from typing import TypeGuard

from gpu_report.amounts import counted
from gpu_report.analyse import thresholds as th
from gpu_report.analyse.context import Context
from gpu_report.analyse.results.verdict_drops import MergedDrop, drops_sentence, merged_drops, waiting_sentence
from gpu_report.analyse.rules.memory_growth import RAN_OUT
from gpu_report.analyse.rules.unused_gpus import idle_gpus
from gpu_report.analyse.signals.clock_throttling import POWER_CAP, THERMAL
from gpu_report.analyse.timeline.activity import outside
from gpu_report.analyse.timeseries.gpu_series import unsampled_s
from gpu_report.analyse.timeseries.intervals import as_array
from gpu_report.model import Ending, Finding, LedgerRow, SpeedupLimit
from gpu_report.vocabulary import ENDINGS, cause_words, length, lower_first, row_words

HEALTHY = ", which is healthy for YOLO"
# What the kernel said may concern another program, and an unused GPU did no work.
NOT_MARRING = frozenset({"kernel", "unused-gpu"})
WAITING, GROWTH = "waiting-for-peer", "memory-growth"
MENTIONED_ONCE = ("slowdown", "other-process", WAITING, "slow-epoch", "epochs-slowing", "data-wait-growing", GROWTH)
CAUSE_APART = frozenset({"slowdown", "slow-epoch"})  # whose summary says what happened, and not why
# What a training pays once, however long it is: no loss that a longer run would have again.
ONCE = frozenset({"startup", "final evaluation"})

Trained = tuple[float, float] | None  # mean utilisation in %, and seconds


def verdict(
    context: Context,
    findings: Sequence[Finding],
    ledger: Sequence[LedgerRow],
    limits: Sequence[SpeedupLimit] = (),
    ending: Ending | None = None,
) -> str:
    """Return what the run comes to, in plain words, with the numbers behind it."""
    trained, unseen = training(context), sum(row.share for row in ledger if row.name == "unmeasured")
    unsampled = _unsampled(context)
    strange = [f for f in findings if f.rule == "kernel" and any(near.event.of_another for near in f.kernel_events)]
    merged = merged_drops(findings)
    parts = [
        _lost(findings),
        _ended(findings),
        _stopped_early(ending),
        _fault([f for f in findings if f not in strange]),
        _environment(findings),
        _work(context, trained, unseen, findings),
        _starved(findings),
        _won(limits, findings),
    ]
    parts += [
        _drops(context, merged, findings, trained, max(unseen, unsampled)),
        _beside(findings, merged),
        _throttled(findings),
    ]
    parts += [
        _fault(strange),
        _unseen(trained, unseen, unsampled),
        _largest(trained, findings, ledger, is_training=_saw_training(context)),
        _unused(context),
    ]
    return " ".join(part for part in parts if part)


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


def _lost(findings: Sequence[Finding]) -> str:
    """Return the first GPU that the driver lost: before the end of a training, which follows from it."""
    lost = min((f for f in findings if f.rule == "gpu-lost"), key=lambda f: f.start_t_s, default=None)
    return f"{lost.summary}." if lost else ""


def _ended(findings: Sequence[Finding]) -> str:
    """Return how a training ended that came to no good end, and the growth of memory that led there."""
    ended = [f for f in findings if f.rule in ENDINGS]
    if not ended:
        return ""
    growth = " ".join(f"{f.summary}." for f in findings if _led_to(f, ended[0]))
    return f"{ended[0].summary}, {length(ended[0].end_t_s)} after the recording began. {growth}".strip()


def _stopped_early(ending: Ending | None) -> str:
    """Return that the last training came to fewer epochs than were asked for, since none got better any more."""
    return (
        f"The training{ending.text.removeprefix('It')}." if ending is not None and ending.name == "early stop" else ""
    )


def _led_to(finding: Finding, ended: Finding) -> bool:
    """Tell whether memory grew until there was no more of it when a training ended."""
    return finding.rule == GROWTH and finding.summary.endswith(RAN_OUT) and finding.start_t_s < ended.end_t_s


def _starved(findings: Sequence[Finding]) -> str:
    """Return what holds training back all the time, where that is known."""
    causes = {f.cause.explanation: None for f in findings if f.rule == "starved" and f.cause and f.cause.confidence > 0}
    return " ".join(f"{cause[:1].upper()}{cause[1:]}." for cause in causes)


def _won(limits: Sequence[SpeedupLimit], findings: Sequence[Finding]) -> str:
    """Return what could be won against what holds training back all the time, and what a repair is likely to reach."""
    standing = {f.cause.name for f in findings if f.rule == "starved" and f.cause and f.severity != "info"}
    limit = next((limit for limit in limits if limit.cause in standing), None)
    if limit is None:
        return ""
    without = "If it never waited" if limit.cause == "unexplained" else "Without that"
    at_best = f"{without}, the {epoch_length(limit.epoch_s_now)} of training an epoch become "
    at_best += f"{epoch_length(limit.epoch_s_at_best)} at best, {limit.speed_up_at_most:.1f} times faster"
    if limit.epoch_s_estimate is None:
        return f"{at_best}."
    return f"{at_best}; with {limit.fix} expect about {epoch_length(limit.epoch_s_estimate)}."


def epoch_length(seconds: float) -> str:
    """Return an epoch's length: to a tenth of a second where that is worth telling."""
    return f"{seconds:.1f} s" if seconds < 10 else length(seconds)


def _beside(findings: Sequence[Finding], merged: Sequence[MergedDrop]) -> str:
    """Return who else was on the GPUs, who waited for whom, slow epochs, growing memory: the longest of each."""
    ended, sentences = [f for f in findings if f.rule in ENDINGS], []
    for rule in MENTIONED_ONCE:
        mine = [f for f in findings if f.rule == rule and not f.expected]
        mine = [f for f in mine if not ended or not _led_to(f, ended[0])]
        waited = waiting_sentence(merged, mine) if rule == WAITING else ""
        if mine:
            sentences.append(waited or _mention(max(mine, key=lambda f: f.duration_s)))
    return " ".join(sentences)


def _mention(finding: Finding) -> str:
    """Return a finding in a sentence, with its cause where its summary has none."""
    known = finding.rule in CAUSE_APART and finding.cause and finding.cause.confidence > 0
    why = f" ({lower_first(cause_words(finding.cause.name))})" if known and finding.cause else ""
    return f"{finding.summary}{why}."


def _throttled(findings: Sequence[Finding]) -> str:
    """Return what held clocks down at a cost that matters: the worst of each cause."""
    mine = [f for f in findings if f.rule in {POWER_CAP, THERMAL} and f.severity != "info"]
    worst = {f.rule: f for f in reversed(mine)}  # findings come worst first
    return " ".join(f"{worst[rule].summary}." for rule in sorted(worst))


def _fault(findings: Sequence[Finding]) -> str:
    """Return the worst thing that the kernel said during the run, unless the end or a lost GPU has said it already."""
    told = {near.event.kind for f in findings if f.rule in {*ENDINGS, "gpu-lost"} for near in f.kernel_events}
    heard = [f for f in findings if f.rule == "kernel" and f.severity != "info" and f.end_t_s >= 0]
    faults = [f for f in heard if not any(near.event.kind in told for near in f.kernel_events)]
    worst = min(faults, key=lambda f: (f.severity != "critical", f.start_t_s), default=None)
    return f"{worst.summary[:1].upper()}{worst.summary[1:]}." if worst else ""


def _environment(findings: Sequence[Finding]) -> str:
    """Return what of the set-up does not fit the machine, where that is more than a note: the worst."""
    odds = [f for f in findings if f.rule == "environment" and f.severity != "info"]  # findings come worst first
    return f"{odds[0].summary}." if odds else ""


def _is_marred(findings: Sequence[Finding]) -> bool:
    """Tell whether something went wrong that a healthy utilisation would hide, such as a bad end or another process."""
    return any(f.rule not in NOT_MARRING and f.severity != "info" and not f.expected for f in findings)


def _work(context: Context, trained: Trained, unseen: float, findings: Sequence[Finding]) -> str:
    if trained is None:
        return _no_work(context, unseen)
    util, seconds = trained
    gpus = len(context.activity.used_gpus)
    the_gpu = "The GPU" if len(context.series) == 1 else f"GPU {min(context.activity.used_gpus)}"
    subject = f"{the_gpu} was" if gpus == 1 else f"{gpus} GPUs were"
    if _saw_training(context):
        what = f"the {length(seconds)} in which {'it' if gpus == 1 else 'they'} trained"
    else:
        what = f"{length(seconds)} after startup" if context.activity.startups else f"the {length(seconds)} recorded"
    reading = _reading(util, gpus) if seconds >= th.LEVEL_AT_LEAST_S else ", which is too short to judge"
    reading = "" if reading == HEALTHY and _is_marred(findings) else reading
    return f"{subject} busy {util:.0f} % of {what}{reading}."


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
    is_whole = unseen <= 1 - th.WELL_COVERED
    if longest_s < th.LEVEL_AT_LEAST_S and (busiest >= th.LOW_PCT or not is_whole):
        held = f"{counted(readings, 'reading')} of utilisation in {length(longest_s)}"
        return f"Too little was recorded to say whether a GPU worked: {held}, {busiest:.0f} % at most."
    if not is_whole:
        return f"No GPU worked in the {length(longest_s)} that were measured."
    return "No GPU worked during this recording."


def _reading(util: float, gpus: int) -> str:
    if util < th.STARVED_PCT:
        return f": {'it' if gpus == 1 else 'they'} mostly waited"
    if util < th.ROOM_PCT:
        return ": there is room to win"
    if util > th.COMPUTE_BOUND_PCT:
        return ": the time is in the model"
    return HEALTHY


def _drops(
    context: Context, merged: Sequence[MergedDrop], findings: Sequence[Finding], trained: Trained, unseen: float
) -> str:
    if merged:
        return drops_sentence(merged, several_gpus=len(context.activity.used_gpus) > 1)
    # a GPU that never worked has no level to fall from, in too short a time none is known, and where nobody looked
    # nothing is seen to fall; where the driver alone did, nothing tells why, nor whether its readings are credible
    telling = _is_long(trained) and trained[0] >= th.STARVED_PCT and unseen <= 1 - th.WELL_COVERED
    return "No unexpected drop." if telling and not _is_marred(findings) else ""


def _is_long(trained: Trained) -> TypeGuard[tuple[float, float]]:
    """Tell whether there was training enough to judge it."""
    return trained is not None and trained[1] >= th.LEVEL_AT_LEAST_S


def _unsampled(context: Context) -> float:
    """Return which share of all GPU time (0 to 1) no tick sampled, whatever the driver kept of it."""
    total_s = context.run.duration_s * len(context.series)
    missing_s = sum(unsampled_s(series, context.run.duration_s) for series in context.series)
    return missing_s / total_s if total_s > 0 else 0.0


def _unseen(trained: Trained, unseen: float, unsampled: float) -> str:
    """Return how much of the time is not known, or of how much the driver kept readings of utilisation alone."""
    if unseen > 1 - th.WELL_COVERED:
        return f"{100 * unseen:.0f} % of the time was not measured: what happened then is not known."
    if trained is None or unsampled <= 1 - th.WELL_COVERED:
        return ""
    missing = f"{100 * unsampled:.0f} % of the samples are missing"
    return f"{missing}: of that time only the driver's own readings of utilisation are known, and no memory or power."


def _largest(trained: Trained, findings: Sequence[Finding], ledger: Sequence[LedgerRow], *, is_training: bool) -> str:
    """Return where most of the time went when it did not go into work, unless the findings have said more already.

    Startup is none of training's losses: where it is the largest, it is told beside the largest of those.
    """
    lost = sorted((r for r in ledger if r.name not in {"work", "idle", "unmeasured"}), key=lambda r: -r.gpu_seconds)
    if trained is None or trained[0] >= th.ROOM_PCT or not lost:
        return ""
    startup = f"Start-up took {100 * lost[0].share:.0f} % of all GPU time" if lost[0].name == "startup" else ""
    most = next((row for row in lost if row.name not in ONCE), None)
    if most is None or not _is_long(trained) or _mentioned_s(findings, lost) >= most.gpu_seconds:
        return f"{startup}." if startup else ""
    words = lower_first(row_words(most.name, is_training=is_training))
    what = "waiting that nothing recorded explains" if most.name == "unexplained" else words
    took = f"{length(most.gpu_seconds)}, {100 * most.share:.0f} %"
    if startup:
        return f"{startup}; of what else was lost, {what} took most: {took}."
    return f"The largest loss is {what}: {took} of all GPU time."


def _mentioned_s(findings: Sequence[Finding], lost: Sequence[LedgerRow]) -> float:
    """Return the GPU time (s) whose loss findings have said already, with its cause."""
    told = [f for f in findings if f.cause and not f.expected and (f.rule != "starved" or f.cause.confidence > 0)]
    causes = {f.cause.name for f in told if f.cause}
    return sum(row.gpu_seconds for row in lost if row.name in causes)


def _unused(context: Context) -> str:
    unused = [series.gpu for series in idle_gpus(context)]
    if not unused:
        return ""
    names = ", ".join(str(gpu) for gpu in unused)
    return f"GPU {names} was never used." if len(unused) == 1 else f"GPUs {names} were never used."
