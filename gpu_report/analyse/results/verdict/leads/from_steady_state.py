"""What to look at where something holds training back all the time, or more and more."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gpu_report.analyse.causes.confidence import LIKELY
from gpu_report.analyse.causes.main_process import CODE_CAUSES
from gpu_report.analyse.context import Context
from gpu_report.analyse.results import thresholds as th
from gpu_report.analyse.results.verdict.leads.costs import cost_in_run_s
from gpu_report.analyse.results.verdict.leads.from_settings import is_setting
from gpu_report.analyse.results.verdict.leads.larger_batch import no_larger_batch
from gpu_report.analyse.results.verdict.leads.lead import (
    GROWING_COST_S,
    LOOK,
    Lead,
    affected_epochs,
    seconds_trained,
    sentence_of,
)
from gpu_report.analyse.results.verdict.places import function_of, worst_place
from gpu_report.analyse.rules.thresholds import SEEN_IDLE_SHARE
from gpu_report.analyse.signals.code.stack_kinds import THREAD, WORKERS
from gpu_report.analyse.signals.thresholds import MOSTLY_SHARE, MUCH_SHARE, OWN_SHARE
from gpu_report.analyse.timeseries.intervals import length_s
from gpu_report.catalogue import (
    CAUSES,
    CONVOLUTIONS_KEY,
    GARBAGE_KEY,
    GROWN_FROM_KEY,
    GROWN_TO_KEY,
    GROWS_ON_KEY,
    GROWTH_KEY,
    IDLE_IN_STEPS_KEY,
    LAUNCH_BOUND,
    RULES,
    SEEN_IDLE_KEY,
    SLOW_COST_KEY,
    STEADY_KEY,
    UNEXPLAINED,
    USER_CODE_IDLE_KEY,
    USER_CODE_KEY,
)
from gpu_report.model import UNSURE, Advice, CodeLocation, Finding, Projection, Sentence, SpeedupLimit
from gpu_report.wording import about_length, lower_first, place_words, step_words, upper_first


def steady_leads(
    context: Context, findings: Sequence[Finding], limits: Sequence[SpeedupLimit], projection: Projection | None
) -> Iterator[Lead]:
    """Yield what to look at where something holds training back all the time, and no argument is known against it."""
    own_code = _own_code(findings)
    for finding in findings:
        cause = finding.cause
        if finding.rule != "starved" or cause is None or (finding.severity == "info" and not finding.advice):
            continue
        at = worst_place(finding, _own_share(cause.name))
        if at is not None and _in_file(at) in own_code:  # which has a lead of its own
            at = None
        own = at if at is not None and not at.is_yolo else None
        if projection is not None and cause.name == projection.cause and own is None:
            continue
        advice = next((each for each in finding.advice if each.short and not is_setting(each)), None)
        do = advice.short if advice is not None else ""
        # what is known to help comes before a line of some of the time: one that calls convolutions can do nothing more
        is_known = bool(do) and any(finding.number(key) is not None for key in (GARBAGE_KEY, CONVOLUTIONS_KEY))
        looks = own is not None and not is_known and (own.is_most or not do)
        stood, then = _line_to_look_at(cause.name, at, finding) if at else ("", "")
        if do and not looks:
            stood, then = do, ""
        text = stood or CAUSES[cause.name].always
        if text and (looks or do or cause.name != LAUNCH_BOUND or not no_larger_batch(context, finding, findings)):
            saves_s = _saves_s(
                context, finding, own, _at_most_s(context, finding, findings, limits), names_fix=bool(do)
            )
            grown = _grown(finding) if looks else ""
            saves_s = GROWING_COST_S if grown and finding.number(GROWS_ON_KEY) else saves_s
            told = advice if text == do else None
            other = _other_advice(finding, advice) if told is not None else None
            then = f"Or {lower_first(other.text)}." if other is not None else then
            lead = Sentence(LOOK, f"{text}{grown}.", (finding.id,), cause.name, told, looks)
            yield Lead(lead, saves_s, then, then_advice=other)


def _own_code(findings: Sequence[Finding]) -> set[tuple[str, str]]:
    """Return the functions of the user's that have a finding, and so a lead, of their own."""
    return {_in_file(at) for finding in findings if finding.rule == "user-code" for at in finding.where[:1]}


def _in_file(at: CodeLocation) -> tuple[str, str]:
    return at.file, at.function


def _at_most_s(
    context: Context, finding: Finding, findings: Sequence[Finding], limits: Sequence[SpeedupLimit]
) -> float:
    """Return the seconds of the recorded training that go at most without the cause of a finding."""
    limit = next((each for each in limits if each.cause == finding.cause_name and not each.at_epoch_ends), None)
    if limit is None:
        return _waited_s(context, finding)
    return limit.saves_at_most_s * affected_epochs(context, findings, limit.epoch_s_now + limit.rest_s)


def _saves_s(
    context: Context, finding: Finding, own: CodeLocation | None, at_most_s: float, *, names_fix: bool
) -> float:
    """Return for how many seconds a lead counts: what names neither a fix nor a line comes after what does.

    What a line of one's own took, it can give back; of nearly all, before what hides it, such as more workers.
    """
    least_s = th.WORTH_LEADING_SHARE * seconds_trained(context)
    if finding.number(IDLE_IN_STEPS_KEY) is not None:  # nothing but that code is left to be why
        return max(at_most_s, least_s)
    if own is not None:
        return max((1.0 if own.share >= th.NEARLY_ALL_SHARE else own.share) * at_most_s, least_s)
    is_vague = finding.cause_name in {LAUNCH_BOUND, *CODE_CAUSES} and not names_fix
    return least_s if is_vague else max(UNSURE * at_most_s, least_s)


def _other_advice(finding: Finding, first: Advice | None) -> Advice | None:
    """Return what else helps against storage that is waited for all the time, None without it."""
    others = (each for each in finding.advice if each.short and each is not first and not is_setting(each))
    return next(others, None) if finding.cause_name == "input-storage" else None


def _waited_s(context: Context, finding: Finding) -> float:
    """Return for how long a GPU waited in training for what is felt as waiting for data, 0 for another cause."""
    util_pct = finding.number(STEADY_KEY)
    if util_pct is None or finding.cause is None or not CAUSES[finding.cause.name].is_input:
        return 0.0
    training = context.training_at(finding.start_t_s, finding.gpu)
    trained_s = 0.0 if training is None else length_s(training.train_spans)
    return (1 - util_pct / 100) * (trained_s or seconds_trained(context))


def _own_share(cause: str) -> float:
    """Return which share of the time that the GPU waited a function of the user's must have to be the one to look at.

    Nothing else is in a call; of loading images the most costly of its steps is enough, for that one can be changed.
    """
    return OWN_SHARE if cause in CODE_CAUSES else MUCH_SHARE if CAUSES[cause].is_input else MOSTLY_SHARE


def user_code(context: Context, findings: Sequence[Finding]) -> Iterator[Lead]:
    """Yield the functions of the user's own that took a share of the training's time beside what held it back most.

    One that several ranks call is one, as it is in the rank in which it took most.
    """
    told: dict[tuple[str, str], Lead] = {}
    for finding in findings:
        if finding.rule == "user-code" and (garbage_pct := finding.number(GARBAGE_KEY)) and finding.advice[0].short:
            text = f"{finding.advice[0].short}: Python's garbage collector took {garbage_pct:.0f} % of training time"
            saves_s = garbage_pct / 100 * seconds_trained(context)
            told[GARBAGE_KEY, ""] = Lead(sentence_of(finding, LOOK, text, finding.advice[0]), saves_s)
        elif finding.rule == "user-code":
            at = finding.where[0]
            share_pct = finding.number(USER_CODE_KEY) or 0.0
            validates = finding.phase == "validation"
            what = "the time of epochs, in validation" if validates else "training time"
            took = f"took {share_pct:.0f} % of {what}{_while_busy(finding, share_pct)}{_grown(finding)}"
            advice = _short_advice(finding)
            text = f"Look at {place_words(at)}: it {took}"
            text = f"{advice.short}: {place_words(at)} {took}" if advice is not None else text
            whole_s = context.in_epochs_s if validates else seconds_trained(context)
            idle_pct = finding.number(USER_CODE_IDLE_KEY)  # not of a training without a GPU: it can give back all
            saves_s = (share_pct if idle_pct is None else idle_pct) / 100 * whole_s
            saves_s = GROWING_COST_S if finding.number(GROWS_ON_KEY) else saves_s
            lead = Lead(sentence_of(finding, LOOK, text, advice, names_own=advice is None), saves_s)
            before = told.get((at.file, at.function), lead)
            told[at.file, at.function] = max(before, lead, key=lambda each: each.saves_s)
    yield from told.values()


def _while_busy(finding: Finding, share_pct: float) -> str:
    """Return for how little of a function's time the GPU was idle, where it worked for most of it; else empty."""
    idle_pct = finding.number(SEEN_IDLE_KEY)
    is_busy = idle_pct is not None and idle_pct < SEEN_IDLE_SHARE * share_pct
    return f", {idle_pct:.0f} of those {share_pct:.0f} % with the GPU idle" if is_busy else ""


def growing(
    context: Context, findings: Sequence[Finding], limits: Sequence[SpeedupLimit], epochs: int
) -> Iterator[Lead]:
    """Yield where to look for what makes epochs longer and longer: it saves what it takes by the end, in each.

    Of a function at the ends of epochs that has another lead, this says to look at it, and what all of its time costs.
    """
    held = {each.waited_for for each in findings if RULES[each.rule].at_epoch_ends and each.severity != "info"}
    own_code = _own_code(findings)
    for finding in findings:
        more_s = finding.number(GROWTH_KEY)
        is_led = finding.waited_for in held or own_code.intersection(map(_in_file, finding.where))
        if more_s is not None and not (finding.waited_for and is_led):
            limit = _limit_of_slower(finding.cause_name, limits)
            cost = about_length(cost_in_run_s(context, [finding], limit) or 0.0)
            text = f"{finding.advice[0].short}: it cost about {cost} of training{_grown(finding)}"
            said = sentence_of(finding, LOOK, text, finding.advice[0])
            yield Lead(replace(said, replaces=_same_place(finding, findings)), more_s * epochs)


def _same_place(finding: Finding, findings: Sequence[Finding]) -> Advice | None:
    """Return the advice to look at the same function for what it computes on the GPU; None without one."""
    at = finding.where[0] if finding.where else None
    mine = (each for each in findings if each.rule == "other-gpu-work" and each.where and at is not None)
    same = (each for each in mine if at is not None and function_of(each.where[0]) == function_of(at))
    return next((advice for each in same for advice in each.advice), None)


def slow_epochs(context: Context, findings: Sequence[Finding], limits: Sequence[SpeedupLimit]) -> Iterator[Lead]:
    """Yield where to look for what slowed some epochs: where that is not known, if they cost enough to find it.

    Stretches of epochs with one cause, of which the same is advised, are one.
    """
    alike: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        cause, advice = finding.cause, _short_advice(finding)
        is_known = advice is not None or cause is not None
        costs = finding.number(SLOW_COST_KEY) is not None and finding.severity != "info"
        if costs and (is_known or finding.severity == "critical"):
            alike.setdefault((cause.name if cause else "", advice.short if advice else ""), []).append(finding)
    for (name, short), mine in alike.items():
        is_whole = sum(other == name for other, _ in alike) == 1
        limit = _limit_of_slower(name, limits) if is_whole else None
        cost_s = cost_in_run_s(context, mine, limit) or 0.0
        lead = sentence_of(mine[0], LOOK, _look_at(mine, about_length(cost_s)), _short_advice(mine[0]))
        lead = replace(lead, findings=tuple(finding.id for finding in mine))
        yield Lead(lead, cost_s if name or short else UNSURE * cost_s)


def _limit_of_slower(cause: str, limits: Sequence[SpeedupLimit]) -> SpeedupLimit | None:
    """Return the limit of epochs that a cause, which may be unknown, made slower; None without one."""
    return next((each for each in limits if each.in_epochs and each.cause == (cause or UNEXPLAINED)), None)


def _short_advice(finding: Finding) -> Advice | None:
    return next((each for each in finding.advice if each.short), None)


def _look_at(findings: Sequence[Finding], cost: str) -> str:
    """Return where to look for what slowed epochs: what their findings advise, else by their cause alone."""
    cause = findings[0].cause
    advice, paused = _short_advice(findings[0]), findings[0].number("stopped_processes")
    once = CAUSES[cause.name].once if cause is not None else ""
    if advice is not None or paused or not once or cause is None:
        other = "Find who paused the training (Ctrl-Z, `kill -STOP`)" if paused else "Find what slowed some epochs"
        return f"{advice.short if advice is not None else other}: it cost about {cost} of training"
    probably = "" if cause.confidence >= LIKELY else "probably "
    return once.format(took=cost, cost=cost, probably=probably, gpu="the GPU")


def _grown(finding: Finding) -> str:
    """Return how the function of a finding grew, as the end of a sentence, empty where it did not."""
    first_s, last_s, more_s = (finding.number(key) for key in (GROWN_FROM_KEY, GROWN_TO_KEY, GROWS_ON_KEY))
    if not first_s or last_s is None:
        return ""
    grown = f". It grew from {step_words(first_s)} to {step_words(last_s)} a batch"
    if more_s is None:
        return grown
    return f"{grown}. If it goes on so, each epoch takes at least {about_length(more_s)} longer than the one before"


def _line_to_look_at(cause: str, at: CodeLocation, finding: Finding) -> tuple[str, str]:
    """Return the line of code to look at; where it is YOLO's own, what helps against the cause, and then the line.

    Several lines of a function, or several functions of one name, are told by the worst line, and that there are more.
    """
    lines = {each.line for each in finding.where if function_of(each) == function_of(at)}
    place = place_words(at) if len(lines) == 1 else f"{place_words(at)[:-1]} and other lines)"
    who = "data-loader workers were" if at.process == WORKERS else "the training was"
    share, always = f"{100 * at.share:.0f} % of the idle GPU time", CAUSES[cause].always
    if at.process == THREAD:
        return f"Look at {place}: this background thread kept Python busy {100 * at.share:.0f} % of training time", ""
    if at.is_yolo:
        return (always, f"{upper_first(who)} in {place} {share}.") if always else ("", "")
    if at.process == WORKERS:
        spent = f"data-loader workers spent {100 * at.share:.0f} % of their time in it"
        return f"Look at {place}: while the GPU was idle, {spent}", ""
    return f"Look at {place}: {'with what it calls, it took' if at.with_calls else 'it took'} {share}", ""
