"""Which baselines a run is compared with: those that are named, or of its set-up; and what is said without any."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpu_report import run_folder
from gpu_report.baseline_store import AcceptedBaseline, BaselineSet, digest_of
from gpu_report.cli.common import say, say_notes
from gpu_report.errors import InputError, NotComparableError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpu_report.analyse.compare.fingerprint import Fingerprint
    from gpu_report.model import Analysis

BOTH = "gpu-report compare BASELINE RUN"


def newest_run_for(baseline: Path) -> Path:
    """Return the newest run, which a single name is compared with; say so, for it may have been meant as the run.

    InputError where there is none, UsageError where it is the one that was named.
    """
    try:
        newest = run_folder.newest_run(Path(run_folder.RUNS_DIR))
    except InputError as error:
        raise InputError(f"{baseline} alone is a baseline, and no run is named: `{BOTH}`") from error
    if newest.resolve() == baseline.resolve():
        raise UsageError(f"{baseline} alone is a baseline, and it is the newest run itself: name both: `{BOTH}`")
    say(f"note: no RUN is named, so the newest run, {newest}, is compared with the baseline {baseline}")
    return newest


def others(baselines: Sequence[Path], run: Path) -> list[Path]:
    """Return the baselines that are not the run itself, wherever they lie; NotComparableError where none is left."""
    own = digest_of(run)
    found = [path for path in baselines if not _is_recording(path, own)]
    if not found:
        raise NotComparableError(f"the baseline is the run itself ({baselines[0]}): name another baseline")
    if len(found) < len(baselines):
        say("note: one baseline is the run itself, and is left out")
    return found


def readable(paths: Sequence[Path], analyse: Callable[[Path], Analysis]) -> list[Analysis]:
    """Return the analyses of baselines; of several those that can be read, and a note of the others."""
    found, broken = [], []
    for path in paths:
        try:
            found.append(analyse(path))
        except InputError as error:
            broken.append(error)
    if not found:
        raise broken[0]
    say_notes(tuple(f"{error}; it is left out" for error in broken))
    return found


def baselines_in_set(shelf: BaselineSet, path: Path, run: Analysis) -> list[Path]:
    """Return the baselines of the run's set-up: the newest, and others with the same arguments as that one.

    NotComparableError where there is none, with the command that makes the run one.
    """
    from gpu_report.analyse.compare.fingerprint import differences

    try:
        found = baselines_with_same_setup(shelf, run)
    except NotComparableError as error:
        raise NotComparableError(f"{error}. To make this run one: `{_accepting(shelf, path)}`") from error
    newest = found[0][1]
    return [kept.path for kept, before in found if not any(d.kind != "soft" for d in differences(newest, before))]


def baselines_with_same_setup(shelf: BaselineSet, run: Analysis) -> list[tuple[AcceptedBaseline, Fingerprint]]:
    """Return the baselines of the run's set-up, newest first; NotComparableError that says why there is none."""
    from gpu_report.analyse.compare import fingerprint_of
    from gpu_report.analyse.compare.fingerprint import differences

    after = fingerprint_of(run)
    known = [(each, before) for each in shelf.accepted() if (before := _fingerprint(each, after)) is not None]
    hard = [[d for d in differences(before, after) if d.kind == "hard"] for _, before in known]
    found = [pair for pair, unlike in zip(known, hard, strict=True) if not unlike]
    if found:
        return found
    nearest = "; ".join(f"{d.name} is {d.baseline} there, {d.run} here" for d in min(hard, key=len, default=[]))
    why = f" ({nearest})" if nearest else ""
    raise NotComparableError(f"no baseline of this set-up under key {shelf.key} in {shelf.directory}{why}")


def _accepting(shelf: BaselineSet, run: Path) -> str:
    """Return the command that makes a run a baseline."""
    key = [] if shelf.key == "default" else ["--key", shelf.key]
    return shlex.join(["gpu-report", "baseline", "accept", str(run), "--baseline-dir", str(shelf.directory), *key])


def _is_recording(path: Path, digest: str) -> bool:
    """Tell whether a run is the recording of this digest; one that cannot be read is reported later."""
    try:
        return digest_of(path) == digest
    except InputError:
        return False


def _fingerprint(kept: AcceptedBaseline, like: Fingerprint) -> Fingerprint | None:
    """Return what a baseline was set up with, None where its facts are not what this version writes."""
    facts: Any = kept.facts.get("fingerprint")
    if not isinstance(facts, dict) or not all(isinstance(facts.get(each), dict) for each in ("hard", "arguments")):
        say_notes((f"{kept.path} has no fingerprint and is left out",))
        return None
    if bool(facts.get("of_calls")) != like.of_calls:
        return None  # a training is no baseline of calls
    if set(facts["hard"]) != set(like.hard):
        say_notes((f"{kept.path} was accepted by another version and is left out: accept it again",))
        return None
    parameters = facts.get("parameters")
    return replace(
        like,
        hard={name: facts["hard"][name] for name in like.hard},
        arguments=facts["arguments"],
        soft={},
        parameters=parameters if isinstance(parameters, int) else None,
    )
