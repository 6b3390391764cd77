"""What was done to a sample run and when the GPU felt it: the one reader of labels.json (sample_runs/README.md)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Span = tuple[float, float]  # seconds from the run's start
Event = tuple[float, str, int | None]  # seconds from the run's start, YOLO's callback, its epoch counted from 1
FITTED, HELD_OUT, IMPORTED, PLAYED = "fitted", "held out", "imported", "played"
SETS = (FITTED, HELD_OUT, IMPORTED, PLAYED)


@dataclass(frozen=True)
class Fault:
    """One thing that was done to a run.

    `cause` is what a perfect report would name, None where the training has nothing to show; `gpu` where it was felt,
    None for all. `command` is when it was done, `effect` when the GPU felt it, None where it did not. A `standing` one
    is no moment but how the training was set up.
    """

    run: str
    kind: str
    cause: str | None
    gpu: int | None
    command: Span
    effect: Span | None
    standing: bool = False
    played: bool = False

    @property
    def felt(self) -> Span:
        """Return when a report should show it: its effect, or where the GPU's work shows none, the time it was done."""
        return self.effect or self.command

    @property
    def name(self) -> str:
        """Return what it is called in tables and lists; labels do not change, so it is stable."""
        moment = "throughout" if self.standing else f"at {self.felt[0]:.0f} s"
        return f"{self.run}: {self.kind} {moment}"


@dataclass(frozen=True)
class Labels:
    """The labels of a run; `of` is the set it belongs to, `first_work_t_s` the first work on a GPU where it is told."""

    run: str
    of: str
    ended: str
    faults: tuple[Fault, ...] = ()
    events: tuple[Event, ...] = ()
    first_work_t_s: float | None = None


def read_labels(folder: Path) -> Labels:
    """Return the labels of a run folder; a set that is not known is an error."""
    told = json.loads((folder / "labels.json").read_text(encoding="utf-8"))
    of = PLAYED if told.get("played") else told.get("set", FITTED)
    if of not in SETS:
        raise ValueError(f"{folder.name}: no such set: {of}")
    faults = tuple(_fault(folder.name, one, played=of == PLAYED) for one in told["faults"])
    events = tuple((t_s, name, epoch) for t_s, name, epoch in told["events"])
    return Labels(folder.name, of, told["ended"], faults, events, told.get("first_work"))


def _fault(run: str, one: Mapping[str, Any], *, played: bool) -> Fault:
    return Fault(
        run,
        one["kind"],
        one["cause"],
        one["gpu"],
        _span(one["command"]),
        _span(one["effect"]) if one["effect"] else None,
        one.get("standing", False),
        played,
    )


def _span(pair: tuple[float, float]) -> Span:
    start, end = pair
    return start, end
