"""How well a leak is told from an allocator that settles, on simulated memory of trainings of several shapes.

    python benchmarks/memory_growth.py [--trainings N]

An allocator's reserve is, of all batches so far, what the one took that needed most: a base and a random part, three
batches a second. Prints Markdown: what docs/memory.md holds. It is a model; the labelled runs are in tests/golden.
"""

import argparse
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from gpu_report.analyse.signals.gpu.gpu_memory import GpuMemory
from gpu_report.analyse.signals.gpu.memory_growth import find_growth
from gpu_report.analyse.timeline.training_epochs import TrainingEpoch, TrainingEpochs

Floats = npt.NDArray[np.float64]
Shape = tuple[int, int]  # seconds of an epoch, and epochs
Extra = Callable[[np.random.Generator, Floats, Shape], Floats]

SHAPES: tuple[Shape, ...] = ((10, 8), (10, 12), (30, 10), (30, 30), (60, 100), (300, 4), (600, 1), (10, 300))
BASE_MIB = 20_000.0
REST_S = 2.0  # of an epoch is validation
BLOCK_MIB = 20.0
SPREADS = (0.02, 0.05, 0.1, 0.2)  # of a batch's need, as a share of the base
TAILS: dict[str, Callable[[np.random.Generator, tuple[int, int]], Floats]] = {
    "normal": lambda random, size: random.normal(size=size),
    "exponential": lambda random, size: random.exponential(size=size),
    "log-normal": lambda random, size: random.lognormal(0, 0.5, size=size) - 1,
}
LEAK_SPREAD = 0.03


def allocator(random: np.random.Generator, shape: Shape, spread: float, tail: str = "normal") -> Floats:
    need = BASE_MIB * (1 + spread * TAILS[tail](random, (shape[0] * shape[1], 3)).max(axis=1))
    return np.round(np.maximum.accumulate(need) / BLOCK_MIB) * BLOCK_MIB


def steady(total: float) -> Extra:
    def of(random: np.random.Generator, t_s: Floats, _: Shape) -> Floats:
        begin, end = random.uniform(0.1, 0.7) * len(t_s), len(t_s)
        return total * BASE_MIB * np.clip((t_s - begin) / (end - begin), 0, 1)

    return of


def ended(random: np.random.Generator, t_s: Floats, _: Shape) -> Floats:
    begin, end = random.uniform(0.1, 0.4) * len(t_s), random.uniform(0.6, 0.9) * len(t_s)
    return 0.3 * BASE_MIB * np.clip((t_s - begin) / (end - begin), 0, 1)


def six_steps(random: np.random.Generator, t_s: Floats, _: Shape) -> Floats:
    begin = random.uniform(0.3 * len(t_s), len(t_s) - 35)
    return 3072 * np.clip(np.floor((t_s - begin) / 5) + 1, 0, 6)


def once_an_epoch(_: np.random.Generator, t_s: Floats, shape: Shape) -> Floats:
    return 0.02 * BASE_MIB * np.floor(t_s / shape[0])


def one_step(random: np.random.Generator, t_s: Floats, _: Shape) -> Floats:
    return 0.4 * BASE_MIB * (t_s > random.uniform(0.2, 0.8) * len(t_s))


def two_steps(random: np.random.Generator, t_s: Floats, _: Shape) -> Floats:
    first, second = random.uniform(0.2, 0.5) * len(t_s), random.uniform(0.5, 0.9) * len(t_s)
    return BASE_MIB * (0.2 * (t_s > first) + 0.25 * (t_s > second))


def up_and_down(random: np.random.Generator, t_s: Floats, _: Shape) -> Floats:
    begin = random.uniform(0.2, 0.5) * len(t_s)
    return 0.4 * BASE_MIB * ((t_s > begin) & (t_s < begin + 0.3 * len(t_s)))


LEAKS: dict[str, Extra] = {
    "10 % of the memory, evenly, from somewhere to the end": steady(0.1),
    "30 %": steady(0.3),
    "200 %": steady(2.0),
    "30 %, and then no more": ended,
    "6 times 3 GiB in 30 s": six_steps,
    "2 % an epoch, at once": once_an_epoch,
}
OTHERS: dict[str, Extra] = {
    "one step of 40 %": one_step,
    "two steps of 20 and 25 %": two_steps,
    "40 % up and down again": up_and_down,
}


def found(own: Floats, shape: Shape) -> bool:
    epoch_s, epochs = shape
    parts = tuple(TrainingEpoch(n + 1, ((n * epoch_s, (n + 1) * epoch_s - REST_S),)) for n in range(epochs))
    memory = GpuMemory(0, np.arange(len(own), dtype=float), own, None, None)
    return find_growth(memory, TrainingEpochs(parts), None) is not None


def row(name: str, make: Callable[[Shape], Floats], trainings: int) -> str:
    hits = {shape: sum(found(make(shape), shape) for _ in range(trainings)) for shape in SHAPES}
    cells = " | ".join(str(hits[shape]) for shape in SHAPES)
    return f"| {name} | {cells} | {100 * sum(hits.values()) / (trainings * len(SHAPES)):.1f} % |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trainings", type=int, default=40, help="of each kind and shape")
    trainings = parser.parse_args().trainings
    random = np.random.default_rng(7)
    print(f"Found of {trainings} trainings each; the columns are seconds of an epoch x epochs.\n")
    print("| memory | " + " | ".join(f"{a} x {b}" for a, b in SHAPES) + " | found |")
    print("|---" * (len(SHAPES) + 2) + "|")
    for tail in TAILS:
        for spread in SPREADS:
            name = f"healthy: {tail}, spread {100 * spread:.0f} %"
            print(row(name, lambda shape: allocator(random, shape, spread, tail), trainings))  # noqa: B023 - used at once
    for kind, cases in (("healthy", OTHERS), ("leak", LEAKS)):
        for name, extra in cases.items():

            def make(shape: Shape, extra: Extra = extra) -> Floats:
                more = extra(random, np.arange(shape[0] * shape[1], dtype=float), shape)
                return allocator(random, shape, LEAK_SPREAD) + np.round(more / BLOCK_MIB) * BLOCK_MIB

            print(row(f"{kind}: {name}", make, trainings))


if __name__ == "__main__":
    main()
