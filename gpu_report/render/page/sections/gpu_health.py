"""A GPU's memory errors, remapped rows and link in words: first what changed during the run, then how it stands."""

from collections.abc import Mapping

from gpu_report.model import Gpu
from gpu_report.wording import counted

Health = Mapping[str, int | str]


def alarms(gpu: Gpu) -> tuple[str, ...]:
    """Return a sentence for each counter that grew during the run, and for what the driver says must be done."""
    start, end = gpu.health_start or {}, gpu.health_end or {}
    uncorrected = max(_grown(gpu, "ecc_volatile_uncorrected"), _grown(gpu, "ecc_aggregate_uncorrected"))
    corrected = max(_grown(gpu, "ecc_volatile_corrected"), _grown(gpu, "ecc_aggregate_corrected"))
    remapped = _grown(gpu, "remapped_rows_correctable") + _grown(gpu, "remapped_rows_uncorrectable")
    retired = _grown(gpu, "retired_pages_corrected") + _grown(gpu, "retired_pages_uncorrected")
    said = (
        _recovery({**start, **end}.get("recovery_action")),
        uncorrected and f"{counted(uncorrected, 'uncorrected memory error')} during the run.",
        corrected and f"{counted(corrected, 'corrected memory error')} during the run.",
        remapped and f"{counted(remapped, 'row')} of memory remapped during the run.",
        retired and f"{counted(retired, 'page')} of memory retired during the run.",
        _state(gpu, "row_remap_pending", "A row of memory waits to be remapped at the next reset of the GPU"),
        _state(gpu, "retired_pages_pending", "A page of memory waits to be retired at the next restart"),
        _state(gpu, "row_remap_failed", "A row of memory could not be remapped"),
        _replays(_grown(gpu, "pcie_replays")),
    )
    return tuple(sentence for sentence in said if sentence)


def health_counters(gpu: Gpu) -> str:
    """Return how the counters stood when they were last read; empty where none could be."""
    health = gpu.health_end or gpu.health_start or {}
    parts = (
        _pair(health, "ecc_volatile", "memory errors since the driver was loaded", none="no"),
        _pair(health, "ecc_aggregate", "in the GPU's life", none="none"),
        _sum(health, "remapped_rows_correctable", "remapped_rows_uncorrectable", "remapped row"),
        _sum(health, "retired_pages_corrected", "retired_pages_uncorrected", "retired page"),
        _sum(health, "pcie_replays", "pcie_replays", "PCIe replay"),
    )
    found = ", ".join(part for part in parts if part)
    when = "end" if gpu.health_end else "start"
    return f"At the {when} of the run: {found}." if found else ""


def _number(health: Health, name: str) -> int | None:
    value = health.get(name)
    return value if isinstance(value, int) else None


def _grown(gpu: Gpu, name: str) -> int:
    """Return by how much a counter grew; 0 where it is not known twice, or went back as a loaded driver makes it."""
    before, after = _number(gpu.health_start or {}, name), _number(gpu.health_end or {}, name)
    return max(after - before, 0) if before is not None and after is not None else 0


def _recovery(action: int | str | None) -> str:
    return "" if action in (None, "none") else f"The driver asks for recovery of this GPU: {action}."


def _state(gpu: Gpu, name: str, sentence: str) -> str:
    """Return the sentence when a state holds, with whether that was so before the run."""
    before, after = _number(gpu.health_start or {}, name), _number(gpu.health_end or {}, name)
    if not (before if after is None else after):
        return ""
    return f"{sentence}; that was so before the run." if before else f"{sentence}; that came up during the run."


def _replays(count: int) -> str:
    return f"{counted(count, 'PCIe replay')} during the run: packets that had to be sent again." if count else ""


def _pair(health: Health, prefix: str, where: str, *, none: str) -> str:
    """Return how many errors a counter has where; `none` says that there are not any."""
    corrected, uncorrected = _number(health, f"{prefix}_corrected"), _number(health, f"{prefix}_uncorrected")
    if corrected == uncorrected == 0:
        return f"{none} {where}"
    parts = ((corrected, "corrected"), (uncorrected, "uncorrected"))
    known = " and ".join(f"{count:,} {word}" for count, word in parts if count is not None)
    return f"{known} {where}" if known else ""


def _sum(health: Health, one: str, other: str, what: str) -> str:
    counts = {name: count for name in (one, other) if (count := _number(health, name)) is not None}
    if not counts:
        return ""
    return counted(sum(counts.values()), what) if any(counts.values()) else f"no {what}s"
