"""Rule: a validation whose list of images has the same ones several times."""

from collections.abc import Iterator
from typing import NamedTuple

from gpu_report.analyse.causes.confidence import CERTAIN
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.timeline.trainings import whole
from gpu_report.analyse.validations import is_validation, validations
from gpu_report.model import Advice, Cause, Finding, Validation
from gpu_report.wording import amount


class Repeated(NamedTuple):
    """A validation of `images` of which so many are `different`."""

    validated: Validation
    images: int
    different: int

    @property
    def saved_s(self) -> float:
        """Return the seconds without the repeats: all but the wait for the first batch goes with the images."""
        fixed_s = self.validated.first_wait_s + self.validated.seconds.get("gather", 0.0)
        return max(self.validated.duration_s - fixed_s, 0.0) * (1 - self.different / self.images)


def repeated_data(context: Context) -> list[Finding]:
    """Report validations of images that their list names more than once: the same results take longer."""
    found = list(_found(context)) if is_validation(context) else []
    return [_finding(context, found)] if found else []


def _found(context: Context) -> Iterator[Repeated]:
    for run, phase in validations(context):
        images, different = (whole(run.settings.get(name)) for name in ("images", "distinct_images"))
        if images and different and phase.validated and images >= th.REPEATED_DATA * different:
            yield Repeated(phase.validated, images, different)


def _finding(context: Context, found: list[Repeated]) -> Finding:
    first, saved_s = found[0], sum(each.saved_s for each in found)
    whole_s = sum(each.validated.duration_s for each in found)
    now, then = (amount(seconds / len(found), "s") for seconds in (whole_s, whole_s - saved_s))
    text = f"List each image once: {now} a validation become about {then}"
    return context.finding(
        "repeated-data",
        "warning" if saved_s >= th.REPEATED_DATA_S else "info",
        (first.validated.start_t_s, found[-1].validated.end_t_s),
        f"The validation's list names {first.images:,} images, of which {first.different:,} are different",
        epoch=None,
        evidence=evidence(
            ("images in the list", first.images, ""),
            ("different images", first.different, ""),
            ("validating, in all", whole_s, "s"),
        ),
        cause=Cause("repeated-data", CERTAIN, "the data set has the same files several times"),
        advice=(Advice(text, gain_estimate=saved_s / whole_s, short=text),),
    )
