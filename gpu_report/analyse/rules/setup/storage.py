"""Configuration problem: images on a slow disk while reads are waited for, and a faster place for them."""

from gpu_report.analyse.causes.confidence import LIKELY
from gpu_report.analyse.causes.image_storage import copy_to, faster_place
from gpu_report.analyse.causes.thresholds import DATA_CAME_SHARE, IO_PRESSURE_PCT
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.setup.check import SetupIssue, host_mean
from gpu_report.analyse.signals.host.filesystems import is_network, mount_of
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.analyse.timeseries.columns import column_values
from gpu_report.analyse.timeseries.intervals import length_s
from gpu_report.model import Cause, Mount
from gpu_report.wording import MIB_PER_GIB, length


def data_disk(context: Context, training: Training) -> SetupIssue | None:
    """Find images on a network filesystem or a rotating disk, where the training waited for reads."""
    folder = training.text("data_folder")
    mount = None if folder is None else mount_of(folder, context.run.recording.mounts)
    slow = "" if mount is None else _slow(mount)
    trained_s = length_s(training.train_spans)
    waited_s = _share_waiting_for_reads(context, training) * trained_s
    if mount is None or not slow or _always_came(context, training):
        return None
    if waited_s < max(th.READS_WAITED_S, th.READS_WAITED_SHARE * trained_s):
        return None
    size = training.quantity("data_mib")
    place = faster_place(mount, context.run.recording.mounts, size)
    return SetupIssue(
        "warning",
        f"The images are in {folder} on {slow}: processes waited for reads during {length(waited_s)}",
        (folder, slow, round(waited_s)),
        evidence(
            ("size of the images on disk", None if size is None else size / MIB_PER_GIB, "GiB"),
            ("training time with processes waiting for reads", 100 * waited_s / trained_s, "%"),
            ("read by the training, mean", host_mean(context, training, "trainer_read_mib_s"), "MiB/s"),
        ),
        () if place is None else (copy_to(place, size),),
        Cause("input-storage", LIKELY, f"reads came from {slow}"),
    )


def _always_came(context: Context, training: Training) -> bool:
    """Tell whether training never waited for data, where that was reported: whoever waited for reads cost nothing."""
    spans = training.train_spans
    share = context.throughput.data_wait_share(spans) if context.throughput and spans else None
    return share is not None and share < DATA_CAME_SHARE


def _slow(mount: Mount) -> str:
    """Return what makes a filesystem slow, in words; empty where nothing known does."""
    if _is_network(mount):
        return f"a network filesystem ({mount.type}, {mount.source})"
    return f"a rotating disk ({mount.type} on {mount.device})" if mount.rotational else ""


def _is_network(mount: Mount) -> bool:
    return is_network(mount.type, mount.source)


def _share_waiting_for_reads(context: Context, training: Training) -> float:
    """Return in which share (0 to 1) of training processes waited for input: in the trainer's cgroup, else anywhere."""
    host = context.run.host
    own = column_values(host, "cgroup_io_pressure_pct", training.train_spans)
    waits = own if len(own) else column_values(host, "io_pressure_pct", training.train_spans)
    return float((waits >= IO_PRESSURE_PCT).mean()) if len(waits) else 0.0
