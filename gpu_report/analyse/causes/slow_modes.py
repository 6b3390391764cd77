"""Cause: something is switched on that slows each line of Python or each launch, such as a profiler left on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpu_report.analyse.causes import thresholds as th
from gpu_report.analyse.causes.candidate import Candidate
from gpu_report.analyse.causes.confidence import LIKELY, STRONG, SUPPORTED
from gpu_report.analyse.causes.main_process import launch_bound, launches_too_much, main_process_bound
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.signals.interval_signals import IntervalSignals
from gpu_report.analyse.signals.thresholds import IN_CONVOLUTIONS, MUCH_SHARE
from gpu_report.catalogue import CONVOLUTIONS_KEY
from gpu_report.model import Advice, Evidence, SettingLocation
from gpu_report.wording import setting_location_words


@dataclass(frozen=True)
class SlowMode:
    """What slows a training that has it switched on, and how to be rid of it."""

    what: str
    do: str


UNSET = "Unset `{0}`, which is for debugging"

# By their names in the settings that our callbacks write, the most expensive first. That each is expensive stands in
# the notes of PyTorch (CUDA semantics, autograd, profiler) and Python (sys, tracemalloc, gc); how much depends on
# the model.
SLOW_MODES: Mapping[str, SlowMode] = {
    "torch_profiler": SlowMode("PyTorch's profiler was on", "Stop PyTorch's profiler after a few steps"),
    "trace_function": SlowMode(
        "a debugger or a coverage tool followed each line of Python", "Train without a debugger or coverage tool"
    ),
    "cudnn_off": SlowMode("cuDNN was switched off", "Remove `torch.backends.cudnn.enabled = False`"),
    "detect_anomaly": SlowMode("anomaly detection was on", "Turn off `torch.autograd.set_detect_anomaly`"),
    "no_memory_caching": SlowMode(
        "GPU memory was allocated anew for each tensor", UNSET.format("PYTORCH_NO_CUDA_MEMORY_CACHING")
    ),
    "launch_blocking": SlowMode("Python waited for each operation of the GPU", UNSET.format("CUDA_LAUNCH_BLOCKING")),
    "cudnn_benchmark": SlowMode(
        "all of cuDNN's kernels were tried for each new image size (`cudnn.benchmark`)",
        "With image sizes that vary, remove `torch.backends.cudnn.benchmark = True`",
    ),
    "memory_history": SlowMode(
        "torch noted the stack of each allocation (`_record_memory_history`)",
        "Remove `torch.cuda.memory._record_memory_history()`",
    ),
    "sync_bn": SlowMode(
        "each norm waited for the other ranks (`SyncBatchNorm`)",
        "Train without `SyncBatchNorm`",
    ),
    "profile_function": SlowMode("a profiler followed each call in Python", "Train without a Python profiler"),
    "tracemalloc": SlowMode("Python traced each allocation (`tracemalloc`)", "Turn off `tracemalloc`"),
    "frequent_gc": SlowMode(
        "Python's garbage collector ran too often (`gc.set_threshold`)", "Raise `gc.set_threshold` to 700 or more"
    ),
}


AUTOTUNES = frozenset({"cudnn_benchmark"})  # each size but once: it is no reason for steps of the usual length
SYNCED = frozenset({"sync_bn"})  # by stacks: what it costs depends on the model, and on the way between the GPUs
TRACERS = frozenset({"trace_function", "profile_function"})  # a function of the user's that Python calls at each step
PROFILED = frozenset({"profile_function"})  # PyTorch's profiler sets one, to know the stacks


# Times as long in every later epoch as in the first, with the same batch and data: what is so is no batch that is too
# small. 1.7 where `tracemalloc` was on since epoch 2 (yolo11s-cls, H200).
SLOWER_TIMES = 1.5
WHAT_SLOWED = Advice(
    "Find what slowed each step after the first epoch. A callback may have switched on `tracemalloc`, a debugger or a "
    "profiler, or keeps ever more",
    short="Find what slowed each step after the first epoch (`tracemalloc`, a profiler, a callback)",
)


# Where nobody knows whether it is on: a recording that is old, or a torch that does not say so.
NEW_SIZES = "convolutions took nearly all of the time, as when cuDNN looks for kernels for each new image size"
FEWER_SIZES = Advice(
    "Set `torch.backends.cudnn.benchmark = False`, or pad images to a few sizes: cuDNN tries kernels for each new size",
    short="Set `torch.backends.cudnn.benchmark = False`, or pad images to a few sizes",
)


def slowed_by_mode(signals: IntervalSignals) -> Candidate | None:
    """Find a main process that is too slow for the GPU all the time while something was on that slows it."""
    known = modes_that_slow(signals)
    on = [name for name in SLOW_MODES if name in known]
    bound = launch_bound(signals) or main_process_bound(signals)
    if not on and is_slower_since_first(signals) and bound is not None:
        times = f"steps took {signals.slower_since_first_epoch:.1f}\u00d7 as long after the first epoch as in it"
        return Candidate("main-process", LIKELY, times, bound.evidence, (WHAT_SLOWED,))
    if not on or not signals.is_steady or bound is None:
        return None
    advice = tuple(switch_off(name, signals.setting_locations) for name in on)
    return Candidate("main-process", STRONG, SLOW_MODES[on[0]].what, bound.evidence, advice)


def searches_kernels(signals: IntervalSignals) -> Candidate | None:
    """Find a main process that stands in calls of convolutions all along: cuDNN looks for kernels at each new size.

    Launches, however small, keep a GPU busy for LAUNCH_UTIL_PCT, and take but two thirds of that time in convolutions.
    """
    convolving = _convolving(signals)
    if not signals.is_steady or convolving < IN_CONVOLUTIONS:
        return None
    numbers = evidence(
        Evidence("in calls of convolutions", 100 * convolving, "% of the idle time", key=CONVOLUTIONS_KEY),
        ("CPU of the main process", signals.within("main_cpu_pct"), "% of a core"),
        Evidence("utilisation", signals.gpu_within("gpu_util_pct"), "%", key="gpu_util_pct"),
    )
    mode = next(iter(AUTOTUNES & signals.slow_modes), None)
    if mode is None:
        return Candidate("main-process", SUPPORTED, NEW_SIZES, numbers, (FEWER_SIZES,))
    advice = switch_off(mode, signals.setting_locations)
    return Candidate("main-process", STRONG, SLOW_MODES[mode].what, numbers, (advice,))


def _convolving(signals: IntervalSignals) -> float:
    """Return the share (0 to 1) of the idle time in calls of convolutions by a main process that launches hardly any.

    A search is one thread's work. Convolutions of tensors on the CPU are computed by a thread for each core.
    """
    util, location = signals.gpu_within("gpu_util_pct"), signals.idle_location
    if util is None or location is None or util >= th.LAUNCH_UTIL_PCT:
        return 0.0
    return location.convolving if (signals.within("main_cpu_pct") or 0.0) <= th.SEARCH_CPU_PCT else 0.0


def is_slower_since_first(signals: IntervalSignals) -> bool:
    """Tell whether steps became slower after the first epoch, and no function of the user's is known to take them."""
    at = signals.idle_location
    is_own = at is not None and (at.is_in_call or at.is_partly_in_call)
    return signals.is_steady and not is_own and signals.slower_since_first_epoch >= SLOWER_TIMES


def modes_that_slow(signals: IntervalSignals) -> frozenset[str]:
    """Return what was switched on that slows steps such as these."""
    by_profiler = PROFILED if "torch_profiler" in signals.slow_modes else frozenset[str]()
    synced = SYNCED if signals.synced_norms >= MUCH_SHARE else frozenset[str]()
    return (signals.slow_modes | synced) - by_profiler - (frozenset() if launches_too_much(signals) else AUTOTUNES)


def switch_off(name: str, places: Sequence[SettingLocation]) -> Advice:
    """Return to switch off a slow mode, with the line that switches it on where that is known."""
    text = SLOW_MODES[name].do + setting_location_words(places, name)
    return Advice(text, short=text)
