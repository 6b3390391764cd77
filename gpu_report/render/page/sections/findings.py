"""Findings in words: what happened, how bad it was, why, what the kernel said beside it, and what to change."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from gpu_report.catalogue import RULES, SINCE_EPOCH_KEY, cause_look, cause_words, phase_words, repeats
from gpu_report.gpu_words import gpu_number, gpu_words
from gpu_report.model import Advice, Analysis, Cause, EpochSummary, Finding, KernelEvent, NearbyKernelEvent
from gpu_report.render.code_location_text import location_texts
from gpu_report.render.formatting import (
    SHOWN_SECONDS,
    duration,
    finding_title,
    known,
    quantity,
    sentence,
    share,
    with_amounts_unbroken,
    with_code,
)
from gpu_report.render.next_steps import gaps_step, named_step, next_step
from gpu_report.render.page.sections.evidence import evidence
from gpu_report.render.page.sections.learn_more import learn_more
from gpu_report.render.page.sections.static_charts import WITHOUT_MOMENT
from gpu_report.render.page.views.findings import AdviceView, FindingView, KernelRow
from gpu_report.render.page.views.tables import Fact
from gpu_report.render.run_clock import WallClock
from gpu_report.render.sentence_kinds import findings_in_lead
from gpu_report.render.speedup_rows import in_epochs, speedup_rows
from gpu_report.render.what_to_change import changes, further_steps
from gpu_report.wording import MISSING, counted, upper_first

SEVERITY_WORDS = {"critical": "Critical", "warning": "Warning", "info": "Note"}

# From which of the scores of causes/confidence.py (0 to 1) on a cause has medium, and from which on high confidence.
MEDIUM = 0.5
HIGH = 0.8

# Whose length is no news: of a start-up or a slower clock the summary says it, the others last as long as training.
LENGTH_SAID = frozenset({"slow-start", "starved", "user-code", "unused-gpu", "long-epoch-ends"}) | {
    rule.id for rule in RULES.values() if rule.lowers_clock
}
PART_OF_EPOCH = 0.1  # of an epoch's time: what took less of it was hardly in it
NO_BREAK = "\u00a0"  # between a number and its unit
TITLES_SHOWN = 3  # of the findings that one step is for
FIRST_ADVICE = 3  # how much of the advice stands under the verdict


def unexpected_and_expected(findings: Iterable[Finding]) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """Return the unexpected findings and the expected ones, both in the analysis's order."""
    unexpected = tuple(finding for finding in findings if not finding.expected)
    return unexpected, tuple(finding for finding in findings if finding.expected)


def led_by(analysis: Analysis) -> tuple[str, ...]:
    """Return the ids of the findings that the verdict leads with."""
    return analysis.verdict.sentences[0].findings if analysis.verdict.sentences else ()


def finding_numbers(analysis: Analysis) -> dict[str, int]:
    """Return the numbers that unexpected findings have on the page, by id: 1 is what a reader wins most by."""
    return {finding.id: number for number, finding in enumerate(unexpected_and_expected(analysis.findings)[0], 1)}


def finding_view(finding: Finding, clock: WallClock, analysis: Analysis, number: int | None = None) -> FindingView:
    """Return a finding in words, with the number that it has on the page."""
    is_told = finding.id in findings_in_lead(analysis)
    brief = is_brief(finding)
    cause = None if brief else finding.cause
    named = "" if cause is None else _named(finding, cause)
    return FindingView(
        id=finding.id,
        number="" if number is None else str(number),
        title=finding_title(finding),
        severity=finding.severity,
        severity_word=SEVERITY_WORDS[finding.severity],
        expected=finding.expected,
        start=clock.moment(finding.start_t_s),
        end=clock.moment(finding.end_t_s),
        cause_and_length=_cause_and_length(finding, clock, analysis, is_told=is_told),
        summary=with_amounts_unbroken(sentence(_own_code(finding))),
        facts=() if brief else _facts(finding, analysis),
        cause=named,
        cause_kind=cause_look(cause.name) if cause and named != finding_title(finding) else "",
        confidence=_confidence(cause) if cause else "",
        explanation=_explanation(finding) if cause else "",
        runner_up=cause_words(cause.runner_up) if cause and cause.runner_up else "",
        evidence=() if brief else (*(() if _is_place(finding) else _where(finding, analysis)), *evidence(finding)),
        kernel=tuple(_nearby(event, clock, finding) for event in finding.kernel_events),
        advice=tuple(_advice(a, analysis) for a in finding.advice if not a.reads_kernel_log),
        step=sentence(next_step(finding, analysis)),
        is_told=is_told,
        learn_more=() if brief else learn_more(finding),
    )


def _named(finding: Finding, cause: Cause) -> str:
    """Return the name of a finding's cause, as its title says it where that is all that it says."""
    return finding_title(finding) if repeats(finding.rule, cause.name) else cause_words(cause.name)


def _own_code(finding: Finding) -> str:
    """Return the summary; in one of an end, which may quote an exception, nothing becomes code."""
    return finding.summary.replace("`", "'") if RULES[finding.rule].ending else finding.summary


def _explanation(finding: Finding) -> str:
    """Return why in a sentence, empty where the summary above it ends with that."""
    why = finding.cause.explanation if finding.cause else ""
    return "" if finding.summary.endswith(why) else sentence(why)


def _is_place(finding: Finding) -> bool:
    """Tell whether a finding is of the line of code itself, which its summary names with its share."""
    return finding.rule == "user-code"


def is_brief(finding: Finding) -> bool:
    """Tell whether a finding needs no proof: somebody ended the training, and knows it."""
    return RULES[finding.rule].ending and finding.severity == "info" and not finding.kernel_events


def _cause_and_length(finding: Finding, clock: WallClock, analysis: Analysis, *, is_told: bool) -> str:
    """Return the cause, where nothing beside it says that, and how long it took: behind a sentence, one itself."""
    cause = cause_words(finding.cause.name) if finding.cause else ""
    says = finding.cause is not None and _named(finding, finding.cause) == finding_title(finding)
    says = says or RULES[finding.rule].ending or (not is_told and cause in finding.summary)
    when = _when(finding, clock, analysis)
    is_said = not is_told and bool(when) and when.replace(NO_BREAK, " ") in finding.summary  # as "for 2 h 7 min"
    cause_and_length = ", ".join(filter(None, ("" if says else cause, "" if is_said else when)))
    return cause_and_length if is_told else upper_first(cause_and_length)


def _when(finding: Finding, clock: WallClock, analysis: Analysis) -> str:
    """Return how long it took and in which epoch, of what takes no time at which moment it was.

    Nothing of what is so in all calls.
    """
    if RULES[finding.rule].of_calls:
        return ""
    if finding.rule in {"starved", "user-code", "unused-gpu", "long-epoch-ends"}:
        return _how_long(finding, analysis)
    rule = RULES[finding.rule]
    if _is_costly(finding) and not rule.fall:
        return f"{'at most ' * (RULES[finding.rule].lowers_clock)}{duration(finding.lost_gpu_s)} of GPU time lost"
    if finding.occurrences:
        return f"{counted(len(finding.occurrences), 'time')}, {duration(finding.took_s)} in all"
    if not (rule.takes_time or rule.takes_epoch_time) or not finding.duration_s:
        return f"at {clock.moment(finding.start_t_s).elapsed}"
    return f"{duration(finding.took_s)}" + (_in_which_epochs(finding, analysis) if rule.takes_time else "")


def _in_which_epochs(finding: Finding, analysis: Analysis) -> str:
    """Return in which epochs of which training it was, where that is known: all that it took a good part of."""
    if finding.epoch is None:
        return ""
    runs = {each.run for each in analysis.epochs if each.start_t_s <= finding.start_t_s < each.end_t_s}
    mine = [each.epoch for each in analysis.epochs if each.run in runs and _takes_part(finding, each)]
    epochs = in_epochs(min([finding.epoch, *mine]), max([finding.epoch, *mine]))
    return f" {epochs}" + (f", {finding.which_training}" if finding.which_training else "")


def _takes_part(finding: Finding, epoch: EpochSummary) -> bool:
    shared_s = min(finding.end_t_s, epoch.end_t_s) - max(finding.start_t_s, epoch.start_t_s)
    return shared_s >= PART_OF_EPOCH * (epoch.end_t_s - epoch.start_t_s)


def _how_long(finding: Finding, analysis: Analysis) -> str:
    """Return since which epoch something has lasted, where that is known; else that it lasted, or comes each epoch."""
    since, of = finding.number(SINCE_EPOCH_KEY), f" of {finding.which_training}" if finding.which_training else ""
    if since is not None:
        return f"since epoch {since:.0f}{of}"
    if finding.rule == "long-epoch-ends":
        return f"each epoch{of}"
    return f"all through {finding.which_training or 'training'}" if analysis.is_training else "all the time"


def first_advice(unexpected: tuple[Finding, ...], analysis: Analysis) -> tuple[AdviceView, ...]:
    """Return the advice of all findings that the verdict has not given, each once, in their order.

    How to read the kernel log is said here, not in each. After it stands what to do about the largest loss where no
    finding is of it, and where to look into the findings without any.
    """
    of_findings = {each for finding in unexpected for each in finding.advice}
    said = _said_whole(analysis)
    advice = [each for each in changes(unexpected, analysis) if each in of_findings and each not in said]
    read_log = f"To see what the kernel log said: {with_code(analysis.run.kernel.advice)}"
    views = (
        replace(_advice(a, analysis), text=read_log) if a.reads_kernel_log else _advice(a, analysis) for a in advice
    )
    gaps = gaps_step(analysis)
    largest = [AdviceView(gaps, "", "", "")] if gaps else []
    guesses = [
        AdviceView(f"Guess: {each.text}. To check: {each.decided_by}.", "", "", "") for each in analysis.hypotheses[1:]
    ]
    own = _of_own_code(analysis, advice)
    rest = (view for view, each in zip(views, advice, strict=True) if each not in own)
    mine = (AdviceView(each, "", "", "") if isinstance(each, str) else _advice(each, analysis) for each in own)
    return (*mine, *rest, *guesses, *largest, *_steps(unexpected, analysis))[:FIRST_ADVICE]


def _said_whole(analysis: Analysis) -> set[Advice]:
    """Return the advice that the verdict has given with how to do it."""
    return {each.advice for each in analysis.verdict.sentences if each.advice is not None and each.how}


def _own_steps(analysis: Analysis) -> list[str]:
    """Return what helps against the functions of the user's that the verdict names, each once."""
    return [each for each in _of_own_code(analysis, ()) if isinstance(each, str)]


def _of_own_code(analysis: Analysis, advice: Collection[Advice]) -> list[str | Advice]:
    """Return what helps against the functions of the user's that the verdict names, each once, in its order.

    It is a sentence, or of the `advice` what their findings have.
    """
    named = (each.findings for each in analysis.verdict.sentences if each.names_own)
    led = {found for findings in (led_by(analysis), *named) for found in findings}
    mine = [finding for finding in analysis.findings if finding.id in led]
    steps = [[step] if (step := named_step(each, analysis)) else _given(each, advice) for each in mine]
    return list(dict.fromkeys(step for each in steps for step in each))


def _given(finding: Finding, advice: Collection[Advice]) -> list[str | Advice]:
    return [each for each in finding.advice if each in advice and not each.reads_kernel_log]


def advice_title(analysis: Analysis) -> str:
    """Return what stands over the advice: the verdict may have said the first of it, or how is still to be said."""
    first = {found for each in analysis.verdict.sentences[:1] for found in each.findings}
    said = _said_whole(analysis)
    led = (advice for finding in analysis.findings if finding.id in first for advice in finding.advice)
    if _own_steps(analysis) or any(advice not in said for advice in led):
        return "What to do"
    says = any(each.kind in {"fix", "look", "prevent"} for each in analysis.verdict.sentences)
    return "Also" if says else "What to do"


def _steps(unexpected: tuple[Finding, ...], analysis: Analysis) -> Iterator[AdviceView]:
    """Yield each next step once, with the findings that it is for."""
    for step, found in further_steps(unexpected, analysis).items():
        titles = [f"{finding_title(finding)} ({number})" for number, finding in found]
        yield AdviceView(f"{_several(titles)}: {step}", "", "", "")


def _several(titles: list[str]) -> str:
    more = len(titles) - TITLES_SHOWN
    return ", ".join(titles[:TITLES_SHOWN]) + (f" and {more} more" if more > 0 else "")


def kernel_line(event: KernelEvent, clock: WallClock, distance: str = "") -> KernelRow:
    """Return a kernel event in words, with its raw line."""
    return KernelRow(
        moment=clock.moment(event.t_s),
        severity=event.severity,
        title=f"Xid {event.code}" if event.code is not None else event.kind,
        meaning=sentence(event.meaning),
        action=sentence(event.action),
        text=event.text,
        gpu="" if event.gpu is None else gpu_words(event.gpu),
        count=_repeats(event),
        distance=distance,
    )


def nothing_found(analysis: Analysis) -> str:
    """Return what to say where no unexpected finding stands."""
    if not analysis.gpus:
        above = " What took the time stands in the verdict." if analysis.code_time else ""
        return f"No findings: most of them need readings of a GPU.{above}"
    if analysis.run.samples.empty:
        return "There are no samples to judge."
    options = analysis.options
    unchecked = [each.reason for each in analysis.not_checked if each.rule == "drop"]
    if unchecked:
        return f"Nothing to report. {upper_first(unchecked[0])}."
    return (
        f"No unexpected drop: GPU utilisation never fell by more than {options.drop_percent:g} % for "
        f"{options.drop_seconds:g} s or longer{', except at the end of epochs' if analysis.epochs else ''}."
    )


def _facts(finding: Finding, analysis: Analysis) -> tuple[Fact, ...]:
    level, low = known(finding.level_pct), known(finding.low_pct)
    lost = [_lost(finding)] if _is_costly(finding) else []
    lasts = finding.duration_s > 0 and finding.rule not in WITHOUT_MOMENT | LENGTH_SAID
    took = [Fact("Length", duration(finding.took_s))] if lasts else []
    if finding.occurrences:
        took = [Fact("Times", f"{len(finding.occurrences):,}"), Fact("Total", duration(finding.took_s))]
    took = [fact for fact in took if fact.value not in {each.value for each in lost}]  # a GPU that was idle all along
    facts = [*lost, *took]
    if level is not None or low is not None:
        facts.append(Fact("Utilisation before", quantity(level, "%")))
        facts.append(Fact("During it", quantity(low, "%")))
    if len(analysis.gpus) > 1:
        facts.append(Fact("GPU", _gpus(finding, analysis)))
    is_placed = (finding.epoch is not None or level is not None) and not finding.occurrences
    return (*facts, _place(finding, analysis)) if is_placed else tuple(facts)


def _is_costly(finding: Finding) -> bool:
    """Tell whether a finding knows what it cost, and that is worth a number of its own."""
    return finding.severity != "info" and (finding.lost_gpu_s or 0.0) >= SHOWN_SECONDS


def _lost(finding: Finding) -> Fact:
    """Return what a finding took, and of how much that is."""
    label = "GPU time lost, at most" if RULES[finding.rule].lowers_clock else "GPU time lost"
    part, of = known(finding.share_of_training), "the epochs' time" if RULES[finding.rule].at_epoch_ends else "training"
    return Fact(label, duration(finding.lost_gpu_s), "" if part is None else f"{share(part)} of {of}")


def _where(finding: Finding, analysis: Analysis) -> Iterator[Fact]:
    """Yield the lines of code in which the main process and the loader's workers stood, and of what time that is."""
    return (Fact(who, lines) for who, lines in location_texts(finding, analysis))


def _gpus(finding: Finding, analysis: Analysis) -> str:
    felt = analysis.gpus_of(finding)
    return ", ".join(map(gpu_number, felt)) if 0 < len(felt) < len(analysis.gpus) else "all"


def _place(finding: Finding, analysis: Analysis) -> Fact:
    """Return in which epoch a finding lies, or from which to which; in what of an epoch only where it is one.

    What lies at the end of an epoch may last to the first seconds of the next, and is none of that.
    """
    if finding.epoch is not None and not finding.at_boundary:
        inside = [epoch.epoch for epoch in analysis.epochs if finding.start_t_s <= epoch.start_t_s < finding.end_t_s]
        last = max(inside, default=finding.epoch)
        if last > finding.epoch:
            return Fact("Epochs", f"{finding.epoch} to {last}")
    boundary = "at the end of the epoch" if finding.at_boundary else ""
    phase = phase_words(finding.phase or "")
    where = ", ".join(part for part in (phase, boundary) if part)
    if finding.epoch is None:
        return Fact("Phase", where or MISSING)
    return Fact("Epoch", str(finding.epoch), where)


def _confidence(cause: Cause) -> str:
    if cause.name == "unexplained":
        return ""
    confidence = cause.confidence
    word = "high" if confidence >= HIGH else "medium" if confidence >= MEDIUM else "low"
    return f"confidence: {word} ({confidence:.2g})"


def _nearby(nearby: NearbyKernelEvent, clock: WallClock, finding: Finding) -> KernelRow:
    """Return a kernel line beside a finding, without what the finding itself says already."""
    line = kernel_line(nearby.event, clock, _distance(nearby.offset_s, finding))
    return replace(
        line,
        meaning="" if nearby.event.meaning.rstrip(".") in finding.summary else line.meaning,
        action="" if any(a.text == nearby.event.action for a in finding.advice) else line.action,
    )


def _distance(offset_s: float, finding: Finding) -> str:
    """Return when a kernel line came; what would read 0 s before or after a moment came with it."""
    if offset_s == 0 or abs(offset_s) < SHOWN_SECONDS:
        return "during it" if finding.duration_s > 0 else "at that moment"
    return f"{duration(abs(offset_s))} {'before' if offset_s < 0 else 'after'}"


def _repeats(event: KernelEvent) -> str:
    if event.count == 1:
        return ""
    within_s = 0.0 if event.last_t_s is None else event.last_t_s - event.t_s
    until = f" within {duration(within_s)}" if within_s >= SHOWN_SECONDS else ""
    return counted(event.count, "time") + until


def _gain(advice: Advice, analysis: Analysis) -> str:
    most, likely = (known(gain) for gain in analysis.gains_of(advice))
    if likely is None and most is None:
        return ""
    training = "the time in training steps" if analysis.epoch_now is None else "each epoch"
    calls = "the time for all calls" if analysis.is_inference else training
    whole = "the time of validations and between them" if analysis.is_validation else calls
    if likely is None:
        return f"saves at most {share(most)} of {whole}"
    row = next((row for row in speedup_rows(analysis) if row.limit.fix and row.limit.fix == advice.typed), None)
    if row is not None and row.expected_s is not None:  # as the verdict has it, and the table of possible speed-up
        return f"expected to save {share(1 - row.expected_s / row.now_s)} of each epoch"
    return f"expected to save {share(likely)} of {whole}"


def _advice(advice: Advice, analysis: Analysis) -> AdviceView:
    now = f"(now {advice.now})" if advice.now else ""
    return AdviceView(sentence(advice.text), advice.typed, now, _gain(advice, analysis))
