"""Time between validations: what it went to, and a check of the data that is made anew each time."""

import dataclasses

import pytest
from support.runs import make_run, readings
from support.stacks import process

from gpu_report.analyse import analyse
from gpu_report.model import Frame, InsideRun, Phase, Validation

YOLO = "/venv/lib/python3.12/site-packages/ultralytics/"
MAIN = Frame("/home/me/nightly.py", 17, "main")
SCAN = (Frame(YOLO + "data/dataset.py", 144, "cache_labels"), Frame(YOLO + "engine/model.py", 645, "val"), MAIN)
VALIDATES = (Frame(YOLO + "engine/validator.py", 262, "__call__"), MAIN)
OWN = (Frame("/home/me/nightly.py", 30, "crop_all", called="resize"), MAIN)
SLEEP = (Frame("/home/me/nightly.py", 9, "main", called="sleep"),)
PARTS = {"data": 1.0, "preprocess": 1.0, "inference": 2.0, "loss": 0.0, "postprocess": 1.0, "metrics": 1.0}


def nightly(*datas, between=SCAN, gap_s=4.0, val_s=6.0, notes=True):
    """Return a program that validated these data one after the other; it did `between` before each."""
    inside, stays, t_s = [], [], 10.0
    for data in datas:
        done = Validation(t_s, t_s + val_s, None, 420, 14, PARTS, 0.5, 32, 8)
        phase = Phase("validation", None, t_s, t_s + val_s, "callbacks", validated=done)
        inside.append(InsideRun(None, 0, 7, "val", {"data": data} if data else {}, (phase,), ()))
        stays += [(t_s, t_s + val_s, VALIDATES), (t_s + val_s, t_s + val_s + gap_s, between)]
        t_s += val_s + gap_s
    run = make_run([readings((0.0, 10.0), (20.0, t_s))])
    return dataclasses.replace(run, inside=tuple(inside), stacks=(process(*stays, pid=7),) if notes else ())


def found_in(run):
    return next((each for each in analyse(run).findings if each.rule == "between-validations"), None)


def test_labels_that_are_checked_again_each_time_get_a_folder_for_each_list():
    run = nightly("sun.yaml", "rain.yaml", "sun.yaml", "rain.yaml", gap_s=6.0)
    found = found_in(run)
    assert found.severity == "warning"
    checks = "100 % of it checking its images and labels, 2 of 3 times again: cache_labels (dataset.py:144)"
    assert checks in found.summary
    assert [each.line for each in found.where] == [144, 17]
    assert found.advice[0].gain_at_most == pytest.approx(0.5, abs=0.01)
    text = analyse(run).verdict.text
    assert text.startswith("Give each list of images a folder of its own: 12.0 s a validation become 6.00 s at least")
    assert "Nothing to fix" not in text
    assert "and 18 s lay between validations." in text


def test_one_list_that_is_checked_again_and_again_lacks_its_cache():
    assert "keep its `labels.cache`" in found_in(nightly("sun.yaml", "sun.yaml", "sun.yaml")).advice[0].text


@pytest.mark.parametrize("datas", [("a.yaml", "b.yaml", "c.yaml"), ("", "", "")])
def test_a_first_check_of_each_data_set_is_a_note(datas):
    assert found_in(nightly(*datas)).severity == "info"


def test_code_of_the_users_between_validations_is_named():
    found = found_in(nightly("a.yaml", "a.yaml", "a.yaml", between=OWN))
    assert found.advice[0].short == "Look at `crop_all` (nightly.py:30)"
    assert found.severity == "warning"


@pytest.mark.parametrize(
    "run",
    [
        nightly("a.yaml", "a.yaml", "a.yaml", gap_s=0.5),
        nightly("a.yaml"),
        nightly("a.yaml", "a.yaml", between=SLEEP),
        nightly("a.yaml", "a.yaml", notes=False),
    ],
)
def test_little_time_sleep_and_what_nobody_noted_are_none(run):
    assert found_in(run) is None


def ledger_of(run):
    return {row.name: row.gpu_seconds for row in analyse(run).ledger}


def test_the_ledger_says_that_the_program_worked_between_validations():
    """18 s lie between four validations: of a program that slept through them, that is idle time."""
    worked, slept = (ledger_of(nightly(*("a.yaml",) * 4, gap_s=6.0, between=stack)) for stack in (SCAN, SLEEP))
    assert worked["between-validations"] == pytest.approx(0.8 * 18.0, abs=1.0)  # utilisation is 20 %
    assert slept["idle"] == pytest.approx(worked["idle"] + 18.0, abs=1.0)
    assert "between-validations" not in slept


def test_each_time_between_validations_is_one_occurrence():
    found = found_in(nightly(*("a.yaml",) * 4, gap_s=6.0))
    assert [round(each.duration_s) for each in found.each] == [6, 6, 6]
    assert not found_in(nightly("a.yaml", "b.yaml", gap_s=6.0)).occurrences
