"""Which models of several runs are the same one: by name, format, precision and batch, else by less of that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gpu_report.analyse.compare.calls.samples import CallSample


@dataclass(frozen=True, eq=False)
class MatchedModel:
    """A model of the run, and the same one of each baseline that has it; `model` names it where there are several."""

    baselines: tuple[CallSample, ...]
    run: CallSample
    model: str = ""


# What two models have in common to be the same one, the surest first.
ALIKE: tuple[Callable[[CallSample], object], ...] = (
    lambda sample: sample.key,
    lambda sample: (sample.name, sample.batch),
    lambda sample: sample.name,
)


def matched(baselines: Sequence[Sequence[CallSample]], run: Sequence[CallSample]) -> list[MatchedModel]:
    """Return the models that the run and any baseline have; without baselines those of the run."""
    several = len(run) > 1
    pairs = [_pairs(each, run) for each in baselines]
    names = [_named(sample, run) if several else "" for sample in run]
    found = [
        MatchedModel(tuple(of[at] for of in pairs if at in of), sample, name)
        for at, (sample, name) in enumerate(zip(run, names, strict=True))
    ]
    return [each for each in found if each.baselines or not baselines]


def unmatched(baseline: Sequence[CallSample], run: Sequence[CallSample]) -> tuple[str, ...]:
    """Return which models one run alone has, in sentences."""
    pairs = _pairs(baseline, run)
    of_run = [sample for at, sample in enumerate(run) if at not in pairs]
    kept = {id(sample) for sample in pairs.values()}
    of_baseline = [sample for sample in baseline if id(sample) not in kept]
    return (
        *(f"{_named(sample, run)} is in the run only, and is not compared." for sample in of_run),
        *(f"{_named(sample, baseline)} is in the baseline only, and is not compared." for sample in of_baseline),
    )


def _pairs(baseline: Sequence[CallSample], run: Sequence[CallSample]) -> dict[int, CallSample]:
    """Return the baseline's model for each of the run's, by its place; the only ones whatever they are called."""
    if len(baseline) == len(run) == 1:
        return {0: baseline[0]}
    pairs: dict[int, CallSample] = {}
    left, open_ = list(baseline), list(range(len(run)))
    for alike in ALIKE:
        for at in tuple(open_):
            same = [each for each in left if alike(each) == alike(run[at])]
            rivals = [other for other in open_ if alike(run[other]) == alike(run[at])]
            if len(same) == len(rivals) == 1:
                pairs[at] = same[0]
                left.remove(same[0])
                open_.remove(at)
    return pairs


def _named(sample: CallSample, among: Sequence[CallSample]) -> str:
    """Return a model's name, with what sets it apart from others of that name."""
    rivals = [each for each in among if each.name == sample.name]
    if len(rivals) < 2:
        return sample.name
    images = f"batch {sample.batch}"
    return f"{sample.name} ({sample.key[1]}, {'half, ' if sample.key[2] == 'True' else ''}{images})"
