"""The event file of a run: quantities by time, epochs by number, and what the report says as text."""

import struct
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from gpu_report import schema
from gpu_report.model import Analysis
from gpu_report.render.quantity_labels import THROTTLE_COUNTERS
from gpu_report.render.tensorboard.epochs import epoch_points
from gpu_report.render.tensorboard.layout import layout_value
from gpu_report.render.tensorboard.parts import STATISTICS, TagLine, lines_of, part_count, part_seconds
from gpu_report.render.tensorboard.texts import findings_text, report_text, summary_text
from gpu_report.tfevents.events import scalar_prefix, summary_event, text_value, version_event
from gpu_report.tfevents.framing import pack_record

# A day of 8 GPUs is to take 10 MB at most: with more lines than 1,000 parts of it leave room for, parts are longer.
MOST_BYTES: Final = 8_000_000
# Of these a mean says nothing: counters that only grow, and a bitmask.
WITHOUT_MEAN: Final = frozenset({"energy_j", "clock_event_reasons", *THROTTLE_COUNTERS})
GPU_COLUMNS: Final = tuple(each.name for each in schema.GPU_QUANTITIES if each.name not in WITHOUT_MEAN)
HOST_COLUMNS: Final = tuple(each.name for each in schema.HOST_QUANTITIES)
HOST: Final = "host"
TEXTS: Final = "report"


def render_event_file(analysis: Analysis, report: str | None = None) -> bytes:
    """Return a run as TensorBoard's event file; `report` is where its report lies, an address or a file.

    Points are at the run's wall times. The step of a quantity is a second of the run, that of an epoch's figure its
    number. A quantity that was not read in a part of the run has no point there.
    """
    return b"".join(map(pack_record, _events(analysis, report)))


def _events(analysis: Analysis, report: str | None) -> Iterator[bytes]:
    start_s = analysis.run.start_wall_s
    part_s = _part_seconds(analysis)
    lines = _lines(analysis, part_s)
    yield version_event(start_s)
    yield summary_event(start_s, 0, layout_value(_charts(lines)))
    for name, text in (
        ("summary", summary_text(analysis)),
        ("findings", findings_text(analysis)),
        ("link", report_text(analysis, report)),
    ):
        yield summary_event(start_s, 0, text_value(f"{TEXTS}/{name}", text))
    yield from _events_of_parts(lines, start_s, part_s)
    prefixes: dict[str, bytes] = {}
    for t_s, epoch, values in epoch_points(analysis.epochs):
        packed = (
            (prefixes.get(tag) or prefixes.setdefault(tag, scalar_prefix(tag))) + struct.pack("<f", value)
            for tag, value in values.items()
        )
        yield summary_event(start_s + t_s, epoch, b"".join(packed))


def _part_seconds(analysis: Analysis) -> int:
    """Return how long a part is, so that neither its points nor the bytes become too many."""
    tags = [f"gpu{gpu}/{name}/mean" for gpu in _gpus(analysis) for name in GPU_COLUMNS]
    tags += [f"{HOST}/{name}/mean" for name in HOST_COLUMNS]
    part_bytes = len(STATISTICS) * sum(len(scalar_prefix(tag)) + 4 for tag in tags)
    return part_seconds(analysis.run.duration_s, MOST_BYTES // part_bytes)


def _gpus(analysis: Analysis) -> list[int]:
    return analysis.run.sampled_gpus


def _lines(analysis: Analysis, part_s: int) -> list[TagLine]:
    """Return the lines of all GPUs and of the host.

    Of utilisation the samples' readings are taken: among the driver's own, every 200 ms, some are 0 in each part.
    """
    run = analysis.run
    count = part_count(run.duration_s, part_s)
    lines: list[TagLine] = []
    for gpu in _gpus(analysis):
        lines += lines_of(f"gpu{gpu}", run.samples_of(gpu), GPU_COLUMNS, part_s, count)
    return lines + lines_of(HOST, run.host, HOST_COLUMNS, part_s, count)


def _events_of_parts(lines: Sequence[TagLine], start_s: float, part_s: int) -> Iterator[bytes]:
    """Yield an event a part with all values that there are in it: a fifth of the bytes of an event a value."""
    if not lines:
        return
    prefixes = [scalar_prefix(line.tag) for line in lines]
    values = np.array([line.values for line in lines], dtype="<f4")
    for part, column in enumerate(values.T):
        known = np.flatnonzero(np.isfinite(column)).tolist()
        packed = column.tobytes()
        summary = b"".join([prefixes[at] + packed[4 * at : 4 * at + 4] for at in known])
        if summary:
            yield summary_event(start_s + part * part_s, part * part_s, summary)


def _charts(lines: Sequence[TagLine]) -> dict[str, list[str]]:
    """Return which columns are charted of each GPU, and last of the host."""
    found: dict[str, list[str]] = {}
    for line in lines:
        group, column, statistic = line.tag.split("/")
        if statistic == STATISTICS[0]:
            found.setdefault(group, []).append(column)
    return found
