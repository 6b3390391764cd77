"""Which share of a GPU's work tensor cores have in a training, and which they usually have: a property of the model."""

from dataclasses import dataclass

from gpu_report.analyse.context import Context
from gpu_report.analyse.signals.thresholds import LAUNCHES_S
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.model import HEALTHY_PCT

HOPPER = 9.0  # compute capability of H100, H200 and GH200, on which the usual share was measured
HOPPER_NAMES = ("NVIDIA H", "NVIDIA GH")  # by which recordings before that setting tell them
# Share of SM activity (0 to 1) that tensor cores have in a detection model of a million parameters, and how it grows:
# larger models spend more in products, less in what is done for each element (docs/findings.md, other-gpu-work).
OF_A_MILLION, EXPONENT = 0.052, 0.34
SM_LEAST_PCT = 10.0  # SM activity: of less, tensor activity is read too coarsely for a ratio
# For how long (s) tensor cores are active at most for 10^12 operations of a model's own step in 16 bits: 0.9 to 1.2 ms
# of YOLO26 s to x, up to 2.1 ms of n (77 recordings on H100 and H200, at FULL_MHZ). In TF32 it takes twice as long.
ACTIVE_S_PER_TFLOP, TF32_TIMES = 0.0025, 2
FULL_MHZ = 1980.0  # SM clock: activity is a share of cycles, of which a slower clock has fewer
# Of which kinds that holds: H20 has other tensor cores, and a MIG device a few of a GPU's SMs.
AS_MANY_TENSOR_CORES = ("NVIDIA H100", "NVIDIA H200", "NVIDIA GH200")
LEAST_PARAMETERS = 2e6  # of the smallest model that was measured, YOLO26n has 2.6: smaller ones fill tensor cores less
GFLOPS_PX = 640  # of the square image that ultralytics counts `gflops` for
PASSES = 3  # a step's operations, in those of a forward pass: the backward one takes two
# Of the usual share, in a model of 32 bits without TF32: YOLO26m had 0.04 of it (H200); what is computed besides leaves
# more.
NONE_SHARE = 0.15

# A GPU that is busy and nearly empty, as shares (0 to 1) of its utilisation; of its power limit where SM activity is
# not read. A loss that one block of threads summed up had 0.06, 0.002 and 0.19; 60 trainings on H100 and H200 had 0.32,
# 0.22 and more.
EMPTY_SM, EMPTY_MEMORY, EMPTY_POWER = 0.15, 0.05, 0.4


@dataclass(frozen=True)
class NearlyEmpty:
    """What tells that a GPU is nearly empty while it is busy (means of training, %, W), None where not known."""

    util_pct: float
    active_pct: float | None
    memory_pct: float
    power_w: float | None


@dataclass(frozen=True)
class TensorShare:
    """How busy a GPU was in training (means, %), and which share (0 to 1) of SM activity tensor cores usually have."""

    util_pct: float
    active_pct: float
    tensor_pct: float
    usual: float

    @property
    def share(self) -> float:
        """Return which share (0 to 1) of SM activity tensor cores had."""
        return self.tensor_pct / self.active_pct

    @property
    def extra_pct(self) -> float:
        """Return which part of training time (%) went into work without tensor cores that is not usual."""
        return self.util_pct * (1 - self.share / self.usual)


def nearly_empty(context: Context, training: Training, gpu: int) -> NearlyEmpty | None:
    """Return what tells that next to nothing of a busy GPU works, None where it is well used, idle, or others' too.

    Utilisation counts one thread as much as a full GPU. A kernel that only waits for another GPU is like that, too. So
    are those of a model that is too small for the GPU: launching takes most of its step, LAUNCHES_S at most.
    """
    signals, limit_w = context.signals.of_training(gpu, training), context.run.gpu(gpu).power_limit_w
    if signals is None or training.ranks > 1 or _is_shared(context, gpu):
        return None
    names = ("gpu_util_pct", "sm_active_pct", "memory_util_pct", "power_w")
    util, active, memory, power_w = (signals.gpu_within(name) for name in names)
    if util is None or util < HEALTHY_PCT or memory is None or memory > EMPTY_MEMORY * util:
        return None
    if signals.step_s is None or signals.step_s <= LAUNCHES_S:
        return None
    if active is None:
        is_empty = bool(power_w and limit_w) and (power_w or 0.0) <= EMPTY_POWER * (limit_w or 0.0)
    else:
        is_empty = active <= EMPTY_SM * util
    return NearlyEmpty(util, active, memory, power_w) if is_empty else None


def without_tensor_cores(context: Context, training: Training) -> TensorShare | None:
    """Return what tells that a training in 32 bits had no tensor cores, None where nothing does, or TF32 was on.

    With TF32, which PyTorch allows convolutions unless told otherwise, their share is as usual.
    """
    settings = training.settings
    may_be = settings.get("amp") is False and settings.get("tf32") is not True
    gpu = straggler_gpu(context, training) if may_be else None
    # that none are used is seen of any task, where it was recorded that they may not be
    known = None if gpu is None else tensor_share(context, training, gpu, of_any_task=settings.get("tf32") is False)
    return known if known is not None and known.share < NONE_SHARE * known.usual else None


def tensor_share(context: Context, training: Training, gpu: int, *, of_any_task: bool = False) -> TensorShare | None:
    """Return the share that tensor cores had on a GPU of a training, None where it or the usual one is not known."""
    signals, parameters = context.signals.of_training(gpu, training), training.quantity("parameters")
    detects = of_any_task or training.args.get("task") == "detect"
    if signals is None or parameters is None or not detects or not _is_hopper_alone(context, training, gpu):
        return None
    util, active, tensor = (signals.gpu_within(f"{name}_pct") for name in ("gpu_util", "sm_active", "tensor_active"))
    if util is None or active is None or tensor is None or active < SM_LEAST_PCT:
        return None
    return TensorShare(util, active, tensor, usual_tensor_share(parameters))


def times_its_own_work(context: Context, training: Training, gpu: int, known: TensorShare) -> float | None:
    """Return how many times the work of the model's own step tensor cores did at least, None where it is not known.

    A step has the images of a batch, of `gflops` for one of 640 px, forwards and backwards. A GPU that waits does
    nothing meanwhile, so that utilisation does not matter.
    """
    signals = context.signals.of_training(gpu, training)
    gflops, batch, imgsz = (training.quantity(name) for name in ("gflops", "batch", "imgsz"))
    if signals is None or signals.step_s is None or not gflops or not batch or not imgsz:
        return None
    clock_mhz = signals.gpu_within("sm_clock_mhz")
    if clock_mhz is None or not _is_as_measured(context, training, gpu):
        return None
    tflop = PASSES * gflops / 1000 * batch / training.ranks * (imgsz / GFLOPS_PX) ** 2
    own_s = tflop * ACTIVE_S_PER_TFLOP * (1 if training.settings.get("amp") else TF32_TIMES)
    return known.tensor_pct / 100 * signals.step_s * min(clock_mhz / FULL_MHZ, 1.0) / own_s


def _is_as_measured(context: Context, training: Training, gpu: int) -> bool:
    """Tell whether a training surely ran on a GPU, and with a model, as those whose tensor activity was measured."""
    facts, parameters = context.run.gpu(gpu), training.quantity("parameters")
    is_same = (facts.name or "").startswith(AS_MANY_TENSOR_CORES) and facts.parent_index is None
    is_said = training.quantity("compute_capability") == HOPPER  # else nobody reported that it trained there
    return is_same and is_said and parameters is not None and parameters >= LEAST_PARAMETERS


def usual_tensor_share(parameters: float) -> float:
    """Return which share (0 to 1) of SM activity tensor cores have in training YOLO26 to detect, by its parameters.

    Fitted to YOLO26 n, s, m and l with and without AMP, batches of 8 to 128, on H100 and H200: 0.06 to 0.08, 0.09 to
    0.12, 0.14 to 0.17 and 0.16 of 30 recordings lie within a quarter of it.
    """
    return float(OF_A_MILLION * (parameters / 1e6) ** EXPONENT)


def straggler_gpu(context: Context, training: Training) -> int | None:
    """Return the GPU of a training that the others wait for, by its utilisation: NCCL's waits are kernels, too.

    None where no GPU reports any.
    """
    known: dict[int, float] = {}
    for gpu in sorted(training.gpus):
        signals = context.signals.of_training(gpu, training)
        util_pct = signals.gpu_within("gpu_util_pct") if signals else None
        if util_pct is not None:
            known[gpu] = util_pct
    return min(known, key=lambda gpu: known[gpu], default=None)


def _is_hopper_alone(context: Context, training: Training, gpu: int) -> bool:
    """Tell whether a GPU is of the kind that the usual share was measured on, and no other process worked on it."""
    name, capability = context.run.gpu(gpu).name or "", training.quantity("compute_capability")
    is_hopper = capability == HOPPER if capability is not None else name.startswith(HOPPER_NAMES)
    return is_hopper and not _is_shared(context, gpu)


def _is_shared(context: Context, gpu: int) -> bool:
    return any(other.gpu == gpu and other.worked for other in context.other_processes)
