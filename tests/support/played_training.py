"""Trainings that nobody can record here: plausible readings, second by second, of any length and on any card.

They show what the analysis makes of such readings, never how often a real training has them. `Played` says what is
played, `play` what it comes to; `support/played_folder.py` writes it as a run folder.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating[Any]]
Bools = npt.NDArray[np.bool_]
Kinds = npt.NDArray[np.intp]

RING_S = 0.2  # distance of the driver's own readings of utilisation
RING_TRAILS_S = 0.2  # each is of the period before it, which is over when it is stamped (H200)
RING_FIRST_S, TICK_FIRST_S = 0.1, 0.02
FIRST_VALIDATION = 1.3  # of the length of the others
SHORTEST_SHARE = 0.1  # of a validation's usual length, however wide its jitter
STALLED_PCT = 2  # utilisation while everything waits
SPINNING_W = 0.28  # of the power of training: a rank that waits for another reads 100 % (m-ddp)
SPINNING_WORK = 0.02  # of its cycles that are work

# The parts that a training is made of, in the order of `_levels`.
PARTS = ("idle", "startup", "first batch", "train", "stall", "validation", "checkpoint", "final evaluation")
IDLE, STARTUP, FIRST_BATCH, TRAIN, STALL, VALIDATION, CHECKPOINT, FINAL = range(len(PARTS))
BUSY = (TRAIN, VALIDATION)  # the parts whose utilisation varies
# YOLO's phase that each part lies in.
PHASES = dict(zip(PARTS, PARTS, strict=True)) | {"first batch": "startup", "stall": "train"}


@dataclass(frozen=True)
class Card:
    """A GPU model: its memory (MiB), power limit and idle power (W), highest and idle SM clock (MHz)."""

    name: str = "NVIDIA GeForce RTX 4090"
    memory_mib: int = 24564
    limit_w: float = 450.0
    idle_w: float = 25.0
    clock_mhz: int = 3105
    idle_clock_mhz: int = 210


@dataclass(frozen=True)
class Low:
    """A stretch from `start_s` to `end_s` of the run in which utilisation is `util_pct`, whatever the training does."""

    start_s: float
    end_s: float
    util_pct: float = STALLED_PCT


@dataclass(frozen=True)
class Stall:
    """Seconds for which everything waits, `at` (0 to 1) of the way through an epoch's training, which they prolong."""

    epoch: int
    at: float
    seconds: float


@dataclass(frozen=True)
class Played:
    """A training to be played.

    Lengths `_s` in seconds (`_jitter`: standard deviation, as a share), utilisation and CPU `_pct` in %, power `_w`.
    `first_batch_s` comes before the first epoch's training. `validation_of`, `train_of` and `checkpoint_of` give the
    seconds of parts in place of `validation_s` and the like. `final_w` None is 0.6 of the power of validation.
    `data_wait_share` (0 to 1) of training is what callbacks (`inside`) report of it. `ring` are the driver's own
    readings, `gpm` SM activity and the like, `host` and `processes` the files of that name. With `peers_spin` GPUs
    but the first wait for it in validations and checkpoints, at 100 % and little power, as where only rank 0
    validates (ultralytics up to 8.3). `lows` leave the training's timetable as it is; `low_main_cpu_pct` is the
    main process's CPU in them and in the `stall`.
    """

    epochs: int = 10
    train_s: float = 60.0
    train_of: Callable[[int], float] | None = None
    train_jitter: float = 0.005
    validation_s: float = 10.0
    validation_jitter: float = 0.0
    validation_of: Callable[[int], float] | None = None
    checkpoint_s: float = 2.0
    checkpoint_of: Callable[[int], float] | None = None
    idle_before_s: float = 3.0
    startup_s: float = 20.0
    first_batch_s: float = 5.0
    final_s: float = 8.0
    idle_after_s: float = 3.0
    lows: tuple[Low, ...] = ()
    low_main_cpu_pct: int = 2
    stall: Stall | None = None
    interval_s: float = 1.0
    ring: bool = False
    inside: bool = False
    gpm: bool = False
    host: bool = True
    processes: bool = True
    gpus: int = 1
    peers_spin: bool = False
    card: Card = field(default_factory=Card)
    has_utilisation: bool = True
    train_pct: float = 92.0
    validation_pct: float = 40.0
    final_pct: float = 20.0
    noise_pct: float = 4.0
    train_w: float = 330.0
    validation_w: float = 200.0
    final_w: float | None = None
    train_clock_mhz: int = 2700
    validation_clock_mhz: int | None = None
    train_clock_reasons: int = 0
    temperature_c: int = 65
    memory_mib: int = 14000
    cores: int = 16
    workers: int = 8
    worker_cpu_pct: int = 60
    main_cpu_pct: int = 100
    data_wait_share: float = 0.002
    images: int = 118287
    batch: int = 16
    seed: int = 0


class Part(NamedTuple):
    """A stretch of the training from `start_s` to `end_s`, of a kind that `PARTS` lists."""

    name: str
    start_s: float
    end_s: float


class Epoch(NamedTuple):
    """An epoch: when it began, its first batch was there, training ended, its row appeared, its checkpoint was over."""

    number: int
    start_s: float
    train_s: float
    validation_s: float
    row_s: float
    end_s: float


@dataclass(frozen=True, eq=False)
class Readings:
    """What one kind of recording reads: its times (s) and kinds of part, utilisation (%) with a row for each GPU."""

    t_s: Floats
    kinds: Kinds
    util_pct: Floats


@dataclass(frozen=True, eq=False)
class Training:
    """What a played training came to: its parts and epochs in order, and readings at ticks and of the driver's ring.

    `power_w` has a row for each tick and a column for each GPU; `ring` is None where none was asked for.
    """

    played: Played
    parts: tuple[Part, ...]
    epochs: tuple[Epoch, ...]
    ticks: Readings
    power_w: Floats
    ring: Readings | None

    @property
    def duration_s(self) -> float:
        """Return how long the recording is."""
        return self.parts[-1].end_s

    @cached_property
    def stalled(self) -> tuple[float, float] | None:
        """Return when everything waited, None where nothing did."""
        return next(((part.start_s, part.end_s) for part in self.parts if part.name == "stall"), None)

    def seconds_of(self, phase: str) -> float:
        """Return how long a phase of YOLO took in all."""
        return sum(part.end_s - part.start_s for part in self.parts if PHASES[part.name] == phase)


def play(played: Played) -> Training:
    """Return what a training comes to; the same parameters always give the same."""
    random = np.random.default_rng(played.seed)
    parts, epochs = _timetable(played, random)
    end_s, interval_s = parts[-1].end_s, played.interval_s
    ticks = _readings(played, parts, TICK_FIRST_S + np.arange(int(end_s / interval_s) + 1) * interval_s, random)
    power_w = _power(played, ticks, random)
    ring_s = RING_FIRST_S + np.arange(int(end_s / RING_S)) * RING_S
    ring = _readings(played, parts, ring_s - RING_TRAILS_S, random) if played.ring else None
    ring = replace(ring, t_s=ring_s) if ring is not None else None
    return Training(played, tuple(parts), tuple(epochs), ticks, power_w, ring)


def kinds_at(t_s: Floats, parts: list[Part]) -> Kinds:
    """Return the kind of part that each moment lies in, as its place in `PARTS`."""
    starts = np.array([part.start_s for part in parts])
    kinds = np.array([PARTS.index(part.name) for part in parts])
    found: Kinds = kinds[np.maximum(np.searchsorted(starts, t_s, side="right") - 1, 0)]
    return found


def in_low(played: Played, readings: Readings) -> Bools:
    """Return which readings lie in a low or the stall."""
    low: Bools = readings.kinds == STALL
    for each in played.lows:
        low |= (readings.t_s >= each.start_s) & (readings.t_s < each.end_s)
    return low


# --- the timetable ------------------------------------------------------------------------------------------------


def _timetable(played: Played, random: np.random.Generator) -> tuple[list[Part], list[Epoch]]:
    begun_s = played.idle_before_s + played.startup_s
    parts = [Part("idle", 0.0, played.idle_before_s), Part("startup", played.idle_before_s, begun_s)]
    epochs = []
    for number in range(1, played.epochs + 1):
        mine = list(_epoch_parts(played, number, parts[-1].end_s, random))
        epochs.append(_epoch(number, mine))
        parts += [part for part in mine if part.end_s > part.start_s]
    evaluated_s = parts[-1].end_s + played.final_s
    parts.append(Part("final evaluation", parts[-1].end_s, evaluated_s))
    parts.append(Part("idle", evaluated_s, evaluated_s + played.idle_after_s))
    return parts, epochs


def _epoch_parts(played: Played, number: int, start_s: float, random: np.random.Generator) -> Iterator[Part]:
    """Yield the parts of an epoch, of which some may have no length."""
    for name, seconds in (
        ("first batch", played.first_batch_s if number == 1 else 0.0),
        *_trained(played, number, _train_s(played, number) * (1 + played.train_jitter * random.standard_normal())),
        ("validation", _validation_s(played, number, random)),
        ("checkpoint", played.checkpoint_s if played.checkpoint_of is None else played.checkpoint_of(number)),
    ):
        yield Part(name, start_s, start_s + seconds)
        start_s += seconds


def _train_s(played: Played, number: int) -> float:
    return played.train_s if played.train_of is None else played.train_of(number)


def _trained(played: Played, number: int, train_s: float) -> list[tuple[str, float]]:
    """Return the parts of an epoch's training: in the one with the stall there are three."""
    stall = played.stall
    if stall is None or stall.epoch != number:
        return [("train", train_s)]
    return [("train", stall.at * train_s), ("stall", stall.seconds), ("train", (1 - stall.at) * train_s)]


def _validation_s(played: Played, number: int, random: np.random.Generator) -> float:
    usual_s = played.validation_s * (FIRST_VALIDATION if number == 1 else 1.0)
    if played.validation_of is not None:
        usual_s = played.validation_of(number)
    return usual_s * max(1 + played.validation_jitter * random.standard_normal(), SHORTEST_SHARE)


def _epoch(number: int, parts: list[Part]) -> Epoch:
    first_batch, validation, checkpoint = parts[0], parts[-2], parts[-1]
    return Epoch(
        number, first_batch.start_s, first_batch.end_s, validation.start_s, checkpoint.start_s, checkpoint.end_s
    )


# --- readings -----------------------------------------------------------------------------------------------------


def _readings(played: Played, parts: list[Part], t_s: Floats, random: np.random.Generator) -> Readings:
    found = Readings(t_s, kinds_at(t_s, parts), np.empty((played.gpus, len(t_s))))
    for gpu in range(played.gpus):
        found.util_pct[gpu] = _utilisation(played, found, gpu, random)
    return found


def _utilisation(played: Played, readings: Readings, gpu: int, random: np.random.Generator) -> Floats:
    util_pct = np.array([0, 1, 3, played.train_pct, STALLED_PCT, played.validation_pct, 1, played.final_pct])[
        readings.kinds
    ]
    busy = np.isin(readings.kinds, BUSY)
    noise = played.noise_pct * random.standard_normal(int(busy.sum()))
    util_pct[busy] = np.clip(util_pct[busy] + noise, 0, 100)
    for low in played.lows:
        util_pct[(readings.t_s >= low.start_s) & (readings.t_s < low.end_s)] = low.util_pct
    util_pct[spins(played, readings.kinds, gpu)] = 100
    rounded: Floats = np.round(np.clip(util_pct, 0, 100))
    return rounded


def spins(played: Played, kinds: Kinds, gpu: int) -> Bools:
    """Return at which readings a GPU only waits for the first one."""
    return np.isin(kinds, (VALIDATION, CHECKPOINT)) & (played.peers_spin and gpu > 0)


def _power(played: Played, ticks: Readings, random: np.random.Generator) -> Floats:
    """Return power (W) with a row for each tick and a column for each GPU."""
    idle_w, train_w, validation_w = played.card.idle_w, played.train_w, played.validation_w
    level_w = np.array([1.0, 1.5, 2.0, 0.0, 2.0, 0.0, 2.2, 0.0]) * idle_w
    level_w[[TRAIN, VALIDATION, FINAL]] = train_w, validation_w, played.final_w or 0.6 * validation_w
    power_w = level_w[ticks.kinds][:, None] * (1 + 0.02 * random.standard_normal((len(ticks.t_s), played.gpus)))
    power_w[in_low(played, ticks)] = 2 * idle_w
    for gpu in range(played.gpus):
        power_w[spins(played, ticks.kinds, gpu), gpu] = SPINNING_W * train_w
    return power_w
