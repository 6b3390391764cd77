"""What a run comes to, in sentences: what to change first, then what happened."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from gpu_report.analyse.busy_in_training import Busy, busy_in_training
from gpu_report.analyse.causes.confidence import LIKELY
from gpu_report.analyse.causes.main_process import CODE_CAUSES
from gpu_report.analyse.context import Context
from gpu_report.analyse.inference.served import is_inference
from gpu_report.analyse.results.unseen_waits import waits_unseen
from gpu_report.analyse.results.verdict.drops import MergedDrop, merged_drops
from gpu_report.analyse.results.verdict.end import (
    ended_badly,
    in_hang,
    interrupted,
    lost,
    resumed,
    stopped_early,
)
from gpu_report.analyse.results.verdict.gpu_health import gpu_health
from gpu_report.analyse.results.verdict.inference import inference_sentences, leading
from gpu_report.analyse.results.verdict.lead_details import (
    also_worth_changing,
    follows_its_cause,
    guessed,
    how_to_learn_the_line,
    how_to_prevent,
    how_to_record_inside,
    how_to_see_all_nodes,
    is_of_lead,
    projected,
    speedup_limit,
    what_is_past,
    whose_training,
    with_limits,
)
from gpu_report.analyse.results.verdict.leads import leads
from gpu_report.analyse.results.verdict.leads.lead import LOOK, URGENT_S, Lead
from gpu_report.analyse.results.verdict.losses import cost_of_run, gpus_of_others, largest_loss, unused_gpus
from gpu_report.analyse.results.verdict.not_measured import (
    machine_slept,
    no_gpu,
    recorder_killed,
    unmeasured,
    unsampled_share,
    would_show_drops,
)
from gpu_report.analyse.results.verdict.rest_of_training import is_mostly_known, rest_of_training
from gpu_report.analyse.results.verdict.unreported import unreported_leads, unreported_sentences
from gpu_report.analyse.results.verdict.validation import validation_sentences
from gpu_report.analyse.results.verdict.what_happened import (
    drops_together,
    has_problems,
    kernel_fault,
    other_findings,
    setup_problem,
    throttled,
)
from gpu_report.analyse.results.verdict.which_training import current_training
from gpu_report.analyse.results.verdict.work import (
    RestOfVerdict,
    healthy_steady_pct,
    is_judged,
    is_launch_bound,
    is_long,
    work_sentences,
)
from gpu_report.analyse.rules.training_end import COMMAND_ENDED
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.analyse.validations import is_validation
from gpu_report.catalogue import (
    LAUNCH_BOUND,
    MEMORY_GROWS,
    OTHER_NODE,
    PAST_KEY,
)
from gpu_report.model import (
    WELL_COVERED,
    Ending,
    EpochNow,
    Finding,
    LedgerRow,
    Projection,
    Sentence,
    SpeedupLimit,
    Verdict,
)


@dataclass(frozen=True)
class _VerdictFacts:
    """What the sentences are made of; `unseen` and `unsampled` are shares of all GPU time, 0 to 1.

    `past` are findings of what held earlier trainings back and is over, `findings` all others. `current` is the
    training that the verdict is about, None where it is about all.
    """

    context: Context
    findings: Sequence[Finding]
    past: Sequence[Finding]
    current: Training | None
    ledger: Sequence[LedgerRow]
    limits: Sequence[SpeedupLimit]
    ending: Ending | None
    projection: Projection | None
    trained: Busy
    unseen: float
    unsampled: float
    merged: Sequence[MergedDrop]
    now: EpochNow | None

    @property
    def with_past(self) -> Sequence[Finding]:
        return [*self.past, *self.findings]


@dataclass(frozen=True)
class _Opening:
    """What the verdict begins with: a bad end or a fault (`first`), then what may be changed, what saves most first.

    `resume` and `faults` come later in it; `hung` are the ids of waits that were the hang in which the training ended.
    """

    first: tuple[Sentence, ...]
    found: Sequence[Lead]
    resume: Sequence[Sentence]
    faults: tuple[Sentence, ...]
    hung: frozenset[str]

    @property
    def lead(self) -> Lead | None:
        return self.found[0] if self.found else None

    @property
    def order(self) -> tuple[str, ...]:
        """Return the ids of the findings that it is about, in its order."""
        sentences = (*self.first, *(each.sentence for each in self.found))
        return tuple(dict.fromkeys(found_id for sentence in sentences for found_id in sentence.findings))


def verdict(  # noqa: PLR0913, PLR0917 - all that was found
    context: Context,
    findings: Sequence[Finding],
    ledger: Sequence[LedgerRow],
    limits: Sequence[SpeedupLimit] = (),
    ending: Ending | None = None,
    projection: Projection | None = None,
    now: EpochNow | None = None,
) -> Verdict:
    """Return what the run comes to: a bad end first, then what saves most, then what happened and what it cost."""
    past = [each for each in findings if each.number(PAST_KEY) is not None]
    findings = [each for each in findings if each.number(PAST_KEY) is None]
    current = current_training(context, past)
    trained, unseen = busy_in_training(context, current), sum(row.share for row in ledger if row.name == "unmeasured")
    unsampled, merged = unsampled_share(context), merged_drops(findings)
    known = _VerdictFacts(
        context, findings, past, current, ledger, limits, ending, projection, trained, unseen, unsampled, merged, now
    )
    opening = _opening(known)
    if is_inference(context):
        of_calls = _of_inference(context, findings, merged)
        first, later = _by_weight(opening.first, findings)
        return Verdict((*first, *of_calls, *later, *opening.faults, *_not_measured(known)))
    if is_validation(context):
        return Verdict((*opening.first, *_of_validation(known, opening), *opening.faults, *_not_measured(known)))
    sentences = _sentences(known, opening)
    if opening.lead is None and not opening.first and (left := unreported_leads(findings, sentences)):
        opening = replace(opening, found=left)
        sentences = _sentences(known, opening)
    busy = trained if current is None else busy_in_training(context)
    busy_pct = busy[0] if busy and is_judged(context, busy, findings) else None
    return Verdict(sentences, busy_pct, healthy_steady_pct(context, findings) is not None, opening.order)


def _by_weight(
    first: Sequence[Sentence], findings: Sequence[Finding]
) -> tuple[tuple[Sentence, ...], tuple[Sentence, ...]]:
    """Return what begins a verdict on calls, and what of it comes after them: a crash that cost none of them."""
    late = {each.id for each in findings if each.rule == COMMAND_ENDED} if leading(findings) else set()
    is_late = [bool(late.intersection(each.findings)) for each in first]
    begins = tuple(each for each, after in zip(first, is_late, strict=True) if not after)
    return begins, tuple(each for each, after in zip(first, is_late, strict=True) if after)


def _sentences(known: _VerdictFacts, opening: _Opening) -> tuple[Sentence, ...]:
    change = tuple(_what_to_change(known, opening))
    said = {found for sentence in change for found in sentence.findings}
    happened = _what_happened(known, opening)
    new = (each for each in happened if each.kind != "slept" or not said.intersection(each.findings))
    return (*change, *new, *_what_it_cost(known, opening))


def _opening(known: _VerdictFacts) -> _Opening:
    findings, hung = known.findings, in_hang(known.findings)
    found = leads(known.context, findings, known.limits, known.projection, known.now)
    found = [each for each in found if not hung.issuperset(_of(each))]
    bad_end = [*lost(findings), *ended_badly(findings, known.ending)]
    # where nothing was said that prevents it, what leads is done before the training is resumed
    resume = [] if any(each.kind == "prevent" for each in bad_end) else [s for s in bad_end if s.kind == "resume"]
    badly = [each for each in bad_end if each not in resume]
    if badly and not is_long(known.trained):  # of steps that were hardly begun nothing is foretold beside it
        found = [each for each in found if each.saves_s >= URGENT_S]
    foreign = [f for f in findings if f.rule == "kernel" and any(near.event.of_another for near in f.kernel_events)]
    own = [f for f in findings if f not in foreign]
    faults = (*kernel_fault(own),)
    faults_first = not found or any(f.rule == "kernel" and f.severity == "critical" for f in own)
    later = (*(() if faults_first else faults), *kernel_fault(foreign), *gpu_health(known.context.run.gpus))
    return _Opening((*badly, *(faults if faults_first else ())), found, resume, later, hung)


def _what_to_change(known: _VerdictFacts, opening: _Opening) -> Iterator[Sentence]:
    """Yield the bad end, what leads and how busy the GPUs were beside it, what else to change, and what it comes to."""
    context, findings, lead, projection = known.context, known.findings, opening.lead, known.projection
    begin = [lead.sentence] if lead else []
    reaches = list(speedup_limit(known.limits, findings, projection, lead))
    is_lead = is_of_lead(known.limits, lead, reaches)
    yield from opening.first
    led = begin if is_lead else list(with_limits(begin, known.limits, findings))
    yield from led[:1] if not (opening.first and lead and _is_vague(lead)) else ()
    yield from lead.follows if lead else ()
    yield from reaches if is_lead else led[1:]
    yield from whose_training(context, lead, findings)
    yield from how_to_prevent(lead)
    yield from how_to_see_all_nodes(findings)
    work = list(_work(known, opening))
    yield from work
    yield from () if is_lead else follows_its_cause(work, reaches, findings)
    yield from how_to_learn_the_line(context, lead, findings)
    guesses = guessed(context, findings)
    yield from guesses
    if lead is None and (not guesses or waits_unseen(context, known.trained)):
        yield from how_to_record_inside(context, known.trained, lead, findings)
    yield from projected(projection, lead, begin)
    second = list(also_worth_changing(opening.found, findings))
    yield from with_limits(second, known.limits, findings)
    yield from projected(projection, lead, second)
    yield from opening.resume
    yield from what_is_past(known.past)
    yield from interrupted(findings)
    yield from resumed(findings)
    yield from stopped_early(known.ending)
    yield from setup_problem(findings, [*begin, *second])


def _work(known: _VerdictFacts, opening: _Opening) -> Iterator[Sentence]:
    """Yield how busy the GPUs were in training, and what to think of it where nothing leads."""
    context, findings, lead = known.context, known.findings, opening.lead
    is_covered = max(known.unseen, known.unsampled) <= 1 - WELL_COVERED  # of a part nothing is said
    is_lead = not opening.first and lead is None and is_covered
    beside = RestOfVerdict(
        is_lead=is_lead,
        is_marred=has_problems([f for f in findings if f.rule != "starved" or not is_launch_bound(f)]),
        others_said=lead is not None and lead.names_others_on_cpu,
        unknown_rest=not is_mostly_known(known.ledger),
        has_lead=lead is not None,
        current=context.which_training(known.current),
    )
    mine = () if opening.first else _without_lasting(findings, lead)
    yield from work_sentences(context, known.trained, known.unseen, mine, beside)
    if is_lead:
        yield from rest_of_training(context, known.trained, known.with_past, known.ledger)


def _what_happened(known: _VerdictFacts, opening: _Opening) -> Iterator[Sentence]:
    """Yield drops, other processes, throttling and faults, and what was not measured."""
    context, findings, merged, lead = known.context, known.findings, known.merged, opening.lead
    shows_drops = would_show_drops(known.trained, max(known.unseen, known.unsampled))
    yield from drops_together(context, merged, findings, lead, shows_drops=shows_drops)
    left = [f for f in findings if not _is_said(f, lead) and not _begins(f, opening)]
    yield from other_findings(left, merged)
    yield from throttled(findings, lead)
    yield from opening.faults
    yield from _not_measured(known)
    if lead is not None and not guessed(context, findings):
        yield from how_to_record_inside(context, known.trained, lead, findings)


def _not_measured(known: _VerdictFacts) -> Iterator[Sentence]:
    yield from recorder_killed(known.context)
    yield from machine_slept(known.context, known.findings)
    yield from unmeasured(known.trained, known.unseen, known.unsampled)
    yield from no_gpu(known.context)


def _what_it_cost(known: _VerdictFacts, opening: _Opening) -> Iterator[Sentence]:
    """Yield where time was lost, which GPUs did nothing, and the money."""
    context, findings, lead = known.context, known.findings, opening.lead
    if not opening.first:
        yield from largest_loss(context, known.trained, known.with_past, known.ledger, lead)
    yield from unused_gpus(context, findings, lead)
    yield from gpus_of_others(context)
    yield from cost_of_run(context, findings, known.ledger)


def _of_inference(context: Context, findings: Sequence[Finding], merged: Sequence[MergedDrop]) -> list[Sentence]:
    """Return what calls of models come to, and what happened beside them."""
    said = leading(findings)
    sentences = [
        *inference_sentences(context, findings),
        *setup_problem(findings),
        *other_findings([finding for finding in findings if finding.id not in said], merged),
        *throttled(findings),
    ]
    left = [] if said else unreported_sentences(findings, sentences)
    return [*left, *sentences[1:]] if left else sentences  # not: nothing to fix


def _of_validation(known: _VerdictFacts, opening: _Opening) -> list[Sentence]:
    """Return what validations come to, and what happened beside them: with that, not that nothing is to fix."""
    beside = [
        *setup_problem(known.findings),
        *other_findings(known.findings, known.merged),
        *throttled(known.findings),
    ]
    left = unreported_sentences(known.findings, [*opening.first, *beside])
    of_val = validation_sentences(known.context)
    is_marred = bool(left or opening.first)
    return [*left, *(each for each in of_val if not (is_marred and each.kind == "nothing")), *beside]


def _is_vague(lead: Lead) -> bool:
    """Tell whether a lead only says to try a larger batch: nothing for somebody whose training crashed."""
    return lead.sentence.about == LAUNCH_BOUND and lead.sentence.kind == LOOK


def _is_said(finding: Finding, lead: Lead | None) -> bool:
    """Tell whether the lead has said what there is to say: of a wait for another node, of who shared the GPU so long.

    What that left of the training's speed, where it is known, is more than that.
    """
    shared = finding.rule == "other-process" and finding.lost_gpu_s is None
    return lead is not None and (finding.waited_for == OTHER_NODE or shared) and finding.id in lead.sentence.findings


def _without_lasting(findings: Sequence[Finding], lead: Lead | None) -> Sequence[Finding]:
    """Return the findings without what holds steps up all the time, where steps that get slower lead: it grew.

    Nor with a cause that is not sure, where a function of the user's leads: it says less than the line.
    """
    said = lead.sentence.findings if lead is not None else ()
    gets_slower = any(finding.rule == "epochs-slowing" and finding.id in said for finding in findings)
    if gets_slower:
        return [replace(f, cause=None) if f.rule == "starved" else f for f in findings]
    own = said if lead is not None and lead.sentence.names_own else ()
    return [replace(f, cause=None) if f.id in own and _is_less_than_its_line(f) else f for f in findings]


def _is_less_than_its_line(finding: Finding) -> bool:
    """Tell whether a cause that lasts is one of a function of the user's, and not sure."""
    cause = finding.cause
    return finding.rule == "starved" and cause is not None and cause.confidence < LIKELY and cause.name in CODE_CAUSES


def _of(lead: Lead) -> tuple[str, ...]:
    """Return the findings that a lead is about; of none stands for itself."""
    return lead.sentence.findings or ("",)


def _begins(finding: Finding, opening: _Opening) -> bool:
    """Tell whether the verdict begins with it: a wait that is the hang which ended the training, memory that grows.

    Of memory of GPU and host only one may lead.
    """
    if finding.id in opening.hung:
        return True
    begin = [*opening.first, *(each.sentence for each in opening.found[:1])]
    is_said = any(finding.id in sentence.findings for sentence in begin)
    return is_said and finding.rule in MEMORY_GROWS
