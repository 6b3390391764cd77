"""Where to look where a training begins late, or its command ends late."""

from collections.abc import Iterator, Sequence

from gpu_report.analyse.results import thresholds as th
from gpu_report.analyse.results.verdict.leads.lead import LOOK, URGENT_S, Lead, sentence_of
from gpu_report.analyse.results.verdict.places import worst_place
from gpu_report.catalogue import START_AGAIN_KEY, START_WORK_KEY
from gpu_report.model import Finding
from gpu_report.wording import about_length, counted, place_words


def slow_starts(findings: Sequence[Finding], recorded_s: float, epochs: int) -> Iterator[Lead]:
    """Yield where to look of a training that did not come to its first batch: nothing else can be said of it.

    Of one that did, the function of the user's in which most of its start-up lay: that is paid once, and comes after
    what holds it back all the time. So is work of a known kind, which leads where it is most of the recording, comes
    again with each epoch, or nothing was trained after it. Too few CPU cores are said by what they cost each epoch,
    where that is known.
    """
    lasts = any(finding.rule == "starved" and finding.severity != "info" for finding in findings)
    for finding in findings:
        if finding.rule != "slow-start" or (lasts and finding.cause_name == "cpu-limit"):
            continue
        at = worst_place(finding)
        known_s = finding.number(START_WORK_KEY) or 0.0
        if finding.severity != "info" and not finding.number(START_AGAIN_KEY):
            if finding.advice:
                first = finding.advice[0]
                said = sentence_of(finding, LOOK, first.short, first, how=False)
                yield Lead(said, URGENT_S, f"{finding.summary}.", says_how=True)
                continue
            text = f"Look at {place_words(at)}. {finding.summary}" if at else finding.summary
            yield Lead(sentence_of(finding, LOOK, text), URGENT_S)
        elif finding.advice and known_s:
            is_most = epochs == 0 or known_s >= th.HALF * recorded_s
            if finding.number(START_AGAIN_KEY) or (is_most and not lasts):
                yield _known_start(finding, known_s, epochs)
        elif at is not None and not at.is_yolo and not lasts:
            took_s = at.share * finding.duration_s
            text = f"Look at {place_words(at)}: {about_length(took_s)} of the start-up went there"
            yield Lead(sentence_of(finding, LOOK, text, names_own=True), took_s)


def _known_start(finding: Finding, took_s: float, epochs: int) -> Lead:
    """Return what to do about a start-up whose work is of a known kind, and what it takes, in later epochs, too."""
    again_s = finding.number(START_AGAIN_KEY) or 0.0
    words = next(each.text for each in finding.evidence if each.key == START_WORK_KEY)
    more = f", and each later epoch {about_length(again_s)}" if again_s else ""
    then = f"Start-up spent {about_length(took_s)} {words}{more}."
    first = finding.advice[0]
    said = sentence_of(finding, LOOK, first.short, first, how=False)
    return Lead(said, took_s + again_s * max(epochs - 1, 0), then)


def between_trainings(findings: Sequence[Finding]) -> Iterator[Lead]:
    """Yield the user's function that ran between trainings: where once is enough, each further time is won."""
    for finding in findings:
        if finding.rule == "between-trainings":
            at = finding.where[0]
            took_s = at.share * sum(one.took_s for one in finding.each)
            times = counted(len(finding.each), "time")
            went = f"{about_length(took_s)} went there between trainings, {times}"
            text = f"Look at {place_words(at)}: {went}. Once may be enough"
            yield Lead(sentence_of(finding, LOOK, text, names_own=True), took_s)


def slow_exits(findings: Sequence[Finding]) -> Iterator[Lead]:
    """Yield what kept a command from ending after its training: the function of the user's, where one is known."""
    for finding in findings:
        if finding.rule == "slow-exit":
            at = worst_place(finding)
            took = f"the command took {about_length(finding.duration_s)} to end after its training"
            own = at is not None and not at.is_yolo
            text = f"Look at {place_words(at)}: {took}" if at and own else f"Find what runs after the training: {took}"
            yield Lead(sentence_of(finding, LOOK, text, names_own=own), finding.duration_s)
