"""A file of nothing but numbers, read in pieces, comes to what the careful way makes of it."""

from concurrent.futures import ThreadPoolExecutor
from threading import get_ident

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gpu_report.errors import InputError
from gpu_report.load import csv_file
from gpu_report.load.csv_file import _read_any, _read_plain, read_csv
from gpu_report.usable_cores import usable_cores

COLUMNS = ("wall_s", "gpu", "power_w", "absent")
DECIMALS = {"power_w": 1, "gpu": csv_file.IN_8_BITS}
CELLS = ("", "0", "1", "-5", "17.5", "1795000000.004", "344.2", "nan", "N/A", "[N/A]", " 12", "1e3", "16777217", "0.1")
ODD = ("inf", "fast", "True", '"7"', "1_0", "∞", "\r", "0x10", "+3", "1e400", "1,2")


def written(folder, text):
    path = folder / "samples.csv"
    path.write_bytes(text.encode())
    return path


def both_ways(path):
    return _read_plain(path, COLUMNS, DECIMALS), _read_any(path, COLUMNS, (), DECIMALS)


def assert_same(one, other):
    assert one.rows == other.rows
    assert one.problems == other.problems
    for name in COLUMNS:
        np.testing.assert_array_equal(one.numbers[name].astype(float), other.numbers[name].astype(float))
        assert one.numbers[name].dtype == other.numbers[name].dtype or not one.rows


def rows_of(cells):
    row = st.lists(st.sampled_from(cells), min_size=3, max_size=3).map(",".join)
    return st.lists(row, min_size=1, max_size=30)


@settings(max_examples=200, deadline=None)
@given(rows=rows_of(CELLS), torn=st.sampled_from(["", "17", "1795000000.1,0,3"]), size=st.integers(8, 200))
def test_pieces_are_read_as_the_whole_is(tmp_path_factory, rows, torn, size):
    path = written(tmp_path_factory.mktemp("csv"), "\n".join(["wall_s, gpu,power_w", *rows, torn]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_file, "PIECE_BYTES", size)
        plain, careful = both_ways(path)
    assert plain is not None
    assert_same(plain, careful)


def test_several_files_are_read_by_no_more_threads_than_there_are_cores(tmp_path, monkeypatch):
    threads, parse = set(), csv_file._parse
    monkeypatch.setattr(csv_file, "PIECE_BYTES", 8)
    monkeypatch.setattr(csv_file, "_parse", lambda *asked: threads.add(get_ident()) or parse(*asked))
    path = written(tmp_path, "wall_s,gpu,power_w\n" + "1,0,7\n" * 50)
    with ThreadPoolExecutor(3) as pool:
        read = list(pool.map(lambda path: read_csv(path, COLUMNS).rows, [path] * 3))
    assert read == [50] * 3
    assert len(threads) <= usable_cores()


@settings(max_examples=200, deadline=None)
@given(rows=rows_of((*CELLS[:8], *ODD)), size=st.integers(8, 200))
@example(rows=["True,+3,", "0,,"], size=8)
def test_what_is_not_only_numbers_is_either_left_to_the_careful_way_or_read_the_same(tmp_path_factory, rows, size):
    path = written(tmp_path_factory.mktemp("csv"), "\n".join(["wall_s,gpu,power_w", *rows, ""]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_file, "PIECE_BYTES", size)
        plain, careful = both_ways(path)
    if plain is not None:
        assert_same(plain, careful)


@pytest.mark.parametrize(
    "text",
    [
        "wall_s,gpu,power_w\n1,0,fast\n",
        "wall_s,gpu,power_w\n1,0,inf\n",
        'wall_s,gpu,power_w\n1,0,"7"\n',
        "wall_s,gpu,power_w\r\n1,0,7\r\n",
        "wall_s,gpu,wall_s\n1,0,7\n",
        "colour,shape\n1,2\n",
        "wall_s,gpu,power_w\n",
    ],
)
def test_a_file_that_is_not_plain_goes_the_careful_way(tmp_path, text):
    assert _read_plain(written(tmp_path, text), COLUMNS, {}) is None


def test_whole_numbers_take_half_the_room_and_are_exact(tmp_path):
    rows = "".join(f"1795000000.{n:03},{n % 8},{n / 10}\n" for n in range(1000))
    numbers = read_csv(written(tmp_path, "wall_s,gpu,power_w\n" + rows), COLUMNS).numbers
    assert [numbers[name].dtype for name in COLUMNS] == [np.float64, np.float32, np.float64, np.float32]
    assert numbers["power_w"].tolist() == [n / 10 for n in range(1000)]


def test_a_column_that_stops_being_whole_is_exact_from_its_beginning(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_file, "PIECE_BYTES", 64)
    values = [*range(100), 0.1, 16777217]
    path = written(tmp_path, "wall_s,gpu,power_w\n" + "".join(f"1,0,{value}\n" for value in values))
    assert read_csv(path, COLUMNS).numbers["power_w"].tolist() == values


@pytest.mark.parametrize("again", ["power_w", " power_w", "power_w "])
@pytest.mark.parametrize("text", [(), ("name",)])
def test_of_columns_that_are_called_the_same_the_first_is_read_and_said(tmp_path, again, text):
    path = written(tmp_path, f"wall_s,power_w,{again},name\n1795000000,5,6,a\n1795000001,7,8,b\n")
    csv = read_csv(path, COLUMNS, text)
    assert csv.numbers["power_w"].tolist() == [5, 7]
    assert csv.problems == ("samples.csv has several columns power_w: the first is read",)


def test_what_is_read_as_a_whole_has_a_largest_size(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_file, "LARGEST_ANY_CSV", 100)
    path = tmp_path / "samples.csv"
    path.write_text("a\n" + "1\n" * 100)
    assert read_csv(path, ["a"]).rows == 100  # in pieces
    path.write_text("a\n" + '"1"\n' * 100)
    with pytest.raises(InputError, match="has 402 bytes, and is not read"):
        read_csv(path, ["a"])


@pytest.mark.parametrize(
    ("cells", "kept"),
    [
        (("344.2", "", "77"), np.float32),
        (("344.2", "344.25"), np.float32),  # a decimal more than the column means, which float32 still gives back
        (("344.2", "344.2518"), np.float64),
        (("344.2", "16000000.1"), np.float64),  # float32 would be a whole unit off
        (("344.2", "40000.1"), np.float64),  # 1/500 off: it would show between two readings of a counter
    ],
)
def test_a_column_takes_32_bits_where_its_decimals_are_all_given_back(tmp_path, monkeypatch, cells, kept):
    monkeypatch.setattr(csv_file, "PIECE_BYTES", 8)  # a row a piece, so that a later one widens what is there
    path = written(tmp_path, "\n".join(["wall_s,power_w", *(f"1,{cell}" for cell in cells), ""]))
    found = read_csv(path, COLUMNS, decimals=DECIMALS).numbers["power_w"]
    assert found.dtype == kept
    expected = [float(cell) if cell else np.nan for cell in cells]
    np.testing.assert_array_equal(np.round(found.astype(float), 3 if kept == np.float32 else 9), expected)


@pytest.mark.parametrize("lines", [1, 40])
def test_a_piece_of_nothing_but_blank_lines_has_no_rows(tmp_path, monkeypatch, lines):
    monkeypatch.setattr(csv_file, "PIECE_BYTES", 16)
    row = "1795000000.1,0,344.2\n"
    path = written(tmp_path, "wall_s,gpu,power_w\n" + "\n" * lines + row * 5 + "\n" * lines)
    assert read_csv(path, COLUMNS, (), decimals=DECIMALS).rows == 5
