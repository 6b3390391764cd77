"""The one form of labels.json, and the page that is made of the runs that carry it."""

import json

import pytest
from support.accuracy import BEGIN, END, page, written_into
from support.labels import Fault, Labels, read_labels
from support.matching import judge
from support.samples import NAMES, labels_of, run_of

FAULT = {"kind": "stall", "cause": "input-stalled", "gpu": 0, "command": [10.0, 30.0], "effect": [13.0, 30.5]}


def read(tmp_path, faults=(), **more):
    told = {"ended": "completed", "faults": faults, "events": [[1.5, "on_train_start", None]], **more}
    (tmp_path / "labels.json").write_text(json.dumps(told))
    return read_labels(tmp_path)


def test_a_label_is_read_as_it_was_written(tmp_path):
    labels = read(tmp_path, [FAULT])
    assert labels.faults == (Fault(tmp_path.name, "stall", "input-stalled", 0, (10.0, 30.0), (13.0, 30.5)),)
    assert labels.events == ((1.5, "on_train_start", None),)
    assert labels.faults[0].name == f"{tmp_path.name}: stall at 13 s"


def test_what_was_not_felt_is_shown_when_it_was_done(tmp_path):
    (leak,) = read(tmp_path, [{**FAULT, "effect": None}]).faults
    assert leak.felt == (10.0, 30.0)


def test_the_set_is_fitted_unless_it_is_told(tmp_path):
    assert read(tmp_path).of == "fitted"
    assert read(tmp_path, set="held out").of == "held out"


def test_a_played_run_is_a_set_of_its_own_and_its_faults_say_so(tmp_path):
    labels = read(tmp_path, [FAULT], played=True)
    assert labels.of == "played"
    assert labels.faults[0].played


def test_a_set_that_nobody_knows_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no such set: heldout"):
        read(tmp_path, set="heldout")


@pytest.mark.parametrize("name", NAMES)
def test_every_label_of_the_sample_runs_lies_within_its_run(name):
    run, labels = run_of(name), labels_of(name)
    gpus = {None, *(gpu.index for gpu in run.gpus)}
    for fault in labels.faults:
        assert fault.gpu in gpus
        for start, end in filter(None, (fault.command, fault.effect)):
            assert 0 <= start <= end <= run.duration_s + 1


def test_every_label_has_a_name_of_its_own():
    names = [fault.name for name in NAMES for fault in labels_of(name).faults]
    assert len(set(names)) == len(names) > 20


def test_the_page_names_what_was_missed_and_that_nobody_said_why():
    labels = Labels("run", "held out", "completed", (Fault("run", "stall", "input-stalled", 0, (0, 20), (2, 20)),))
    text = page([judge(labels, [], 60.0)], "")
    assert "### Held out" in text
    assert "| input-stalled | 1 | 0 | 0 | - | - | - | - |" in text
    assert "| run: stall at 2 s | not found | **not explained** |" in text


def test_only_the_part_between_the_markers_is_replaced():
    text = f"prose\n{BEGIN}\nold\n{END}\nmore prose\n"
    assert written_into(text, "new") == f"prose\n{BEGIN}\nnew\n{END}\nmore prose\n"
