"""Rules, causes and phases in plain words."""

from collections.abc import Mapping

from gpu_report.catalogue.causes import CAUSES
from gpu_report.catalogue.rules import RULES
from gpu_report.catalogue.shared_ids import MEMORY_GROWS

# Phases that people write otherwise than machines.
PHASES: Mapping[str, str] = {"startup": "start-up"}


def cause_words(name: str) -> str:
    """Return a cause in plain words."""
    return CAUSES[name].name if name in CAUSES else name


def cause_look(name: str) -> str:
    """Return how the page's classes name a cause: `fill-...` is its colour, `over-...` its texture."""
    return name.replace(" ", "-") if name in CAUSES and CAUSES[name].coloured else "other"


def repeats(rule: str, cause: str) -> bool:
    """Tell whether the name of a cause says again what the title of a finding of this rule says."""
    return cause == rule or {rule, cause} <= MEMORY_GROWS


def rule_words(name: str) -> str:
    """Return a kind of finding in plain words."""
    return RULES[name].name if name in RULES else name.replace("-", " ").capitalize()


def row_words(name: str, *, is_training: bool = True) -> str:
    """Return a row of the ledger in plain words: a cause, or one of the rest.

    Where no training is known (`is_training` False), nothing is said of its batches.
    """
    without_training = CAUSES[name].without_training if name in CAUSES and not is_training else ""
    return without_training or cause_words(name)


def phase_words(name: str) -> str:
    """Return a phase in plain words, as within a sentence."""
    return PHASES.get(name, name)
