"""Mutated run folders and logs: read, or refused in a line; no traceback, no hang, no growth.

`make fuzz` runs more than three hundred times as many.
"""

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from support import fuzzing
from support.fuzzing import Case, failure_of, kept_case, make_case, numbers_of

from gpu_report.errors import InputError

SEED = 1
NUMBERS = numbers_of(300)
AT_ONCE = 50
CORPUS = sorted((Path(__file__).parents[1] / "data" / "fuzz_corpus").glob("*.json"))

pytestmark = pytest.mark.timeout(900, method="thread")  # the signal of the other method is that of a case's own limit


@pytest.mark.parametrize("first", NUMBERS[::AT_ONCE])
def test_what_was_mutated_is_read_or_refused_in_a_line(tmp_path, first):
    for number in NUMBERS[first : first + AT_ONCE]:
        folder = tmp_path / str(number)
        folder.mkdir()
        failure = failure_of(make_case(SEED, number, folder))
        if failure is not None:
            pytest.fail(f"python tests/fuzz.py --seed {SEED} --case {number}: {failure.details}", pytrace=False)
        shutil.rmtree(folder)


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_what_once_failed_fails_no_more(tmp_path, path):
    failure = failure_of(kept_case(path, tmp_path))
    assert failure is None, failure.details


def _loops(path):
    while True:
        pass


def _warns(path):
    np.array([1e308]) * 10


def _prints(path):
    print("a line of ours\nand another", file=sys.stderr)
    raise InputError("and the last")


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (lambda path: 1 / 0, "ZeroDivisionError"),
        (_warns, "overflow encountered"),
        (_loops, "hang: "),
        (_prints, "more than a line on stderr"),
    ],
)
def test_a_fault_is_seen_for_what_it_is(tmp_path, monkeypatch, fault, says):
    monkeypatch.setattr("gpu_report.load.run.load_samples", fault)
    monkeypatch.setattr(fuzzing, "LONGEST_S", 0.2)
    shutil.copytree(fuzzing.SAMPLES / "xid31", tmp_path / "run")
    found = failure_of(Case(("summary", tmp_path / "run")))
    assert says in found.reason
