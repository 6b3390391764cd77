"""Which line of one run is which of another, where files were edited between them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_report.analyse.compare.line_matching import match_lines
from gpu_report.analyse.compare.line_times import LineKey, LineTime, RunLines

MINE = "/home/me/callbacks.py"
YOLO = "/venv/lib/python3.11/site-packages/ultralytics/engine/trainer.py"


def lines_of(seconds, file=MINE, function="log", version="8.4.0", process="main"):
    """Return the lines of one function with their idle GPU seconds an epoch, in five epochs."""
    each = [
        LineTime(LineKey(process, file, function, line, waits=False), (np.full(5, s),), (np.full(5, s + 0.1),))
        for line, s in seconds.items()
    ]
    return RunLines(tuple(each), (5,), 10.0, version)


def matched(before, after):
    """Return the pairs by their numbers, None where no process ever was in the line."""
    return [
        (a.key.line if a.was_there else None, b.key.line if b.was_there else None)
        for a, b in match_lines(before, after)
    ]


@pytest.mark.parametrize(
    ("before", "after", "pairs"),
    [
        ({10: 1, 20: 4}, {10: 1, 20: 6}, [(10, 10), (20, 20)]),
        ({10: 1, 11: 4}, {11: 1, 12: 6}, [(10, 11), (11, 12)]),  # an import more at the top of the file
        ({10: 1, 20: 4}, {10: 1, 23: 4}, [(10, 10), (20, 23)]),  # three lines more between them
        ({10: 1, 20: 4}, {10: 1, 15: 9, 20: 4}, [(10, 10), (None, 15), (20, 20)]),
        ({10: 1, 15: 9, 20: 4}, {10: 1, 20: 4}, [(10, 10), (15, None), (20, 20)]),
        ({10: 0.2}, {31: 6}, [(10, 31)]),  # moved, and slower
        ({10: 0}, {31: 6}, [(10, None), (None, 31)]),  # nothing in common
        ({10: 0, 11: 2}, {10: 0, 11: 2}, [(10, 10), (11, 11)]),
        ({}, {10: 1}, [(None, 10)]),
    ],
)
def test_lines_of_a_function_are_matched_in_order_by_the_time_that_they_have_in_common(before, after, pairs):
    assert sorted(matched(lines_of(before), lines_of(after)), key=str) == sorted(pairs, key=str)


def test_a_function_is_known_by_its_file_name_where_the_folder_is_another():
    moved = lines_of({10: 5}, "/data/other/callbacks.py")
    assert matched(lines_of({10: 4}), moved) == [(10, 10)]
    assert matched(lines_of({10: 4}), lines_of({10: 5}, "/home/me/hooks.py")) == [(10, None), (None, 10)]
    assert matched(lines_of({10: 4}), lines_of({10: 5}, function="save")) == [(10, None), (None, 10)]
    assert matched(lines_of({10: 4}), lines_of({10: 5}, process="workers")) == [(10, None), (None, 10)]


def test_of_two_files_of_one_name_that_both_runs_have_each_is_itself():
    mine, other = lines_of({10: 4}), lines_of({30: 5}, "/home/me/tools/callbacks.py")
    both = RunLines((*mine.lines, *other.lines), (5,), 10.0, "8.4.0")
    assert sorted(matched(both, both)) == [(10, 10), (30, 30)]
    assert sorted(matched(both, mine), key=str) == [(10, 10), (30, None)]


def test_lines_of_the_same_yolo_have_not_moved_wherever_it_is_installed():
    before, after = {10: 4, 12: 0.1}, {10: 0.1, 12: 4}
    elsewhere = YOLO.replace("/venv/", "/opt/conda/")
    assert matched(lines_of(before, YOLO), lines_of(after, elsewhere)) == [(10, 10), (12, 12)]
    newer = lines_of(after, elsewhere, version="8.4.1")
    assert (10, 12) in matched(lines_of(before, YOLO), newer)


@given(*[st.dictionaries(st.integers(1, 30), st.floats(0, 9), max_size=8)] * 2)
def test_each_line_is_in_one_pair_and_pairs_never_cross(before, after):
    pairs = matched(lines_of(before), lines_of(after))
    assert sorted(a for a, _ in pairs if a) == sorted(before)
    assert sorted(b for _, b in pairs if b) == sorted(after)
    both = [(a, b) for a, b in pairs if a and b]
    assert both == sorted(both) == sorted(both, key=lambda pair: pair[1])


@given(st.dictionaries(st.integers(1, 30), st.floats(0.01, 9), max_size=8), st.integers(-5, 40))
def test_a_function_that_moved_as_a_whole_has_not_changed(seconds, shift):
    moved = {line + shift + 5: s for line, s in seconds.items()}
    for a, b in match_lines(lines_of(seconds), lines_of(moved)):
        assert a.mean_s == b.mean_s
