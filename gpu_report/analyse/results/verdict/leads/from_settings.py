"""What to set: arguments of YOLO, the environment, GPUs that nobody used."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gpu_report.analyse.advice.thresholds import MUCH_FASTER_SHARE
from gpu_report.analyse.context import Context
from gpu_report.analyse.results import thresholds as th
from gpu_report.analyse.results.verdict.leads.lead import (
    FIX,
    LOOK,
    URGENT_S,
    Lead,
    affected_epochs,
    now_words,
    seconds_trained,
    sentence_of,
    without_backticks,
)
from gpu_report.analyse.rules.thresholds import STEP_WARNS_SHARE
from gpu_report.catalogue import CAUSES, ENLARGED_KEY, MEMORY_GROWS, RULES, SINCE_EPOCH_KEY, SLEPT_KEY, SLOW_IMAGES_KEY
from gpu_report.gpu_words import gpu_number
from gpu_report.model import LEAST_SPEED_UP, UNSURE, Advice, EpochNow, Finding, Projection, Sentence, SpeedupLimit
from gpu_report.wording import epoch_length, lower_first, shown_ratio


def urgent(findings: Sequence[Finding]) -> Iterator[Lead]:
    """Yield what will end the training, or keeps it from using a GPU at all: nothing is worth more."""
    for finding in findings:
        if finding.rule == "environment" and finding.severity == "critical":
            advice = next((each for each in finding.advice if each.short), None)
            yield Lead(sentence_of(finding, LOOK, without_backticks(finding.summary), advice), URGENT_S)
        if finding.rule in MEMORY_GROWS and finding.severity == "critical" and not finding.ran_out:
            yield _keep_less(finding, URGENT_S)


def growing_memory(findings: Sequence[Finding]) -> Iterator[Lead]:
    """Yield what not to keep where memory grows, though not to its end in this training: it saves no time of it."""
    yield from (_keep_less(each, 0.0) for each in findings if each.rule in MEMORY_GROWS and each.severity == "warning")


def _keep_less(finding: Finding, saves_s: float) -> Lead:
    advice = next(iter(finding.advice), None)
    text = advice.short if advice is not None else CAUSES["memory-growth"].always
    return Lead(sentence_of(finding, LOOK, text, advice), saves_s, f"{finding.summary}.", says_how=True)


def set_up(context: Context, findings: Sequence[Finding], now: EpochNow | None) -> Iterator[Lead]:
    """Yield what to do about a set-up that does not fit, where it can be said shortly: the rest may follow from it.

    Not of one that is known to win less than half at most, or to have cost so many seconds: that has its place among
    the others.
    """
    for finding in findings:
        advice = next((each for each in finding.advice if each.short), None)
        if finding.rule == "environment" and finding.severity == "warning" and advice is not None:
            gain = advice.gain_at_most or 0.0
            ratio = _ratio(gain, now)
            faster = f" (at most {ratio:.2g}\u00d7 faster)" if ratio >= th.FASTER_FROM else ""
            saves_s = UNSURE * gain * seconds_trained(context) if 0 < gain < th.HALF else URGENT_S
            saves_s = finding.number(SLOW_IMAGES_KEY) or finding.number(SLEPT_KEY) or saves_s
            text = f"{advice.short}{faster}: {lower_first(finding.summary)}"
            said = replace(sentence_of(finding, LOOK, text, advice), replaces=_same_storage(finding, findings))
            yield Lead(said, saves_s, says_how=True)


def _same_storage(finding: Finding, findings: Sequence[Finding]) -> Advice | None:
    """Return what a start-up says of the storage for which training waited later: the same, None without it."""
    scans = (advice for each in findings for advice in each.advice if advice.of_slow_scan)
    return next((advice for advice in scans if finding.number(SLOW_IMAGES_KEY) is not None), None)


def _ratio(gain: float, now: EpochNow | None) -> float:
    """Return how many times as fast epochs are at most, by the share (0 to 1) of their steps that is won.

    Validation runs the model, too. What else there is at the ends of epochs stays.
    """
    won = gain * (now.model_share if now else 1.0)
    return 1 / (1 - won) if won < 1 else 1.0


def enlarged(context: Context, findings: Sequence[Finding], now: EpochNow | None) -> Iterator[Lead]:
    """Yield the size to try for images that are enlarged: whether it finds as much, only a comparison says."""
    for finding in findings:
        if finding.number(ENLARGED_KEY) is not None and finding.severity == "warning":
            advice = finding.advice[0]
            gain = advice.gain_at_most or 0.0
            argument = f"`{advice.argument}={advice.to_value}`"
            faster = f"Up to {_ratio(gain, now):.2g}\u00d7 faster; compare mAP"
            text = f"Try {argument}{now_words(advice)}: {lower_first(finding.summary)}. {faster}"
            yield Lead(sentence_of(finding, FIX, text, advice), UNSURE * gain * seconds_trained(context))


def setting(context: Context, findings: Sequence[Finding], projection: Projection | None) -> Iterator[Lead]:
    """Yield the argument of YOLO to set, with what an epoch comes to."""
    if projection is None:
        return
    mine = [f for f in findings if f.cause and f.cause.name == projection.cause]
    finding, advice = next(((f, a) for f in mine for a in f.advice if is_setting(a)), (None, None))
    if finding is None or advice is None:
        return
    epoch = f"{epoch_length(projection.epoch_s_now)} to about {epoch_length(projection.epoch_s_expected)}"
    faster = shown_ratio(projection.epoch_s_now, projection.epoch_s_expected)
    if faster < LEAST_SPEED_UP:
        return
    since = finding.number(SINCE_EPOCH_KEY)
    which = "epochs drop" if since is None else f"epochs from {since:.0f} on drop"
    text = f"Set `{projection.fix}`{now_words(advice)}: {which} from {epoch}, {faster:.1f}\u00d7 faster."
    epochs = affected_epochs(context, findings, projection.epoch_s_now)
    saved_s = (projection.epoch_s_now - projection.epoch_s_expected) * epochs
    yield Lead(Sentence(FIX, text, (finding.id,), projection.cause, advice), saved_s)


def is_setting(advice: Advice) -> bool:
    """Tell whether an advice is an argument of YOLO, with what it is expected to win."""
    return advice.argument is not None and advice.gain_estimate is not None


def instead_of_setting(
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
    now_s, expected_s = projection.epoch_s_now, projection.epoch_s_now - gain * limit.whole_s
    is_second = expected_s >= MUCH_FASTER_SHARE * projection.epoch_s_expected
    do = f"Or {lower_first(advice.short)}" if is_second else advice.short
    epoch = f"{epoch_length(now_s)} to about {epoch_length(expected_s)}"
    text = f"{do}: epochs drop from {epoch}, {shown_ratio(now_s, expected_s):.1f}\u00d7 faster."
    counted_s = max(expected_s, projection.epoch_s_expected) if is_second else expected_s
    epochs = affected_epochs(context, findings, now_s)
    # without the cause, by which what all epochs come to with the argument would follow
    yield Lead(Sentence(FIX, text, (finding.id,), "", advice), (now_s - counted_s) * epochs)


def in_steps(context: Context, findings: Sequence[Finding]) -> Iterator[Lead]:
    """Yield what was seen to cost time in each step: that lasts as long as the training does."""
    for finding in findings:
        if not RULES[finding.rule].in_steps or finding.severity != "warning":
            continue
        advice = finding.advice[0]
        gain = advice.gain_estimate or UNSURE * (advice.gain_at_most or 0.0) or STEP_WARNS_SHARE
        most = f": up to {100 * advice.gain_at_most:.0f} % of training time" if advice.gain_at_most else ""
        text, kind, then = f"{advice.short or advice.text}{most}", LOOK, f"{finding.summary}."
        if advice.argument:
            why = f"a step takes about {100 * gain:.0f} % less time" if advice.gain_estimate else finding.summary
            text, kind, then = (
                f"Set `{advice.argument}={advice.to_value}`{now_words(advice)}: {lower_first(why)}",
                FIX,
                "",
            )
        yield Lead(sentence_of(finding, kind, text, advice), gain * seconds_trained(context), then)


def unused(context: Context, findings: Sequence[Finding]) -> Iterator[Lead]:
    """Yield the GPUs that the training could have had and did not use, where they are half of the bill or more."""
    gpus = len(context.series)
    for finding in findings:
        unused = gpus - len(context.activity.used_gpus)
        if finding.rule != "unused-gpu" or finding.severity == "info" or unused < th.HALF * gpus:
            continue
        advice = next((each for each in finding.advice if each.to_value is not None), None)
        share = "half" if 2 * unused == gpus else f"{100 * unused / gpus:.0f} %"
        idle = (series.gpu for series in context.series if series.gpu not in context.activity.used_gpus)
        names = ", ".join(map(gpu_number, idle))
        subject = f"GPU {names} was" if unused == 1 else f"GPUs {names} were"
        text = f"{subject} never used, so {share} of all GPU time was lost"
        if advice is not None:
            text = f"Set `{advice.argument}={advice.to_value}`: {text}"
        sentence = sentence_of(finding, FIX if advice else LOOK, text, advice)
        yield Lead(sentence, th.HALF * context.run.duration_s * gpus)
