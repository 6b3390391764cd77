"""How often the report is right about trainings drawn at random (support/drawn_training.py).

Ten of each kind are held one by one, and `make test-long` holds the rates over four hundred. A stall is long enough
to be seen at its interval. Whether a training is starved a recording may be too coarse to show (`is_told`): then
nothing wrong may be said of it.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from support.drawn_training import healthy, is_told, stalled, starved
from support.matching import is_alarm, overlap_s
from support.played_folder import write_played
from support.played_training import Played, Training

from gpu_report.analyse import analyse
from gpu_report.analyse.rules.thresholds import LARGER_BATCH_FROM
from gpu_report.catalogue import LAUNCH_BOUND
from gpu_report.load import load_run
from gpu_report.model import Analysis, Finding

FEW, MANY = 10, 400
OVERLAP = 0.5  # of a stall: so much of it lies in the finding that finds it ...
TOO_LONG = 3.0  # ... which is not so many times as long


def alarms(analysis: Analysis) -> list[Finding]:
    return [finding for finding in analysis.findings if is_alarm(finding)]


def is_left_alone(training: Training, analysis: Analysis) -> bool:
    return not alarms(analysis)


def is_found_starved(training: Training, analysis: Analysis) -> bool:
    found = [finding for finding in analysis.findings if finding.rule == "starved"]
    if any(is_alarm(finding) or _has_small_epochs(training, finding) for finding in found):
        return True
    return not is_told(training.played) and not alarms(analysis) and "healthy" not in analysis.verdict.text


def _has_small_epochs(training: Training, finding: Finding) -> bool:
    """Tell whether small steps are a note, since a larger batch would leave an epoch too few of them."""
    batches = training.played.images / training.played.batch
    return finding.cause is not None and finding.cause.name == LAUNCH_BOUND and batches < LARGER_BATCH_FROM


def is_stall_found(training: Training, analysis: Analysis) -> bool:
    return any(_finds(training.stalled, finding) for finding in alarms(analysis))


def _finds(stall: tuple[float, float], finding: Finding) -> bool:
    common_s, stall_s = overlap_s(stall, finding.span) or 0.0, stall[1] - stall[0]
    return common_s >= OVERLAP * stall_s and finding.duration_s <= TOO_LONG * stall_s


KINDS: Mapping[str, tuple[Callable[[int], Played], Callable[[Training, Analysis], bool], float]] = {
    "healthy": (healthy, is_left_alone, 0.99),
    "starved": (starved, is_found_starved, 0.95),
    "stalled": (stalled, is_stall_found, 0.95),
}


def said_wrong(kind: str, seed: int) -> str:
    """Return what was drawn and what is said of it where that is wrong, else nothing."""
    draw, is_right, _ = KINDS[kind]
    with TemporaryDirectory() as folder:
        training = write_played(Path(folder) / "run", draw(seed))
        analysis = analyse(load_run(Path(folder) / "run"))
    if is_right(training, analysis):
        return ""
    said = Counter((finding.rule, finding.severity) for finding in alarms(analysis))
    return f"{kind} {seed}: {training.played}\n  {dict(said)} {analysis.verdict.text}"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(FEW))
def test_the_report_is_right_about(kind, seed):
    assert said_wrong(kind, seed) == ""


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", KINDS)
def test_the_report_is_right_as_often_as_it_must_be(kind):
    wrong = [said for seed in range(MANY) if (said := said_wrong(kind, seed))]
    assert len(wrong) <= round((1 - KINDS[kind][2]) * MANY), "\n".join(wrong)
