"""Where the time of validations went: a table with a column for those of the epochs, and one for each other."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from statistics import median

from gpu_report.model import VALIDATION_PARTS, Analysis, InsideRun, Validation, ValidationPart
from gpu_report.render.formatting import number, share
from gpu_report.render.page.views.tables import TextTable
from gpu_report.wording import MISSING, VALIDATION_PART_WORDS, amount, upper_first

MOST_COLUMNS = 6  # more have no room beside each other
LEAST_SHARE = 0.0005  # of a validation: a part that takes less of each has no row


@dataclass(frozen=True)
class _ValidationGroup:
    """Validations of one kind in one process of YOLO."""

    name: str
    all: Sequence[Validation]

    @property
    def length_s(self) -> float:
        return median(each.duration_s for each in self.all)

    def part_s(self, part: ValidationPart) -> float | None:
        """Return the median of a part (s), None where no validation reported it."""
        known = [each.seconds[part] for each in self.all if part in each.seconds]
        return median(known) if known else None

    def share(self, part: ValidationPart) -> float:
        return (self.part_s(part) or 0.0) / self.length_s

    def cell(self, part: ValidationPart) -> str:
        seconds = self.part_s(part)
        return MISSING if seconds is None else f"{amount(seconds, 's')}, {share(self.share(part))}"

    @property
    def images_per_s(self) -> str:
        known = [each.images_per_s for each in self.all if each.images_per_s is not None]
        return number(median(known)) if known else MISSING


def validation_table(analysis: Analysis) -> TextTable:
    """Return the table, without rows where no validation reported its parts."""
    columns = list(islice(_columns(analysis.run.inside), MOST_COLUMNS))
    if not columns:
        return TextTable((), (), ())
    parts = [part for part in VALIDATION_PARTS if any(column.share(part) >= LEAST_SHARE for column in columns)]
    rows = [(upper_first(VALIDATION_PART_WORDS[part]), *(column.cell(part) for column in columns)) for part in parts]
    lengths = ("All of it", *(amount(column.length_s, "s") for column in columns))
    rates = ("Images/s", *(column.images_per_s for column in columns))
    heads = ("Part", *(column.name for column in columns))
    return TextTable(heads, (False, *(True for _ in columns)), (*rows, lengths, rates))


def _columns(processes: Sequence[InsideRun]) -> Iterator[_ValidationGroup]:
    mine = [each for each in processes if any(phase.validated for phase in each.phases)]
    for count, process in enumerate(mine, start=1):
        which = f"{count}: " if len(mine) > 1 else ""
        known = [(phase, phase.validated) for phase in process.phases if phase.validated]
        of_epochs = [validated for phase, validated in known if phase.name == "validation" and validated.duration_s > 0]
        others = [validated for phase, validated in known if phase.name != "validation" and validated.duration_s > 0]
        if of_epochs:
            yield _ValidationGroup(upper_first(f"{which}{_name(process, of_epochs)}"), of_epochs)
        if others:
            yield _ValidationGroup(upper_first(f"{which}final evaluation"), others)


def _name(process: InsideRun, validations: Sequence[Validation]) -> str:
    if process.task != "train":
        return "validation"
    return f"in an epoch (median of {len(validations)})" if len(validations) > 1 else "in an epoch"
