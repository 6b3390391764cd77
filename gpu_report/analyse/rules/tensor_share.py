"""Rule: a GPU whose work is mostly not that of the model's layers: tensor cores have too small a part in it."""

from dataclasses import dataclass

from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.analyse.timeseries.intervals import length_s
from gpu_report.model import Advice, CodeLocation, Finding, Frame
from gpu_report.wording import place_words

HOPPER = 9.0  # compute capability of H100, H200 and GH200, on which the usual share was measured
HOPPER_NAMES = ("NVIDIA H", "NVIDIA GH")  # by which recordings before that setting tell them


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


def other_gpu_work(context: Context) -> list[Finding]:
    """Report GPUs that other work than the model's convolutions and matrix products keeps busy.

    Utilisation says that a kernel runs, not whose. Which part of its SM activity a GPU spends on tensor cores is a
    property of the model: it changes neither with batches nor with how long the GPU waits in between. A model in 32
    bits without TF32 has no tensor cores at all, and is judged by its precision alone (setup/torch.py).
    """
    pairs = [(training, _waits_least(context, training)) for training in context.trainings]
    return [
        found
        for training, gpu in pairs
        if gpu is not None
        and without_tensor_cores(context, training) is None
        and (found := _of_gpu(context, training, gpu))
    ]


def without_tensor_cores(context: Context, training: Training) -> TensorShare | None:
    """Return what tells that a training in 32 bits had no tensor cores (TF32 is off), None where nothing tells it.

    With TF32, which PyTorch allows convolutions unless told otherwise, their share is as usual.
    """
    gpu = _waits_least(context, training) if training.settings.get("amp") is False else None
    known = None if gpu is None else _tensor_share(context, training, gpu)
    return known if known is not None and known.share < th.TENSOR_SHARE_NONE * known.usual else None


def _waits_least(context: Context, training: Training) -> int | None:
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


def usual_tensor_share(parameters: float) -> float:
    """Return which share (0 to 1) of SM activity tensor cores have in training YOLO26 to detect, by its parameters.

    Fitted to YOLO26 n, s, m and l with and without AMP, batches of 8 to 128, on H100 and H200: 0.06 to 0.08, 0.09 to
    0.12, 0.14 to 0.17 and 0.16 of 30 recordings lie within a quarter of it.
    """
    return float(th.TENSOR_SHARE_OF_A_MILLION * (parameters / 1e6) ** th.TENSOR_SHARE_EXPONENT)


def _tensor_share(context: Context, training: Training, gpu: int) -> TensorShare | None:
    signals, parameters = context.signals.of_training(gpu, training), training.quantity("parameters")
    if signals is None or parameters is None or not _is_known(context, training, gpu):
        return None
    util, active, tensor = (signals.gpu_within(f"{name}_pct") for name in ("gpu_util", "sm_active", "tensor_active"))
    if util is None or active is None or tensor is None or active < th.TENSOR_SM_LEAST_PCT:
        return None
    return TensorShare(util, active, tensor, usual_tensor_share(parameters))


def _of_gpu(context: Context, training: Training, gpu: int) -> Finding | None:
    known = _tensor_share(context, training, gpu)
    if known is None or known.share >= th.TENSOR_SHARE_LOW * known.usual:
        return None
    extra_pct = known.extra_pct
    if extra_pct < 100 * th.STEP_WARNS_SHARE:
        return None
    own = _own_code(context, training, gpu)
    first = f"Look at what {place_words(own)} computes on the GPU" if own else "Find what else the GPU computes"
    steady = context.signals.steady_of(training)
    return context.finding(
        "other-gpu-work",
        "warning",
        (steady[0][0], steady[-1][1]),
        f"GPU {gpu} was busy, but mostly not with the model: about {extra_pct:.0f} % of training time went into other "
        "kernels",
        gpu=gpu,
        epoch=None,
        phase=None,
        evidence=evidence(
            ("utilisation", known.util_pct, "%"),
            ("SM activity", known.active_pct, "%"),
            ("tensor activity", known.tensor_pct, "%"),
            ("of SM activity, tensor cores had", 100 * known.share, "%"),
            ("usual for a detection model of this size", 100 * known.usual, "%"),
        ),
        advice=(
            Advice(
                f"{first}: augmentation, a loss over many boxes, a layer without tensor cores. A recording with "
                "`--profile` names the kernels",
                short=first,
                gain_at_most=extra_pct / 100,
            ),
        ),
    )


def _is_known(context: Context, training: Training, gpu: int) -> bool:
    """Tell whether the usual share holds: detection, on a Hopper GPU that no other process worked on."""
    shared = any(other.gpu == gpu and other.worked for other in context.other_processes)
    name, capability = context.run.gpu(gpu).name or "", training.quantity("compute_capability")
    is_hopper = capability == HOPPER if capability is not None else name.startswith(HOPPER_NAMES)
    return is_hopper and not shared and training.args.get("task") == "detect"


def _own_code(context: Context, training: Training, gpu: int) -> CodeLocation | Frame | None:
    """Return the user's function that YOLO called for longest while it trained, else his own layer; None without both.

    What it launches runs later, so that its own time says little: that it is there does.
    """
    call, seconds = context.signals.longest_call(gpu, training.train_spans)
    if call is not None and seconds >= th.OWN_CODE_SHARE * length_s(training.train_spans):
        return context.signals.place_in_call(gpu, call, training.train_spans)
    return context.signals.longest_layer(gpu, training.train_spans)
