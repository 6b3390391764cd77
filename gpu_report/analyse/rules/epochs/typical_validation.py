"""Where the time of a training's validations goes: the medians of those that reported their parts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from gpu_report.analyse.rules import thresholds as th
from gpu_report.model import VALIDATION_PARTS, Evidence, Validation, ValidationPart
from gpu_report.wording import VALIDATION_PART_WORDS

# The part that a first validation has as later ones do: in others it starts its workers and loads kernels, NMS has more
# boxes while a model is young, and ultralytics plots in the last one alone.
RECURRING: ValidationPart = "metrics"


@dataclass(frozen=True)
class TypicalValidation:
    """Medians of some validations: length and parts in seconds, images a second (None: not known); `last` is one."""

    length_s: float
    seconds: Mapping[ValidationPart, float]
    images_per_s: float | None
    last: Validation

    def of(self, *parts: ValidationPart) -> float:
        """Return the seconds of some parts, 0 of those that are not known."""
        return sum(self.seconds.get(part, 0.0) for part in parts)

    @property
    def largest_words(self) -> str:
        """Return the part that takes longest and its share, empty where none stands out."""
        part = max(self.seconds, key=lambda each: self.seconds[each])
        share = self.seconds[part] / self.length_s
        return f"{100 * share:.0f} % of validation is {VALIDATION_PART_WORDS[part]}" if share >= th.LARGEST_PART else ""

    @property
    def evidence(self) -> list[Evidence]:
        """Return the parts that are worth a word, and images a second."""
        shown = [part for part, s in self.seconds.items() if s >= th.SHOWN_PART * self.length_s]
        parts = [Evidence(f"validation: {VALIDATION_PART_WORDS[p]} (median)", self.seconds[p], "s") for p in shown]
        return [*parts, Evidence("images validated per second (median)", self.images_per_s, "")]


def typical_validation(validations: Sequence[Validation]) -> TypicalValidation | None:
    """Return the medians of some validations, None where none reported its parts."""
    known = [each for each in validations if each.seconds and each.duration_s > 0]
    parts = [part for part in VALIDATION_PARTS if known and all(part in each.seconds for each in known)]
    if not parts:
        return None
    rates = [each.images_per_s for each in known if each.images_per_s is not None]
    return TypicalValidation(
        length_s=median(each.duration_s for each in known),
        seconds={part: median(each.seconds[part] for each in known) for part in parts},
        images_per_s=median(rates) if rates else None,
        last=known[-1],
    )
