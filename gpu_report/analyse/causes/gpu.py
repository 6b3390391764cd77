"""Causes in the GPU itself: a fault, another process on it, a clock held down."""

from gpu_report.analyse.causes import thresholds as th
from gpu_report.analyse.causes.candidate import Candidate
from gpu_report.analyse.causes.confidence import CERTAIN, HINTED, LIKELY, PRESENT
from gpu_report.analyse.evidence import evidence, usually
from gpu_report.analyse.signals.gpu.clock_throttling import HW_THERMAL, POWER_BRAKE, SW_POWER_CAP, SW_THERMAL
from gpu_report.analyse.signals.gpu.pcie_link import FAR_BELOW, FAST_STATE, WORKED_PCT, Link
from gpu_report.analyse.signals.interval_signals import IntervalSignals
from gpu_report.analyse.signals.thresholds import THROTTLED_SHARE
from gpu_report.model import Advice

GIGA = 1e9


def gpu_fault(signals: IntervalSignals) -> Candidate | None:
    """Find that the driver lost the GPU, or wants it reset."""
    if not signals.nvml_lost:
        return None
    return Candidate("gpu-fault", CERTAIN, f"the driver reported: {signals.nvml_lost}")


def other_process(signals: IntervalSignals) -> Candidate | None:
    """Find that somebody else worked on this GPU: one that but holds memory takes none of its time."""
    span = signals.span
    there = [(each.share_of(*span), each) for each in signals.other_processes if each.worked]
    there = [pair for pair in there if pair[0] >= th.PRESENT_SHARE]
    if not there:
        return None
    share, other = max(there, key=lambda pair: (pair[0], pair[1].memory_mib or 0.0))
    memory = "" if other.memory_mib is None else f", {other.memory_mib / 1024:.1f} GiB"
    numbers = evidence(("of this time it was on the GPU", 100 * share, "%"), ("its memory", other.memory_mib, "MiB"))
    return Candidate("other-process", PRESENT, f"{other.who}{memory} was on this GPU, too", numbers)


def power_cap(signals: IntervalSignals) -> Candidate | None:
    """Find the clock far down because of a power limit. It makes batches longer, and gaps between them no wider."""
    return _throttled(signals, "power-cap", SW_POWER_CAP | POWER_BRAKE, HINTED, "power")


def thermal(signals: IntervalSignals) -> Candidate | None:
    """Find the clock far down because of heat; boards skip clock cycles then, which utilisation may show."""
    return _throttled(signals, "thermal", SW_THERMAL | HW_THERMAL, LIKELY, "heat")


def link_fell(signals: IntervalSignals) -> Candidate | None:
    """Find the PCIe link far below what it is typically, while the GPU worked at its clock: copies take longer then.

    A GPU without work lowers its link by itself, and a laptop that goes to its battery its clock as well.
    """
    util, state = signals.gpu_within("gpu_util_pct"), signals.gpu_within("performance_state")
    clock, full = signals.gpu_within("sm_clock_mhz"), signals.gpu_typical("sm_clock_mhz")
    now, typical = (
        _link(read("pcie_link_generation"), read("pcie_link_width"))
        for read in (signals.gpu_within, signals.gpu_typical)
    )
    if util is None or util < WORKED_PCT or (state or 0.0) > FAST_STATE or now is None or typical is None:
        return None
    fell = now.bytes_per_s <= FAR_BELOW * typical.bytes_per_s
    if not fell or (clock is not None and full is not None and clock <= th.CAUSE_CLOCK_SHARE * full):
        return None
    ran = f"its PCIe link ran at {now.words} instead of {typical.words}"
    numbers = evidence(
        ("bandwidth of this PCIe link, about", now.bytes_per_s / GIGA, "GB/s"),
        usually(typical.bytes_per_s / GIGA, "GB/s"),
    )
    return Candidate("pcie-link", LIKELY, ran, numbers, (reseat(signals.gpu),))


def reseat(gpu: int, why: str = "") -> Advice:
    """Return what to do about a link that fell; `why` is the end of the sentence."""
    short = f"Reseat GPU {gpu} and its riser"
    return Advice(f"{short} or cable{why}", short=short)


def _link(generation: float | None, lanes: float | None) -> Link | None:
    return None if generation is None or lanes is None else Link(round(generation), round(lanes))


def _throttled(signals: IntervalSignals, name: str, bits: int, confidence: float, what: str) -> Candidate | None:
    share = signals.gpu_share_with("clock_event_reasons", bits)
    clock, typical = signals.gpu_within("sm_clock_mhz"), signals.gpu_typical("sm_clock_mhz")
    if share is None or clock is None or typical is None:
        return None
    if share < THROTTLED_SHARE or clock > th.CAUSE_CLOCK_SHARE * typical:
        return None
    numbers = evidence(
        (f"of this time the clock was limited by {what}", 100 * share, "%"),
        ("SM clock meanwhile", clock, "MHz"),
        usually(typical, "MHz"),
        ("temperature", signals.gpu_within("temperature_c"), "°C"),
        ("power", signals.gpu_within("power_w"), "W"),
    )
    return Candidate(
        name, confidence, f"{what} limited its clock to {clock:,.0f} MHz instead of {typical:,.0f}", numbers
    )
