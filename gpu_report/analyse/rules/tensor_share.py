"""Rule: a GPU whose work is mostly not that of the model's layers, by its tensor cores or by who launches it."""

from dataclasses import dataclass, replace

from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.signals.code.stack_kinds import FORWARD
from gpu_report.analyse.signals.code.stack_profile import OwnFunction
from gpu_report.analyse.signals.interval_signals import IntervalSignals
from gpu_report.analyse.signals.thresholds import MUCH_SHARE
from gpu_report.analyse.tensor_share import (
    nearly_empty,
    straggler_gpu,
    tensor_share,
    times_its_own_work,
    without_tensor_cores,
)
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.analyse.timeseries.intervals import length_s
from gpu_report.gpu_words import gpu_words
from gpu_report.model import GPUS, HEALTHY_PCT, Advice, CodeLocation, Finding, Frame
from gpu_report.wording import place_words

PROFILE = "A recording with `--profile` names the kernels"
KINDS = "augmentation, a loss over many boxes, a layer without tensor cores"


def other_gpu_work(context: Context) -> list[Finding]:
    """Report GPUs that other work than the model's convolutions and matrix products keeps busy.

    Utilisation says that a kernel runs, not whose. Which part of its SM activity a GPU spends on tensor cores is a
    property of the model: it changes neither with batches nor with how long the GPU waits in between. A model in 32
    bits without TF32 has no tensor cores at all, and is judged by its precision alone (setup/torch.py).
    """
    pairs = [(training, straggler_gpu(context, training)) for training in context.trainings]
    return [
        found
        for training, gpu in pairs
        if gpu is not None
        and without_tensor_cores(context, training) is None
        and (found := next((found for rule in KINDS_OF_WORK if (found := rule(context, training, gpu))), None))
    ]


def _hardly_filled(context: Context, training: Training, gpu: int) -> Finding | None:
    """Report a GPU that is always busy, with kernels of so few threads that next to nothing of it works."""
    known = nearly_empty(context, training, gpu)
    if known is None:
        return None
    line, share = context.signals.longest_line(gpu, context.signals.steady_of(training))
    place = line if share >= th.MOSTLY_PCT / 100 else None
    first = (
        f"Look at what {place_words(place)} computes on the GPU" if place else "Find what the GPU computes so slowly"
    )
    why = "kernels of a few threads keep it busy, such as one sum over millions of values, or a loop over elements"
    return _finding(
        context,
        training,
        gpu,
        (
            f"Kernels kept {gpu_words(gpu)} busy, and used hardly any of it",
            f"Kernels kept {GPUS} busy, and used hardly any of them",
        ),
        (
            ("utilisation", known.util_pct, "%"),
            ("SM activity", known.active_pct, "%"),
            ("memory controller busy", known.memory_pct, "%"),
            ("power", known.power_w, "W"),
        ),
        advice=(Advice(f"{first}: {why}. {PROFILE}", short=first, gain_at_most=known.util_pct / 100),),
        where=(CodeLocation.in_main(place, share),) if place else (),
    )


def _another_network(context: Context, training: Training, gpu: int) -> Finding | None:
    """Report a GPU whose tensor cores do far more than its model's own steps: another network runs, or it again."""
    known = tensor_share(context, training, gpu, of_any_task=True)
    times = None if known is None else times_its_own_work(context, training, gpu, known)
    if known is None or times is None or times < th.OTHER_NETWORK_TIMES:
        return None
    line = context.signals.network_line(gpu, context.signals.steady_of(training))
    more = f"at least {times:.0f} times what its model's steps need"
    what = f"Look at the other network that {place_words(line)} runs" if line else "Find which other network runs"
    short = f"{what} in each step"
    why = "if it is not to learn, call it under `torch.no_grad()`: then it takes a third"
    return _finding(
        context,
        training,
        gpu,
        (f"{gpu_words(gpu)} computed {more}", f"{GPUS} computed {more}"),
        (
            ("utilisation", known.util_pct, "%"),
            ("tensor activity", known.tensor_pct, "%"),
            ("times the tensor work of the model's own steps, at least", times, ""),
        ),
        advice=(Advice(f"{short}: {why}", short=short, gain_at_most=known.util_pct / 100 * (1 - 1 / times)),),
        where=(line,) if line else (),
    )


def _of_gpu(context: Context, training: Training, gpu: int) -> Finding | None:
    known = tensor_share(context, training, gpu)
    if known is None or known.share >= th.TENSOR_SHARE_LOW * known.usual:
        return None
    extra_pct = known.extra_pct
    if extra_pct < 100 * th.STEP_WARNS_SHARE:
        return None
    own = _own_code(context, training, gpu)
    return _finding(
        context,
        training,
        gpu,
        (_summary(training, f"{gpu_words(gpu)} was", extra_pct), _summary(training, f"{GPUS} were", extra_pct)),
        (
            ("utilisation", known.util_pct, "%"),
            ("SM activity", known.active_pct, "%"),
            ("tensor activity", known.tensor_pct, "%"),
            ("of SM activity, tensor cores had", 100 * known.share, "%"),
            ("usual for a detection model of this size", 100 * known.usual, "%"),
        ),
        advice=_advice(training, own, extra_pct / 100),
        where=(own,) if isinstance(own, CodeLocation) else (),
    )


def _finding(  # noqa: PLR0913 - what is said of two kinds of work
    context: Context,
    training: Training,
    gpu: int,
    summaries: tuple[str, str],
    numbers: tuple[tuple[str, float | None, str], ...],
    *,
    advice: tuple[Advice, ...],
    where: tuple[CodeLocation, ...] = (),
) -> Finding:
    """Return the finding of a GPU, of all of a training's steady state; `summaries` are of it, and of several."""
    steady = context.signals.steady_of(training)
    return context.finding(
        "other-gpu-work",
        "warning",
        (steady[0][0], steady[-1][1]),
        summaries[0],
        gpu=gpu,
        of_gpus=summaries[1],
        epoch=None,
        phase=None,
        evidence=evidence(*numbers),
        advice=advice,
        where=where,
    )


def _summary(training: Training, who: str, extra_pct: float) -> str:
    went = f"about {extra_pct:.0f} % of training time"
    loss = _costly_loss(training)
    if loss is not None:
        return f"{loss.why}: probably {went}"
    if extra_pct >= th.MOSTLY_PCT:
        return f"{who} busy, but mostly not with the model: {went} went into other kernels"
    return f"{who} busy with more than the model's layers: {went} went into other kernels"


@dataclass(frozen=True)
class _CostlyLoss:
    """Why a loss computes far more than it needs, and what to do about it."""

    why: str
    do: str


def _costly_loss(training: Training) -> _CostlyLoss | None:
    """Return what the labels of a training say of its loss: images with too many boxes, or too many classes."""
    boxes, classes = _crowded(training), training.label_classes
    if boxes is not None:
        counts = f"up to {boxes[1]:,.0f} boxes, {boxes[0]:,.0f} on average"
        do = "Tile the images with most boxes, or thin out their labels"
        return _CostlyLoss(f"The loss pads each batch to its fullest image ({counts})", do)
    if classes is None or classes[0] < th.MANY_CLASSES:
        return None
    named, labelled, once = classes
    why = f"The loss computes {named:,} classes for each prediction"
    if th.UNUSED_CLASSES_TIMES * labelled <= named and once <= th.ONCE_SHARE * labelled:
        do = f"Name only classes with labels in `data.yaml` ({labelled:,} of {named:,})"
        return _CostlyLoss(f"{why}, of which {labelled:,} have labels", do)
    return _CostlyLoss(why, "Train with fewer classes, if they may be")


def _crowded(training: Training) -> tuple[float, float] | None:
    """Return the mean and most boxes of an image, where some have so many more that the loss is mostly padding.

    Ultralytics gives each image of a batch as many rows as the fullest has, and compares each row with each anchor.
    """
    boxes = training.boxes
    is_crowded = boxes is not None and boxes[1] >= max(th.CROWDED_TIMES * boxes[0], th.CROWDED_BOXES)
    return boxes if is_crowded else None


def _advice(training: Training, own: CodeLocation | Frame | None, gain: float) -> tuple[Advice, ...]:
    found: list[Advice] = []
    loss = _costly_loss(training)
    if loss is not None:
        found.append(Advice(f"{loss.do}. {PROFILE}", short=loss.do, gain_at_most=gain))
    if own or not found:
        first = f"Look at what {place_words(own)} computes on the GPU" if own else "Find what else the GPU computes"
        kinds = "kernels besides those of the model's layers" if own else KINDS
        found.append(Advice(f"{first}: {kinds}. {PROFILE}", short=first, gain_at_most=gain))
    return tuple(found)


def _attention_weights(context: Context, training: Training, gpu: int) -> Finding | None:
    """Report a busy GPU on which `nn.MultiheadAttention` computes its weights: PyTorch's fused attention writes none.

    Whether anybody uses them no stack says. That they are computed is certain, for torch calls `bmm` for them alone.
    """
    signals, steady = context.signals.of_training(gpu, training), context.signals.steady_of(training)
    util_pct = signals.gpu_within("gpu_util_pct") if signals is not None else None
    at = context.signals.weights_line(gpu, steady) if util_pct is not None and util_pct >= HEALTHY_PCT else None
    if at is None or at.share < th.ATTENTION_SHARE:
        return None
    short = f"Pass `need_weights=False` to the attention in {place_words(at)}"
    why = "if its weights are not used: then PyTorch fuses attention, and writes no matrix of weights"
    which = f"the attention in {place_words(at)} computes a matrix of weights for each head"
    return _finding(
        context,
        training,
        gpu,
        (f"{gpu_words(gpu)} was busy, but {which}", f"{GPUS} were busy, but {which}"),
        (("utilisation", util_pct, "%"), ("launching it, share of the main process's time", 100 * at.share, "%")),
        advice=(Advice(f"{short}, {why}", short=f"{short}, if its weights are not used"),),
        where=(at,),
    )


def _own_code(context: Context, training: Training, gpu: int) -> CodeLocation | Frame | None:
    """Return the user's function that ran for longest while it trained, such as a callback, a hook or his own layer.

    What it launches runs later, so that its own time says little: that it is there does.
    """
    call, seconds = context.signals.longest_call(gpu, training.train_spans)
    own = context.signals.longest_own(gpu, training.train_spans)
    least = max(th.OWN_CODE_SHARE, own.share if own else 0.0)
    if call is not None and seconds >= least * length_s(training.train_spans):
        at = context.signals.place_in_call(gpu, call, training.train_spans)
        return at and replace(at, share=at.share * seconds / length_s(training.train_spans))
    if own is not None and own.share >= th.OWN_CODE_SHARE:
        return CodeLocation.in_main(own.line, own.share)
    layer = context.signals.longest_layer(gpu, training.train_spans)
    return None if layer is None else layer.line


def _in_own_function(context: Context, training: Training, gpu: int) -> Finding | None:
    """Report a busy GPU whose main process spends much of its time in a function of the user's, such as a hook.

    As long as the GPU has enough queued, the main process waits in what it launches next: where that is, more is
    launched. A wait for a result of the GPU is in one call alone, and no fault of that line: that is none of it.
    """
    signals, steady = context.signals.of_training(gpu, training), context.signals.steady_of(training)
    util_pct = signals.gpu_within("gpu_util_pct") if signals is not None else None
    own = context.signals.longest_own(gpu, steady) if util_pct is not None and util_pct >= HEALTHY_PCT else None
    if signals is None or util_pct is None or own is None or own.line.function == FORWARD:
        return None
    if own.share < MUCH_SHARE or own.in_one_call > th.IN_ONE_CALL or _leaves_idle(signals, own, util_pct):
        return None
    at = CodeLocation.in_main(own.line, own.share)
    took = f"{place_words(at)} took {100 * own.share:.0f} % of the main process's time"
    short = f"Look at {place_words(at)}"
    why = "what it launches keeps the GPU busy, or what it computes holds up the next step"
    return _finding(
        context,
        training,
        gpu,
        (f"{gpu_words(gpu)} was busy, but {took}", f"{GPUS} were busy, but {took}"),
        (("utilisation", util_pct, "%"), ("the function's share of the main process's time", 100 * own.share, "%")),
        advice=(Advice(f"{short}: {why}. {PROFILE}", short=short, gain_at_most=own.share),),
        where=(at,),
    )


def _leaves_idle(signals: IntervalSignals, own: OwnFunction, util_pct: float) -> bool:
    """Tell whether the GPU is idle because of it for long enough to be told for that (user_code.py)."""
    at, mine = signals.idle_location, (own.line.file, own.line.function)
    if at is None:
        return False
    line_share = at.share if at.line is not None and (at.line.file, at.line.function) == mine else 0.0
    call_share = at.call_share if at.call is not None and at.call.file == own.line.file else 0.0
    return max(line_share, call_share) * (1 - util_pct / 100) >= th.USER_CODE_SHARE


KINDS_OF_WORK = (_hardly_filled, _another_network, _of_gpu, _attention_weights, _in_own_function)
