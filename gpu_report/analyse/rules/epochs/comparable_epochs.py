"""The parts of each epoch, as far as they are distinguished: its training, validation and checkpoint."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from gpu_report.analyse.context import Context
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.timeseries.interval_cover import IntervalCover
from gpu_report.analyse.timeseries.intervals import Span
from gpu_report.analyse.timeseries.thresholds import OUTLIER_SIBLINGS
from gpu_report.model import Phase, Validation


@dataclass(frozen=True)
class TrainedEpoch:
    """The training part of one epoch: from when to when, how long of that it trained, and how long it waited for data.

    `validation_s` and `checkpoint_s` are what came after it, 0 where there was none. `from_callbacks` says that all of
    it was reported, not worked out of readings. `validated` has the parts of the validation, None where not known.
    `trained_t_s` is when its last batch was trained, None where nobody reported it: callbacks may run until its end.
    `batches` is how many it trained, `later_wait_s` what it waited for data after the first of them.
    `group` is what its epochs have in common that may be compared with each other: one process, one way to load images.
    `alike` is False for those that take longer by their nature: the first of a process, the one that closes the mosaic
    and makes its loader anew, one that was begun again, and one in which a profiler ran.
    """

    group: tuple[int, int, bool]
    epoch: int
    span: Span
    train_s: float
    data_wait_s: float | None
    alike: bool
    validation_s: float = 0.0
    checkpoint_s: float = 0.0
    from_callbacks: bool = False
    validated: Validation | None = None
    batches: int | None = None
    later_wait_s: float | None = None
    trained_t_s: float | None = None


def length_of(parts: Sequence[Phase], name: str) -> float | None:
    """Return the seconds of one part of an epoch, None where it is not known to have taken place."""
    return sum(phase.end_t_s - phase.start_t_s for phase in parts if phase.name == name) or None


def trained_epochs(context: Context) -> list[TrainedEpoch]:
    """Return the training part of every epoch that came to its end and whose phases are distinguished, in order.

    Where no GPU reports utilisation, and no callbacks their phases, an epoch counts with its validation.
    """
    found = []
    unseen = not any(len(series.t_s) for series in context.series) and not context.rank_groups
    for epoch_end, parts in zip(context.epoch_ends.all, context.epoch_phases, strict=True):
        row = epoch_end.row
        mine = [phase for phase in parts if phase.name == "train"]
        span = (mine[0].start_t_s, mine[-1].end_t_s) if mine else (row.start_t_s, row.row_t_s)
        train_s = row.row_t_s - row.start_t_s if unseen else length_of(mine, "train")
        if train_s is None:
            continue
        reported = context.callbacks.epochs.get((row.run, row.start_t_s)) if epoch_end.from_callbacks else None
        again = reported is not None and reported.attempt > 1
        found.append(
            TrainedEpoch(
                group=(row.run, row.segment, epoch_end.without_mosaic),
                epoch=row.epoch,
                span=span,
                train_s=train_s,
                data_wait_s=reported.data_wait_s if reported else None,
                alike=not (epoch_end.first or epoch_end.closing or epoch_end.profiled or epoch_end.partial or again),
                validation_s=length_of(parts, "validation") or 0.0,
                checkpoint_s=length_of(parts, "checkpoint") or 0.0,
                from_callbacks=epoch_end.from_callbacks,
                batches=reported.batches if reported else None,
                trained_t_s=reported.end_t_s if reported else None,
                later_wait_s=reported.data_wait_s - reported.first_wait_s if reported else None,
                validated=next((phase.validated for phase in parts if phase.validated), None),
            )
        )
    return found


def groups(epochs: Sequence[TrainedEpoch]) -> Iterator[list[TrainedEpoch]]:
    """Yield the epochs that may be compared with each other, in order; too few of them have no typical length."""
    found: dict[tuple[int, int, bool], list[TrainedEpoch]] = {}
    for epoch in epochs:
        if epoch.alike:
            found.setdefault(epoch.group, []).append(epoch)
    yield from (siblings for siblings in _joined(found) if len(siblings) >= OUTLIER_SIBLINGS)


def first_of(epochs: Sequence[TrainedEpoch], siblings: Sequence[TrainedEpoch]) -> TrainedEpoch | None:
    """Return the epoch that their process began with, where it loaded images as they did and is none of them."""
    of = siblings[0].group
    begun = next(epoch for epoch in epochs if epoch.group[:2] == of[:2])
    return None if begun.alike or begun.group != of else begun


def _joined(found: Mapping[tuple[int, int, bool], list[TrainedEpoch]]) -> Iterator[list[TrainedEpoch]]:
    """Yield groups, those after the mosaic closed with those before it, unless they train faster than these.

    Without mosaics a loader has less to do, and never more. What slows all of the last epochs shows only beside those
    before them.
    """
    for (run, segment, closed), siblings in found.items():
        before, after = (found.get((run, segment, side), []) for side in (False, True))
        if not before or not after or _train_faster(after, before):
            yield siblings
        elif not closed:
            yield [*before, *after]


def _train_faster(after: Sequence[TrainedEpoch], before: Sequence[TrainedEpoch]) -> bool:
    """Tell whether epochs train clearly faster than others did where nothing held these up: in their best quarter."""
    best_s = float(np.quantile([epoch.train_s for epoch in before], th.UNDISTURBED_QUANTILE))
    return median(epoch.train_s for epoch in after) < (1 - th.FASTER_SHARE) * best_s


@dataclass(frozen=True)
class KnownSlowdowns:
    """When something else is known to have held up training: `others`, and `drops` in which a GPU was hardly used."""

    drops: IntervalCover
    others: IntervalCover

    def seconds_in(self, span: Span) -> float:
        """Return how much of a span was held up, at most all of it."""
        return min(self.drops.seconds_in(span) + self.others.seconds_in(span), span[1] - span[0])

    def undisturbed(self, epochs: Sequence[TrainedEpoch], *, by_drops: bool = True) -> list[TrainedEpoch]:
        """Return the epochs of which so little was disturbed that they tell of a trend.

        Without `by_drops` drops disturb nothing: a GPU that is used less and less falls below its level in the end, and
        that is the trend.
        """
        spans = [epoch.span for epoch in epochs]
        lost = self.others.seconds_in_each(spans) + (self.drops.seconds_in_each(spans) if by_drops else 0.0)
        kept = zip(epochs, lost.tolist(), strict=True)
        return [each for each, lost_s in kept if lost_s < th.DISTURBED_SHARE * each.train_s]
