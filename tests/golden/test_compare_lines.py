"""Two real recordings compared: the line that made one slower is named, and of the same training none is.

They were stopped by Ctrl-C after a minute, and are compared as if their time had been up.
"""

import json
from dataclasses import replace

import pytest
from support.archives import unpacked
from support.runs import on_played_gpu

from gpu_report.analyse import analyse
from gpu_report.analyse.compare import compare
from gpu_report.load import load_run

PLAYED, H200 = "line_faults", "line_faults_h200"
# Of a GPU that was played, beside the same training without: whole epochs of the first two, windows of the others.
SLOWER = ["watch-weights", "cb-compute", "cb-http", "free-memory", "full-queue", "growing-history", "parse-each-time"]
SLOWER += ["one-slow-sample", "w-collate", "w-lock"]
HALVES = [(PLAYED, "healthy"), (PLAYED, "watch-weights"), (H200, "cb-sleep-often"), (H200, "run-nvidia-smi")]
HALVES += [(H200, "val-files"), (H200, "tiny-epochs")]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    into = tmp_path_factory.mktemp("compare-lines")
    for of in (PLAYED, H200):
        unpacked(into / of, of)
    return into


@pytest.fixture(scope="module")
def recorded(folders):
    def find(of, name):
        analysis = analyse(on_played_gpu(load_run(folders / of / name)))
        return replace(analysis, ending=replace(analysis.ending, name="finished", failure=""))

    return find


def half(analysis, part):
    """Return some of a run's epochs after the first, with what was noted in them alone."""
    epochs = [epoch for epoch in analysis.epochs if not epoch.first][part]
    start, end = epochs[0].start_t_s, epochs[-1].end_t_s
    stacks = []
    for process in analysis.run.stacks:
        mine = (process.end_s > start) & (process.start_s < end)
        if mine.any():
            cut = {name: getattr(process, name)[mine] for name in ("start_s", "end_s", "number")}
            stacks.append(replace(process, **cut))
    return replace(analysis, epochs=tuple(epochs), run=replace(analysis.run, stacks=tuple(stacks)))


@pytest.mark.parametrize("name", SLOWER)
def test_the_line_that_made_a_training_slower_is_named(folders, recorded, name):
    found = compare([recorded(PLAYED, "healthy")], recorded(PLAYED, name)).code_lines
    file, number = json.loads((folders / PLAYED / f"{name}.json").read_text())["line"]
    first = [line for line in found if line.waits_for is None and line.status in {"new", "slower"}][:2]
    assert (file, number) in {(line.file.rpartition("/")[2], line.run_line) for line in first}


def test_on_a_real_gpu_what_is_new_and_what_is_gone_are_all_that_is_reported(recorded):
    """The two have other slow callbacks; the rest of the training is the same, on the same machine."""
    found = compare([recorded(H200, "cb-sleep-often")], recorded(H200, "run-nvidia-smi")).code_lines
    assert [(line.status, line.function, line.baseline_line, line.run_line) for line in found] == [
        ("new", "log_temperature", None, 113),
        ("gone", "throttle", 47, None),
    ]
    assert [line.change_gpu_s for line in found] == pytest.approx([3.2, -3.7], abs=0.1)


@pytest.mark.parametrize(("of", "name"), HALVES)
def test_two_halves_of_one_training_have_no_line_that_changed(recorded, of, name):
    analysis = recorded(of, name)
    middle = sum(not epoch.first for epoch in analysis.epochs) // 2
    earlier, later = half(analysis, slice(None, middle)), half(analysis, slice(middle, None))
    assert not compare([earlier], later).code_lines
    assert not compare([later], earlier).code_lines


def test_halves_are_long_enough_to_be_compared(recorded):
    """Where they were not, that no line changed would say nothing."""
    analysis = recorded(H200, "tiny-epochs")
    assert compare([half(analysis, slice(None, 21))], half(analysis, slice(21, None))).code_lines == ()
