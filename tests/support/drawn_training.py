"""Trainings drawn at random: long and short epochs and validations, coarse recordings, other cards, one GPU to eight.

What is drawn is a `Played` of support/played_training.py; a seed always gives the same one. Readings are of a moment,
also those of the host and of GPM, which a recorder has as means since the row before: of coarse recordings they are
rougher than real ones.
"""

import math
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from support.played_training import RING_S, Card, Played, Stall

CARDS = (
    Card(),
    Card("Tesla T4", memory_mib=15360, limit_w=70.0, idle_w=10.0, clock_mhz=1590, idle_clock_mhz=300),
    Card("NVIDIA A100-SXM4-80GB", memory_mib=81920, limit_w=400.0, idle_w=55.0, clock_mhz=1410),
    Card("NVIDIA H200", memory_mib=143771, limit_w=700.0, idle_w=75.0, clock_mhz=1980, idle_clock_mhz=345),
)
INTERVALS_S = (0.5, 1.0, 1.0, 2.0, 5.0, 10.0, 30.0)
GPUS = (1, 1, 1, 2, 4, 8)
EPOCHS, HOUR_S = 30, 3600.0  # a training has so many epochs at least, or takes so long
TWO = 2  # epochs, even so
ROWS, RING_ROWS = 30_000, 60_000  # at most, so that it stays fast

# Standard deviation of a validation, as a share. Of few epochs nobody can tell one that varies from one held up.
JITTER, JITTER_OF_FEW, FEW = 0.3, 0.08, 8

HEALTHY_PCT = (62.0, 99.0)  # mean utilisation of training: over 60 %
# Of a step: to launch it took 40 to 100 ms (H200), so that work of twice as long is there before the GPU needs it.
LAUNCHED_S, AHEAD_PCT = 0.2, 88.0
STARVED_PCT = (25.0, 38.0)  # under 40 %
NOT_STARVED_PCT = (45.0, 99.0)

STALL_AT_LEAST_S, STALL_READINGS, STALL_SHARE = 10.0, 3.0, 0.03  # of the run
TRAINED_BEFORE_S, TRAINED_READINGS = 60.0, 6.0  # before a stall: what a level can be made of

STARVED_MEAN_PCT = 40.0
ENOUGH_S, ENOUGH_READINGS = 20.0, 10  # of training, where callbacks say when it was
PART_READINGS = 3  # in a training and in a validation, where nobody says which is which

# How the host of a starved training looks: workers that cannot keep up, a main process that cannot, or neither.
LOADER: dict[str, Any] = {"workers": 2, "worker_cpu_pct": 97, "main_cpu_pct": 45, "data_wait_share": 0.72}
MAIN: dict[str, Any] = {"worker_cpu_pct": 20, "main_cpu_pct": 100}
NEITHER: dict[str, Any] = {"worker_cpu_pct": 20, "main_cpu_pct": 30}


@dataclass(frozen=True)
class Lengths:
    """How long things take, in seconds, and how many epochs there are."""

    train_s: float
    validation_s: float
    interval_s: float
    gpus: int
    epochs: int

    @property
    def duration_s(self) -> float:
        """Return about how long it takes, without startup and final evaluation."""
        return self.epochs * (self.train_s + self.validation_s)

    @property
    def rows(self) -> float:
        """Return how many rows samples.csv has."""
        return self.duration_s / self.interval_s * self.gpus


def healthy(seed: int) -> Played:
    """Return a training whose GPUs are busy, all the more in steps that are launched long before they are computed."""
    pick = Random(f"healthy {seed}")
    played = _played(pick, _lengths(pick), HEALTHY_PCT)
    work_s = played.batch * played.train_s / played.images * played.train_pct / 100
    return replace(played, train_pct=max(played.train_pct, AHEAD_PCT)) if work_s >= LAUNCHED_S else played


def starved(seed: int) -> Played:
    """Return a training whose GPUs mostly wait."""
    pick = Random(f"starved {seed}")
    return replace(_played(pick, _lengths(pick), STARVED_PCT), **pick.choice([LOADER, MAIN, NEITHER]))


def stalled(seed: int) -> Played:
    """Return a training that is not starved, and in which everything waits once, for long enough to be seen."""
    pick = Random(f"stalled {seed}")
    lengths = _lengths(pick)
    while lengths.epochs * lengths.train_s < 3 * _before_s(lengths):
        lengths = _lengths(pick)
    least_s = max(STALL_AT_LEAST_S, STALL_READINGS * lengths.interval_s, STALL_SHARE * lengths.duration_s)
    earliest = 1 + math.ceil(_before_s(lengths) / lengths.train_s)
    stall = Stall(pick.randint(earliest, lengths.epochs), pick.random(), least_s * _of(pick, 1.1, 1.5))
    return replace(_played(pick, lengths, NOT_STARVED_PCT), stall=stall)


def is_told(played: Played) -> bool:
    """Tell whether a recording can show how busy the training was, apart from its validations.

    It can where callbacks report when it trained, and there are readings of that. From outside each part of an epoch
    must be seen, for what lies before a row is validation; or the validations are as little busy, so that it does not
    matter.
    """
    apart_s = RING_S if played.ring else played.interval_s
    trained_s = (played.epochs - 1) * played.train_s
    enough = trained_s >= max(ENOUGH_S, ENOUGH_READINGS * apart_s)
    seen = min(played.train_s, played.validation_s) >= PART_READINGS * apart_s
    return enough and (played.inside or seen or played.validation_pct < STARVED_MEAN_PCT)


def _before_s(lengths: Lengths) -> float:
    return max(TRAINED_BEFORE_S, TRAINED_READINGS * lengths.interval_s)


def _lengths(pick: Random) -> Lengths:
    """Return lengths whose samples are no more than ROWS."""
    while True:
        epoch_s, ratio = _log(pick, 2.0, 7200.0), _log(pick, 0.05, 5.0)
        epochs = max(math.ceil(min(EPOCHS, HOUR_S / epoch_s) * _of(pick, 1.0, 2.0)), TWO)
        train_s = epoch_s / (1 + ratio)
        found = Lengths(train_s, epoch_s - train_s, pick.choice(INTERVALS_S), pick.choice(GPUS), epochs)
        if found.rows <= ROWS:
            return found


def _played(pick: Random, lengths: Lengths, train_pct: tuple[float, float]) -> Played:
    card, gpus, epoch_s = pick.choice(CARDS), lengths.gpus, lengths.train_s + lengths.validation_s
    train, validation = _of(pick, *train_pct), _of(pick, 10.0, 95.0)
    validation_w = _power_w(pick, card, validation)
    may_ring = lengths.duration_s / RING_S * gpus <= RING_ROWS
    return Played(
        epochs=lengths.epochs,
        train_s=lengths.train_s,
        train_jitter=_of(pick, 0.002, 0.02),
        validation_s=lengths.validation_s,
        validation_jitter=_of(pick, 0.0, JITTER if lengths.epochs >= FEW else JITTER_OF_FEW),
        checkpoint_s=min(_log(pick, 0.1, 5.0), 0.15 * epoch_s),
        startup_s=_log(pick, 5.0, 120.0),
        first_batch_s=_log(pick, 1.0, 30.0),
        final_s=lengths.validation_s * _of(pick, 0.9, 1.3),
        interval_s=lengths.interval_s,
        ring=may_ring and pick.random() < 0.5,
        inside=pick.random() < 0.5,
        gpm=pick.random() < 0.3,
        host=pick.random() < 0.8,
        processes=pick.random() < 0.8,
        gpus=gpus,
        peers_spin=gpus > 1 and pick.random() < 0.5,
        card=card,
        train_pct=train,
        validation_pct=validation,
        final_pct=validation,
        noise_pct=_of(pick, 1.0, 6.0),
        train_w=_power_w(pick, card, train),
        validation_w=validation_w,
        final_w=validation_w,
        train_clock_mhz=round(card.clock_mhz * _of(pick, 0.85, 0.99)),
        memory_mib=round(card.memory_mib * _of(pick, 0.2, 0.85)),
        cores=64,
        main_cpu_pct=round(_of(pick, 40.0, 100.0)),
        worker_cpu_pct=round(_of(pick, 10.0, 70.0)),
        images=max(round(lengths.train_s * _log(pick, 50.0, 500.0)), 128),
        seed=pick.randrange(2**32),
    )


def _power_w(pick: Random, card: Card, util_pct: float) -> float:
    return card.idle_w + (card.limit_w - card.idle_w) * util_pct / 100 * _of(pick, 0.5, 0.95)


def _of(pick: Random, least: float, most: float) -> float:
    return pick.uniform(least, most)


def _log(pick: Random, least: float, most: float) -> float:
    """Return a number between two, each of their decades as likely as the other."""
    return math.exp(pick.uniform(math.log(least), math.log(most)))
