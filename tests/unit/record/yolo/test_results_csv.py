import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_report.record.yolo.results_csv import ResultRow, ResultsTail, parse_rows, wall_times

HEADER = b"epoch,time,train/box_loss,lr/pg0\n"


def test_rows_are_read_by_name_and_only_when_complete():
    rows = parse_rows(HEADER + b"1,2.5,0.5,0.01\n2,5.0,nan,0.02\n3,7.")
    assert rows == [
        ResultRow(1, 2.5, {"train/box_loss": 0.5, "lr/pg0": 0.01}),
        ResultRow(2, 5.0, {"train/box_loss": None, "lr/pg0": 0.02}),
    ]


def test_the_padded_format_of_older_versions_is_read():
    assert parse_rows(b"\xef\xbb\xbf      epoch,   train/box_loss\r\n          1,    0.5\r\n") == [
        ResultRow(1, None, {"train/box_loss": 0.5})
    ]


@given(st.binary(max_size=200))
def test_no_file_raises(data):
    parse_rows(data)
    parse_rows(HEADER + data)


@given(st.text(max_size=20))
def test_no_epoch_cell_raises(cell):
    parse_rows(HEADER + f"{cell},1,2,3\n".encode())


def test_only_new_rows_are_given_out(tmp_path):
    file = tmp_path / "results.csv"
    tail = ResultsTail(file)
    assert not tail.changed()
    file.write_bytes(HEADER + b"1,1,1,1\n")
    assert tail.changed()
    assert [row.epoch for row in tail.read()[0]] == [1]
    assert not tail.changed()
    with file.open("ab") as handle:
        handle.write(b"2,2,1,1\n3,3,")
    assert tail.changed()
    assert [row.epoch for row in tail.read()[0]] == [2]
    with file.open("ab") as handle:
        handle.write(b"1,1\n")
    assert tail.changed()
    assert [row.epoch for row in tail.read()[0]] == [3]


def test_a_file_begun_anew_is_told(tmp_path):
    file = tmp_path / "results.csv"
    tail = ResultsTail(file)
    file.write_bytes(HEADER + b"1,1,1,1\n2,2,1,1\n")
    tail.changed()
    assert tail.read()[1] is False
    file.write_bytes(HEADER + b"1,1.1,1,1\n")
    assert tail.changed()
    rows, restarted = tail.read()
    assert restarted
    assert rows[0].time_s == pytest.approx(1.1)


def written(tail, *rows):
    tail.path.write_bytes(HEADER + b"".join(b"%d,%.3f,1,1\n" % row for row in rows))
    assert tail.changed()
    return [(row.epoch, row.time_s) for row in tail.read()[0]]


def test_a_file_begun_anew_is_told_however_many_rows_it_has_by_then(tmp_path):
    tail = ResultsTail(tmp_path / "results.csv")
    written(tail, (1, 1.0), (2, 2.0))
    tail.path.unlink()
    assert not tail.changed()
    assert written(tail, (1, 1.1), (2, 2.1), (3, 3.1)) == [(1, 1.1), (2, 2.1), (3, 3.1)]
    assert written(tail, (1, 1.2), (2, 2.1), (3, 3.1)) == [(1, 1.2), (2, 2.1), (3, 3.1)]


def test_a_resumed_run_is_the_same_one_in_whichever_inode(tmp_path):
    tail = ResultsTail(tmp_path / "results.csv")
    written(tail, (1, 100.0), (2, 200.0))
    tail.path.unlink()
    assert written(tail, (1, 100.0), (2, 200.0), (3, 0.3)) == [(3, 0.3)]


def test_a_header_that_waits_for_its_first_row_is_no_restart(tmp_path):
    tail = ResultsTail(tmp_path / "results.csv")
    assert written(tail) == []
    tail.path.write_bytes(b"epoch,time\n1,2.0\n")
    assert tail.changed()
    assert tail.read()[1] is False


def row(time_s):
    return ResultRow(1, time_s, {})


def test_rows_that_came_together_are_placed_by_their_time():
    assert wall_times([row(10.0), row(14.0), row(20.0)], 1000.0) == [990.0, 994.0, 1000.0]


def test_rows_from_before_a_resume_cannot_be_placed():
    assert wall_times([row(10.0), row(90.0), row(3.0), row(5.0)], 1000.0) == [None, None, 998.0, 1000.0]


def test_without_times_only_the_last_row_is_placed():
    assert wall_times([row(None), row(None)], 1000.0) == [None, 1000.0]
    assert wall_times([], 1000.0) == []


def test_a_row_costs_its_own_reading_however_many_stand_before_it(tmp_path, monkeypatch):
    tail = ResultsTail(tmp_path / "results.csv")
    written(tail, *((epoch, epoch * 1.5) for epoch in range(1, 1000)))
    monkeypatch.setattr(type(tail.path), "read_bytes", lambda _: pytest.fail("read whole"))
    with tail.path.open("ab") as file:
        file.write(b"1000,1500.0,1,1\n1001,")
    assert tail.changed()
    assert [row.epoch for row in tail.read()[0]] == [1000]
    assert tail.rows_read == 1000


def test_a_long_file_begun_anew_in_its_inode_is_told(tmp_path):
    tail = ResultsTail(tmp_path / "results.csv")
    written(tail, *((epoch, epoch * 1.5) for epoch in range(1, 1000)))
    assert len(written(tail, *((epoch, epoch * 1.6) for epoch in range(1, 1100)))) == 1099
