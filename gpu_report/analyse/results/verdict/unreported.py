"""What is more than a note and that no sentence of the verdict reports: nothing is healthy beside it."""

from collections.abc import Sequence

from gpu_report.analyse.results.verdict.leads.lead import LOOK, Lead, sentence_of
from gpu_report.analyse.results.verdict.places import worst_place
from gpu_report.model import Finding, Sentence
from gpu_report.wording import place_words


def unreported_leads(findings: Sequence[Finding], said: Sequence[Sentence]) -> list[Lead]:
    """Return what to look at of the warnings that no sentence reports, the costliest first."""
    reported = {name for sentence in said for name in sentence.findings}
    left = [f for f in findings if f.severity != "info" and not f.expected and f.id not in reported]
    return [_lead(finding) for finding in sorted(left, key=lambda f: (f.severity != "critical", -f.costs_s))]


def unreported_sentences(findings: Sequence[Finding], said: Sequence[Sentence]) -> list[Sentence]:
    """Return the sentences of `unreported_leads`: what to do about each, and why."""
    return [each for lead in unreported_leads(findings, said) for each in (lead.sentence, *lead.follows)]


def _lead(finding: Finding) -> Lead:
    """Return what to do about it, else the line of the user's to look at, else what was found."""
    advice, at = next((each for each in finding.advice if each.short), None), worst_place(finding)
    own = at is not None and not at.is_yolo and advice is None
    do = advice.short if advice else f"Look at {place_words(at)}" if at and own else ""
    how = finding.rule != "user-code"  # to look at a line says not yet what to do there
    said = sentence_of(finding, LOOK, do or finding.summary, advice, names_own=own, how=how)
    return Lead(said, finding.costs_s, f"{finding.summary}." if do else "", says_how=bool(advice))
