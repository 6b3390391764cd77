"""What the verdict leads with: the one thing to change that saves most, else that there is nothing to fix."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from gpu_report.analyse.advice.thresholds import REACHES_MORE, WORTH_NEXT_S
from gpu_report.analyse.advice.way_on import NEXT_TIME
from gpu_report.analyse.causes.confidence import LIKELY
from gpu_report.analyse.causes.main_process import OF_A_CALL
from gpu_report.analyse.context import Context
from gpu_report.analyse.results import thresholds as th
from gpu_report.analyse.results.larger_batch import no_larger_batch
from gpu_report.analyse.results.verdict_drops import merged_drops
from gpu_report.analyse.rules.epochs.validation_advice import WRITE
from gpu_report.analyse.rules.thresholds import STEP_WARNS_SHARE
from gpu_report.analyse.signals.stack_notes import THREAD, WORKERS, kind_of
from gpu_report.analyse.signals.thresholds import MUCH_SHARE, OWN_SHARE, STOOD_SHARE
from gpu_report.analyse.timeseries.intervals import length_s, union
from gpu_report.catalogue import (
    CAUSES,
    ENDS_SHARE_KEY,
    ENLARGED_KEY,
    GROWN_FROM_KEY,
    GROWN_TO_KEY,
    GROWS_ON_KEY,
    GROWTH_KEY,
    LAUNCH_BOUND,
    MEMORY_GROWS,
    OTHER_NODE,
    RULES,
    SLOW_COST_KEY,
    SLOW_IMAGES_KEY,
    START_AGAIN_KEY,
    START_WORK_KEY,
    STEADY_KEY,
    SWAPPED_KEY,
    UNEXPLAINED,
    USER_CODE_IDLE_KEY,
    USER_CODE_KEY,
    WAITING_FOR_PEER,
    CauseRow,
    rule_words,
)
from gpu_report.model import Advice, CodeLocation, Finding, Frame, Projection, Sentence, SpeedupLimit, epoch_now_s
from gpu_report.wording import (
    about_length,
    brief_seconds,
    counted,
    epoch_length,
    lower_first,
    place_words,
    shown_ratio,
    upper_first,
)

FIX, LOOK = "fix", "look"  # kinds of sentences: set an argument, look at something
FASTER_FROM = 1.2  # times as fast: less is no headline
URGENT_S = float("inf")  # nothing is worth more
OUTGROWS_S = 1e12  # of what makes each epoch longer than the one before: in time nothing that stays as it is costs more


@dataclass(frozen=True)
class Lead:
    """A sentence that may lead the verdict, and the seconds of the recorded training that it is about.

    `then` is in which line a process was meanwhile, as a sentence that follows, empty where the lead says it.
    """

    sentence: Sentence
    saves_s: float
    then: str = ""


def leads(
    context: Context, findings: Sequence[Finding], limits: Sequence[SpeedupLimit], projection: Projection | None
) -> list[Lead]:
    """Return what may be changed, what saves most first; what is too little to speak of is left out."""
    found = [
        *_urgent(findings),
        *_set_up(context, findings),
        *_enlarged(context, findings),
        *_setting(context, findings, projection),
        *_beside_setting(context, findings, limits, projection),
        *_lasting(context, findings, limits, projection),
        *_user_code(context, findings),
        *_growing(context, findings, _epochs(context)),
        *_slow_epochs(context, findings),
        *_momentary(context, findings, limits, _epochs(context)),
        *_long_epoch_ends(findings),
        *_in_steps(context, findings),
        *_slow_starts(findings, context.run.duration_s, _epochs(context)),
        *_slow_exits(findings),
        *_unused(context, findings),
    ]
    trained_s = _trained_s(context)
    worth = [lead for lead in found if lead.saves_s >= th.WORTH_LEADING_SHARE * trained_s]
    return sorted(worth, key=lambda lead: -lead.saves_s) or list(_next_time(findings))


def _trained_s(context: Context) -> float:
    trained = length_s(union([phase.span for phase in context.phases if phase.name == "train"]))
    return trained or context.run.duration_s


def _epochs(context: Context) -> int:
    return sum(1 for phase in context.phases if phase.name == "train")


def _urgent(findings: Sequence[Finding]) -> Iterator[Lead]:
    """Yield what will end the training, or keeps it from using a GPU at all: nothing is worth more."""
    for finding in findings:
        if finding.rule == "environment" and finding.severity == "critical":
            advice = next((each for each in finding.advice if each.short), None)
            yield Lead(_of(finding, LOOK, _plain(finding.summary), advice), URGENT_S)
        if finding.rule in MEMORY_GROWS and finding.severity == "critical" and not finding.ran_out:
            yield Lead(_of(finding, LOOK, finding.summary, next(iter(finding.advice), None)), URGENT_S)


def _set_up(context: Context, findings: Sequence[Finding]) -> Iterator[Lead]:
    """Yield what to do about a set-up that does not fit, where it can be said shortly: the rest may follow from it.

    Not of one that is known to win less than half at most, or to have cost so many seconds: that has its place among
    the others.
    """
    for finding in findings:
        advice = next((each for each in finding.advice if each.short), None)
        if finding.rule == "environment" and finding.severity == "warning" and advice is not None:
            gain = advice.gain_at_most or 0.0
            faster = f" (up to {1 / (1 - gain):.0f}\u00d7 faster)" if th.HALF <= gain < 1 else ""
            saves_s = th.UNSURE * gain * _trained_s(context) if 0 < gain < th.HALF else URGENT_S
            saves_s = finding.number(SLOW_IMAGES_KEY) or saves_s
            yield Lead(_of(finding, LOOK, f"{advice.short}{faster}: {lower_first(finding.summary)}"), saves_s)


def _enlarged(context: Context, findings: Sequence[Finding]) -> Iterator[Lead]:
    """Yield the size to try for images that are enlarged: whether it finds as much, only a comparison says."""
    for finding in findings:
        if finding.number(ENLARGED_KEY) is not None and finding.severity == "warning":
            advice = finding.advice[0]
            gain = advice.gain_at_most or 0.0
            argument = f"`{advice.argument}={advice.to_value}`"
            faster = f"Up to {1 / (1 - gain):.1f}\u00d7 faster steps; compare mAP"
            text = f"Try {argument}{_now(advice)}: {lower_first(finding.summary)}. {faster}"
            yield Lead(_of(finding, FIX, text, advice), th.UNSURE * gain * _trained_s(context))


def _of(finding: Finding, kind: str, text: str, advice: Advice | None = None, *, names_own: bool = False) -> Sentence:
    about = finding.cause.name if finding.cause else ""
    return Sentence(kind, f"{upper_first(text)}.", (finding.id,), about, advice, names_own)


def _plain(text: str) -> str:
    """Return what somebody else wrote without the backticks that would make code of it, to be copied."""
    return text.replace("`", "'")


def _now(advice: Advice) -> str:
    """Return the value that an argument has now, in brackets; empty where it is not known."""
    return "" if advice.from_value is None else f" (now {_plain(advice.from_value)})"


def _setting(context: Context, findings: Sequence[Finding], projection: Projection | None) -> Iterator[Lead]:
    """Yield the argument of YOLO to set, with what an epoch comes to."""
    if projection is None:
        return
    mine = [f for f in findings if f.cause and f.cause.name == projection.cause]
    finding, advice = next(((f, a) for f in mine for a in f.advice if _is_setting(a)), (None, None))
    if finding is None or advice is None:
        return
    epoch = f"{epoch_length(projection.epoch_s_now)} to about {epoch_length(projection.epoch_s_expected)}"
    faster = shown_ratio(projection.epoch_s_now, projection.epoch_s_expected)
    text = f"Set `{projection.fix}`{_now(advice)}: epochs drop from {epoch}, {faster:.1f}\u00d7 faster."
    saved_s = (projection.epoch_s_now - projection.epoch_s_expected) * max(_epochs(context), 1)
    yield Lead(Sentence(FIX, text, (finding.id,), projection.cause, advice), saved_s)


def _is_setting(advice: Advice) -> bool:
    return advice.argument is not None and advice.gain_estimate is not None


def _beside_setting(
    context: Context, findings: Sequence[Finding], limits: Sequence[SpeedupLimit], projection: Projection | None
) -> Iterator[Lead]:
    """Yield what can be done instead of setting an argument, with what an epoch comes to: to resize images.

    An argument is set sooner: it comes first, unless the other reaches far more.
    """
    limit = next((each for each in limits if projection is not None and each.cause == projection.cause), None)
    if projection is None or limit is None:
        return
    mine = [f for f in findings if f.rule == "starved" and f.cause and f.cause.name == limit.cause]
    known = ((f, a, a.gain_estimate) for f in mine for a in f.advice if a.argument is None)
    finding, advice, gain = next((each for each in known if each[2] is not None), (None, None, None))
    if finding is None or advice is None or gain is None:
        return
    now_s, expected_s = projection.epoch_s_now, projection.epoch_s_now - gain * limit.epoch_s_now
    is_second = expected_s >= REACHES_MORE * projection.epoch_s_expected
    do = f"Or {lower_first(advice.short)}" if is_second else advice.short
    epoch = f"{epoch_length(now_s)} to about {epoch_length(expected_s)}"
    text = f"{do}: epochs drop from {epoch}, {shown_ratio(now_s, expected_s):.1f}\u00d7 faster."
    counted_s = max(expected_s, projection.epoch_s_expected) if is_second else expected_s
    # without the cause, by which what all epochs come to with the argument would follow
    yield Lead(Sentence(FIX, text, (finding.id,), "", advice), (now_s - counted_s) * max(_epochs(context), 1))


def _lasting(
    context: Context, findings: Sequence[Finding], limits: Sequence[SpeedupLimit], projection: Projection | None
) -> Iterator[Lead]:
    """Yield what to look at where something holds training back all the time, and no argument is known against it."""
    own_code = any(finding.rule == "user-code" for finding in findings)
    for finding in findings:
        cause = finding.cause
        if finding.rule != "starved" or cause is None or (finding.severity == "info" and not finding.advice):
            continue
        at = _most(finding, _own_share(cause.name))
        own = at if at is not None and not at.is_yolo else None
        if projection is not None and cause.name == projection.cause and own is None:
            continue
        limit = next((limit for limit in limits if limit.cause == cause.name and not limit.at_epoch_ends), None)
        at_most_s = limit.saves_at_most_s * max(_epochs(context), 1) if limit else _waited_s(context, finding)
        do = next((each.short for each in finding.advice if each.short and not _is_setting(each)), "")
        looks = own is not None and (
            own.is_most or not do
        )  # what is known to help comes before a line of some of the time
        stood, then = _stood_in(cause.name, at, finding) if at else ("", "")
        if do and not looks:
            stood, then = do, ""
        text = stood or CAUSES[cause.name].always
        if text and (looks or do or cause.name != LAUNCH_BOUND or not no_larger_batch(context, finding, findings)):
            sure = own.share if own else th.UNSURE  # what a line of one's own took, it can give back
            least_s = th.WORTH_LEADING_SHARE * _trained_s(context)
            # a batch that no argument can be said for comes after a function that can be looked at
            is_vague = cause.name == LAUNCH_BOUND and own is None and own_code
            saves_s = least_s if is_vague else max(sure * at_most_s, least_s)
            grown = _grown(finding) if looks else ""
            saves_s = OUTGROWS_S if grown and finding.number(GROWS_ON_KEY) else saves_s
            yield Lead(Sentence(LOOK, f"{text}{grown}.", (finding.id,), cause.name, names_own=looks), saves_s, then)


def _waited_s(context: Context, finding: Finding) -> float:
    """Return for how long a GPU waited in training for what is felt as waiting for data, 0 for another cause."""
    util_pct = finding.number(STEADY_KEY)
    if util_pct is None or finding.cause is None or not CAUSES[finding.cause.name].is_input:
        return 0.0
    return (1 - util_pct / 100) * _trained_s(context)


def _own_share(cause: str) -> float:
    """Return which share of the time that the GPU waited a function of the user's must have to be the one to look at.

    Nothing else is in a call; of loading images the most costly of its steps is enough, for that one can be changed.
    """
    return OWN_SHARE if cause in OF_A_CALL else MUCH_SHARE if CAUSES[cause].is_input else STOOD_SHARE


def _user_code(context: Context, findings: Sequence[Finding]) -> Iterator[Lead]:
    """Yield the functions of the user's own that took a share of the training's time beside what held it back most.

    One that several ranks call is one, as it is in the rank in which it took most.
    """
    told: dict[tuple[str, str], Lead] = {}
    for finding in findings:
        if finding.rule == "user-code":
            at = finding.where[0]
            share_pct = finding.number(USER_CODE_KEY) or 0.0
            validates = finding.phase == "validation"
            what = "the time of epochs, in validation" if validates else "training time"
            text = f"Look at {place_words(at)}: it took {share_pct:.0f} % of {what}{_grown(finding)}"
            whole_s = context.in_epochs_s if validates else _trained_s(context)
            saves_s = (finding.number(USER_CODE_IDLE_KEY) or 0.0) / 100 * whole_s
            saves_s = OUTGROWS_S if finding.number(GROWS_ON_KEY) else saves_s
            lead = Lead(_of(finding, LOOK, text, names_own=True), saves_s)
            before = told.get((at.file, at.function), lead)
            told[at.file, at.function] = max(before, lead, key=lambda each: each.saves_s)
    yield from told.values()


def _growing(context: Context, findings: Sequence[Finding], epochs: int) -> Iterator[Lead]:
    """Yield where to look for what makes epochs longer and longer: it saves what it takes by the end, in each."""
    for finding in findings:
        more_s = finding.number(GROWTH_KEY)
        if more_s is not None:
            text = f"{finding.advice[0].short}: {_it_cost(context, finding)}"
            yield Lead(_of(finding, LOOK, text, finding.advice[0]), more_s * epochs)


def _slow_epochs(context: Context, findings: Sequence[Finding]) -> Iterator[Lead]:
    """Yield where to look for what slowed some epochs, where that is known."""
    for finding in findings:
        cost_s, advice = finding.number(SLOW_COST_KEY), next((each for each in finding.advice if each.short), None)
        if cost_s is not None and advice is not None:
            text = f"{advice.short}: {_it_cost(context, finding)}"
            yield Lead(_of(finding, LOOK, text, advice), cost_s)


def _it_cost(context: Context, finding: Finding) -> str:
    """Return what a finding that knows it cost, as the end of a sentence."""
    return f"it cost about {about_length(_cost_s(context, [finding]) or 0.0)} of training"


def _cost_s(context: Context, findings: Sequence[Finding]) -> float | None:
    """Return what findings cost on the clock (s), None where none of them knows it.

    What one GPU lost its training lost; what is of no GPU alone all GPUs of the training lost.
    """
    known = [(finding, finding.lost_gpu_s) for finding in findings if finding.lost_gpu_s is not None]
    return sum(lost_s / _gpus_of(context, finding) for finding, lost_s in known) if known else None


def _gpus_of(context: Context, finding: Finding) -> int:
    training = context.training_at(finding.start_t_s)
    return 1 if finding.gpu is not None or training is None else max(len(training.gpus), 1)


def _grown(finding: Finding) -> str:
    """Return how the function of a finding grew, as the end of a sentence, empty where it did not."""
    first_s, last_s, more_s = (finding.number(key) for key in (GROWN_FROM_KEY, GROWN_TO_KEY, GROWS_ON_KEY))
    if not first_s or last_s is None:
        return ""
    grown = f". It grew from {brief_seconds(first_s)} to {brief_seconds(last_s)} a batch"
    if more_s is None:
        return grown
    return f"{grown}. If it goes on so, each epoch takes at least {about_length(more_s)} longer than the one before"


def _stood_in(cause: str, at: CodeLocation, finding: Finding) -> tuple[str, str]:
    """Return the line of code to look at; where it is YOLO's own, what helps against the cause, and then the line.

    Several lines of a function, or several functions of one name, are told by the worst line, and that there are more.
    """
    lines = {each.line for each in finding.where if _function(each) == _function(at)}
    place = place_words(at) if len(lines) == 1 else f"{place_words(at)[:-1]} and other lines)"
    who = "data-loader workers were" if at.process == WORKERS else "the training was"
    share, always = f"{100 * at.share:.0f} % of the time that the GPU waited", CAUSES[cause].always
    if at.process == THREAD:
        return f"Look at {place}: this background thread kept Python busy {100 * at.share:.0f} % of the time", ""
    if at.is_yolo:
        return (always, f"{upper_first(who)} in {place} {share}.") if always else ("", "")
    return f"Look at {place}: {f'{who} in it' if at.process == WORKERS else 'it took'} {share}", ""


def _most(finding: Finding, own_share: float = STOOD_SHARE) -> CodeLocation | None:
    """Return the function in which the training stood for most of the time, at its worst line; None where none is.

    Of a function of the user's `own_share` of the time is enough: that one can be changed.
    """
    shares: dict[tuple[str, str, str], float] = {}
    for at in finding.where:
        shares[_function(at)] = shares.get(_function(at), 0.0) + at.share
    own = [at for at in finding.where if _is_own(at) and shares[_function(at)] >= own_share]
    worst = max(own or finding.where, key=lambda at: at.share, default=None)
    if worst is None:
        return None
    whole = replace(worst, share=shares[_function(worst)])
    return whole if whole.is_most or own else None


def _function(at: CodeLocation) -> tuple[str, str, str]:
    return at.process, at.file, at.function


def _is_own(at: CodeLocation) -> bool:
    return kind_of(Frame(at.file, at.line, at.function)) == "own"


def _momentary(
    context: Context, findings: Sequence[Finding], limits: Sequence[SpeedupLimit], epochs: int
) -> Iterator[Lead]:
    """Yield what to look at for each cause that took time at moments: all of its findings together."""
    of: dict[tuple[str, bool], list[Finding]] = {}
    for finding in findings:
        rule = RULES[finding.rule]
        takes = rule.takes_time or rule.takes_epoch_time or rule.explains_slow_epoch
        if takes and not finding.expected and finding.severity != "info" and finding.cause:
            of.setdefault((finding.cause.name, _was_paused(finding)), []).append(finding)
    lasting = {f.cause.name for f in findings if f.rule == "starved" and f.cause and f.severity != "info"}
    waited_for = {WAITING_FOR_PEER} if len(of) > 1 else set()  # what was waited for says why
    for (cause, _), mine in of.items():
        limit = next((limit for limit in limits if limit.cause == cause), None)
        took_s = _took_s(mine)
        saves_s = took_s if limit is None else min(took_s, limit.saves_at_most_s * max(epochs, 1))
        saves_s *= th.UNSURE if cause == UNEXPLAINED else 1.0
        if cause not in waited_for | lasting:
            cost_s, faster = _cost_s(context, mine), _faster_without(limit, epoch_now_s(limits))
            sentence, then = _look(cause, mine, took_s, cost_s, faster)
            yield Lead(sentence, saves_s, then)


def _long_epoch_ends(findings: Sequence[Finding]) -> Iterator[Lead]:
    """Yield how to make epochs longer, where most of the time goes into their ends; else what takes that time."""
    for finding in (each for each in findings if each.rule == "long-epoch-ends"):
        advice = next((each for each in finding.advice if each.gain_estimate), None)
        share = finding.number(ENDS_SHARE_KEY) or 0.0
        if finding.number(SWAPPED_KEY) is not None:
            yield _of_sets(finding, share)
            continue
        if share < 100 * th.HALF and not _wins_much(finding):  # then training takes most of it
            yield from _switched_on(finding)
            continue
        if advice is None:
            yield from _costly_validation(finding)
            continue
        gain = advice.gain_estimate or 0.0
        text = f"{advice.short} (about {1 / (1 - gain):.1f}\u00d7 faster): {lower_first(finding.summary)}"
        yield Lead(_of(finding, FIX, text), gain * finding.duration_s)  # how is said below


def _wins_much(finding: Finding) -> bool:
    """Tell whether what is advised about the ends of epochs would have won so much of what was recorded."""
    gains = (each.gain_estimate or th.UNSURE * (each.gain_at_most or 0.0) for each in finding.advice)
    return max(gains, default=0.0) * finding.duration_s >= WORTH_NEXT_S


def _next_time(findings: Sequence[Finding]) -> Iterator[Lead]:
    """Yield what is worth changing in the next training, for this one is resumed as it is."""
    for finding in findings:
        advice = next((each for each in finding.advice if each.short == NEXT_TIME), None)
        if advice is not None and (finding.number(ENDS_SHARE_KEY) or 0.0) >= 100 * th.HALF:
            yield Lead(_of(finding, LOOK, f"{advice.short}: {lower_first(finding.summary)}"), 0.0)  # how is said below


def _of_sets(finding: Finding, share_pct: float) -> Lead:
    """Return to look at the data sets, of which the larger one may be meant to train."""
    first = finding.advice[0]
    text = f"{first.short}: the ends of epochs take {share_pct:.0f} % of the time"
    return Lead(_of(finding, LOOK, text, first), (first.gain_at_most or 0.0) * finding.duration_s)


def _switched_on(finding: Finding) -> Iterator[Lead]:
    """Yield what somebody switched on that validations take long for: it is off unless asked for."""
    for advice in finding.advice:
        if advice.argument in WRITE:
            yield _of_argument(finding, advice)


def _costly_validation(finding: Finding) -> Iterator[Lead]:
    """Yield the argument that mends ends of epochs where no longer epochs do; not to validate at all comes last."""
    arguments = sorted((each for each in finding.advice if each.argument), key=lambda each: each.argument == "val")
    for advice in arguments[:1]:
        yield _of_argument(finding, advice, th.UNSURE)


def _of_argument(finding: Finding, advice: Advice, sure: float = 1.0) -> Lead:
    """Return the argument to set about a finding, with the share (0 to 1) of its gain at most that is counted."""
    text = f"Set `{advice.argument}={advice.to_value}`{_now(advice)}: {lower_first(finding.summary)}"
    return Lead(_of(finding, FIX, text, advice), sure * (advice.gain_at_most or 0.0) * finding.duration_s)


def _in_steps(context: Context, findings: Sequence[Finding]) -> Iterator[Lead]:
    """Yield what was seen to cost time in each step: that lasts as long as the training does."""
    for finding in findings:
        if not RULES[finding.rule].in_steps or finding.severity != "warning":
            continue
        advice = finding.advice[0]
        gain = advice.gain_estimate or th.UNSURE * (advice.gain_at_most or 0.0) or STEP_WARNS_SHARE
        text, kind = f"{advice.short or advice.text}. {finding.summary}", LOOK
        if advice.argument:
            why = f"a step takes about {100 * gain:.0f} % less time" if advice.gain_estimate else finding.summary
            text, kind = f"Set `{advice.argument}={advice.to_value}`{_now(advice)}: {lower_first(why)}", FIX
        yield Lead(_of(finding, kind, text, advice), gain * _trained_s(context))


def _slow_starts(findings: Sequence[Finding], recorded_s: float, epochs: int) -> Iterator[Lead]:
    """Yield where to look of a training that did not come to its first batch: nothing else can be said of it.

    Of one that did, the function of the user's in which most of its start-up lay: that is paid once, and comes after
    what holds it back all the time. So is work of a known kind, which leads where it is most of the recording, or
    comes again with each epoch.
    """
    lasts = any(finding.rule == "starved" and finding.severity != "info" for finding in findings)
    for finding in findings:
        if finding.rule != "slow-start":
            continue
        at = _most(finding)
        known_s = finding.number(START_WORK_KEY) or 0.0
        if finding.severity != "info" and not finding.number(START_AGAIN_KEY):
            look = finding.advice[0].short if finding.advice else f"Look at {place_words(at)}" if at else ""
            text = f"{look}. {finding.summary}" if look else finding.summary
            yield Lead(_of(finding, LOOK, text), URGENT_S)
        elif finding.advice and known_s:
            if finding.number(START_AGAIN_KEY) or (known_s >= th.HALF * recorded_s and not lasts):
                yield _known_start(finding, known_s, epochs)
        elif at is not None and not at.is_yolo and not lasts:
            took_s = at.share * finding.duration_s
            text = f"Look at {place_words(at)}: {about_length(took_s)} of the start-up went there"
            yield Lead(_of(finding, LOOK, text, names_own=True), took_s)


def _known_start(finding: Finding, took_s: float, epochs: int) -> Lead:
    """Return what to do about a start-up whose work is of a known kind, and what it takes, in later epochs, too."""
    again_s = finding.number(START_AGAIN_KEY) or 0.0
    words = next(each.text for each in finding.evidence if each.key == START_WORK_KEY)
    more = f", and each later epoch {about_length(again_s)}" if again_s else ""
    text = f"{finding.advice[0].short}. Start-up spent {about_length(took_s)} {words}{more}"
    return Lead(_of(finding, LOOK, text), took_s + again_s * max(epochs - 1, 0))


def _slow_exits(findings: Sequence[Finding]) -> Iterator[Lead]:
    """Yield what kept a command from ending after its training: the function of the user's, where one is known."""
    for finding in findings:
        if finding.rule == "slow-exit":
            at = _most(finding)
            took = f"the command took {about_length(finding.duration_s)} to end after its training"
            own = at is not None and not at.is_yolo
            text = f"Look at {place_words(at)}: {took}" if at and own else f"Find what runs after the training: {took}"
            yield Lead(_of(finding, LOOK, text, names_own=own), finding.duration_s)


def _was_paused(finding: Finding) -> bool:
    """Tell whether a signal had stopped a process of the training meanwhile."""
    return any(each.key == "stopped_processes" for each in finding.evidence)


def _took_s(findings: Sequence[Finding]) -> float:
    """Return the seconds on the clock that findings took; several GPUs that felt one at once count once."""
    return length_s(union([one.span for finding in findings for one in finding.each]))


def _look(
    cause: str, findings: Sequence[Finding], took_s: float, cost_s: float | None, faster: str
) -> tuple[Sentence, str]:
    """Return where to look for what took time at moments: the line of code, the process, else what its cause says.

    With it comes in which line a process was meanwhile, empty where that is said or not known. `cost_s` is what they
    cost on the clock, None where that is not known, `faster` how much faster epochs would be without a line of the
    user's, empty where that is not known.
    """
    worst = max(findings, key=lambda finding: finding.duration_s)
    ids = tuple(finding.id for finding in findings)
    advice = next((each for each in worst.advice if each.short), None)
    at, row = _most(worst, OWN_SHARE if cause == WAITING_FOR_PEER else STOOD_SHARE), CAUSES[cause]
    is_sure = worst.cause is None or worst.cause.confidence >= LIKELY
    sure = "" if is_sure and (at is None or at.dumps is None) else "probably "  # a few dumps are no measured time
    took = about_length(took_s)
    rule = RULES[worst.rule]
    felt = f"the GPU was {sure}idle" if rule.drop or rule.at_epoch_ends else f"the training was {sure}slowed"
    names_own = worst.waited_for != OTHER_NODE and at is not None and not at.is_yolo
    then = ""
    if worst.waited_for == OTHER_NODE:  # what this rank did meanwhile was to wait
        text = f"{upper_first(_gpu(worst))} waited {took} for {OTHER_NODE}, which nvidia-smi shows as busy"
    elif names_own and at is not None:
        text = f"Look at {place_words(at)}: {felt} for {took} there{faster}"
    elif advice is not None and cause == "other-process":  # how much it slowed the training is not always known
        lost = f"it cost about {about_length(cost_s)} of training" if cost_s else f"it was on the GPU for {took}"
        text = f"{advice.short}: {lost}{faster}"
    elif advice is not None:
        text, then = f"{advice.short}: {felt} for {took}", _stood(at, row)
    elif _was_paused(worst):
        text = f"Find who paused the training (Ctrl-Z, `kill -STOP`): {felt} for {took}"
    elif cause == UNEXPLAINED or not row.once:
        count = len(merged_drops(findings)) if rule.drop else len(findings)
        times = counted(count, lower_first(rule_words(worst.rule)), "drops in GPU utilisation")
        text = f"{times} took {took}; the cause is unknown"
    else:
        text = row.once.format(took=took, probably=sure, gpu=_gpu(worst), cost=about_length(cost_s or took_s))
        then = _stood(at, row)
    return Sentence(LOOK, f"{text}.", ids, cause, advice, names_own), then


def _faster_without(limit: SpeedupLimit | None, now_s: float | None) -> str:
    """Return how much faster epochs would be without what makes the end of each longer, as the end of a sentence.

    Likewise without other processes on the GPU.
    """
    is_meant = limit is not None and (limit.at_epoch_ends or limit.cause == "other-process")
    if limit is None or now_s is None or not is_meant or limit.saves_at_most_s >= now_s:
        return ""
    ratio = shown_ratio(now_s, now_s - limit.saves_at_most_s)
    return f" (up to {ratio:.1f}\u00d7 faster without)" if ratio >= FASTER_FROM else ""


def _stood(at: CodeLocation | None, row: CauseRow) -> str:
    """Return in which line a process was meanwhile, as a sentence of its own, where that says more than the cause."""
    if at is None or not (row.is_input or not row.once):
        return ""
    who = "Data-loader workers were" if at.process == WORKERS else "The training was"
    return f"{who} in {place_words(at)}."


def _gpu(finding: Finding) -> str:
    return "the GPU" if finding.gpu is None else f"GPU {finding.gpu}"


def _unused(context: Context, findings: Sequence[Finding]) -> Iterator[Lead]:
    """Yield the GPUs that the training could have had and did not use, where they are half of the bill or more."""
    gpus = len(context.series)
    for finding in findings:
        unused = gpus - len(context.activity.used_gpus)
        if finding.rule != "unused-gpu" or finding.severity == "info" or unused < th.HALF * gpus:
            continue
        advice = next((each for each in finding.advice if each.to_value is not None), None)
        share = "half" if 2 * unused == gpus else f"{100 * unused / gpus:.0f} %"
        names = ", ".join(str(series.gpu) for series in context.series if series.gpu not in context.activity.used_gpus)
        subject = f"GPU {names} was" if unused == 1 else f"GPUs {names} were"
        text = f"{subject} never used, so {share} of all GPU time was lost"
        if advice is not None:
            text = f"Set `{advice.argument}={advice.to_value}`: {text}"
        sentence = _of(finding, FIX if advice else LOOK, text, advice)
        yield Lead(sentence, th.HALF * context.run.duration_s * gpus)
