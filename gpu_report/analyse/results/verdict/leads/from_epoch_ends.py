"""What to do about the ends of epochs: validation, saving, callbacks."""

from collections.abc import Iterator, Sequence

from gpu_report.analyse.advice.thresholds import WORTH_NEXT_S
from gpu_report.analyse.results import thresholds as th
from gpu_report.analyse.results.verdict.leads.lead import FIX, LOOK, Lead, now_words, sentence_of
from gpu_report.analyse.rules.epochs.validation_advice import WRITE
from gpu_report.analyse.rules.thresholds import LARGEST_PART
from gpu_report.catalogue import ENDS_SHARE_KEY, SWAPPED_KEY, WORK_AT_ENDS_KEY
from gpu_report.model import UNSURE, Advice, Finding
from gpu_report.wording import lower_first, upper_first


def long_epoch_ends(findings: Sequence[Finding]) -> Iterator[Lead]:
    """Yield how to make epochs longer, where most of the time goes into their ends; else what takes that time."""
    for finding in (each for each in findings if each.rule == "long-epoch-ends"):
        advice = next((each for each in finding.advice if each.gain_estimate), None)
        share = finding.number(ENDS_SHARE_KEY) or 0.0
        if finding.number(SWAPPED_KEY) is not None:
            yield _of_sets(finding, share)
            continue
        on = [each for each in _switched_on(finding) if (each.gain_at_most or 0.0) >= th.HALF * share / 100]
        if on:
            yield _of_argument(finding, on[0])
            continue
        if finding.severity != "info":
            yield _of_saving(finding)
            continue
        if share < 100 * th.HALF and not _saves_much(finding):  # then training takes most of it
            yield from (_of_argument(finding, each) for each in _switched_on(finding))
            continue
        if advice is None:
            yield from _costly_validation(finding)
            continue
        gain = advice.gain_estimate or 0.0
        text = f"{advice.short}: about {1 / (1 - gain):.1f}\u00d7 faster"
        said = sentence_of(finding, FIX, text, advice, how=False)
        yield Lead(said, gain * finding.duration_s, f"{finding.summary}.")


def _saves_much(finding: Finding) -> bool:
    """Tell whether what is advised about the ends of epochs would have won so much of what was recorded."""
    gains = (each.gain_estimate or UNSURE * (each.gain_at_most or 0.0) for each in finding.advice)
    return max(gains, default=0.0) * finding.duration_s >= WORTH_NEXT_S


def next_time(findings: Sequence[Finding]) -> Iterator[Lead]:
    """Yield what is worth changing in the next training, for this one is resumed as it is."""
    for finding in findings:
        advice = next((each for each in finding.advice if each.for_next), None)
        if advice is not None and (finding.number(ENDS_SHARE_KEY) or 0.0) >= 100 * th.HALF:
            text = f"{advice.short}: {lower_first(finding.summary)}"
            yield Lead(sentence_of(finding, LOOK, text, advice, how=False), 0.0)


def _of_sets(finding: Finding, share_pct: float) -> Lead:
    """Return to look at the data sets, of which the larger one may be meant to train."""
    first = finding.advice[0]
    text = f"{first.short}: validation and saving take {share_pct:.0f} % of each epoch"
    return Lead(sentence_of(finding, LOOK, text, first), (first.gain_at_most or 0.0) * finding.duration_s)


def _of_saving(finding: Finding) -> Lead:
    """Return to look at what takes long after validations."""
    first = finding.advice[0]
    text = f"{first.short}: {lower_first(finding.summary)}"
    is_known = finding.cause is not None and finding.number(WORK_AT_ENDS_KEY) is not None
    gain = first.gain_at_most or 0.0
    faster = f"Without that epochs are up to {1 / (1 - gain):.1f}\u00d7 faster."
    then = f"{upper_first(finding.cause.explanation)}. {faster}" if finding.cause and is_known else ""
    saves_s = UNSURE * gain * finding.duration_s
    return Lead(sentence_of(finding, LOOK, text, first), saves_s, then)


def _switched_on(finding: Finding) -> list[Advice]:
    """Return what to do about what somebody switched on that validations take long for: it is off unless asked for."""
    return [advice for advice in finding.advice if advice.argument in WRITE]


def _costly_validation(finding: Finding) -> Iterator[Lead]:
    """Yield what mends ends of epochs where no longer epochs do: what wins most of what takes their time.

    Not to validate at all comes last. Where the arguments are unknown, as of a log alone, what takes so much of the
    time is said all the same.
    """
    share = (finding.number(ENDS_SHARE_KEY) or 0.0) / 100
    known = [each for each in finding.advice if each.argument or each.short]
    much = [each for each in known if (each.gain_at_most or 0.0) >= LARGEST_PART * share]
    for advice in sorted(much or known, key=lambda each: each.argument == "val")[:1]:
        yield _of_argument(finding, advice, UNSURE)
    if not finding.advice and finding.cause and finding.cause.name == "validation":
        text = f"Validate on fewer images, or less often: {lower_first(finding.summary)}"
        yield Lead(sentence_of(finding, LOOK, text), UNSURE * share * finding.duration_s)


def _of_argument(finding: Finding, advice: Advice, sure: float = 1.0) -> Lead:
    """Return what to set or do about a finding, with the share (0 to 1) of its gain at most that is counted."""
    do = f"Set `{advice.argument}={advice.to_value}`{now_words(advice)}" if advice.argument else advice.short
    kind = FIX if advice.argument else LOOK
    said = sentence_of(finding, kind, f"{do}: {lower_first(finding.summary)}", advice)
    return Lead(said, sure * (advice.gain_at_most or 0.0) * finding.duration_s)
