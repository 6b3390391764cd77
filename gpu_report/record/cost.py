"""What recording itself costs: CPU, memory, and how punctual its ticks are."""

import resource
import time
from array import array

LATE_SHARE = 0.1  # a tick that begins later than this share of the interval after its time is a late one


class Cost:
    """Counts from its creation to `summary`."""

    def __init__(self, interval_s: float) -> None:
        self._late_s = LATE_SHARE * interval_s
        self._began_s = time.monotonic()
        self._cpu_s = _cpu_s()
        self._ticks_s = array("f")
        self._late = 0

    def tick(self, late_s: float, took_s: float) -> None:
        """Note a tick that began so late and took so long."""
        self._ticks_s.append(took_s)
        self._late += late_s > self._late_s

    def skipped(self, count: int) -> None:
        """Note ticks that could not take place because an earlier one took too long."""
        self._late += count

    def summary(self, errors: int) -> dict[str, float | int | None]:
        """Return run.json's `recorder`."""
        elapsed_s = max(time.monotonic() - self._began_s, 1e-9)
        ticks = sorted(self._ticks_s)
        return {
            "cpu_pct": round(100 * (_cpu_s() - self._cpu_s) / elapsed_s, 3),
            "rss_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
            "tick_p50_ms": _percentile_ms(ticks, 0.50),
            "tick_p99_ms": _percentile_ms(ticks, 0.99),
            "late_ticks": self._late,
            "errors": errors,
        }


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _percentile_ms(ordered_s: list[float], share: float) -> float | None:
    if not ordered_s:
        return None
    return round(1000 * ordered_s[min(len(ordered_s) - 1, int(share * len(ordered_s)))], 3)
