"""What follows the sentence that leads: where, of which training, how to learn more, and what a fix comes to."""

from collections.abc import Iterator, Sequence

from gpu_report.analyse.busy_in_training import Busy
from gpu_report.analyse.causes.main_process import CODE_CAUSES
from gpu_report.analyse.context import Context
from gpu_report.analyse.results.unseen_waits import waits_unseen
from gpu_report.analyse.results.verdict.hypotheses import hypotheses
from gpu_report.analyse.results.verdict.leads.from_drops import faster_without
from gpu_report.analyse.results.verdict.leads.lead import FIX, LOOK, URGENT_S, Lead
from gpu_report.analyse.results.verdict.which_training import which_training
from gpu_report.catalogue import (
    CAUSES,
    LAUNCH_BOUND,
    OTHER_NODE,
    UNEXPLAINED,
    WAITING_FOR_PEER,
)
from gpu_report.model import (
    CodeLocation,
    Finding,
    Projection,
    Sentence,
    SpeedupLimit,
    epoch_now_s,
)
from gpu_report.wording import about_length, brief_length, epoch_length, money_words, where_it_is


def whose_training(context: Context, lead: Lead | None, findings: Sequence[Finding]) -> Iterator[Sentence]:
    """Yield which of several trainings the lead is about; of what lasts its cause says that."""
    led = [finding for finding in findings if lead is not None and finding.id in lead.sentence.findings]
    lasts = any(finding.rule == "starved" for finding in led)
    if not lasts and (which := which_training(context, led)):
        yield Sentence("where", f"This is about {which}.", tuple(finding.id for finding in led))


def what_is_past(past: Sequence[Finding]) -> Iterator[Sentence]:
    """Yield what held earlier trainings of the recording back, and no longer does, once for all GPUs."""
    of_all_gpus = {finding.of_gpus: finding for finding in past}
    yield from (Sentence("past", f"{finding.summary}.", (finding.id,)) for finding in of_all_gpus.values())


def how_to_prevent(lead: Lead | None) -> Iterator[Sentence]:
    """Yield what to do where something urgent leads, which says what it is."""
    if lead is None or lead.saves_s < URGENT_S or lead.says_how:
        return
    said = lead.sentence
    text = said.advice.short if said.advice else CAUSES[said.about].always if said.about in CAUSES else ""
    if text:
        yield Sentence("prevent", f"{text}.", said.findings, said.about)


def how_to_learn_the_line(context: Context, lead: Lead | None, findings: Sequence[Finding]) -> Iterator[Sentence]:
    """Yield how to learn which line of code to look at, where none was noted, for the recorder started no command."""
    about = lead.sentence.about if lead is not None and lead.sentence.kind == LOOK else ""
    led = lead.sentence.findings if lead is not None else ()
    is_named = any(finding.where for finding in findings if finding.id in led)  # by a few dumps
    watched = not context.run.recording.command and not context.run.stacks
    if watched and not is_named and about in CAUSES and CAUSES[about].has_line:
        text = "To see which line of code, start the training with `gpu-report record -- COMMAND`."
        yield Sentence("record", text, (), about)


def how_to_see_all_nodes(findings: Sequence[Finding]) -> Iterator[Sentence]:
    """Yield how to learn for whom a GPU waited where that is on another node, whose recording is another folder."""
    mine = [finding for finding in findings if finding.waited_for == OTHER_NODE]
    if mine:
        text = "To see which rank, render all nodes: `gpu-report render job.html NODE_A NODE_B`."
        ids = tuple(finding.id for finding in mine)
        yield Sentence("all nodes", text, ids, WAITING_FOR_PEER, next(iter(mine[0].advice), None))


def guessed(context: Context, findings: Sequence[Finding]) -> list[Sentence]:
    """Return the likeliest guess where nothing explains why the GPU waits, and what would decide it."""
    return [
        Sentence("guess", text)
        for guess in hypotheses(context, findings)[:1]
        for text in (f"Guess: {guess.text}.", f"To check: {guess.decided_by}.")
    ]


def how_to_record_inside(
    context: Context, trained: Busy, lead: Lead | None, findings: Sequence[Finding]
) -> Iterator[Sentence]:
    """Yield how to learn what a GPU waited for where nothing is known from inside the training.

    Nothing where something else leads than what is unknown.
    """
    unknown = [f for f in findings if f.cause and f.cause.name == UNEXPLAINED and f.severity != "info"]
    asked = unknown or waits_unseen(context, trained)
    leads = lead is not None and lead.sentence.about != UNEXPLAINED
    if asked and not leads and not context.run.inside and not context.run.recording.command:
        text = "To see what it waited for, record the next training with `gpu-report record -- COMMAND`."
        yield Sentence("record", text, tuple(f.id for f in unknown), UNEXPLAINED)


def projected(projection: Projection | None, lead: Lead | None, said: Sequence[Sentence]) -> Iterator[Sentence]:
    """Yield what the fix comes to for all epochs, or those that were left, where its cause leads and `said` has it.

    Of one epoch that epoch itself says all.
    """
    if projection is None or lead is None or lead.sentence.about != projection.cause or projection.seconds is None:
        return
    if (projection.epochs or 0) <= 1 or all(each.kind != FIX or each.about != projection.cause for each in said):
        return
    now_s, expected_s = projection.seconds
    which = f"The {projection.epochs:,} epochs left" if projection.left else f"All {projection.epochs:,} epochs"
    which += f", at {brief_length(now_s / (projection.epochs or 1))} each"
    cost = "" if projection.money is None else f", cost {' → '.join(map(money_words, projection.money))}"
    text = f"{which}: {about_length(now_s)} → about {about_length(expected_s)}{cost}."
    yield Sentence("projection", text, about=projection.cause)


def also_worth_changing(found: Sequence[Lead], findings: Sequence[Finding]) -> Iterator[Sentence]:
    """Yield the argument to set, and functions of the user's, where something else leads: they are worth it, too.

    What holds back several ranks alike is said once, and so is an advice that two findings have.
    """
    lasting = {f.id for f in findings if f.rule == "starved"}
    advised = [each.sentence.advice for each in found[:1]]
    said, every = {each.sentence.about for each in found[:1]}, {each.sentence.text: each.sentence for each in found}
    for sentence in list(every.values())[1:]:
        of_another_gpu = sentence.about not in said and lasting.intersection(sentence.findings)
        if sentence.advice is not None and sentence.advice in advised:
            continue
        if sentence.kind == FIX or sentence.names_own or of_another_gpu:
            yield sentence


def is_of_lead(limits: Sequence[SpeedupLimit], lead: Lead | None, said: Sequence[Sentence]) -> bool:
    """Tell whether a limit is that of what leads: of a function not where it is that of all that its cause took."""
    about = lead.sentence.about if lead is not None else ""
    of_more = not any(limit.location for limit in limits if limit.cause == about)
    is_call = lead is not None and lead.sentence.names_own and about in CODE_CAUSES
    return any(each.about == about for each in said) and not (is_call and of_more)


def with_limits(
    sentences: Sequence[Sentence], limits: Sequence[SpeedupLimit], findings: Sequence[Finding]
) -> Iterator[Sentence]:
    """Yield sentences, each of a function of the user's with what epochs take without it, where known."""
    lines = {finding.id: _line(finding.where[0]) for finding in findings if finding.where}
    now_s = epoch_now_s(limits) or 0.0
    for sentence in sentences:
        yield sentence
        mine = {lines[each] for each in sentence.findings if each in lines} if sentence.names_own else set()
        of_line = (each for each in limits if each.location is not None and _line(each.location) in mine)
        for limit in (each for each in of_line if each.cause == sentence.about):
            now, then = epoch_length(now_s), epoch_length(now_s - limit.saves_at_most_s)
            text = f"Without it an epoch takes about {then} instead of {now}."
            yield Sentence("speed-up", text, about=limit.cause)


def _line(at: CodeLocation) -> tuple[str, str, int]:
    return at.file, at.function, at.line


def follows_its_cause(
    said: Sequence[Sentence], reaches: Sequence[Sentence], findings: Sequence[Finding]
) -> Sequence[Sentence]:
    """Return what a limit comes to where what was `said` last is about its cause: it is read as of that."""
    causes = {finding.id: finding.cause_name for finding in findings}
    last = {causes.get(each) for each in said[-1].findings} if said else set()
    return [each for each in reaches if each.about in last]


def speedup_limit(
    limits: Sequence[SpeedupLimit], findings: Sequence[Finding], projection: Projection | None, lead: Lead | None
) -> Iterator[Sentence]:
    """Yield the limit of what holds training back all the time, or leads and makes the ends of all epochs longer.

    Nothing where somebody can say what a fix would reach. It follows the lead, which "it" is, where it is about that.
    """
    lasting = {f.cause.name for f in findings if f.rule == "starved" and f.cause and f.severity != "info"}
    led = {lead.sentence.about} if lead is not None else set()
    limit = next((each for each in limits if each.cause in (led if each.at_epoch_ends else lasting)), None)
    if limit is None or (projection is not None and projection.cause == limit.cause):
        return
    if limit.cause == LAUNCH_BOUND and limit.fix == "":  # it is reached by a batch that nobody can name
        return
    now_s = epoch_now_s(limits) or 0.0
    if limit.cause != "validation" and faster_without(limit, now_s):  # which the lead has said
        return
    now, best = (epoch_length(each_s) for each_s in (now_s, now_s - limit.saves_at_most_s))
    # what follows a function may take less time without it, too: that is no best case
    if limit.cause == "checkpoint":  # in which callbacks run, too
        return
    is_named = lead is not None and lead.sentence.names_own and lead.sentence.about == limit.cause
    function = where_it_is(limit.location) if limit.location is not None and not is_named else "it"
    without = f"Without {function} an epoch takes about" if limit.location else "In the best case an epoch takes"
    without = "Without validation an epoch takes" if limit.cause == "validation" else without
    text = f"{without} {best} instead of {now}."
    yield Sentence("speed-up", text, about=limit.cause)
