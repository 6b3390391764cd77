"""YOLO objects whose predictor is set up anew again and again, because calls change an argument of its set-up."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final, NamedTuple

import numpy as np

from gpu_report.analyse.context import Context
from gpu_report.analyse.inference.call_time import MS
from gpu_report.analyse.inference.callers import caller_of
from gpu_report.analyse.inference.served import SAME_AS, judged_models
from gpu_report.model import CodeLocation, RebuiltPredictor, ServedModel

# Arguments of a call with which ultralytics sets a predictor up anew, as a model's settings name them.
SETUP: Final = ("asked_device", "quantize", "half", "nms", "end2end", "compile", "channels_last", "dnn", "tracker")
NAMES: Final = {"asked_device": "device"}
FEWEST_ROWS: Final = 5  # calls of each kind, of which a typical pause is known


class Rebuilt(NamedTuple):
    """One model's file in one process: how often its predictor was set up anew, in how many calls, and what it took.

    `changed` are the arguments that differed, `seconds` None where pauses before calls do not say it. `is_reported`
    says that the process itself saw one YOLO object get another predictor: else the order of calls says so.
    """

    models: Sequence[ServedModel]
    times: int
    calls: int
    changed: tuple[str, ...]
    seconds: float | None
    where: CodeLocation | None
    is_reported: bool


def rebuilt_predictors(context: Context) -> list[Rebuilt]:
    """Return the models whose predictors were set up anew, whether that took much or not."""
    return [found for models in _same_file(context) if (found := _rebuilt(context, models)) is not None]


def _same_file(context: Context) -> Iterator[list[ServedModel]]:
    """Yield the models of one file and one process together."""

    def key(served: ServedModel) -> tuple[int, str]:
        return served.calls.pid, served.calls.name

    for _, models in groupby(sorted(context.cached(judged_models), key=key), key=key):
        yield sorted(models, key=lambda each: -each.images)


def _rebuilt(context: Context, models: Sequence[ServedModel]) -> Rebuilt | None:
    runs = [run for run in context.run.inside if run.pid == models[0].calls.pid]
    numbers = {each.calls.number for each in models}
    reported = sum(max((run.rebuilt.get(number, 0) for run in runs), default=0) for number in numbers)
    ways = [way for run in runs for way in run.rebuilds if way.number in numbers]
    changed = tuple(dict.fromkeys(name for way in ways for name in way.changed)) or _differing(models)
    times = reported or _by_order(models)
    if not times or not changed:
        return None
    calls = sum(len(each.calls.start_s) for each in models)
    where = _place(ways) or caller_of(context, models[0])
    return Rebuilt(models, times, calls, changed, _seconds(models), where, is_reported=reported > 0)


def _differing(models: Sequence[ServedModel]) -> tuple[str, ...]:
    """Return the arguments of the set-up in which models differ."""
    told = [each.calls.settings for each in models]
    differ = [name for name in SETUP if len({str(each.get(name)) for each in told}) > 1]
    return tuple(NAMES.get(name, name) for name in differ if SAME_AS.get(name) not in differ)


def _by_order(models: Sequence[ServedModel]) -> int:
    """Return how often a predictor was set up anew by the order of calls; 0 where it does not say so.

    One YOLO object makes a predictor at each change of an argument. One for each setting makes one each in all, one
    for each call as many as there are calls.
    """
    made = sum(each.calls.predictors or 0 for each in models)
    changes = int(_changes(models)[1].sum())
    if len(models) < 2 or made >= sum(len(each.calls.start_s) for each in models):
        return 0
    return made - 1 if changes <= made - 1 <= changes + len(models) else 0


def _changes(models: Sequence[ServedModel]) -> tuple[np.ndarray, np.ndarray]:
    """Return the pause (ms) before each call of all models, in order, and whether the call before was of another."""
    start_s = np.concatenate([each.calls.start_s for each in models])
    order = np.argsort(start_s, kind="stable")
    number = np.concatenate([np.full(len(each.calls.start_s), each.calls.number) for each in models])[order]
    gap_ms = np.concatenate([each.calls.gap_ms for each in models])[order]
    return gap_ms, np.diff(number, prepend=number[:1]) != 0


def _seconds(models: Sequence[ServedModel]) -> float | None:
    """Return what setting up took in all, by how much longer pauses are before calls with another argument."""
    gap_ms, changes = _changes(models)
    known = np.isfinite(gap_ms)
    at, others = gap_ms[known & changes], gap_ms[known & ~changes]
    if min(len(at), len(others)) < FEWEST_ROWS:
        return None
    return max(float(np.median(at) - np.median(others)), 0.0) * len(at) / MS


def _place(ways: Sequence[RebuiltPredictor]) -> CodeLocation | None:
    """Return the user's line that changed an argument first, None where none is known."""
    way = next((way for way in ways if way.file), None)
    return None if way is None else CodeLocation("main", way.function, way.file, way.line, 1.0)
