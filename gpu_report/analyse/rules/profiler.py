"""Rules: what PyTorch's profiler saw in the steps of a training that costs time, and what to change."""

from collections.abc import Iterator

from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.rules import thresholds as th
from gpu_report.model import Advice, Evidence, FamilyName, Finding, ProfiledSteps, Severity, TraceAnalysis

ON_TENSOR_CORES: frozenset[FamilyName] = frozenset({"convolution", "matrix products", "attention"})
TO_THE_GPU = "HtoD"
ALLOCATING = ("cudaMalloc", "cudaFree")  # not of the host: that is cached after the first epoch

Found = tuple[str, float, str, Advice, tuple[Evidence, ...]]  # rule, share of a step, summary, advice, numbers


def profiled_findings(context: Context) -> list[Finding]:
    """Report what takes STEP_SHARE of a step in the last window of each training; later windows repeat it."""
    windows = {each.window.name.partition("-")[0]: each for each in context.profiled if each.window.phase == "train"}
    return [_finding(context, each, found) for each in windows.values() for found in _all(context, each)]


def _finding(context: Context, profiled: ProfiledSteps, found: Found) -> Finding:
    rule, share, summary, advice, numbers = found
    severity: Severity = "warning" if share >= th.STEP_WARNS_SHARE else "info"
    window = profiled.window
    span = window.span if window.kept_t_s is None else (window.kept_t_s, window.end_t_s)
    return context.finding(rule, severity, span, summary, advice=(advice,), evidence=numbers)


def _all(context: Context, profiled: ProfiledSteps) -> Iterator[Found]:
    steps = profiled.steps
    count, step_s = len(steps.used_steps), steps.step_s
    if not steps.quality.has_gpu_work or not step_s:
        return
    # the profiler makes the CPU slower: what the GPU takes is a larger share without it
    real_s = min(profiled.typical_step_s or step_s, step_s)
    yield from _pageable(steps, count, real_s)
    yield from _full_precision(context, profiled, real_s)
    yield from _layout(steps, real_s)
    yield from _allocator(steps, count, step_s)
    yield from _optimizer(steps, count, step_s)
    yield from _syncs(steps, count, step_s)


def _pageable(steps: TraceAnalysis, count: int, real_s: float) -> Iterator[Found]:
    """Find copies that go through a buffer of the driver, with nothing else on the GPU."""
    kinds = [c for c in steps.copies if (c.kind.direction, c.kind.host_memory) == (TO_THE_GPU, "pageable")]
    seconds, sent = sum(c.gpu_s for c in kinds) / count, sum(c.bytes for c in kinds) / count
    exposed_s = min(seconds, sum(step.copy_s for step in steps.used_steps) / count)
    if exposed_s >= th.STEP_SHARE * real_s:
        text = "Copy images from pinned memory: `pin_memory=True` in your loader, `non_blocking=True` in your `.to()`"
        yield (
            "pageable-copies",
            exposed_s / real_s,
            f"The GPU waited {1000 * exposed_s:.0f} ms of each step for copies from pageable memory",
            Advice(text, gain_at_most=min(exposed_s / real_s, 1.0)),
            evidence(("copied from pageable memory, a step", sent / 1e6, "MB"), ("a step", 1000 * real_s, "ms")),
        )


def _full_precision(context: Context, profiled: ProfiledSteps, real_s: float) -> Iterator[Found]:
    """Find work in 32 bits that would take less time in 16."""
    steps, cores = profiled.steps, profiled.steps.tensor_cores
    heavy_s = sum(family.gpu_s for family in steps.families if family.name in ON_TENSOR_CORES)
    heavy_s /= len(steps.used_steps)
    if cores is None or cores.half_share >= th.HALF_PRECISION_LEAST or heavy_s < th.HEAVY_SHARE * real_s:
        return
    training = context.training_at(profiled.window.start_t_s)
    on = training is not None and bool(training.rank_group and training.rank_group.main.settings.get("amp"))
    busy_s = sum(step.busy_s for step in steps.used_steps) / len(steps.used_steps)
    could_s = heavy_s * (1 - th.HALF_PRECISION_TIME)
    waits = steps.launches.bound == "launch"
    text = (
        "Find out why: `amp` is on, but convolutions run in 32 bits" if on else "Train with mixed precision: `amp=True`"
    )
    text += "; it saves little while the GPU waits for the CPU" if waits else ""
    yield (
        "full-precision",
        0.0 if waits else could_s / real_s,
        f"Convolutions and matrix products run in 32 bits: {1000 * heavy_s:.0f} ms of a step",
        Advice(text, None if on else "amp", None if on else "False", None if on else "True"),
        evidence(("GPU work of a step", 1000 * busy_s, "ms"), ("a step", 1000 * real_s, "ms")),
    )


def _layout(steps: TraceAnalysis, real_s: float) -> Iterator[Found]:
    """Find kernels that only change how images lie in memory."""
    share, busy = steps.layout_share or 0.0, (steps.busy_share or 0.0) * (steps.step_s or 0.0)
    if share * busy >= th.STEP_SHARE * real_s:
        yield (
            "layout-changes",
            share * busy / real_s,
            f"Changing the layout of images in GPU memory took {1000 * share * busy:.1f} ms of each step",
            Advice("Keep one layout: `channels_last=True`, or `False`, whichever is faster"),
            evidence(("of the GPU's work", 100 * share, "%"), ("a step", 1000 * real_s, "ms")),
        )


def _allocator(steps: TraceAnalysis, count: int, step_s: float) -> Iterator[Found]:
    """Find memory that is taken from the driver and given back in each step."""
    calls = [call for call in steps.allocator if call.name.startswith(ALLOCATING)]
    seconds, number = sum(call.cpu_s for call in calls) / count, sum(call.count for call in calls) / count
    if number >= 1 and seconds >= th.STEP_SHARE * step_s:
        yield (
            "allocator-churn",
            seconds / step_s,
            f"Each step takes GPU memory from the driver and gives it back: {1000 * seconds:.0f} ms",
            Advice("Keep image sizes the same (`multi_scale=0`, `rect=False`), without `torch.cuda.empty_cache()`"),
            evidence(("calls of the driver's allocator, a step", number, ""), ("a step", 1000 * step_s, "ms")),
        )


def _optimizer(steps: TraceAnalysis, count: int, step_s: float) -> Iterator[Found]:
    """Find an optimizer that updates each parameter by itself."""
    optimizer = steps.optimizer
    seconds = max(optimizer.cpu_s, optimizer.gpu_s) / count if optimizer else 0.0
    if optimizer and optimizer.style == "per parameter" and seconds >= th.STEP_SHARE * step_s:
        yield (
            "slow-optimizer",
            seconds / step_s,
            f"The optimizer updates each parameter by itself: {1000 * seconds:.0f} ms of a step",
            Advice("Use an optimizer of PyTorch's with `fused=True` or `foreach=True`, or YOLO's own"),
            evidence(("kernels of an update", optimizer.gpu_pieces / max(optimizer.calls, 1), "")),
        )


def _syncs(steps: TraceAnalysis, count: int, step_s: float) -> Iterator[Found]:
    """Find results that the CPU reads within a step, beyond those that YOLO reads itself."""
    own = th.SYNCS_OF_YOLO * count
    number = sum(sync.count for sync in steps.syncs)
    seconds = sum(sync.operator_s for sync in steps.syncs) / count
    most = max(steps.syncs, key=lambda sync: sync.count, default=None)
    if most is not None and number > 2 * own and seconds >= th.STEP_SHARE * step_s:
        yield (
            "gpu-syncs",
            seconds / step_s,
            f"The CPU waits for the GPU {number / count:.0f} times in each step: {1000 * seconds:.0f} ms",
            Advice("Read results (`.item()`, `float()`, `.cpu()`) once an epoch, not in each step"),
            evidence((f"waits in {most.operator or most.call}, a step", most.count / count, "")),
        )
