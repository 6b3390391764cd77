"""How often the gate is wrong: false alarms and misses over resampled real epochs, and real pairs of one set-up.

argv: [--write] puts the tables into docs/compare.md; [--draws N] pairs are drawn a run and length (default 300).
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, permutations
from pathlib import Path

import numpy as np
from blocks import block_length

from gpu_report.analyse import analyse
from gpu_report.analyse.compare import compare, fingerprint_of
from gpu_report.analyse.compare.fingerprint import differences
from gpu_report.analyse.compare.gate_results import results
from gpu_report.analyse.compare.gate_syntax import default_gates, parse_gates
from gpu_report.analyse.compare.metrics import METRICS, STATISTICS
from gpu_report.analyse.compare.samples import run_sample, with_epochs
from gpu_report.analyse.compare.significance import SampleValues, values_of, without_outliers
from gpu_report.analyse.compare.thresholds import BAND_AT_LEAST
from gpu_report.analyse.timeseries.bootstrap import change_interval
from gpu_report.load import load_run
from gpu_report.model import Analysis

ROOT = Path(__file__).resolve().parent.parent
SAMPLES, DOCUMENT = ROOT / "sample_runs", ROOT / "docs" / "compare.md"
SAME_SETUP = ROOT / "tests" / "data" / "same_setup"
BEGIN, END = "<!-- measured: begin (benchmarks/gates.py --write) -->", "<!-- measured: end -->"
GATES = parse_gates(["epoch_time:+5%", "data_wait_share:+5pp"], [])  # the default gates that look at epochs
LENGTHS = (5, 9, 19)  # ordinary epochs of runs of 6, 10 and 20
SLOWER = 1.1
CAUGHT = 0.95
POOL_AT_LEAST = 5
LONG, SMOOTH = 20, 4  # epochs of a run that has a trend to speak of, and of its running median on either side
PLAYED = "fake-"
SERVED = "serve-"  # programs that call a model, without epochs
COVERAGE_DRAWS = 1000  # pairs a row of made runs
CORRELATED_SPREAD = 0.03  # standard deviation of made epochs, as a share of their time
# Per cent wrong and caught of 300 pairs each by the intervals before: a bootstrap in blocks, as of 2026-11-22.
BY_BLOCKS = {
    (5, 0.0): (2.3, 93),
    (5, 0.3): (6.0, 95),
    (5, 0.7): (24.7, 96),
    (10, 0.0): (1.3, 100),
    (10, 0.3): (3.3, 100),
    (10, 0.7): (26.0, 99),
    (20, 0.0): (0.3, 100),
    (20, 0.3): (3.3, 100),
    (20, 0.7): (17.3, 100),
    (50, 0.0): (0.0, 100),
    (50, 0.3): (3.7, 100),
    (50, 0.7): (8.0, 100),
    (200, 0.0): (1.3, 100),
    (200, 0.3): (2.7, 100),
    (200, 0.7): (4.7, 100),
}


@dataclass(frozen=True, eq=False)
class Pool:
    """The ordinary epochs of a real run: seconds of training and of waiting, and the length of blocks to draw.

    `trend_s` is the running median of a long run whose epochs get shorter or longer along the way: two runs of one
    set-up do so alike, and what is drawn is then how epochs lie about it. None: epochs are drawn as they are.
    """

    name: str
    side: SampleValues
    train_s: np.ndarray
    wait_s: np.ndarray
    block: int
    trend_s: np.ndarray | None = None

    @property
    def spread(self) -> float:
        """Return the standard deviation of the epochs' time as a share of their mean, or of their trend."""
        about = self.train_s.mean() if self.trend_s is None else self.trend_s
        return float((self.train_s / about).std(ddof=1))

    def pair(self, count: int, random: np.random.Generator, factor: float = 1.0) -> tuple[SampleValues, SampleValues]:
        """Return two runs of so many epochs, the second's each `factor` times as long."""
        start = int(random.integers(0, len(self.train_s)))
        return self.draw(count, random, 1.0, start), self.draw(count, random, factor, start)

    def draw(self, count: int, random: np.random.Generator, factor: float = 1.0, start: int = 0) -> SampleValues:
        """Return a run of so many epochs, drawn in circular blocks, each `factor` times as long."""
        total = len(self.train_s)
        starts = random.integers(0, total, -(-count // self.block))
        row_ranges = ((starts[:, None] + np.arange(self.block)) % total).ravel()[:count]
        train_s = factor * self.train_s[row_ranges]
        if self.trend_s is not None:
            train_s *= self.trend_s[(start + np.arange(count)) % total] / self.trend_s[row_ranges]
        values = {"epoch_time": train_s, "data_wait_share": 100 * self.wait_s[row_ranges] / train_s}
        return SampleValues(self.side.training, values)


@cache
def analysed(name: str) -> Analysis:
    return analyse(load_run(SAMPLES / name))


def names() -> list[str]:
    return sorted(p.name for p in SAMPLES.iterdir() if p.is_dir() and not p.name.startswith((PLAYED, SERVED)))


def pools() -> Iterator[Pool]:
    """Yield the real runs with enough ordinary epochs in which nothing was done to them, and that do not stand out."""
    for name in names():
        training = run_sample(analysed(name))
        spans = done_to(name)
        steady = [
            e for e in training.epochs if not any(e.start_t_s < end and start < e.end_t_s for start, end in spans)
        ]
        side = values_of(with_epochs(training, steady))
        times, waits = side.epochs["epoch_time"], side.epochs["data_wait"]
        if len(times) < POOL_AT_LEAST:
            continue
        kept = np.isin(times, without_outliers(times, METRICS["epoch_time"]))
        if kept.sum() >= POOL_AT_LEAST:
            yield Pool(name, side, times[kept], waits[kept], block_length(times[kept]))
        if kept.sum() >= LONG:
            yield _alike(name, side, times[kept], waits[kept])


def _alike(name: str, side: SampleValues, times: np.ndarray, waits: np.ndarray) -> Pool:
    """Return the epochs of a long run about their trend."""
    near = [times[max(at - SMOOTH, 0) : at + SMOOTH + 1] for at in range(len(times))]
    trend = np.array([np.median(some) for some in near])
    return Pool(f"{name}, about its trend", side, times, waits, block_length(times / trend), trend)


def done_to(name: str) -> list[tuple[float, float]]:
    """Return when something was done to a run, or felt by it, unless it was so all along (labels.json)."""
    faults = json.loads((SAMPLES / name / "labels.json").read_text())["faults"]
    moments = [fault for fault in faults if not fault.get("standing")]
    return [tuple(fault[span]) for fault in moments for span in ("command", "effect") if fault.get(span)]


def failed(baselines: Sequence[SampleValues], run: SampleValues) -> bool:
    return outcome(baselines, run) == "failed"


def outcome(baselines: Sequence[SampleValues], run: SampleValues) -> str:
    """Return what the gates come to: failed, undecided or passed."""
    found = results(GATES, baselines, run, None)
    if any(result.outcome == "failed" for result in found):
        return "failed"
    return "undecided" if any(result.undecided for result in found) else "passed"


def rates(pool: Pool, count: int, draws: int) -> tuple[int, int]:
    """Return how many pairs of the same raise an alarm, and how many of those with a slower run do."""
    random = np.random.default_rng(count)
    alarms = caught = 0
    for _ in range(draws):
        before, after = pool.pair(count, random)
        alarms += failed([before], after)
        before, after = pool.pair(count, random, SLOWER)
        caught += failed([before], after)
    return alarms, caught


def epochs_needed(pool: Pool, draws: int) -> str:
    """Return how many epochs (the first one included) catch a slower run in CAUGHT of the cases."""
    for count in (5, 6, 7, 8, 9, 11, 14, 17, 19, 24, 29, 39):
        random = np.random.default_rng(count)
        pairs_drawn = (pool.pair(count, random, SLOWER) for _ in range(draws))
        caught = sum(failed([before], after) for before, after in pairs_drawn)
        if caught >= CAUGHT * draws:
            return str(count + 1)
    return "over 40"


def resampled(draws: int) -> list[str]:
    """Return the table of rates over resampled epochs."""
    lines = [
        f"| run | epochs | spread | {' | '.join(f'{n + 1} epochs: alarms, caught' for n in LENGTHS)} | for 95 % |",
        "|---|---|---|" + "---|" * (len(LENGTHS) + 1),
    ]
    totals = {n: [0, 0, 0] for n in LENGTHS}
    for pool in sorted(pools(), key=lambda p: p.spread):
        cells = []
        for n in LENGTHS:
            alarms, caught = rates(pool, n, draws)
            totals[n] = [a + b for a, b in zip(totals[n], (alarms, caught, draws), strict=True)]
            cells.append(f"{100 * alarms / draws:.1f} %, {100 * caught / draws:.0f} %")
        spread = f"{100 * pool.spread:.1f} %"
        row = [f"`{pool.name}`", str(len(pool.train_s)), spread, *cells, epochs_needed(pool, draws // 2)]
        lines.append(f"| {' | '.join(row)} |")
        print(lines[-1], flush=True)
    cells = [f"{100 * a / d:.1f} %, {100 * c / d:.0f} %" for a, c, d in totals.values()]
    return [*lines, f"| all | | | {' | '.join(cells)} | |"]


def correlated(count: int, coefficient: float, random: np.random.Generator) -> np.ndarray:
    """Return the times of epochs of 10 s that spread by CORRELATED_SPREAD and are each like the one before it."""
    noise = random.standard_normal(count)
    values = [noise[0]]
    for each in noise[1:]:
        values.append(coefficient * values[-1] + (1 - coefficient**2) ** 0.5 * each)
    return 10 * (1 + CORRELATED_SPREAD * np.array(values))


def coverage_rates(count: int, coefficient: float, draws: int) -> tuple[int, int, int]:
    """Return how many intervals of a pair of the same are wrong, and how many slower runs are caught, or undecided."""
    random = np.random.default_rng(count)
    metric = METRICS["epoch_time"]
    wrong = caught = undecided = 0
    for _ in range(draws):
        before, after = (without_outliers(correlated(count, coefficient, random), metric) for _ in range(2))
        wrong += change_interval([before], after, STATISTICS["usual"]).is_certain
        found = change_interval([before], SLOWER * after, STATISTICS["usual"])
        caught += found.ends[0] > 0
        undecided += found.enough is not None
    return wrong, caught, undecided


def coverage(draws: int) -> list[str]:
    """Return the table of coverage: wrong intervals before and after, and what becomes of a slower run."""
    lines = [
        "| steady epochs | correlation | wrong before | wrong | caught before | caught | undecided |",
        "|---|---|---|---|---|---|---|",
    ]
    for (count, coefficient), (wrong_before, caught_before) in BY_BLOCKS.items():
        rates_now = [100 * each / draws for each in coverage_rates(count, coefficient, draws)]
        cells = [str(count), f"{coefficient:g}", f"{wrong_before:.1f} %", f"{rates_now[0]:.1f} %"]
        lines.append(f"| {' | '.join([*cells, f'{caught_before} %', *(f'{each:.0f} %' for each in rates_now[1:])])} |")
    return lines


def between(draws: int) -> list[str]:
    """Return the table of false alarms where runs differ from each other as a whole, by the number of baselines."""
    pool = next(p for p in pools() if p.name == "s-healthy")
    lines = ["| runs differ by (standard deviation) | 1 baseline | 3 baselines | 5 baselines |", "|---|---|---|---|"]
    for spread in (0.01, 0.02, 0.03):
        cells = [_between(pool, spread, count, draws) for count in (1, 3, 5)]
        lines.append(f"| {100 * spread:.0f} % | {' | '.join(cells)} |")
    return lines


def _between(pool: Pool, spread: float, baselines: int, draws: int) -> str:
    random = np.random.default_rng(baselines)
    same, slower = Counter[str](), Counter[str]()
    for _ in range(draws):
        before = [pool.draw(9, random, 1 + spread * random.standard_normal()) for _ in range(baselines)]
        factor = 1 + spread * random.standard_normal()
        same[outcome(before, pool.draw(9, random, factor))] += 1
        slower[outcome(before, pool.draw(9, random, SLOWER * factor))] += 1
    alarms, caught = (100 * found["failed"] / draws for found in (same, slower))
    unsaid = [100 * found["undecided"] / draws for found in (same, slower)]
    if baselines < BAND_AT_LEAST:
        return f"{alarms:.1f} % alarms, {caught:.0f} % caught"
    return f"{alarms:.1f} % alarms ({unsaid[0]:.1f} % undecided), {caught:.0f} % caught ({unsaid[1]:.0f} % undecided)"


def pairs() -> list[str]:
    """Return the table of real pairs of one set-up: the same arguments but for the number of epochs."""
    lines = ["| baseline | run | epoch time | 99 % interval | verdict |", "|---|---|---|---|---|"]
    for before, after in permutations(names(), 2):
        known = fingerprint_of(analysed(before)), fingerprint_of(analysed(after))
        unlike = [d for d in differences(*known) if d.kind != "soft" and d.name != "epochs"]
        if unlike or known[0].hard["GPU model"] is None or known[0].hard["model"] is None:
            continue
        found = compare([analysed(before)], analysed(after))
        if found.obstacles:
            continue
        time = next(metric for metric in found.metrics if metric.metric == "epoch_time")
        low, high = time.interval_share or (float("nan"), float("nan"))
        change = f"{100 * (time.change_share or 0):+.1f} %"
        cells = [f"`{before}`", f"`{after}`", change, f"{100 * low:+.1f} to {100 * high:+.1f} %", time.judgement]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def same_setup() -> list[str]:
    """Return the table of nine real runs of one set-up, each compared with each: change, and what the gates come to."""
    runs = {path.name: analyse(load_run(path)) for path in sorted(SAME_SETUP.iterdir()) if path.is_dir()}
    lines = [f"| baseline | {' | '.join(f'`{name}`' for name in runs)} |", "|---" * (len(runs) + 1) + "|"]
    for before in (name for name in runs if name.startswith("run")):
        cells = ["" if before == after else _outcome(runs[before], runs[after]) for after in runs]
        lines.append(f"| `{before}` | {' | '.join(cells)} |")
    return lines


def sets() -> list[str]:
    """Return the table of what comes of the same nine runs with every set of several healthy ones as baselines."""
    runs = {path.name: analyse(load_run(path)) for path in sorted(SAME_SETUP.iterdir()) if path.is_dir()}
    healthy = [name for name in runs if name.startswith("run")]
    lines = ["| baselines | healthy runs | runs with stalls |", "|---|---|---|"]
    for count in (1, 2, 3, 5):
        cells = [_of_sets(runs, healthy, count, some) for some in (healthy, sorted(set(runs) - set(healthy)))]
        lines.append(f"| {count} | {' | '.join(cells)} |")
    return lines


def _of_sets(runs: Mapping[str, Analysis], healthy: Sequence[str], count: int, held: Sequence[str]) -> str:
    found = Counter(
        compare([runs[each] for each in some], runs[name], default_gates(baseline=True)).outcome
        for some in combinations(healthy, count)
        for name in held
        if name not in some
    )
    words = {"passed": "passed", "not measured": "not decided", "failed": "failed"}
    return f"of {found.total()}: {', '.join(f'{found[key]} {word}' for key, word in words.items() if found[key])}"


def _outcome(before: Analysis, after: Analysis) -> str:
    found = compare([before], after, default_gates(baseline=True))
    time = next(metric for metric in found.metrics if metric.metric == "epoch_time")
    words = {"passed": "passed", "failed": "**failed**", "not measured": "undecided"}
    return f"{round(100 * (time.change_share or 0)):+d} % {words[found.outcome]}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--draws", type=int, default=300)
    asked = parser.parse_args()
    text = document(asked.draws)
    print(text)
    if asked.write:
        whole = DOCUMENT.read_text(encoding="utf-8")
        head, rest = whole.split(BEGIN)
        DOCUMENT.write_text(f"{head}{BEGIN}\n\n{text}\n\n{END}{rest.split(END)[1]}", encoding="utf-8")


def document(draws: int) -> str:
    parts = [
        f"Pairs of made runs whose epochs spread by {100 * CORRELATED_SPREAD:.0f} %, each epoch correlated with the "
        f"one before it: {COVERAGE_DRAWS} pairs a row. *Before*: 300, with the bootstrap in blocks of 2026-11-22. "
        "*Wrong*: the 99 % interval of two runs of the same excludes no change. *Caught*: it excludes no change where "
        "every epoch is 10 % longer. *Undecided*: that points to slower, and the gate says how many epochs would show "
        "it.",
        "\n".join(coverage(COVERAGE_DRAWS)),
        f"Each of {draws} pairs a run and length is drawn from the run's own steady epochs in which nothing was done "
        "to it. It is drawn in circular blocks as long as the rule of Politis and White (2004) finds best. *Alarms*: "
        "the default gates on epochs fail a pair of the same. *Caught*: they fail a run whose every epoch is 10 % "
        "longer. *Spread* is the standard deviation of the epochs. The first epoch of a run is one of those in the "
        "head of the table. Epochs of `yolo26n-cli` get shorter along the way; two runs of it do so alike, which its "
        "second row allows for.",
        "\n".join(resampled(draws)),
        "Two real runs of one set-up (all arguments the same but the number of epochs), each way round:",
        "\n".join(pairs()),
        "Nine runs of one set-up were recorded for this (`tests/data/same_setup`). Nothing was done to seven; the "
        "loader of two stalled in every epoch. The table has the change of the epoch time, and what the default gates "
        "come to. *Undecided* is exit 3, because the machine was slower, or the epochs too few.",
        "\n".join(same_setup()),
        "Every set of so many of the seven healthy runs as baselines, and each of the others compared with it; not "
        "decided is exit 3:",
        "\n".join(sets()),
        "What the epochs of one run cannot know is how runs differ from each other. Epochs of `s-healthy`, ten a run, "
        "each run longer or shorter as a whole by a random factor (made, not recorded). *Undecided*: certainly slower "
        "than the median baseline, and within what the baselines differ by (exit 3):",
        "\n".join(between(draws)),
    ]
    return "\n\n".join(parts)


if __name__ == "__main__":
    main()
