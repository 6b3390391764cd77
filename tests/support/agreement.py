"""How far two accounts of what YOLO was doing agree: phases seen from outside, and what its callbacks said."""

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpu_report.model import Phase
from support.labels import Labels

CALLBACKS = "callbacks"
# Which phase an event begins, "" for none; other events begin and end nothing.
BEGINS = {
    "on_train_epoch_start": "train",
    "on_train_epoch_end": "validation",
    "on_val_end": "checkpoint",
    "on_fit_epoch_end": "",
}
OF_AN_EPOCH = {"train", "validation", "checkpoint"}


@dataclass(frozen=True)
class Agreement:
    """`confusion` holds seconds by (true phase, claimed phase); boundaries are errors in seconds, claimed less true.

    `epoch_ends` is where an epoch's checkpoint ends and the next one begins, `row_ends` where its validation ends and
    its row is written, `train_ends` where its training ends.
    """

    confusion: Mapping[tuple[str, str], float]
    epoch_ends: Sequence[float]
    row_ends: Sequence[float]
    train_ends: Sequence[float]

    @property
    def seconds(self) -> float:
        return sum(self.confusion.values())

    @property
    def right_pct(self) -> float:
        right = sum(seconds for (true, claimed), seconds in self.confusion.items() if true == claimed)
        return 100 * right / self.seconds

    def right_pct_of(self, name: str) -> float | None:
        """Return how much of one true phase was recognised, None where the run had none of it."""
        mine = {claimed: seconds for (true, claimed), seconds in self.confusion.items() if true == name}
        return 100 * mine.get(name, 0.0) / sum(mine.values()) if mine else None


def labelled(labels: Labels) -> list[Phase]:
    """Return the phases that a run's callbacks told, of a run whose first work on a GPU is known.

    From `on_pretrain_routine_start` to the first work on the GPU after `on_train_start` is startup. An epoch that was
    cut off has its training up to the last event.
    """
    first_work = labels.first_work_t_s
    if first_work is None:
        raise ValueError(f"{labels.run}: its labels do not tell the first work on a GPU")
    phases = [Phase("startup", None, labels.events[0][0], first_work, CALLBACKS)]
    epoch: int | None = None
    opened: tuple[str, float] | None = None
    for t_s, event, number in labels.events:
        name = BEGINS.get(event)
        if name is None:
            continue
        if opened is not None:
            phases.append(Phase(opened[0], epoch, max(opened[1], first_work), t_s, CALLBACKS))
        epoch = number if event == "on_train_epoch_start" else epoch
        opened = (name, t_s) if name else None
    return [phase for phase in phases if phase.end_t_s > phase.start_t_s]


def compare(truth: Sequence[Phase], claimed: Sequence[Phase]) -> Agreement:
    """Compare from the first to the last moment of the truth. A phase of another epoch is not the same phase.

    Startup is of no epoch: told from inside, the wait for the first batch belongs to the first one, which nothing
    outside tells.
    """
    edges = {t for phase in (*truth, *claimed) for t in (phase.start_t_s, phase.end_t_s)}
    inside = sorted(t for t in edges if truth[0].start_t_s <= t <= truth[-1].end_t_s)
    confusion: Counter[tuple[str, str]] = Counter()
    for start, end in itertools.pairwise(inside):
        middle = (start + end) / 2
        true, said = _at(truth, middle), _at(claimed, middle)
        if true is None:  # the moment between two epochs, under 2 ms
            continue
        other = said is not None and said.name == true.name in OF_AN_EPOCH and said.epoch != true.epoch
        name = "another epoch" if other else said.name if said else "unknown"
        confusion[true.name, name] += end - start
    return Agreement(
        confusion,
        epoch_ends=_errors(_ends(truth, {"checkpoint"}), _ends(claimed, OF_AN_EPOCH)),
        row_ends=_errors(_ends(truth, {"validation"}), _ends(claimed, {"train", "validation"})),
        train_ends=_errors(_ends(truth, {"train"}, {"validation"}), _ends(claimed, {"train"})),
    )


def worst(errors: Sequence[float]) -> float | None:
    """Return the error furthest from none."""
    return max(errors, key=abs, default=None)


def _at(phases: Sequence[Phase], t_s: float) -> Phase | None:
    return next((phase for phase in phases if phase.start_t_s <= t_s < phase.end_t_s), None)


def _ends(phases: Sequence[Phase], names: set[str], followed_by: set[str] | None = None) -> dict[int, float]:
    """Return where each epoch's last phase of these names ends; only of epochs that have the others, too."""
    has = {phase.epoch for phase in phases if followed_by is None or phase.name in followed_by}
    ends: dict[int, float] = {}
    for phase in phases:
        if phase.name in names and phase.epoch is not None and phase.epoch in has:
            ends[phase.epoch] = max(ends.get(phase.epoch, phase.end_t_s), phase.end_t_s)
    return ends


def _errors(truth: Mapping[int, float], claimed: Mapping[int, float]) -> list[float]:
    """Return claimed less true for each epoch of the truth; infinite where nothing was claimed of it."""
    return [claimed.get(epoch, float("inf")) - end for epoch, end in truth.items()]
