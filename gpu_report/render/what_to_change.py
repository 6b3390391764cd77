"""What to change, in one order for page, terminal, Markdown and summary.json: what the verdict says, then the rest."""

from collections.abc import Iterable, Iterator
from functools import partial

from gpu_report.catalogue import RULES, UNEXPLAINED
from gpu_report.model import UNSURE, Advice, Analysis, Finding, Sentence
from gpu_report.render.formatting import finding_title, sentence
from gpu_report.render.next_steps import is_anothers, next_step, own_step

SAYS_WHAT = frozenset({"fix", "look", "prevent", "all nodes"})  # kinds of sentences that say what to do


def listed_changes(analysis: Analysis) -> list[Advice]:
    """Return what to change in short: what the verdict says, an end's advice, and what is an argument or has a title.

    After it, where to look into warnings that have no advice, but for another program's fault: of that nothing is to
    change. How to read the kernel log is left out: it has a line of its own.
    """
    unexpected = [finding for finding in analysis.findings if not finding.expected]
    listed = {each for finding in unexpected if RULES[finding.rule].ending for each in finding.advice}
    listed.update(said_changes(unexpected, analysis))
    every = [each for each in changes(unexpected, analysis) if not each.reads_kernel_log]
    mine = [each for each in every if each in listed or _has_title(each, analysis)]
    told = _with_step_in_verdict(unexpected, analysis)
    steps = further_steps([each for each in unexpected if not is_anothers(each)], analysis).items()
    looks = [Advice(f"{finding_title(of[0][1])}: {step}") for step, of in steps if told.isdisjoint(f.id for _, f in of)]
    return sorted([*mine, *looks], key=lambda each: bool(each.resume))


def further_steps(findings: Iterable[Finding], analysis: Analysis) -> dict[str, list[tuple[int, Finding]]]:
    """Return each next step of findings that the verdict does not say, with these and their numbers."""
    of: dict[str, list[tuple[int, Finding]]] = {}
    said = {each.about for each in analysis.verdict.sentences if each.kind in {"look", "prevent"} and each.about}
    for number, finding in enumerate(findings, 1):
        step = "" if finding.cause is not None and finding.cause.name in said else next_step(finding, analysis)
        if step:
            of.setdefault(step, []).append((number, finding))
    return of


def _has_title(advice: Advice, analysis: Analysis) -> bool:
    """Tell whether advice is short enough to be listed: an argument, or one with a title; of calls always the title.

    None of calls where the verdict says that nothing is to fix.
    """
    if analysis.is_inference:
        said = analysis.verdict.sentences[:1]
        return bool(advice.short) and not any(each.kind == "nothing" and not each.findings for each in said)
    return bool(advice.typed or advice.short)


def changes(findings: Iterable[Finding], analysis: Analysis) -> list[Advice]:
    """Return what to change for findings, each once: what the verdict says in its order, then by what findings win.

    What has the same title is the same, whatever numbers stand with it. To resume comes last: nothing else is done
    after it. What the verdict says something else in place of is left out.
    """
    found = list(findings)
    steps = [*said_changes(found, analysis), *(each for finding in found for each in _in_order(finding, analysis))]
    replaced = [each.replaces for each in analysis.verdict.sentences]
    once: dict[str, Advice] = {}
    for each in steps:
        if each not in replaced:
            once.setdefault(f"{each.short or each.text} {each.typed}", each)
    return sorted(once.values(), key=lambda each: bool(each.resume))


def said_changes(findings: Iterable[Finding], analysis: Analysis) -> list[Advice]:
    """Return what the verdict says to do about findings, or about none, in its order."""
    steps: list[Advice] = []
    for said, mine in _saying_what(findings, analysis):
        steps += [said.advice] if said.advice else _of_sentence(said, mine, analysis)
    return steps


def _with_step_in_verdict(findings: Iterable[Finding], analysis: Analysis) -> set[str]:
    """Return the ids of findings whose next step `said_changes` has: there is no advice in its place."""
    return {
        finding.id
        for said, mine in _saying_what(findings, analysis)
        if said.advice is None and (said.names_own or not _advised(mine, analysis))
        for finding in mine
    }


def _saying_what(findings: Iterable[Finding], analysis: Analysis) -> Iterator[tuple[Sentence, list[Finding]]]:
    """Yield the sentences of the verdict that say what to do, each with those of the findings that it reports."""
    by_id = {finding.id: finding for finding in findings}
    for said in analysis.verdict.sentences:
        mine = [by_id[found] for found in said.findings if found in by_id]
        if said.kind in SAYS_WHAT and (mine or not said.findings):
            yield said, mine


def _of_sentence(said: Sentence, findings: list[Finding], analysis: Analysis) -> list[Advice]:
    """Return how to do what a sentence says whose advice is none: as its findings have it, else in its own words.

    Nothing where it says that nobody knows the cause, and nothing would help to know it.
    """
    advised = _advised(findings, analysis)
    if said.names_own:
        how = next((step for finding in findings if (step := own_step(finding, analysis))), "")
        how = how or next((sentence(each.text) for each in advised if not _has_title(each, analysis)), "")
        return [Advice(f"{said.text} {how}".strip())]
    step = next((step for finding in findings if (step := next_step(finding, analysis))), "")
    known = [] if said.about == UNEXPLAINED else [Advice(said.text)]
    return advised[:1] or ([Advice(sentence(step))] if step else known)


def _advised(findings: Iterable[Finding], analysis: Analysis) -> list[Advice]:
    """Return the advice of findings but how to read the kernel log, which has a line of its own."""
    return [each for finding in findings for each in _in_order(finding, analysis) if not each.reads_kernel_log]


def _in_order(finding: Finding, analysis: Analysis) -> list[Advice]:
    """Return the advice of a finding, what wins most first; of an end, or of calls, the order is that of what to do."""
    if RULES[finding.rule].ending or analysis.is_inference:
        return list(finding.advice)
    return sorted(finding.advice, key=partial(_expected_gain, analysis), reverse=True)


def _expected_gain(analysis: Analysis, advice: Advice) -> float:
    """Return the share of an epoch that it is likely to win, or a little less than it wins at most; 0 unknown."""
    most, likely = analysis.gains_of(advice)
    return UNSURE * (most or 0.0) if likely is None else likely
