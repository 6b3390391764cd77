"""What to change, in one order for page, terminal and Markdown: that of the findings, which is what a reader wins."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from gpu_report.catalogue import RULES
from gpu_report.model import Advice, Analysis, Finding, Sentence
from gpu_report.render.next_steps import own_step

UNSURE = 0.5  # what is only known to win at most so much stands behind what is likely to win half of that


@dataclass(frozen=True)
class FunctionToCheck:
    """A function of the user's that the verdict names (`text`), and what helps against it, empty where that is open."""

    text: str
    how: str = ""


def changes(findings: Iterable[Finding], analysis: Analysis) -> list[Advice | FunctionToCheck]:
    """Return what to change for findings, each once and in their order: an argument that two advise is one.

    Of one finding stands first what the verdict says, then what wins most. To resume comes last: nothing else is done
    after it.
    """
    by_text: dict[str, Advice | FunctionToCheck] = {}
    for finding in findings:
        steps = list(finding.advice)
        if not RULES[finding.rule].ending and not analysis.is_inference:  # whose order is that of what to do
            steps.sort(key=partial(_place, analysis))
        for each in _with_look(finding, steps, analysis):
            by_text.setdefault(f"{each.text} {each.typed if isinstance(each, Advice) else ''}", each)
    return sorted(by_text.values(), key=lambda each: isinstance(each, Advice) and bool(each.resume))


def _place(analysis: Analysis, advice: Advice) -> tuple[bool, float]:
    return all(each.advice != advice for each in analysis.verdict.sentences), -_wins(analysis, advice)


def _with_look(finding: Finding, advice: Iterable[Advice], analysis: Analysis) -> Iterator[Advice | FunctionToCheck]:
    """Yield advice, and the function of the user's that the verdict names: before the advice that it says later."""
    look = next((each for each in analysis.verdict.sentences if each.names_own and finding.id in each.findings), None)
    yields_first = [each for each in advice if look is None or _is_said_before(each, look, analysis)]
    yield from yields_first
    if look is not None:
        yield FunctionToCheck(look.text, own_step(finding, analysis))
    yield from (each for each in advice if each not in yields_first)


def _is_said_before(advice: Advice, look: Sentence, analysis: Analysis) -> bool:
    sentences = analysis.verdict.sentences
    return any(each.advice == advice for each in sentences[: sentences.index(look)])


def _wins(analysis: Analysis, advice: Advice) -> float:
    """Return the share of an epoch that it is likely to win, or a little less than it wins at most; 0 unknown."""
    most, likely = analysis.gains_of(advice)
    return UNSURE * (most or 0.0) if likely is None else likely
