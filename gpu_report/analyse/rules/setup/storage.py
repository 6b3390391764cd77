"""Set-up at odds: images on a slow disk while reads are waited for, and where on this machine they would lie faster."""

from collections.abc import Iterator

from gpu_report.analyse.causes.confidence import LIKELY, STRONG
from gpu_report.analyse.causes.thresholds import IO_PRESSURE_PCT
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.setup.check import SHM, SetupIssue, host_mean
from gpu_report.analyse.signals.filesystems import is_network, mount_of
from gpu_report.analyse.signals.loader_work import loader_work, waited_for_npy_s
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.analyse.timeseries.columns import column_mean, column_values
from gpu_report.catalogue import NPY_WAIT_KEY
from gpu_report.model import Advice, Cause, Evidence, Mount
from gpu_report.wording import MIB_PER_GIB

MEMORY = "tmpfs"


def data_disk(context: Context, training: Training) -> SetupIssue | None:
    """Find images on a network filesystem or a rotating disk, where the training waited for reads."""
    folder = training.text("data_folder")
    mount = None if folder is None else mount_of(folder, context.run.recording.mounts)
    slow = "" if mount is None else _slow(mount)
    waited_s, trained_s = (
        _waited_for_reads_s(context, training),
        sum(end - start for start, end in training.train_spans),
    )
    if mount is None or not slow or waited_s < max(th.READS_WAITED_S, th.READS_WAITED_SHARE * trained_s):
        return None
    size = training.quantity("data_mib")
    place = faster_place(mount, context.run.recording.mounts, size)
    return SetupIssue(
        "warning",
        f"The images are in {folder} on {slow}: training waited for reads in {waited_s:.0f} s",
        (folder, slow, round(waited_s)),
        evidence(
            ("size of the images on disk", None if size is None else size / MIB_PER_GIB, "GiB"),
            ("training time with processes waiting for reads", 100 * waited_s / trained_s, "%"),
            ("read by the training, mean", host_mean(context, training, "trainer_read_mib_s"), "MiB/s"),
        ),
        () if place is None else (Advice(_copy_to(place, size)),),
        Cause("input-storage", LIKELY, f"reads came from {slow}"),
    )


def slow_npy(context: Context, training: Training) -> SetupIssue | None:
    """Find images that come as .npy from a slow disk: `cache=disk` holds them uncompressed, many times larger.

    The first batch and each validation wait for them where training is slow enough to hide it. Once written they are
    read with any `cache` (ultralytics 8.4, `load_image`). Workers that use their cores read from memory.
    """
    processes, gpus = context.signals.idle_stacks, max(len(training.gpus), 1)
    work, waited_s = loader_work(processes, [training.span]), waited_for_npy_s(processes, training.span) / gpus
    cpu_pct = column_mean(context.run.host, "busiest_worker_cpu_pct", [training.span])
    if work is None or work.npy < th.NPY_SHARE or cpu_pct is None or cpu_pct >= th.NPY_CPU_PCT:
        return None
    if waited_s < max(th.NPY_WAITED_S, th.READS_WAITED_SHARE * context.in_epochs_s):
        return None
    return SetupIssue(
        "warning",
        f"Training waited {waited_s:.0f} s for .npy images on slow storage",
        (training.text("data_folder"),),
        (
            Evidence("waited for workers that read .npy images", waited_s, "s", key=NPY_WAIT_KEY),
            *evidence(
                ("of the time waited for workers they read .npy images", 100 * work.npy, "%"),
                ("CPU of the busiest worker", cpu_pct, "% of a core"),
                ("size of the .npy images, against the images", _times_larger(training), "times"),
            ),
        ),
        tuple(_without_npy(context, training)),
        Cause("input-storage", STRONG, "workers read .npy images from slow storage"),
    )


def _times_larger(training: Training) -> float | None:
    npy_mib, data_mib = training.quantity("npy_mib"), training.quantity("data_mib")
    return npy_mib / data_mib if npy_mib and data_mib else None


def _without_npy(context: Context, training: Training) -> Iterator[Advice]:
    """Yield to do without .npy images, and which filesystem here would answer faster."""
    is_set = str(training.settings.get("cache", training.args.get("cache"))) == "disk"
    also = " (`cache=False`)" if is_set else ""
    short = f"Delete the .npy images{also}, or use a local disk"
    why = "Uncompressed, they are several times larger than JPEGs. YOLO reads those that exist with any `cache`"
    text = f"{short}. {why}"
    is_argument = is_set and "cache" in training.args
    yield Advice(text, "cache", "disk", "False", short=short) if is_argument else Advice(text, short=short)
    folder, size = training.text("data_folder"), training.quantity("data_mib")
    mount = None if folder is None else mount_of(folder, context.run.recording.mounts)
    place = None if mount is None else faster_place(mount, context.run.recording.mounts, size)
    if place is not None:
        yield Advice(_copy_to(place, size))


def faster_place(slow: Mount, mounts: tuple[Mount, ...], size_mib: float | None) -> Mount | None:
    """Return the filesystem here that answers faster and has room: an SSD, else memory; None where there is none.

    A virtual disk does not tell what it is; it is nearer than a network in any case.
    """
    need = th.PLACE_ROOM * size_mib if size_mib is not None else th.PLACE_LEAST_MIB
    roomy = [m for m in mounts if m != slow and m.free_mib is not None and m.free_mib >= need]
    kinds = (
        [m for m in roomy if m.rotational is False],
        [m for m in roomy if m.type == MEMORY and m.point == SHM and (m.free_mib or 0.0) >= th.PLACE_MEMORY * need],
        [m for m in roomy if m.device is not None and m.rotational is None and _is_network(slow)],
    )
    best = next((kind for kind in kinds if kind), [])
    return max(best, key=lambda mount: mount.free_mib or 0.0, default=None)


def _slow(mount: Mount) -> str:
    """Return what makes a filesystem slow, in words; empty where nothing known does."""
    if _is_network(mount):
        return f"a network filesystem ({mount.type}, {mount.source})"
    return f"a rotating disk ({mount.type} on {mount.device})" if mount.rotational else ""


def _is_network(mount: Mount) -> bool:
    return is_network(mount.type, mount.source)


def _waited_for_reads_s(context: Context, training: Training) -> float:
    """Return for how many seconds of training processes waited for input: in the trainer's cgroup, else anywhere."""
    host = context.run.host
    own = column_values(host, "cgroup_io_pressure_pct", training.train_spans)
    waits = own if len(own) else column_values(host, "io_pressure_pct", training.train_spans)
    tick_s = context.run.recording.interval_s or 1.0
    return float((waits >= IO_PRESSURE_PCT).sum()) * tick_s


def _copy_to(place: Mount, size_mib: float | None) -> str:
    where = "memory" if place.type == MEMORY else f"{place.type} on {place.device}"
    what = "the images" if size_mib is None else f"the images ({size_mib / MIB_PER_GIB:.1f} GiB)"
    free = "" if place.free_mib is None else f", {place.free_mib / MIB_PER_GIB:.0f} GiB free"
    return f"Copy {what} to {place.point} ({where}{free}) and name that folder in the data set's YAML file"
