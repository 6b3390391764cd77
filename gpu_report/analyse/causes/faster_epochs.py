"""Epochs that trained far faster than most of a training that waits: so it could, before something changed."""

from itertools import groupby
from statistics import median
from typing import NamedTuple

from gpu_report.analyse.timeline.phases import mosaic_closes
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.analyse.timeseries.intervals import Span
from gpu_report.catalogue import SINCE_EPOCH_KEY
from gpu_report.model import Evidence

# Times as fast as typical, of epochs that show what a training could do: neither a cold cache nor chance makes so much.
FASTER_TIMES = 1.3
SETTLED_EPOCH = 2  # the first epoch starts workers, and may be slower for it
LEAST_S = 120.0  # of training in them, in all: less may be chance


class FasterEpochs(NamedTuple):
    """Epochs in a row, and how many times faster than typical they trained.

    `before` is when those before them trained, where none was slower again after them, else empty. `after` is
    from when to when those after them trained, None where they were the last. `since` which epoch it has been slower,
    None where slow ones came before these, too, but for a first.
    """

    first: int
    last: int
    times: float
    spans: tuple[Span, ...] = ()
    before: tuple[Span, ...] = ()
    after: Span | None = None
    since: int | None = None

    @property
    def words(self) -> str:
        """Return which they were, and how much faster."""
        return f"{self.which} trained {self.times:.1f}\u00d7 faster"

    @property
    def which(self) -> str:
        """Return which they were."""
        return f"epoch {self.first}" if self.first == self.last else f"epochs {self.first} to {self.last}"

    @property
    def evidence(self) -> Evidence:
        """Return the same as a number."""
        return Evidence(f"faster than typical: epochs {self.first} to {self.last}", self.times, "times")

    @property
    def onset(self) -> tuple[Evidence, ...]:
        """Return since which epoch the training has been slower, where that is known."""
        return () if self.since is None else (Evidence("slower since epoch", self.since, key=SINCE_EPOCH_KEY),)


def faster_epochs(training: Training) -> FasterEpochs | None:
    """Return the most epochs in a row that trained FASTER_TIMES as fast as typical, by callbacks; None without any.

    Not those without mosaic: their images take less work.
    """
    reported = training.rank_group.main.epochs if training.rank_group else ()
    closes = mosaic_closes(training.args)
    spans = {e.epoch: (e.start_t_s, e.end_t_s) for e in reported if e.end_t_s is not None and e.batches}
    spans = {epoch: span for epoch, span in sorted(spans.items()) if closes is None or epoch < closes}
    with_mosaic = {epoch: end_s - start_s for epoch, (start_s, end_s) in spans.items()}
    if not with_mosaic:
        return None
    typical_s = median(with_mosaic.values())
    runs = groupby(with_mosaic, key=lambda epoch: with_mosaic[epoch] * FASTER_TIMES <= typical_s)
    fast = [list(epochs) for is_fast, epochs in runs if is_fast]
    most = max(fast, key=len, default=[])
    if sum(with_mosaic[epoch] for epoch in most) < LEAST_S:
        return None
    times, last = typical_s / median(with_mosaic[epoch] for epoch in most), max(spans)
    faster = tuple(spans[epoch] for epoch in most)
    before = tuple(span for epoch, span in spans.items() if epoch < most[0] and most[-1] == last)
    later = [span for epoch, span in spans.items() if epoch > most[-1]]
    after = (later[0][0], later[-1][1]) if later else None
    is_first = most[0] <= SETTLED_EPOCH and later
    since = min(epoch for epoch in spans if epoch > most[-1]) if is_first else None
    return FasterEpochs(most[0], most[-1], times, faster, before, after, since)
