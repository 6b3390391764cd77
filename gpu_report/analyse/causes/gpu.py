"""Causes in the GPU itself: a fault, another process on it, a clock held down."""

from collections.abc import Callable

from gpu_report.analyse.causes import thresholds as th
from gpu_report.analyse.causes.candidate import Candidate
from gpu_report.analyse.causes.confidence import CERTAIN, HINTED, LIKELY, PRESENT, STRONG, SUPPORTED
from gpu_report.analyse.evidence import evidence, usually
from gpu_report.analyse.signals.gpu.clock_rows import HW_THERMAL, POWER_BRAKE, SW_POWER_CAP, SW_THERMAL
from gpu_report.analyse.signals.gpu.pcie_link import FAR_BELOW, FAST_STATE, WORKED_PCT, Link
from gpu_report.analyse.signals.interval_signals import IntervalSignals
from gpu_report.analyse.signals.thresholds import THROTTLED_SHARE
from gpu_report.gpu_words import gpu_words
from gpu_report.model import Advice, Frame
from gpu_report.wording import place_words

GIGA = 1e9
MIB = 1024**2
KEEP_ON_GPU = "Keep tensors on the GPU: each step copies them to CPU memory"


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
    clock, full = signals.gpu_within("sm_clock_mhz"), signals.gpu_typical("sm_clock_mhz")
    now, typical = _link_at_work(signals), _link(signals.gpu_typical)
    if now is None or typical is None or now.bytes_per_s > FAR_BELOW * typical.bytes_per_s:
        return None
    if clock is not None and full is not None and clock <= th.CAUSE_CLOCK_SHARE * full:
        return None
    ran = f"its PCIe link ran at {now.words} instead of {typical.words}"
    numbers = evidence(_bandwidth(now), usually(typical.bytes_per_s / GIGA, "GB/s"))
    sure = SUPPORTED if _copies_fill(signals, now) else LIKELY
    return Candidate("pcie-link", sure, ran, numbers, (reseat(signals.gpu),))


def copies_to_cpu(signals: IntervalSignals) -> Candidate | None:
    """Find that each step sends tensors to CPU memory: all through a training on one GPU its PCIe link was busy so.

    Ranks without NVLink, or on several nodes, exchange gradients over the same link, and another process on the GPU has
    copies of its own.
    """
    sent, link = signals.gpu_within("pcie_tx_mib_s"), _link(signals.gpu_within)
    if not signals.is_steady or signals.all_reduces or sent is None or link is None or other_process(signals):
        return None
    if not sent * MIB >= th.SENT_BACK_SHARE * link.bytes_per_s:  # of a generation that nobody knows nothing is said
        return None
    numbers = evidence(
        ("sent from the GPU to CPU memory", sent * MIB / GIGA, "GB/s"),
        ("sent to the GPU", (signals.gpu_within("pcie_rx_mib_s") or float("nan")) * MIB / GIGA, "GB/s"),
        _bandwidth(link),
    )
    text = f"each step copied tensors to CPU memory, {sent * MIB / GIGA:.1f} GB/s"
    return Candidate("host-copies", STRONG, text, numbers, (_keep_on_gpu(signals.copying_line),))


def _keep_on_gpu(line: Frame | None) -> Advice:
    """Return to leave tensors on the GPU; `line` is where they are copied, if that is known."""
    why = "A training sends back a few numbers a step. `save_on_cpu`, offloading and `.cpu()` send whole tensors"
    if line is None:
        return Advice(f"{KEEP_ON_GPU}. {why}", short=KEEP_ON_GPU)
    short = f"Look at {place_words(line)}: tensors are copied to CPU memory there, in each step"
    return Advice(f"{short}. {why}", short=short)


def link_fills_steps(signals: IntervalSignals) -> Candidate | None:
    """Find that copies of images over the PCIe link take COPIES_SHARE of a step, and most of a GPU's idle time.

    It is slow all along then: copies of a fast one take less.
    """
    now = _link_at_work(signals)
    copies = None if now is None else _copies_fill(signals, now)
    if now is None or copies is None:
        return None
    numbers = evidence(_bandwidth(now), ("copying images to the GPU, estimated, of each step", 100 * copies, "%"))
    text = f"each batch crossed its PCIe link, which ran at {now.words}, before the GPU could begin"
    return Candidate("pcie-link", SUPPORTED, text, numbers)


def _copies_fill(signals: IntervalSignals, link: Link) -> float | None:
    """Return the share (0 to 1) of a step that copies of images over a link take; None where they do not fill it so.

    A link that is said to be slower than what goes over it is no credible reading.
    """
    util = signals.gpu_within("gpu_util_pct")
    if util is None or signals.image_bytes_s is None:
        return None
    copies = signals.image_bytes_s / link.bytes_per_s
    is_most = th.COPIES_OF_IDLE * (1 - util / 100) <= copies <= 1
    return copies if is_most and copies >= th.COPIES_SHARE else None


def _bandwidth(link: Link) -> tuple[str, float, str]:
    return "bandwidth of this PCIe link, about", link.bytes_per_s / GIGA, "GB/s"


def reseat(gpu: int, why: str = "") -> Advice:
    """Return what to do about a link that fell; `why` is the end of the sentence."""
    short = f"Reseat {gpu_words(gpu)} and its riser"
    return Advice(f"{short} or cable{why}", short=short)


def _link_at_work(signals: IntervalSignals) -> Link | None:
    """Return the PCIe link of a GPU that is known to work: without work it lowers its link by itself."""
    util, state = signals.gpu_within("gpu_util_pct"), signals.gpu_within("performance_state")
    at_work = util is not None and util >= WORKED_PCT and state is not None and state <= FAST_STATE
    return _link(signals.gpu_within) if at_work else None


def _link(read: Callable[[str], float | None]) -> Link | None:
    generation, lanes = read("pcie_link_generation"), read("pcie_link_width")
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
