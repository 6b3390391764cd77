"""What is said of a busy GPU of a program that is no YOLO: what it computed nobody saw, and how to see it."""

from collections.abc import Iterator

from gpu_report.analyse.context import Context
from gpu_report.analyse.results import thresholds as th
from gpu_report.analyse.signals.code.stack_kinds import in_yolo
from gpu_report.analyse.tensor_share import straggler_gpu
from gpu_report.model import Sentence

UNSEEN = "; what it computed was not seen"
PROFILE = "To see it, save a trace by `torch.profiler`, and add it: `gpu-report import trace.json --run RUN`."


def is_unseen_program(context: Context) -> bool:
    """Tell whether a program was seen to be no YOLO, by its stacks, and no profiler saw what its GPU computed."""
    if context.run.has_training or context.run.inside or context.profiled:
        return False
    mains = [each for each in context.run.stacks if not each.is_worker]
    frames = (frame for each in mains for stack in each.stacks.values() for frame in stack)
    return bool(mains) and not any(map(in_yolo, frames))


def what_it_computed(context: Context) -> Iterator[Sentence]:
    """Yield which parts of a GPU worked, as far as the driver says so, and how to see which kernels that were."""
    yield from _parts_of_gpu(context)
    yield Sentence("profile", PROFILE)


def _parts_of_gpu(context: Context) -> Iterator[Sentence]:
    """Yield how much SMs, tensor cores and memory worked; with few products and much memory traffic what that hints."""
    training = max(context.trainings, key=lambda each: each.span[1] - each.span[0], default=None)
    gpu = straggler_gpu(context, training) if training else None
    signals = context.signals.of_training(gpu, training) if training and gpu is not None else None
    if signals is None:
        return
    sm, tensor, memory = (signals.gpu_within(f"{name}_active_pct") for name in ("sm", "tensor", "dram"))
    if sm is None or tensor is None or memory is None or sm <= 0:
        return
    text = f"Its SMs worked {sm:.0f} % of that time, tensor cores {tensor:.0f} %, memory {memory:.0f} %"
    yield Sentence("work", f"{text}.")
    if tensor < th.FEW_PRODUCTS_SHARE * sm and memory >= th.MEMORY_BOUND_PCT:
        hint = "This hints at memory-bound work: many operations on large tensors, few matrix products"
        yield Sentence("work", f"{hint}.")
