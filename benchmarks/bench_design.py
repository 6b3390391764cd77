"""How well a benchmark repeats on a host whose speed drifts: turns of several lengths, two kinds of median.

Nine variants serve twice on simulated hosts: one whose speed wanders (correlated for 8 s), one that another process
slows by 25 % now and then, and one with a full speed to which it returns. All benchmarks take the same time. Printed
are the largest difference of a median between the two, and how many pairs that differ by over 2 % changed places.
Run: .venv/bin/python benchmarks/bench_design.py [BENCHMARKS]
"""

import sys
from collections.abc import Callable

import numpy as np

from gpu_report.analyse.bench.thresholds import FULL_SPEED_SHARE
from gpu_report.bench.rounds import orders

STEP_S = 0.02  # of the host's speed
TRUE_MS = np.array([6.0, 6.2, 4.0, 6.4, 6.5, 4.3, 8.2, 8.0, 6.5])
TRACERS = np.array([1, 1, 1, 1, 1, 1, 0.9, 0.9, 0.5])  # how far each follows the CPU
DESIGNS = {"2 s": (1.75, 0.44), "1 s": (1.0, 0.25), "0.3 s": (0.3, 0.2)}  # a turn, and settling before it
BUDGET_S = 9.0  # of a variant, settling included
CHANCE = np.random.default_rng(1)
Floats = np.ndarray


def wandering(count: int, spread: float, tau_s: float) -> Floats:
    """Return logarithms of a speed that forgets within `tau_s` (a process of first order)."""
    keep = np.exp(-STEP_S / tau_s)
    steps = CHANCE.normal(0, spread * np.sqrt(1 - keep**2), count)
    found = np.empty(count)
    value = CHANCE.normal(0, spread)
    for place in range(count):
        found[place] = value = keep * value + steps[place]
    return found


def shared(count: int) -> Floats:
    """Return a host that is slow in stretches of seconds, more often in some benchmarks than in others."""
    found, place, share = np.zeros(count), 0, CHANCE.uniform(0.15, 0.6)
    slow = CHANCE.random() < share
    while place < count:
        length = max(int(CHANCE.exponential(12 * (share if slow else 1 - share)) / STEP_S), 1)
        found[place : place + length] = 0.25 * slow
        place, slow = place + length, not slow
    return found


HOSTS: dict[str, Callable[[int], Floats]] = {
    "wandering": lambda count: wandering(count, 0.08, 8.0),
    "shared": shared,
    "full speed": lambda count: np.maximum(wandering(count, 0.15, 10.0) + wandering(count, 0.06, 0.5) + 0.05, 0.0),
}


def benchmark(host: Callable[[int], Floats], turn_s: float, settle_s: float) -> dict[str, Floats]:
    """Return each variant's median latency: of all its calls, and of the fastest of its turns."""
    rounds = max(4, 2 * round(BUDGET_S / (turn_s + settle_s) / 2))
    count = len(TRUE_MS)
    slower = host(int(rounds * count * (turn_s + settle_s) / STEP_S) + 2)
    own = CHANCE.normal(0, 0.007, count)  # of a process: where its memory lies
    turns: list[list[Floats]] = [[] for _ in range(count)]
    now_s = 0.0
    for order in orders(count, rounds, seed=int(CHANCE.integers(1 << 30))):
        for variant in order:
            first, last = (int(at / STEP_S) for at in (now_s + settle_s, now_s + settle_s + turn_s))
            within = TRACERS[variant] * slower[first : last + 1] + own[variant]
            calls = max(int(turn_s * 1000 / (TRUE_MS[variant] * np.exp(within.mean()))), 1)
            logs = within[np.linspace(0, len(within) - 1, calls).astype(int)] + CHANCE.normal(0, 0.02, calls)
            turns[variant].append(TRUE_MS[variant] * np.exp(logs))
            now_s += settle_s + turn_s
    return {
        "of all calls": np.array([np.median(np.concatenate(each)) for each in turns]),
        "at full speed": np.array(
            [np.quantile([np.median(turn) for turn in each], FULL_SPEED_SHARE) for each in turns]
        ),
    }


def swapped(first: Floats, second: Floats) -> int:
    """Return how many pairs that truly differ by over 2 % have another order in the second benchmark."""
    differ = np.abs(np.log(TRUE_MS[:, None] / TRUE_MS)) > 0.02
    other = np.sign(first[:, None] - first) != np.sign(second[:, None] - second)
    return int((differ & other).sum()) // 2


def main() -> None:
    """Print a line a host and design."""
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    for name, host in HOSTS.items():
        for design, lengths in DESIGNS.items():
            found: dict[str, list[tuple[float, int]]] = {}
            for _ in range(times):
                first, second = (benchmark(host, *lengths) for _ in range(2))
                for kind in first:
                    apart = float(np.max(np.abs(np.log(first[kind] / second[kind]))))
                    found.setdefault(kind, []).append((apart, swapped(first[kind], second[kind])))
            words = (
                f"{kind}: {100 * m[0]:.1f} %, {m[1]:.1f} swapped"
                for kind, each in found.items()
                for m in [np.mean(each, axis=0)]
            )
            print(f"{name:11} turns of {design:6} {'; '.join(words)}")


if __name__ == "__main__":
    main()
