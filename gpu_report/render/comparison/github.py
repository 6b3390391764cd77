"""What GitHub Actions reads from a step's output: annotations."""

from gpu_report.model import Comparison, GateResult
from gpu_report.render.comparison.rows import gate_word, ordered, outcome_words
from gpu_report.terminal import plain

MOST_ANNOTATIONS = 10  # GitHub shows so many of a kind for a step
LEVELS = {
    "failed": "error",
    "warning": "warning",
    "undecided": "warning",
    "unsure": "notice",
    "not measured": "notice",
}


def annotations(comparison: Comparison) -> list[str]:
    """Return at most ten workflow commands, the worst first: what failed, what warns, what could not be said."""
    shown = [r for r in ordered(comparison) if gate_word(r) != "passed" and not _idle(r)]
    if comparison.outcome == "not measured":
        why = "; ".join(obstacle.text for obstacle in comparison.obstacles) or outcome_words(comparison)
        first = _command("error", "gpu-report cannot decide", why)
        shown = [] if comparison.obstacles else shown
        return [first, *map(_annotation, shown[: MOST_ANNOTATIONS - 1])]
    return [_annotation(result) for result in shown[:MOST_ANNOTATIONS]]


def _idle(result: GateResult) -> bool:
    """Tell whether it is a default that the runs do not know, which nobody asked for."""
    return result.outcome == "not measured" and result.gate.optional


def _annotation(result: GateResult) -> str:
    return _command(LEVELS[gate_word(result)], f"gpu-report {gate_word(result)}: {result.gate.text}", result.summary)


def _command(level: str, title: str, message: str) -> str:
    """Return a workflow command; a property ends at a comma or a colon, everything at the end of the line."""
    title = _escaped(title).replace(":", "%3A").replace(",", "%2C")
    return f"::{level} title={title}::{_escaped(message)}"


def _escaped(text: str) -> str:
    return "%0A".join(plain(line) for line in text.replace("%", "%25").split("\n"))
