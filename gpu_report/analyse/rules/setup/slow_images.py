"""Configuration problem: images that come so slowly that the first batch and each validation wait for them.

Training steps may be slow enough to hide it: then no cause of the steady state says so.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpu_report.analyse.causes.confidence import STRONG
from gpu_report.analyse.causes.image_storage import copy_to, faster_place
from gpu_report.analyse.causes.slower_storage import until_cached
from gpu_report.analyse.causes.thresholds import LATENCY_WAIT_SHARE
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.setup.check import SetupIssue, host_mean
from gpu_report.analyse.signals.code.loader_work import LoaderWork, loader_work, waited_for_workers_s, worker_code
from gpu_report.analyse.signals.host.filesystems import mount_of
from gpu_report.analyse.signals.thresholds import MOSTLY_SHARE
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.analyse.timeseries.columns import column_mean
from gpu_report.analyse.timeseries.intervals import Span, minus, union
from gpu_report.catalogue import SLOW_IMAGES_KEY
from gpu_report.model import Advice, Cause, Evidence, Mount
from gpu_report.wording import length, place_words

LOCAL, FASTER = "Copy the data set to a local disk", "Move the data set to a faster disk"


@dataclass(frozen=True)
class _LoaderWaits:
    """For how long (s) a trainer waited for its workers, what they did, and the busiest one's CPU (% of a core)."""

    waited_s: float
    work: LoaderWork
    cpu_pct: float


def slow_npy(context: Context, training: Training) -> SetupIssue | None:
    """Find images that come as .npy from a slow disk: `cache=disk` holds them uncompressed, many times larger.

    Once written they are read with any `cache` (ultralytics 8.4, `load_image`).
    """
    workers = [each for each in context.signals.idle_stacks if each.process.is_worker]
    if not any(kind.reads_npy for each in workers for kind in each.work[0]):  # of few stacks: cheaper than their times
        return None
    waits = _slow_waits(context, training, [training.span])
    if waits is None or waits.work.npy < th.NPY_SHARE:
        return None
    times = evidence(("size of the .npy images, against the images", _times_larger(training), "times"))
    advice = (*_without_npy(training), *_places(context, training))
    return _issue(context, training, waits, (".npy images", waits.work.npy), advice, times)


def slow_images(context: Context, training: Training) -> SetupIssue | None:
    """Find images that come slowly to the first batch and to validations, whose steps mostly do not wait.

    Those that wait in steps have a cause there.
    """
    spans = minus([training.span], training.train_spans)
    waits = _slow_waits(context, training, spans)
    if waits is None or waits.work.npy >= th.NPY_SHARE or waits.work.reading < th.READING_SHARE:
        return None
    if _steps_wait(context, training):
        return None
    mount = _mount(context, training)
    own = worker_code(context.signals.idle_stacks, spans)
    if own is not None and own.share >= MOSTLY_SHARE:  # wherever it reads from: the folder may be but a name
        short = f"Have {place_words(own.line)} read from a local copy of the images"
    else:
        short = FASTER if mount is not None and mount.device is not None else LOCAL
    hidden = "most steps hide the wait, the first batch and validations do not"
    advice = (Advice(f"{short}: {hidden}", short=short), *_places(context, training))
    # the images of the first validation come from the storage in any case
    validated = training.within(union([phase.span for phase in context.phases if phase.name == "validation"]))
    advice = until_cached(context.run.host, validated[:1], validated[1:]) or advice
    return _issue(context, training, waits, ("images", waits.work.reading), advice)


def _slow_waits(context: Context, training: Training, spans: Sequence[Span]) -> _LoaderWaits | None:
    """Return what was waited for in some spans where workers used little CPU, and had the cores for more.

    What reads from memory, or decodes, computes.
    """
    processes, gpus = context.signals.idle_stacks, max(len(training.gpus), 1)
    crowded = (host_mean(context, training, "cpu_pressure_pct") or 0.0) >= th.CORES_WAITED_PCT
    work, cpu_pct = loader_work(processes, spans), _cpu_in_waits(context, spans)
    if work is None or cpu_pct is None or cpu_pct >= th.SLOW_IMAGES_CPU_PCT or crowded:
        return None
    return _LoaderWaits(waited_for_workers_s(processes, spans) / gpus, work, cpu_pct)


def _cpu_in_waits(context: Context, spans: Sequence[Span]) -> float | None:
    """Return the CPU of the busiest worker (% of a core) while a main process waited for its loader.

    Of a worker that has just begun it is known from the second row of the host on: shorter waits do not count.
    """
    tick_s, waits = context.run.recording.interval_s or 1.0, []
    for each in context.signals.idle_stacks:
        if not each.process.is_worker:
            rows, _ = each.within(spans)
            waits += each.together(rows[each.waits[rows] & (each.idle_s[rows] > 0)]).tolist()
    long = union([(start + tick_s, end) for start, end in waits if end - start >= 2 * tick_s])
    return column_mean(context.run.host, "busiest_worker_cpu_pct", long)


def _steps_wait(context: Context, training: Training) -> bool:
    """Tell whether most steps wait for data, too: then what is said of the steady state says why."""
    steady = context.signals.steady_of(training)
    share = context.throughput.data_wait_share(steady) if context.throughput and steady else None
    return share is None or share >= LATENCY_WAIT_SHARE


def _issue(  # noqa: PLR0913, PLR0917 - what is said of two kinds of images
    context: Context,
    training: Training,
    waits: _LoaderWaits,
    read: tuple[str, float],
    advice: tuple[Advice, ...],
    more: tuple[Evidence, ...] = (),
) -> SetupIssue | None:
    """Return the wait for what workers `read`, for which share (0 to 1) of it; None where that was not long."""
    what, share = read
    waited_s = share * waits.waited_s
    if waited_s < max(th.SLOW_IMAGES_S, th.READS_WAITED_SHARE * context.in_epochs_s):
        return None
    numbers = evidence(
        (f"share of the wait for workers in which they read {what}", 100 * share, "%"),
        ("CPU of the busiest worker meanwhile", waits.cpu_pct, "% of a core"),
    )
    return SetupIssue(
        "warning",
        f"Training waited {length(waited_s)} for {what} on slow storage",
        (training.text("data_folder"),),
        (Evidence(f"wait for workers that read {what}", waited_s, "s", key=SLOW_IMAGES_KEY), *numbers, *more),
        advice,
        Cause("input-storage", STRONG, f"workers read {what} from slow storage"),
    )


def _times_larger(training: Training) -> float | None:
    npy_mib, data_mib = training.quantity("npy_mib"), training.quantity("data_mib")
    return npy_mib / data_mib if npy_mib and data_mib else None


def _without_npy(training: Training) -> Iterator[Advice]:
    is_set = str(training.settings.get("cache", training.args.get("cache"))) == "disk"
    also = " (`cache=False`)" if is_set else ""
    short = f"Delete the .npy images{also}, or use a local disk"
    why = "Uncompressed, they are several times larger than JPEGs. YOLO reads those that exist with any `cache`"
    text = f"{short}. {why}"
    is_argument = is_set and "cache" in training.args
    yield Advice(text, "cache", "disk", "False", short=short) if is_argument else Advice(text, short=short)


def _places(context: Context, training: Training) -> Iterator[Advice]:
    """Yield which filesystem here would answer faster, where one is known."""
    mount, size = _mount(context, training), training.quantity("data_mib")
    place = None if mount is None else faster_place(mount, context.run.recording.mounts, size)
    if place is not None:
        yield copy_to(place, size)


def _mount(context: Context, training: Training) -> Mount | None:
    folder = training.text("data_folder")
    return None if folder is None else mount_of(folder, context.run.recording.mounts)
