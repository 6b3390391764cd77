"""Event files as TensorBoard's own writers make them, and as its own reader sees them."""

import time
from collections.abc import Iterable
from pathlib import Path
from unittest import mock

from gpu_report.tfevents.events import event_head, scalar_prefix, summary_event
from gpu_report.tfevents.framing import pack_record

START_S = 1_795_291_692.0
TRAIN = ("train/box_loss", "train/cls_loss", "lr/pg0")
EPOCH = ("metrics/mAP50(B)", "metrics/mAP50-95(B)", "val/box_loss")

Written = tuple[str, float, int, float]  # tag, value, step, wall time


def write_by_torch(folder: Path, scalars: Iterable[Written], begun_s: float = START_S, **options) -> Path:
    """Write scalars by torch's SummaryWriter, as ultralytics does; return the file."""
    from torch.utils.tensorboard import SummaryWriter  # noqa: PLC0415 - takes seconds

    known = set(folder.glob("*")) if folder.exists() else set()
    with mock.patch.object(time, "time", return_value=begun_s):
        writer = SummaryWriter(str(folder))
    for tag, value, step, wall_s in scalars:
        writer.add_scalar(tag, value, step, walltime=wall_s, **options)
    writer.close()
    (path,) = set(folder.glob("*tfevents*")) - known
    return path


def yolo_scalars(epochs: Iterable[int], start_s: float, train_s: float = 30.0, rest_s: float = 6.0) -> list[Written]:
    """Return what YOLO writes: losses as the train part of an epoch ends, metrics as the epoch does."""
    found: list[Written] = []
    at_s = start_s
    for epoch in epochs:
        found += [(tag, 1.0 / epoch, epoch, at_s + train_s) for tag in TRAIN]
        at_s += train_s + rest_s
        found += [(tag, 0.1 * epoch, epoch, at_s) for tag in EPOCH]
    return found


def scalar_event(tag: str, value: bytes, step: int, wall_s: float) -> bytes:
    """Return an event of one scalar, whose value is given as its four bytes."""
    return summary_event(wall_s, step, scalar_prefix(tag) + value)


def image_record(size: int, wall_s: float = START_S) -> bytes:
    """Return a record with an image of so many bytes, in a file that takes that much."""
    from gpu_report.tfevents import wire  # noqa: PLC0415

    image = wire.bytes_field(4, wire.bytes_field(4, b"\x00" * size))
    value = wire.bytes_field(1, wire.bytes_field(1, b"train_batch") + image)
    return pack_record(event_head(wall_s, 1) + wire.bytes_field(5, value))


def accumulated(folder: Path, points: int = 1000):
    """Return TensorBoard's own view of a folder, with as many points of a tag as it keeps."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # noqa: PLC0415

    found = EventAccumulator(str(folder), size_guidance={"scalars": points, "tensors": 10})
    found.Reload()
    return found
