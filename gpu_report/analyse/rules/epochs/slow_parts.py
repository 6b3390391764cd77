"""Rule: parts of long epochs in which training went far slower than in the others, by the batches callbacks counted."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import median

import numpy as np

from gpu_report.analyse.context import Context
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.epochs.comparable_epochs import KnownSlowdowns, TrainedEpoch
from gpu_report.analyse.rules.epochs.slow_epochs import in_a_row, merged, slow_training
from gpu_report.analyse.timeline.throughput import Throughput
from gpu_report.model import Finding
from gpu_report.wording import brief_length


def slow_parts(
    context: Context, epochs: Sequence[TrainedEpoch], held_up: KnownSlowdowns, told: Sequence[Finding]
) -> list[Finding]:
    """Report where training went slower within epochs, though no other finding explains it.

    Epochs are cut into parts of as many batches each: a few of hours have no siblings, and what slowed one of them for
    half an hour makes it hardly longer. A process begins with images that no memory holds yet: slow parts from its
    beginning on are no event. `told` are findings about whole epochs.
    """
    if context.throughput is None:
        return []
    found = [
        _of_part(context, part, siblings)
        for siblings in _parts(context.throughput, epochs)
        for part in _slow(siblings, held_up)
        if part[0] is not siblings[0] and not any(_is_reported(part, finding) for finding in told)
    ]
    return [_in_words(finding) for finding in merged(found)]


def _parts(throughput: Throughput, epochs: Sequence[TrainedEpoch]) -> Iterator[list[TrainedEpoch]]:
    """Yield the parts of long epochs that may be compared with each other, in order."""
    groups: dict[tuple[int, int, bool], list[TrainedEpoch]] = {}
    for epoch in epochs:
        if epoch.from_callbacks and epoch.batches:
            groups.setdefault(epoch.group, []).append(epoch)
    for mine in groups.values():
        count = int(median(epoch.train_s for epoch in mine) // th.PART_S)
        parts = [part for epoch in mine for part in _cut(throughput, epoch, count)] if count >= th.PARTS_LEAST else []
        if parts:  # none of epochs of which only the ends are known
            yield parts


def _cut(throughput: Throughput, epoch: TrainedEpoch, count: int) -> Iterator[TrainedEpoch]:
    """Yield an epoch in parts of as many batches each, which come after the first: that one loads kernels."""
    inside = (throughput.t_s >= epoch.span[0]) & (throughput.t_s <= epoch.span[1])
    t_s, batches = throughput.t_s[inside], throughput.batches[inside]
    if len(t_s) < count:
        return
    edges_s = np.interp(np.linspace(batches[0], batches[-1], count + 1), batches, t_s)
    waited_s = np.interp(edges_s, throughput.t_s, throughput.waited_s)
    for place in range(count):
        start_s, end_s = edges_s[place : place + 2].tolist()
        wait_s = float(waited_s[place + 1] - waited_s[place])
        yield replace(epoch, span=(start_s, end_s), train_s=end_s - start_s, data_wait_s=wait_s)


def _slow(parts: Sequence[TrainedEpoch], held_up: KnownSlowdowns) -> Iterator[Sequence[TrainedEpoch]]:
    """Yield stretches of parts that took SLOWER_PART_SHARE longer than the fastest quarter at least, and cost minutes.

    WAITED_PART_SHARE is enough where they waited for data as much longer: no clock that wanders makes that.
    """
    took_s, waited_s = (np.array(each, dtype=float) for each in zip(*map(_lengths, parts), strict=True))
    typical_s = _undisturbed_s(parts)
    longer, waited = took_s - typical_s, waited_s - float(np.quantile(waited_s, th.UNDISTURBED_QUANTILE))
    by_waiting = np.minimum(longer, waited) >= th.WAITED_PART_SHARE * typical_s
    for stretch in in_a_row(parts, (longer >= th.SLOWER_PART_SHARE * typical_s) | by_waiting):
        longer_s = sum(part.train_s - typical_s for part in stretch)
        known_s = sum(held_up.seconds_in(part.span) for part in stretch)
        enough = len(stretch) >= th.LASTING_EPOCHS and longer_s >= th.PARTS_COST_S
        if enough and known_s < th.EXPLAINED_SHARE * longer_s:
            yield stretch


def _lengths(part: TrainedEpoch) -> tuple[float, float]:
    return part.train_s, part.data_wait_s or 0.0


def _undisturbed_s(parts: Sequence[TrainedEpoch]) -> float:
    """Return what a part takes where nothing holds it up: most may be held up, where a training is short."""
    return float(np.quantile([part.train_s for part in parts], th.UNDISTURBED_QUANTILE))


def _is_reported(part: Sequence[TrainedEpoch], finding: Finding) -> bool:
    """Tell whether a finding about epochs speaks of most of a stretch."""
    start_s, end_s = part[0].span[0], part[-1].span[1]
    return min(end_s, finding.end_t_s) - max(start_s, finding.start_t_s) > (end_s - start_s) / 2


def _of_part(context: Context, part: Sequence[TrainedEpoch], siblings: Sequence[TrainedEpoch]) -> Finding:
    typical_s = _undisturbed_s(siblings)
    finding = slow_training(context, part, siblings, typical_s)
    took_s, first, last = sum(each.train_s for each in part), part[0].epoch, part[-1].epoch
    where = f"epoch {first}" if first == last else f"epochs {first} to {last}"
    text = f"Training went slower for {brief_length(took_s)} in {where}: the same batches typically take"
    return replace(finding, summary=f"{text} {brief_length(len(part) * typical_s)}")


def _in_words(finding: Finding) -> Finding:
    """Return a finding of several stretches with words of its own: what whole epochs typically take is none of it."""
    if not finding.occurrences:
        return finding
    times = f"{len(finding.occurrences):,} times"
    return replace(finding, summary=f"Training went slower for minutes {times}, first in epoch {finding.epoch}")
