"""What recording itself costs: CPU, memory, and how punctual its ticks are."""

import math
import resource
import time
from bisect import bisect_right
from itertools import accumulate

# Ticks are counted by how long they took, in bins from 1 us to 1,000 s: a month of them takes no more memory than an
# hour, and a percentile is good to 6 % (half a bin).
SHORTEST_S = 1e-6
BINS_A_DECADE = 20
BINS = 9 * BINS_A_DECADE
LATE_SHARE = 0.1  # a tick that begins later than this share of the interval after its time is a late one


class Cost:
    """Counts from its creation to `summary`."""

    def __init__(self, interval_s: float) -> None:
        self._late_s = LATE_SHARE * interval_s
        self._began_s = time.monotonic()
        self._cpu_s = _cpu_s()
        self._ticks = [0] * BINS
        self._late = 0

    def tick(self, late_s: float, took_s: float) -> None:
        """Note a tick that began so late and took so long."""
        self._ticks[_bin(took_s)] += 1
        self._late += late_s > self._late_s

    def skipped(self, count: int) -> None:
        """Note ticks that could not take place because an earlier one took too long."""
        self._late += count

    def summary(self, errors: int) -> dict[str, float | int | None]:
        """Return run.json's `recorder`."""
        elapsed_s = max(time.monotonic() - self._began_s, 1e-9)
        return {
            "cpu_pct": round(100 * (_cpu_s() - self._cpu_s) / elapsed_s, 3),
            "rss_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
            "tick_p50_ms": _percentile_ms(self._ticks, 0.50),
            "tick_p99_ms": _percentile_ms(self._ticks, 0.99),
            "late_ticks": self._late,
            "errors": errors,
        }


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _bin(took_s: float) -> int:
    place = math.log10(max(took_s, SHORTEST_S) / SHORTEST_S) * BINS_A_DECADE
    return min(int(place), BINS - 1)


def _percentile_ms(ticks: list[int], share: float) -> float | None:
    """Return the middle of the bin in which this share of the ticks is reached."""
    totals = list(accumulate(ticks))
    if not totals[-1]:
        return None
    place = bisect_right(totals, min(share * totals[-1], totals[-1] - 1))
    return round(1000 * SHORTEST_S * 10 ** ((place + 0.5) / BINS_A_DECADE), 3)
