"""Rules: what PyTorch's profiler saw in the steps of a training that costs time, and what to change."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.analyse.timeseries.intervals import Span
from gpu_report.model import Advice, FamilyName, Finding, ProfiledSteps, Setting, Severity, TraceAnalysis
from gpu_report.wording import amount, counted

ON_TENSOR_CORES: frozenset[FamilyName] = frozenset({"convolution", "matrix products", "attention"})
# What AMP does in 16 bits: products on tensor cores, and what only reads and writes memory, half as much of it then.
IN_16_BITS: frozenset[FamilyName] = frozenset(
    {"convolution", "matrix products", "attention", "activation", "normalisation", "elementwise"}
)
TO_THE_GPU = "HtoD"
IMPORTED = "imported"
NMS = re.compile(r"::(?:batched_)?nms$")
NAME_LENGTH = 60  # characters of a name out of a trace
FIXED_SIZES = {"multi_scale": "0", "rect": "False"}  # arguments that vary the sizes of images, and what keeps them
TAKES, GIVES_BACK = {"cudaMalloc", "cudaMallocAsync"}, {"cudaFree", "cudaFreeAsync"}  # of the GPU, not of the host


@dataclass(frozen=True)
class _Window:
    """A window of steps. `step_s` is a step of it, `real_s` one without the profiler where that is known.

    The profiler makes the CPU slower: what the GPU takes is a larger share of a step without it.
    """

    profiled: ProfiledSteps
    steps: TraceAnalysis
    count: int
    step_s: float
    real_s: float

    @property
    def span(self) -> Span:
        window = self.profiled.window
        return window.start_t_s if window.kept_t_s is None else window.kept_t_s, window.end_t_s


def profiled_findings(context: Context) -> list[Finding]:
    """Report what takes much of a step in the last windows of each process, and in each imported trace."""
    in_training = (
        *(_pageable, _full_precision, _layout, _allocator, _optimizer, _syncs),
        *(_communication, _graph_breaks, _recompiles),
    )
    checks = {"train": in_training, "validation": (_nms,)}
    last = {(_process(each), each.window.phase): each for each in context.profiled}
    windows = [_window(each) for each in last.values() if each.steps.quality.has_gpu_work]
    return [
        finding
        for window in windows
        if window is not None
        for check in checks[window.profiled.window.phase]
        for finding in check(context, window)
    ]


def _process(profiled: ProfiledSteps) -> str:
    name = profiled.window.name
    return name if profiled.window.reason == IMPORTED else name.partition("-")[0]


def _window(profiled: ProfiledSteps) -> _Window | None:
    steps = profiled.steps
    if not steps.step_s:
        return None
    real_s = min(profiled.typical_step_s or steps.step_s, steps.step_s)
    return _Window(profiled, steps, len(steps.used_steps), steps.step_s, real_s)


def _severity(share: float) -> Severity:
    return "warning" if share >= th.STEP_WARNS_SHARE else "info"


def _pageable(context: Context, window: _Window) -> Iterator[Finding]:
    """Find copies that go through a buffer of the driver, with nothing else on the GPU."""
    steps, real_s = window.steps, window.real_s
    kinds = [c for c in steps.copies if (c.kind.direction, c.kind.host_memory) == (TO_THE_GPU, "pageable")]
    seconds, sent = (sum(each) / window.count for each in ([c.gpu_s for c in kinds], [c.bytes for c in kinds]))
    exposed_s = min(seconds, sum(step.copy_s for step in steps.used_steps) / window.count)
    if exposed_s >= th.STEP_SHARE * real_s:
        text = "Copy images from pinned memory: `pin_memory=True` in your loader, `non_blocking=True` in your `.to()`"
        yield context.finding(
            "pageable-copies",
            _severity(exposed_s / real_s),
            window.span,
            f"The GPU waited {amount(exposed_s, 's')} of each step for copies from pageable memory",
            advice=(Advice(text, gain_at_most=min(exposed_s / real_s, 1.0)),),
            evidence=evidence(("copied from pageable memory, per step", sent / 1e6, "MB"), ("a step", real_s, "s")),
        )


def _full_precision(context: Context, window: _Window) -> Iterator[Finding]:
    """Find work in 32 bits that would take less time in 16."""
    steps, cores = window.steps, window.steps.tensor_cores
    heavy_s = sum(family.gpu_s for family in steps.families if family.name in ON_TENSOR_CORES) / window.count
    if cores is None or cores.half_share >= th.HALF_PRECISION_LEAST or heavy_s < th.HEAVY_SHARE * window.real_s:
        return
    waits_for = {"launch": "the CPU", "exchange": "other ranks", "data": "data"}.get(steps.launches.bound, "")
    halved_s = sum(family.gpu_s for family in steps.families if family.name in IN_16_BITS) / window.count
    share = 0.0 if waits_for else halved_s * (1 - th.HALF_PRECISION_TIME) / window.real_s
    yield context.finding(
        "full-precision",
        _severity(share),
        window.span,
        f"Convolutions and matrix products run in 32 bits: {amount(heavy_s, 's')} of a step",
        advice=(_use_amp(context, window, share, waits_for),),
        evidence=evidence(("GPU time per step", steps.busy_s, "s"), ("a step", window.real_s, "s")),
    )


def _use_amp(context: Context, window: _Window, share: float, waits_for: str) -> Advice:
    """Return what to do, where a step gets shorter by `share` (0 to 1), unless it waits for something else anyway."""
    amp, training = _settings(context, window).get("amp"), _training(context, window)
    but = f"; it saves little while the GPU waits for {waits_for}" if waits_for else ""
    if amp:
        return Advice(f"Find out why: `amp` is on, but convolutions run in 32 bits{but}")
    if training is not None and training.args.get("amp") is True:
        return Advice(f"See in the log why ultralytics turned `amp=True` off{but}")
    advice = Advice(f"Train with mixed precision: `amp=True`{but}", "amp", None if amp is None else "False", "True")
    if waits_for:
        return advice
    most = min((window.steps.worked_s or 0.0) * (1 - th.HALF_PRECISION_TIME) / window.real_s, 1.0)
    return replace(advice, gain_at_most=most, gain_estimate=min(share, most))


def _training(context: Context, window: _Window) -> Training | None:
    return context.training_at(window.profiled.window.start_t_s)


def _settings(context: Context, window: _Window) -> Mapping[str, object]:
    training = _training(context, window)
    return training.rank_group.main.settings if training is not None and training.rank_group else {}


def _layout(context: Context, window: _Window) -> Iterator[Finding]:
    """Find kernels that only change how images lie in memory."""
    share = window.steps.layout_share or 0.0
    seconds = share * (window.steps.busy_s or 0.0)
    if seconds >= th.STEP_SHARE * window.real_s:
        yield context.finding(
            "layout-changes",
            _severity(seconds / window.real_s),
            window.span,
            f"Changing the layout of images in GPU memory took {amount(seconds, 's')} of each step",
            advice=(_keep_layout(context, window),),
            evidence=evidence(("of the GPU's work", 100 * share, "%"), ("a step", window.real_s, "s")),
        )


def _keep_layout(context: Context, window: _Window) -> Advice:
    if _settings(context, window).get("channels_last") is False:
        return Advice("Let YOLO keep images in the layout of tensor cores", "channels_last", "False", "True")
    return Advice("Keep one layout: `channels_last=True`, or `False`, whichever is faster")


def _allocator(context: Context, window: _Window) -> Iterator[Finding]:
    """Find memory that is taken from the driver and given back in each step."""
    calls = [call for call in window.steps.allocator if call.name in TAKES | GIVES_BACK]
    seconds, number = (sum(each) / window.count for each in ([c.cpu_s for c in calls], [c.count for c in calls]))
    taken, given = (sum(c.count for c in calls if c.name in names) for names in (TAKES, GIVES_BACK))
    if min(taken, given) >= window.count and seconds >= th.STEP_SHARE * window.step_s:
        keep = _keep_sizes(context, window, "Keep image sizes the same, without `torch.cuda.empty_cache()`")
        yield context.finding(
            "allocator-churn",
            _severity(seconds / window.step_s),
            window.span,
            f"Each step takes GPU memory from the driver and gives it back: {amount(seconds, 's')}",
            advice=(keep,),
            evidence=evidence(
                ("calls of the driver's allocator, per step", number, ""), ("a step", window.step_s, "s")
            ),
        )


def _keep_sizes(context: Context, window: _Window, text: str) -> Advice:
    """Return to keep image sizes the same, with the run's arguments that vary them; with both where none is known."""
    training = _training(context, window)
    asked: Mapping[str, object] = {} if training is None else training.args
    set_ = tuple(Setting(name, str(asked[name]), to) for name, to in FIXED_SIZES.items() if asked.get(name))
    names = [each.argument for each in set_] or list(FIXED_SIZES)
    typed = ", ".join(f"`{name}={FIXED_SIZES[name]}`" for name in names)
    return Advice(f"{text}: {typed}", also=set_)


def _optimizer(context: Context, window: _Window) -> Iterator[Finding]:
    """Find an optimizer that updates each parameter by itself."""
    optimizer = window.steps.optimizer
    seconds = max(optimizer.cpu_s, optimizer.gpu_s) / window.count if optimizer else 0.0
    if optimizer and optimizer.style == "per parameter" and seconds >= th.STEP_SHARE * window.step_s:
        yield context.finding(
            "slow-optimizer",
            _severity(seconds / window.step_s),
            window.span,
            f"The optimizer updates each parameter by itself: {amount(seconds, 's')} of a step",
            advice=(Advice("Use an optimizer of PyTorch's with `fused=True` or `foreach=True`, or YOLO's own"),),
            evidence=evidence(("kernels per update", optimizer.gpu_pieces / max(optimizer.calls, 1), "")),
        )


def _syncs(context: Context, window: _Window) -> Iterator[Finding]:
    """Find results that the CPU reads within a step, beyond those that YOLO reads itself."""
    syncs = window.steps.syncs
    number, seconds = sum(each.count for each in syncs) / window.count, sum(each.operator_s for each in syncs)
    seconds /= window.count
    most = max(syncs, key=lambda sync: sync.count, default=None)
    if window.steps.launches.bound == "gpu":  # the CPU is ahead: that it waits is no loss
        return
    where = (most.operator or most.call) if most is not None else ""
    if most is not None and number > 2 * th.SYNCS_OF_YOLO and seconds >= th.STEP_SHARE * window.step_s:
        yield context.finding(
            "gpu-syncs",
            _severity(seconds / window.step_s),
            window.span,
            f"The CPU waits for the GPU {number:.0f} times in each step: {amount(seconds, 's')}",
            advice=(Advice("Read results (`.item()`, `float()`, `.cpu()`) once an epoch, not in each step"),),
            evidence=evidence((f"waits in {where[:NAME_LENGTH]}, a step", most.count / window.count, "")),
            where=window.profiled.sync_lines[: th.SYNC_LINES],
        )


def _communication(context: Context, window: _Window) -> Iterator[Finding]:
    """Find time in the exchange of gradients with nothing beside it, and tell a slow link from a late rank.

    The first to come to an exchange waits in it for the last. What takes longer than the slowest link would is that.
    """
    seconds = window.steps.exchanged_s
    if seconds < th.STEP_SHARE * window.real_s:
        return
    parameters = _settings(context, window).get("parameters")
    sent = th.GRADIENT_BYTES * parameters if isinstance(parameters, int) and parameters > 0 else None
    share, took = seconds / window.real_s, f"{amount(seconds, 's')} of each step"
    what = f"The GPU waited {took} in gradient synchronisation (all-reduce)"
    advice = Advice("Find out whether another training process (rank) is late, or the link between the GPUs slow")
    if sent is not None and seconds > 2 * sent / th.SLOWEST_LINK:
        what = f"The GPU waited {took} for another rank"
        advice = Advice(
            "Find what holds up the other training processes (ranks): in each step all wait for the slowest"
        )
    elif sent is not None:
        what = f"Gradient synchronisation (all-reduce) took {took}, not overlapped with computation"
        text = "Give each GPU a larger `batch`: gradients are synchronised once per step, whatever the batch size"
        advice = Advice(text, gain_at_most=min(share, 1.0))
    yield context.finding(
        "exposed-communication",
        _severity(share),
        window.span,
        what,
        advice=(advice,),
        evidence=evidence(
            ("gradients of the model", None if sent is None else sent / 1e6, "MB"), ("a step", window.real_s, "s")
        ),
    )


def _graph_breaks(context: Context, window: _Window) -> Iterator[Finding]:
    """Find a model that torch.compile could compile only in pieces."""
    pieces, breaks = window.steps.compiled_per_step, window.profiled.window.breaks
    if breaks and pieces >= th.IN_PIECES:
        yield context.finding(
            "graph-breaks",
            "info",
            window.span,
            f"torch.compile runs the model in {pieces:.0f} pieces a step: "
            f"the first ends after {breaks[0][:NAME_LENGTH]}",
            advice=(Advice("Take what it names out of the model: a `print`, an `.item()`, an `if` on a tensor"),),
            evidence=evidence(("compiled pieces per step", pieces, "")),
        )


def _nms(context: Context, window: _Window) -> Iterator[Finding]:
    """Find a validation whose CPU waits for the choice of boxes."""
    waits = [sync for sync in window.steps.syncs if NMS.search(sync.operator)]
    seconds = sum(sync.operator_s for sync in waits) / window.count
    if seconds >= th.NMS_SHARE * window.step_s:
        yield context.finding(
            "slow-nms",
            "info",
            window.span,
            f"Non-maximum suppression takes {amount(seconds, 's')} of each step of validation",
            advice=(Advice("Leave out boxes of low confidence (changes mAP a little)", "conf", None, "0.01"),),
            evidence=evidence(
                ("NMS calls per step", sum(sync.count for sync in waits) / window.count, ""),
                ("time per validation step", window.step_s, "s"),
            ),
        )


def _recompiles(context: Context, window: _Window) -> Iterator[Finding]:
    """Find a model that is compiled again while the training is under way."""
    of = window.profiled.window
    made = 0 if of.graphs is None or of.graphs_before is None else of.graphs - of.graphs_before
    if made > 0:
        yield context.finding(
            "recompiles",
            "warning" if made >= th.RECOMPILES_A_STEP * window.count else "info",
            window.span,
            f"torch.compile made {counted(made, 'new graph')} in {counted(window.count, 'step')}",
            advice=(_keep_sizes(context, window, "Keep image sizes and batches the same"),),
            evidence=evidence(("a step", window.real_s, "s")),
        )
