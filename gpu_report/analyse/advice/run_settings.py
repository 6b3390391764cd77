"""How a training was set up and what its machine had: what advice is computed from."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from gpu_report.analyse.advice import thresholds as th
from gpu_report.analyse.advice.loader_rate import LoaderRate, rate_that_workers_share
from gpu_report.analyse.context import Context
from gpu_report.analyse.timeline.device_argument import visible_gpus
from gpu_report.analyse.timeline.scaled_down import ScaledDown, scaled_down
from gpu_report.analyse.timeline.trainings import BYTES_PER_PIXEL, Training, whole
from gpu_report.analyse.timeseries.columns import column_values
from gpu_report.analyse.timeseries.gpu_series import GpuSeries
from gpu_report.model import Recording


@dataclass(frozen=True)
class RunSettings:
    """One training: its arguments as asked for (`args`), and what was in effect; None where it is not known.

    `image_px` is the median of the longer side of the images on disk, `image_mib` the mean of what one takes there,
    `scaled_down` is of those that are larger than imgsz. `val_images` are validated after each epoch, None if never.
    `workers` and `batch` are those in effect, `workers` of each rank, `batch` of all; `ranks` are those of this node.
    `cores_free` are cores that neither other processes nor a core or two for the rest of the training take, for each
    rank; `workers_most` are the workers to which ultralytics cuts any larger number. `memory_free_mib` is the least
    host memory that was available, and that its cgroup's limit left. `gpu_peak_mib` and `gpu_total_mib` are of the
    fullest GPU that it used, the latter as far as a process may use it.
    `ready_batches` are those that each worker has loaded when an epoch begins, if it had the time. `batch_mib` is what
    one of each rank of this node takes, `shm_mib` what /dev/shm holds, where workers leave them. `loader_rate` is
    at what rate images come, whatever number of workers ask.
    """

    args: Mapping[str, object]
    workers: int | None
    batch: int | None
    images: int | None
    val_images: int | None
    imgsz: int | None
    image_px: int | None
    scaled_down: ScaledDown | None
    image_mib: float | None
    cached: bool
    ranks: int
    cores: int | None
    cores_free: int | None
    workers_most: int | None
    memory_free_mib: float | None
    gpu_peak_mib: float | None
    gpu_total_mib: float | None
    ready_batches: int
    batch_mib: float | None
    shm_mib: float | None
    loader_rate: LoaderRate | None = None

    def has(self, argument: str) -> bool:
        """Tell whether the run's own args.yaml has an argument: one that it lacks must not be advised."""
        return argument in self.args

    @property
    def cache_mib(self) -> float | None:
        """Return what its images take in host memory, of each rank here: at most imgsz x imgsz; None if not known."""
        if not self.images or not self.imgsz:
            return None
        return self.ranks * self.images * self.imgsz**2 * BYTES_PER_PIXEL / 2**20

    @property
    def cache_that_fits_mib(self) -> float | None:
        """Return the same where the host memory that was free holds them; None where it does not, or nobody knows."""
        needed_mib, free_mib = self.cache_mib, self.memory_free_mib
        fits = needed_mib is not None and free_mib is not None and needed_mib * th.CACHE_NEEDS <= free_mib
        return needed_mib if fits else None

    def batches_mib(self, workers: int) -> float | None:
        """Return what the batches take that so many workers of each rank may leave in /dev/shm, None if not known."""
        return None if self.batch_mib is None else workers * self.ready_batches * self.batch_mib


def run_settings_of(context: Context, training: Training) -> RunSettings:
    """Return the set-up of a training."""
    said: Mapping[str, object] = {**training.args, **{k: v for k, v in training.settings.items() if v is not None}}
    peaks = {series.gpu: _peak_mib(series, training) for series in context.series if series.gpu in training.gpus}
    fullest = max(peaks, key=lambda gpu: peaks[gpu], default=None)
    return RunSettings(
        args=training.args,
        workers=whole(said.get("workers")),
        batch=whole(said.get("batch")),
        images=whole(said.get("images")),
        val_images=None if training.args.get("val") is False else whole(said.get("val_images")),
        imgsz=whole(said.get("imgsz")),
        image_px=whole(said.get("image_px")),
        scaled_down=scaled_down(said),
        image_mib=_image_mib(training),
        cached=str(said.get("cache") or False) not in {"None", "False"},
        ranks=training.ranks_here,
        cores=_usable(context.run.recording),
        cores_free=_cores_free(context, training),
        workers_most=_workers_most(context, training),
        memory_free_mib=_memory_free_mib(context, training),
        gpu_peak_mib=None if fullest is None else peaks[fullest],
        gpu_total_mib=None if fullest is None else _allowed_mib(context, training, fullest),
        ready_batches=whole(said.get("prefetch")) or th.READY_BATCHES,
        batch_mib=training.batch_mib,
        shm_mib=context.run.recording.shm_total_mib,
        loader_rate=rate_that_workers_share(context, training),
    )


def _image_mib(training: Training) -> float | None:
    data_mib, images = training.quantity("data_mib"), training.quantity("images")
    return data_mib / images if data_mib and images else None


def _cores_free(context: Context, training: Training) -> int | None:
    """Return how many cores each rank's loader may have: of those that it may use, what the machine has left.

    A container may be allowed four cores of the 16 that it sees; what others take of the machine may be of the rest.
    """
    recording = context.run.recording
    usable, shown = recording.usable_cores, recording.cores_online or recording.cores
    if usable is None or shown is None:
        return None
    left = min(int(usable), shown - _taken_by_others(context, training, shown))
    return max(left // training.ranks_here - th.SPARE_CORES, 1)


def _workers_most(context: Context, training: Training) -> int | None:
    """Return what ultralytics allows a rank's loader: the machine's cores by the GPUs that torch sees.

    A training that has fewer workers than it asked for has just that many.
    """
    asked, has = whole(training.args.get("workers")), whole(training.settings.get("workers"))
    if asked is not None and has is not None and has < asked:
        return has
    shown = context.run.recording.cores_online or context.run.recording.cores
    seen = visible_gpus(context.run, training.args.get("device"), training.device)
    return max(shown // max(seen, 1), 1) if shown else None


def _memory_free_mib(context: Context, training: Training) -> float | None:
    """Return the least memory that the machine had, and the cgroup's limit left: its page cache counts as taken."""
    available, limit = _extreme(context, training, "memory_available_mib", min), context.run.recording.memory_limit_mib
    if available is None or limit is None:
        return available
    return min(available, max(limit - (_extreme(context, training, "cgroup_memory_used_mib", max) or 0.0), 0.0))


def _usable(recording: Recording) -> int | None:
    """Return the cores that a person would say the training has."""
    cores = recording.usable_cores
    return None if cores is None else max(int(cores), 1)


def _taken_by_others(context: Context, training: Training, cores: int) -> int:
    """Return how many cores other processes took in the steady state, 0 where the host was not recorded.

    Of several ranks the busiest one's main process is read: ranks step together, and none of them is another process.
    """
    signals = context.signals.of_training(min(training.gpus), training) if training.gpus else None
    if signals is None:
        return 0
    cpu, main, workers = (signals.within(name) for name in ("cpu_pct", "main_cpu_pct", "workers_cpu_pct"))
    if cpu is None or main is None:
        return 0
    return max(round((cpu * cores - main * training.ranks_here - (workers or 0.0)) / 100), 0)


def _peak_mib(series: GpuSeries, training: Training) -> float:
    memory = series.samples["memory_used_mib"].to_numpy(dtype=float)[series.between_rows(*training.span)]
    return float(np.nanmax(memory)) if np.isfinite(memory).any() else 0.0


def _allowed_mib(context: Context, training: Training, gpu: int) -> float | None:
    total_mib = context.run.gpu(gpu).memory_total_mib
    return None if total_mib is None else training.memory_fraction * total_mib


def _extreme(context: Context, training: Training, name: str, of: Callable[[list[float]], float]) -> float | None:
    """Return the least or the most of a column of the host in a training, None where nothing of it is known."""
    values = column_values(context.run.host, name, [training.span]).tolist()
    return of(values) if values else None
