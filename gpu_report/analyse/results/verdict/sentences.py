"""What a run comes to, in sentences: what to change first, then what happened."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from gpu_report.analyse.busy_in_training import Busy, busy_in_training, saw_training
from gpu_report.analyse.context import Context
from gpu_report.analyse.inference.served import is_inference
from gpu_report.analyse.results.not_checked import not_checked
from gpu_report.analyse.results.verdict.drops import MergedDrop, drop_sentences, merged_drops, waiting_sentence
from gpu_report.analyse.results.verdict.end import ended_badly, in_hang, interrupted, led_to, lost, stopped_early
from gpu_report.analyse.results.verdict.gpu_health import gpu_health
from gpu_report.analyse.results.verdict.hypotheses import hypotheses
from gpu_report.analyse.results.verdict.inference import inference_sentences, leading
from gpu_report.analyse.results.verdict.lead import FIX, LOOK, URGENT_S, Lead
from gpu_report.analyse.results.verdict.leads import leads
from gpu_report.analyse.results.verdict.which_training import which_training
from gpu_report.analyse.results.verdict.without_gpu import others_on_cpu
from gpu_report.analyse.results.verdict.work import (
    healthy_steady_pct,
    is_judged,
    is_launch_bound,
    is_long,
    work_sentences,
)
from gpu_report.analyse.rules.setup.torch import no_gpu_for_torch
from gpu_report.analyse.rules.unused_gpus import held_by, idle_gpus
from gpu_report.analyse.signals.clock_throttling import POWER_CAP, THERMAL
from gpu_report.analyse.timeseries.gpu_series import unsampled_s
from gpu_report.catalogue import (
    CAUSES,
    LAUNCH_BOUND,
    MEMORY_GROWS,
    OTHER_NODE,
    RULES,
    UNEXPLAINED,
    WAITING_FOR_PEER,
    cause_words,
    row_words,
)
from gpu_report.model import (
    HEALTHY_PCT,
    STARVED_PCT,
    WELL_COVERED,
    Ending,
    Finding,
    LedgerRow,
    Projection,
    Sentence,
    SpeedupLimit,
    Verdict,
    epoch_now_s,
)
from gpu_report.wording import about_length, epoch_length, length, lower_first, money_words, upper_first

SEVERAL = 2  # epochs: of fewer the epoch itself says all


def verdict(  # noqa: PLR0913, PLR0917 - all that was found
    context: Context,
    findings: Sequence[Finding],
    ledger: Sequence[LedgerRow],
    limits: Sequence[SpeedupLimit] = (),
    ending: Ending | None = None,
    projection: Projection | None = None,
) -> Verdict:
    """Return what the run comes to: a bad end first, then what saves most, then what happened and what it cost."""
    trained, unseen = busy_in_training(context), sum(row.share for row in ledger if row.name == "unmeasured")
    unsampled = _unsampled(context)
    foreign = [f for f in findings if f.rule == "kernel" and any(near.event.of_another for near in f.kernel_events)]
    merged = merged_drops(findings)
    hung = in_hang(findings)
    found = [each for each in leads(context, findings, limits, projection) if not hung.issuperset(_of(each))]
    own = [f for f in findings if f not in foreign]
    bad_end = [*lost(findings), *ended_badly(findings, ending)]
    # where nothing was said that prevents it, what leads is done before the training is resumed
    later = [] if any(each.kind == "prevent" for each in bad_end) else [s for s in bad_end if s.kind == "resume"]
    badly = [each for each in bad_end if each not in later]
    if badly and not is_long(trained):  # of steps that were hardly begun nothing is foretold beside it
        found = [each for each in found if each.saves_s >= URGENT_S]
    lead = found[0] if found else None
    faults_first = lead is None or any(f.rule == "kernel" and f.severity == "critical" for f in own)
    first = [*badly, *(_fault(own) if faults_first else ())]
    faults = (*(() if faults_first else _fault(own)), *_fault(foreign), *gpu_health(context.run.gpus))
    unknown = (*_recorder_gone(context), *_unmeasured(trained, unseen, unsampled), *_no_gpu(context))
    if is_inference(context):
        return Verdict((*first, *_of_inference(context, findings, merged), *faults, *unknown))
    second = tuple(beside_lead(found, findings))
    is_lead = not first and lead is None and max(unseen, unsampled) <= 1 - WELL_COVERED  # of a part nothing is said
    sentences = (
        *first,
        *([lead.sentence] if lead and not (first and _is_vague(lead)) else ()),
        *_then(lead),
        *_which(context, lead, findings),
        *_against(lead),
        *_of_all_nodes(findings),
        *work_sentences(
            context,
            trained,
            unseen,
            () if first else _without_lasting(findings, lead),
            is_lead=is_lead,
            marred=_is_marred([f for f in findings if f.rule != "starved" or not is_launch_bound(f)]),
            others_said=lead is not None and lead.sentence in [each.sentence for each in others_on_cpu(context)],
        ),
        *_unnamed(context, lead, findings),
        *(_guessed(context, findings) or _from_outside(context, lead, findings)),
        *projected(projection, lead, [lead.sentence] if lead else []),
        *second,
        *projected(projection, lead, second),
        *later,
        *_limit(limits, findings, projection, lead),
        *interrupted(findings),
        *stopped_early(ending),
        *_setup(findings, [*([lead.sentence] if lead else []), *second]),
        *_drops(context, merged, findings, lead, telling=_is_telling(trained, max(unseen, unsampled))),
        *_others([f for f in findings if not _is_said(f, lead) and not _begins(f, first, lead, hung)], merged),
        *_throttled(findings, lead),
        *faults,
        *unknown,
        *(() if first else _largest_loss(context, trained, findings, ledger, lead)),
        *_unused(context, findings, lead),
        *_of_others(context),
        *_cost(context, findings, ledger),
    )
    is_healthy = healthy_steady_pct(context, findings) is not None
    begins = (*first, *(each.sentence for each in found))
    order = tuple(dict.fromkeys(found_id for sentence in begins for found_id in sentence.findings))
    return Verdict(sentences, trained[0] if trained and is_judged(trained, findings) else None, is_healthy, order)


def _of_inference(context: Context, findings: Sequence[Finding], merged: Sequence[MergedDrop]) -> Iterator[Sentence]:
    """Yield what calls of models come to, and what happened beside them."""
    said = leading(findings)
    yield from inference_sentences(context, findings)
    yield from _setup(findings)
    yield from _others([finding for finding in findings if finding.id not in said], merged)
    yield from _throttled(findings)


def _then(lead: Lead | None) -> Iterator[Sentence]:
    """Yield in which line a process was, where the lead says what to do and not where."""
    if lead is not None and lead.then:
        yield Sentence("where", lead.then, lead.sentence.findings, lead.sentence.about)


def _is_vague(lead: Lead) -> bool:
    """Tell whether a lead only says to try a larger batch: nothing for somebody whose training crashed."""
    return lead.sentence.about == LAUNCH_BOUND and lead.sentence.kind == LOOK


def _which(context: Context, lead: Lead | None, findings: Sequence[Finding]) -> Iterator[Sentence]:
    """Yield which of several trainings the lead is about; of what lasts its cause says that."""
    led = [finding for finding in findings if lead is not None and finding.id in lead.sentence.findings]
    lasts = any(finding.rule == "starved" for finding in led)
    if not lasts and (which := which_training(context, led)):
        yield Sentence("where", f"This is about {which}.", tuple(finding.id for finding in led))


def _against(lead: Lead | None) -> Iterator[Sentence]:
    """Yield what to do where something urgent leads, which says what it is."""
    if lead is None or lead.saves_s < URGENT_S or lead.says_how:
        return
    said = lead.sentence
    text = said.advice.short if said.advice else CAUSES[said.about].always if said.about in CAUSES else ""
    if text:
        yield Sentence("prevent", f"{text}.", said.findings, said.about)


def _unnamed(context: Context, lead: Lead | None, findings: Sequence[Finding]) -> Iterator[Sentence]:
    """Yield how to learn which line of code to look at, where none was noted, for the recorder started no command."""
    about = lead.sentence.about if lead is not None and lead.sentence.kind == LOOK else ""
    led = lead.sentence.findings if lead is not None else ()
    is_named = any(finding.where for finding in findings if finding.id in led)  # by a few dumps
    watched = not context.run.recording.command and not context.run.stacks
    if watched and not is_named and about in CAUSES and CAUSES[about].has_line:
        text = "To see which line of code, start the training with `gpu-report record -- COMMAND`."
        yield Sentence("record", text, (), about)


def _of_all_nodes(findings: Sequence[Finding]) -> Iterator[Sentence]:
    """Yield how to learn for whom a GPU waited where that is on another node, whose recording is another folder."""
    mine = [finding for finding in findings if finding.waited_for == OTHER_NODE]
    if mine:
        text = "To see which rank, render all nodes: `gpu-report render job.html NODE_A NODE_B`."
        ids = tuple(finding.id for finding in mine)
        yield Sentence("all nodes", text, ids, WAITING_FOR_PEER, next(iter(mine[0].advice), None))


def _is_said(finding: Finding, lead: Lead | None) -> bool:
    """Tell whether the lead has said what there is to say: of a wait for another node, of who shared the GPU so long.

    What that left of the training's speed, where it is known, is more than that.
    """
    shared = finding.rule == "other-process" and finding.lost_gpu_s is None
    return lead is not None and (finding.waited_for == OTHER_NODE or shared) and finding.id in lead.sentence.findings


def _without_lasting(findings: Sequence[Finding], lead: Lead | None) -> Sequence[Finding]:
    """Return the findings without what holds steps up all the time, where steps that get slower lead: it grew."""
    said = lead.sentence.findings if lead is not None else ()
    gets_slower = any(finding.rule == "epochs-slowing" and finding.id in said for finding in findings)
    return [replace(f, cause=None) if f.rule == "starved" else f for f in findings] if gets_slower else findings


def _guessed(context: Context, findings: Sequence[Finding]) -> list[Sentence]:
    """Return the likeliest guess where nothing explains why the GPU waits, and what would decide it."""
    return [
        Sentence("guess", text)
        for guess in hypotheses(context, findings)[:1]
        for text in (f"Guess: {guess.text}.", f"To check: {guess.decided_by}.")
    ]


def _from_outside(context: Context, lead: Lead | None, findings: Sequence[Finding]) -> Iterator[Sentence]:
    """Yield how to learn what a GPU waited for where nothing is known from inside the training, and nothing leads."""
    unknown = [f for f in findings if f.cause and f.cause.name == UNEXPLAINED and f.severity != "info"]
    if unknown and lead is None and not context.run.inside and not context.run.recording.command:
        text = "To see what it waited for, record the next training with `gpu-report record -- COMMAND`."
        yield Sentence("record", text, tuple(f.id for f in unknown), UNEXPLAINED)


def projected(projection: Projection | None, lead: Lead | None, said: Sequence[Sentence]) -> Iterator[Sentence]:
    """Yield what the fix comes to for all epochs, or those that were left, where its cause leads and `said` has it."""
    if projection is None or lead is None or lead.sentence.about != projection.cause or projection.seconds is None:
        return
    if (projection.epochs or 0) < SEVERAL or all(each.kind != FIX or each.about != projection.cause for each in said):
        return
    now_s, expected_s = projection.seconds
    which = f"The {projection.epochs:,} epochs left" if projection.left else f"All {projection.epochs:,} epochs"
    cost = "" if projection.money is None else f", cost {' → '.join(map(money_words, projection.money))}"
    text = f"{which}: {about_length(now_s)} → about {about_length(expected_s)}{cost}."
    yield Sentence("projection", text, about=projection.cause)


def beside_lead(found: Sequence[Lead], findings: Sequence[Finding]) -> Iterator[Sentence]:
    """Yield the argument to set, and functions of the user's, where something else leads: they are worth it, too.

    What holds back several ranks alike is said once.
    """
    lasting = {f.id for f in findings if f.rule == "starved"}
    said, every = {each.sentence.about for each in found[:1]}, {each.sentence.text: each.sentence for each in found}
    for sentence in list(every.values())[1:]:
        of_another_gpu = sentence.about not in said and lasting.intersection(sentence.findings)
        if sentence.kind == FIX or sentence.names_own or of_another_gpu:
            yield sentence


def _limit(
    limits: Sequence[SpeedupLimit], findings: Sequence[Finding], projection: Projection | None, lead: Lead | None
) -> Iterator[Sentence]:
    """Yield the limit of what holds training back all the time, or leads and makes the ends of all epochs longer.

    Nothing where somebody can say what a fix would reach.
    """
    lasting = {f.cause.name for f in findings if f.rule == "starved" and f.cause and f.severity != "info"}
    led = {lead.sentence.about} if lead is not None else set()
    limit = next((each for each in limits if each.cause in (led if each.at_epoch_ends else lasting)), None)
    if limit is None or (projection is not None and projection.cause == limit.cause):
        return
    if limit.cause == LAUNCH_BOUND and limit.fix == "":  # it is reached by a batch that nobody can name
        return
    now_s = epoch_now_s(limits) or 0.0
    now, best = (epoch_length(each_s) for each_s in (now_s, now_s - limit.saves_at_most_s))
    # what follows a function may take less time without it, too: that is no best case
    without = "Without that function an epoch takes about" if limit.function else "In the best case an epoch takes"
    text = f"{without} {best} instead of {now}."
    yield Sentence("speed-up", text, about=limit.cause)


def _fault(of: Sequence[Finding]) -> Iterator[Sentence]:
    """Yield the worst thing that the kernel said during the run, unless the end or a lost GPU has said it already."""
    said = {near.event.kind for f in of if RULES[f.rule].owns_kernel_lines for near in f.kernel_events}
    messages = [f for f in of if f.rule == "kernel" and f.severity != "info" and f.end_t_s >= 0]
    faults = [f for f in messages if not any(near.event.kind in said for near in f.kernel_events)]
    worst = min(faults, key=lambda f: (f.severity != "critical", f.start_t_s), default=None)
    if worst:
        yield Sentence("fault", f"{_of_another(worst) or upper_first(worst.summary)}.", (worst.id,))


def _of_another(finding: Finding) -> str:
    """Return that a fault was another program's, empty where that is not known."""
    event = next((near.event for near in finding.kernel_events if near.event.of_another), None)
    if event is None:
        return ""
    what = f"Xid {event.code} on GPU {event.gpu}" if event.code is not None else "A kernel message"
    return f"{what} came from {event.who('a process')}, not this training"


def _setup(findings: Sequence[Finding], before: Sequence[Sentence] = ()) -> Iterator[Sentence]:
    """Yield the worst configuration problem that is more than a note, and that no sentence before is about."""
    said = {name for sentence in before for name in sentence.findings}
    issues = (f for f in findings if f.rule == "environment" and f.severity != "info" and f.id not in said)
    yield from (Sentence("set-up", f"{upper_first(f.summary)}.", (f.id,)) for f in islice(issues, 1))


def _others(findings: Sequence[Finding], merged: Sequence[MergedDrop]) -> Iterator[Sentence]:
    """Yield who else was on the GPUs, who waited for whom, slow epochs, growing memory: the longest of each."""
    ended = [f for f in findings if RULES[f.rule].ending]
    for rule in (rule.id for rule in RULES.values() if rule.mentioned_once):
        mine = [f for f in findings if f.rule == rule and not f.expected]
        mine = [f for f in mine if not ended or not led_to(f, ended[0])]
        mine = [f for f in mine if rule != "slowdown" or f.severity != "info"]  # of seconds, in a training of hours
        waited = waiting_sentence(merged, mine) if rule == WAITING_FOR_PEER else ""
        if waited:
            yield Sentence(rule, waited)
        elif mine:
            longest = max(mine, key=lambda f: f.duration_s)
            yield Sentence(rule, f"{longest.summary}{_why(longest)}.", (longest.id,))


def _of(lead: Lead) -> tuple[str, ...]:
    """Return the findings that a lead is about; of none stands for itself."""
    return lead.sentence.findings or ("",)


def _begins(finding: Finding, first: Sequence[Sentence], lead: Lead | None, hung: frozenset[str]) -> bool:
    """Tell whether the verdict begins with it: a wait that is the hang which ended the training, memory that grows.

    Of memory of GPU and host only one may lead.
    """
    if finding.id in hung:
        return True
    begin = [*first, *([lead.sentence] if lead is not None else [])]
    is_said = any(finding.id in sentence.findings for sentence in begin)
    return is_said and finding.rule in MEMORY_GROWS and finding.severity == "critical"


def _why(finding: Finding) -> str:
    """Return a finding's cause, as the end of a sentence, where its summary has none."""
    known = RULES[finding.rule].without_cause and finding.cause and finding.cause.confidence > 0
    return f"; cause: {lower_first(cause_words(finding.cause.name))}" if known and finding.cause else ""


def _throttled(findings: Sequence[Finding], lead: Lead | None = None) -> Iterator[Sentence]:
    """Yield what held clocks down at a cost that matters: the worst of each cause.

    Nothing where the lead is about several GPUs: one of them alone would contradict it.
    """
    mine = [f for f in findings if f.rule in {POWER_CAP, THERMAL} and f.severity != "info"]
    led = lead.sentence.findings if lead is not None else ()
    several = {f.rule for f in mine if sum(o.rule == f.rule and o.id in led for o in mine) > 1}
    worst = {f.rule: f for f in reversed(mine) if f.rule not in several}  # findings come worst first
    yield from (Sentence("throttled", f"{worst[rule].summary}.", (worst[rule].id,)) for rule in sorted(worst))


def _is_marred(findings: Sequence[Finding]) -> bool:
    """Tell whether something went wrong that a healthy utilisation would hide, such as a bad end or another process."""
    return any(not RULES[f.rule].harmless and f.severity != "info" and not f.expected for f in findings)


def _drops(
    context: Context,
    merged: Sequence[MergedDrop],
    findings: Sequence[Finding],
    lead: Lead | None,
    *,
    telling: bool,
) -> Iterator[Sentence]:
    """Yield the drops together, or that there was none where that is known; else why it is not."""
    unchecked = [each.reason for each in context.cached(not_checked) if each.rule == "drop"]
    several = len(context.activity.used_gpus) > 1
    if merged and not _says_all(lead, merged, several_gpus=several):
        said = lead.sentence.findings if lead else ()
        ids = tuple(found for each in merged for found in each.ids)
        yield from (Sentence("drops", text, ids) for text in drop_sentences(merged, said, several_gpus=several))
    elif not merged and telling and not unchecked and not _is_marred(findings):
        yield Sentence("drops", "GPU utilisation never dropped unexpectedly.")
    for reason in unchecked[:1]:  # beside drops that were found, it is about others
        text = upper_first(reason) if merged else f"Not checked for drops: {reason}"
        yield Sentence("not checked", f"{text}.")


def _says_all(lead: Lead | None, merged: Sequence[MergedDrop], *, several_gpus: bool) -> bool:
    """Tell whether the lead has said of the drops what there is to say: how many, or of one its length and cause."""
    if lead is None or not {found for each in merged for found in each.ids} <= set(lead.sentence.findings):
        return False
    return lead.sentence.about == UNEXPLAINED or (len(merged) == 1 and not several_gpus)


def _is_telling(trained: Busy, unseen: float) -> bool:
    """Tell whether a drop would have been seen.

    A GPU that never worked has no level to fall from, in too short a time none is known, and where nobody looked
    nothing is seen to fall; where the driver alone did, nothing tells why, nor whether its readings are credible.
    """
    return is_long(trained) and trained[0] >= STARVED_PCT and unseen <= 1 - WELL_COVERED


def _unsampled(context: Context) -> float:
    """Return which share of all GPU time (0 to 1) no tick sampled, whatever the driver kept of it."""
    total_s = context.run.duration_s * len(context.series)
    missing_s = sum(unsampled_s(series, context.run.duration_s) for series in context.series)
    return missing_s / total_s if total_s > 0 else 0.0


def _recorder_gone(context: Context) -> Iterator[Sentence]:
    """Yield for how long a training went on that nobody recorded any more, for the recorder was killed."""
    if context.unrecorded_s:
        text = f"The recorder was killed: the last {length(context.unrecorded_s)} of training have no readings."
        yield Sentence("unmeasured", text)


def _unmeasured(trained: Busy, unseen: float, unsampled: float) -> Iterator[Sentence]:
    """Yield how much of the time is not known, or of how much the driver kept readings of utilisation alone."""
    if unseen > 1 - WELL_COVERED:
        text = f"{100 * unseen:.0f} % of the time was not measured: what happened then is unknown."
        yield Sentence("unmeasured", text)
    elif trained is not None and unsampled > 1 - WELL_COVERED:
        missing = f"{100 * unsampled:.0f} % of the samples are missing"
        yield Sentence("unmeasured", f"{missing}: there only the driver's own utilisation readings are known.")


def _no_gpu(context: Context) -> Iterator[Sentence]:
    """Yield that no GPU was recorded, and why, where the recorder said so; a training that missed one has said it."""
    if context.run.gpus or any(no_gpu_for_torch(context, training) for training in context.trainings):
        return
    reason = (context.run.no_gpu or {}).get("reason")
    why = f": {reason}" if isinstance(reason, str) and reason else ""
    yield Sentence("no GPU", f"No GPU was recorded{why}.")


def _largest_loss(
    context: Context, trained: Busy, findings: Sequence[Finding], ledger: Sequence[LedgerRow], lead: Lead | None
) -> Iterator[Sentence]:
    """Yield where most of the time went when it did not go into work, unless the findings have said more already.

    Gaps, which nobody can act on, are no loss to speak of beside what can be changed.

    Of a training that is healthy, at least once it is warm, only how long its start-up was.

    Startup is none of training's losses: where it is the largest, the largest of those is said with it.
    """
    lost = sorted((r for r in ledger if r.name not in {"work", "idle", "unmeasured"}), key=lambda r: -r.gpu_seconds)
    if trained is None or trained[0] >= HEALTHY_PCT or not lost:
        return
    startup = f"Start-up took {100 * lost[0].share:.0f} % of the GPU time" if lost[0].name == "startup" else ""
    most = next((row for row in lost if not CAUSES[row.name].paid_once), None)
    is_healthy = healthy_steady_pct(context, findings) is not None and not _is_marred(findings)
    is_idle_talk = most is not None and most.name == "short gaps" and lead is not None
    if (
        most is None
        or is_healthy
        or is_idle_talk
        or not is_long(trained)
        or _mentioned_s(findings, lost) >= most.gpu_seconds
    ):
        yield from [Sentence("largest loss", f"{startup}.", about="startup")] if startup else []
        return
    words = lower_first(row_words(most.name, is_training=saw_training(context)))
    what = "waiting, for an unknown reason" if most.name == UNEXPLAINED else words
    if startup:
        yield Sentence("largest loss", f"{startup}, {what} {100 * most.share:.0f} %.", about=most.name)
        return
    # a drop that lasted longer may stand before it: it cost less than it lasted
    is_largest = most.gpu_seconds >= max(row.gpu_seconds for row in ledger if row.name != "work")
    is_largest = is_largest and not any(RULES[f.rule].drop and not f.expected for f in findings)
    first = "Largest loss" if is_largest else "Besides"
    text = f"{first}: {what}, {length(most.gpu_seconds)} ({100 * most.share:.0f} % of the GPU time)."
    yield Sentence("largest loss", text, about=most.name)


def _mentioned_s(findings: Sequence[Finding], lost: Sequence[LedgerRow]) -> float:
    """Return the GPU time (s) whose loss findings have said already, with its cause."""
    known = [f for f in findings if f.cause and not f.expected and (f.rule != "starved" or f.cause.confidence > 0)]
    causes = {f.cause.name for f in known if f.cause}
    return sum(row.gpu_seconds for row in lost if row.name in causes)


def _unused(context: Context, findings: Sequence[Finding], lead: Lead | None) -> Iterator[Sentence]:
    """Yield which GPUs did nothing in all of the recording, unless that leads."""
    unused = [str(series.gpu) for series in idle_gpus(context)]
    if unused and (lead is None or lead.sentence.about != "unused-gpu"):
        several = len(unused) > 1
        names = f"GPU{'s' if several else ''} {', '.join(unused)}"
        taken = "" if several else held_by(context, idle_gpus(context)[0])
        ids = tuple(finding.id for finding in findings if finding.rule == "unused-gpu")
        though = f", though {taken}" if taken else ""
        yield Sentence("unused GPU", f"{names} {'were' if several else 'was'} never used{though}.", ids)


def _of_others(context: Context) -> Iterator[Sentence]:
    """Yield which GPUs only other processes used: that is no loss of the training, and yet somebody may wonder."""
    theirs = [series for series in context.series if series.gpu in context.gpus_of_others]
    busy_pct = {series.gpu: series.mean_util_of(np.ones(len(series.t_s), dtype=bool)) for series in theirs}
    known = {gpu: pct for gpu, (pct, seconds) in busy_pct.items() if seconds}
    names, least, most = ", ".join(map(str, known)), min(known.values(), default=0.0), max(known.values(), default=0.0)
    if len(known) == 1:
        whose = f"another process used it ({most:.0f} % busy)"
        yield Sentence("other GPU", f"GPU {names} was not part of this training: {whose}.")
    elif known:
        whose = f"other processes used them ({least:.0f} to {most:.0f} % busy)"
        yield Sentence("other GPU", f"GPUs {names} were not part of this training: {whose}.")


def _cost(context: Context, findings: Sequence[Finding], ledger: Sequence[LedgerRow]) -> Iterator[Sentence]:
    """Yield what the run cost, and how much of it was wasted, where a price was given.

    Wasted is what is no work and no part of training (validation, start-up, ...), with the whole time of GPUs that the
    training could have had.
    """
    price = context.options.price_per_hour
    if price is None:
        return
    known = [row for row in ledger if row.money is not None]
    total = sum(row.money or 0.0 for row in known)
    wasted = sum(row.money or 0.0 for row in known if not row.expected and row.name not in {"work", "unmeasured"})
    free = [f for f in findings if f.rule == "unused-gpu" and f.severity != "info"]
    wasted += len(idle_gpus(context)) * context.run.duration_s / 3600 * price if free else 0.0
    yield Sentence("cost", f"The run cost {money_words(total)}, of which {money_words(wasted)} was wasted.")
