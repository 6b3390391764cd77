"""How a training was set up and what its machine had: what advice is computed from."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from gpu_report.analyse import thresholds as th
from gpu_report.analyse.context import Context
from gpu_report.analyse.torch_devices import visible_gpus
from gpu_report.analyse.track import Track
from gpu_report.model import Recording

BYTES_PER_PIXEL = 3  # an image in ultralytics' cache: 8 bits of each of three colours


@dataclass(frozen=True)
class Setup:
    """One training: its arguments as asked for (`args`), and what was in effect; None where it is not known.

    `workers` and `batch` are those in effect, `workers` of each rank, `batch` of all. `cores_free` are cores that
    neither other processes nor a core or two for the rest of the training take, for each rank; `workers_most` are the
    workers to which ultralytics cuts any larger number. `memory_free_mib` is the least host memory that was available,
    and that its cgroup's limit left. `gpu_peak` and `gpu_total_mib` are of the fullest GPU that it used.
    """

    args: Mapping[str, object]
    workers: int | None
    batch: int | None
    images: int | None
    imgsz: int | None
    cached: bool
    ranks: int
    cores: int | None
    cores_free: int | None
    workers_most: int | None
    memory_free_mib: float | None
    gpu_peak_mib: float | None
    gpu_total_mib: float | None

    def has(self, argument: str) -> bool:
        """Tell whether the run's own args.yaml has an argument: one that it lacks must not be advised."""
        return argument in self.args

    @property
    def images_mib(self) -> float | None:
        """Return what its images take when cached, in MiB: each at most imgsz x imgsz; None where it is not known."""
        if not self.images or not self.imgsz:
            return None
        return self.images * self.imgsz**2 * BYTES_PER_PIXEL / 2**20


def setup_of(context: Context, number: int) -> Setup:
    """Return the set-up of the YOLO run of a number."""
    args = next((yolo.args for yolo in context.run.yolo_runs if yolo.number == number), {})
    told = [p.settings for p in context.run.inside if p.rank == 0 and p.task == "train" and p.run in {number, None}]
    said: Mapping[str, object] = {**args, **{k: v for k, v in (told[-1] if told else {}).items() if v is not None}}
    ranks = _whole(said.get("world_size")) or max(len(context.activity.used_gpus), 1)
    tracks = [track for track in context.tracks if track.gpu in context.activity.used_gpus]
    fullest = max(tracks, key=_peak_mib, default=None)
    sizes = {gpu.index: gpu.memory_total_mib for gpu in context.run.gpus}
    return Setup(
        args=args,
        workers=_whole(said.get("workers")),
        batch=_whole(said.get("batch")),
        images=_whole(said.get("images")),
        imgsz=_whole(said.get("imgsz")),
        cached=str(said.get("cache") or False) not in {"None", "False"},
        ranks=ranks,
        cores=_usable(context.run.recording),
        cores_free=_cores_free(context, ranks),
        workers_most=_workers_most(context),
        memory_free_mib=_memory_free_mib(context),
        gpu_peak_mib=_peak_mib(fullest) if fullest else None,
        gpu_total_mib=sizes.get(fullest.gpu) if fullest else None,
    )


def _cores_free(context: Context, ranks: int) -> int | None:
    """Return how many cores each rank's loader may have: of those that it may use, what the machine has left.

    A container may be allowed four cores of the 16 that it sees; what others take of the machine may be of the rest.
    """
    recording = context.run.recording
    usable, shown = recording.usable_cores, recording.cores_online or recording.cores
    if usable is None or shown is None:
        return None
    left = min(int(usable), shown - _taken_by_others(context, shown))
    return max(left // ranks - th.SPARE_CORES, 1)


def _workers_most(context: Context) -> int | None:
    """Return what ultralytics allows a rank's loader: the machine's cores by the GPUs that torch sees."""
    shown = context.run.recording.cores_online or context.run.recording.cores
    return None if not shown else max(shown // visible_gpus(context.run), 1)


def _memory_free_mib(context: Context) -> float | None:
    """Return the least memory that the machine had, and the cgroup's limit left: its page cache counts as taken."""
    available, limit = _extreme(context, "memory_available_mib", min), context.run.recording.memory_limit_mib
    if available is None or limit is None:
        return available
    return min(available, max(limit - (_extreme(context, "cgroup_memory_used_mib", max) or 0.0), 0.0))


def _usable(recording: Recording) -> int | None:
    """Return the cores that a person would say the training has."""
    cores = recording.usable_cores
    return None if cores is None else max(int(cores), 1)


def _taken_by_others(context: Context, cores: int) -> int:
    """Return how many cores other processes took in ordinary training, 0 where the host was not recorded."""
    if not context.scenes.calm or not context.activity.used_gpus:
        return 0
    scene = context.scenes.of_training(min(context.activity.used_gpus))
    cpu, main, workers = (scene.within(name) for name in ("cpu_pct", "main_cpu_pct", "workers_cpu_pct"))
    if cpu is None or main is None:
        return 0
    return max(round((cpu * cores - main - (workers or 0.0)) / 100), 0)


def _peak_mib(track: Track) -> float:
    memory = track.rows["memory_used_mib"].to_numpy(dtype=float)
    return float(np.nanmax(memory)) if np.isfinite(memory).any() else 0.0


def _extreme(context: Context, name: str, of: Callable[[list[float]], float]) -> float | None:
    """Return the least or the most of a column of the host, None where nothing of it is known."""
    values = context.run.host[name].dropna().tolist() if name in context.run.host else []
    return of(values) if values else None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
