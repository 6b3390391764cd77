"""How often the interval of a change of calls is wrong, and what it catches, over pairs of made runs.

argv: [--pairs N] a row (default 1000). It prints the table of which docs/compare.md shows some rows.
"""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from gpu_report.analyse.compare.calls.estimates import Estimate, change_ends, mean_estimate, quantile_estimate

Floats = npt.NDArray[np.float64]
CORRELATIONS = (0.0, 0.5, 0.9, 0.97)
LENGTHS = ((200, 200), (400, 400), (1000, 1000), (3000, 3000), (300, 3000))
MEAN_MS, SPREAD, SLOWER = 15.0, 0.1, 1.1
FIGURES: Mapping[str, Callable[[Floats], Estimate | None]] = {
    "p50": lambda values: quantile_estimate(values, 0.5),
    "p95": lambda values: quantile_estimate(values, 0.95),
    "p99": lambda values: quantile_estimate(values, 0.99),
    "mean": mean_estimate,
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=1000)
    pairs = parser.parse_args().pairs
    print(
        "| correlation of one call with the next | calls |",
        " | ".join(f"{name}: wrong, caught" for name in FIGURES),
        "|",
    )
    random = np.random.default_rng(2)
    for correlation in CORRELATIONS:
        for before, after in LENGTHS:
            sides = [runs(random, pairs, count, correlation) for count in (before, after)]
            cells = [cell(figure, *sides) for figure in FIGURES.values()]
            print(f"| {correlation:g} | {before:,} and {after:,} | {' | '.join(cells)} |", flush=True)


def runs(random: np.random.Generator, pairs: int, count: int, correlation: float) -> Floats:
    """Return latencies (ms), a run a row, whose logarithms are first-order autoregressive series."""
    noise = random.standard_normal((count, pairs)) * np.sqrt(1 - correlation**2)
    series = np.empty((count, pairs))
    series[0] = random.standard_normal(pairs)
    for at in range(1, count):
        series[at] = correlation * series[at - 1] + noise[at]
    return np.ascontiguousarray((MEAN_MS * np.exp(SPREAD * series)).T)


def cell(figure: Callable[[Floats], Estimate | None], before: Floats, after: Floats) -> str:
    """Return per cent of pairs of the same with a certain change, and of those with calls that take longer."""
    wrong = caught = 0
    for one, other in zip(before, after, strict=True):
        baseline, run = figure(one), figure(other)
        if baseline is None or run is None:
            return "too few calls"
        low, high = change_ends(baseline, run)
        wrong += low > 0 or high < 0
        caught += change_ends(baseline, slowed(run))[0] > 0
    return f"{100 * wrong / len(before):.1f}, {100 * caught / len(before):.0f}"


def slowed(run: Estimate) -> Estimate:
    return replace(run, value=SLOWER * run.value, low=SLOWER * run.low, high=SLOWER * run.high)


if __name__ == "__main__":
    main()
