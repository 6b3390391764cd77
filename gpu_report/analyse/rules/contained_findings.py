"""What was found, without what is a part of another finding: one event is one finding."""

from collections.abc import Sequence

from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.timeseries.intervals import intersect, length_s
from gpu_report.catalogue import CAUSES, RULES, SLOW_IMAGES_KEY, UNEXPLAINED
from gpu_report.model import Finding

STORAGE = "input-storage"
LASTING = frozenset({"starved", "slow-epoch", "data-wait-growing"})
MAY_BE_DATA = frozenset({"main-process", "validation", UNEXPLAINED})  # causes that a validation has when data lacks
ARRIVES_SLOWLY = frozenset({"input-latency", "input-stalled"})


def without_contained(found: Sequence[Finding]) -> list[Finding]:
    """Return what was found without falls for what holds back all of a training, or some of its epochs.

    Nor with the kind of disk that images lie on, where what holds it back names that. Nor with drops that are pieces of
    a fall, or validations that are slow for what it waits for; one without a cause is told for its pieces alone.
    """
    lasting = [each for each in found if each.rule in LASTING]
    kept = [each for each in found if each.rule != "slowdown" or not any(_is_part(each, of) for of in lasting)]
    kept = [each for each in kept if not (_is_of_disk(each) and any(_names_disk(of) for of in kept))]
    pieces = {id(f): [d for d in kept if RULES[d.rule].drop and _is_piece(d, f)] for f in kept if f.rule == "slowdown"}
    left_out = {id(drop) for mine in pieces.values() for drop in mine}
    left_out |= {
        id(f)
        for f in kept
        if f.rule == "slowdown" and not pieces[id(f)] and not f.is_explained and f.duration_s < th.SLOWDOWN_LASTS_S
    }
    left_out |= {id(each) for each in kept if any(_is_validation_in(each, fall) for fall in kept)}
    return [each for each in kept if id(each) not in left_out]


def _is_validation_in(validation: Finding, fall: Finding) -> bool:
    """Tell whether a slow validation lies in a time in which training waited for data: its images came as slowly."""
    if validation.rule != "slow-validation" or not RULES[fall.rule].fall or fall.expected:
        return False
    waited = fall.cause is not None and CAUSES[fall.cause.name].is_input
    may_be = validation.cause is None or CAUSES[validation.cause.name].is_input or validation.cause.name in MAY_BE_DATA
    return waited and may_be and fall.gpu == validation.gpu and _lies_in(validation, fall)


def _is_of_disk(finding: Finding) -> bool:
    """Tell whether it is that images lie on a slow disk, and not that a training waited for some kind of them."""
    is_storage = finding.cause is not None and finding.cause.name == STORAGE
    return finding.rule == "environment" and is_storage and finding.number(SLOW_IMAGES_KEY) is None


def _names_disk(finding: Finding) -> bool:
    names_what_lasts = finding.rule in LASTING or finding.rule == "slowdown"
    return names_what_lasts and finding.cause is not None and finding.cause.name == STORAGE


def _is_piece(drop: Finding, fall: Finding) -> bool:
    """Tell whether a drop lies in a fall, and has its cause or none."""
    is_same = fall.cause is not None and drop.cause is not None and drop.cause.name == fall.cause.name
    return drop.gpu == fall.gpu and _lies_in(drop, fall) and (is_same or not drop.is_explained)


def _is_part(slowed: Finding, lasting: Finding) -> bool:
    """Tell whether a fall has the cause of what lasts, and lies mostly in it; what of epochs is found has no GPU.

    A loader whose images arrive slowly has workers that stand still at times, and the other way round.
    """
    if lasting.gpu not in {None, slowed.gpu} or slowed.cause is None or lasting.cause is None:
        return False
    names = {slowed.cause.name, lasting.cause.name}
    return _lies_in(slowed, lasting) and (len(names) == 1 or names <= ARRIVES_SLOWLY)


def _lies_in(part: Finding, whole: Finding) -> bool:
    """Tell whether most of a finding lies in another: the edges of both are known to a reading or two."""
    return length_s(intersect([part.span], [whole.span])) > part.duration_s / 2
