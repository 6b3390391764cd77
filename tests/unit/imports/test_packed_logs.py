"""Logs that were packed, or redirected by PowerShell, as log rotation and Windows leave them."""

import gzip

import pytest

from .conftest import DATA

LOGS = ("imports/healthy-dmon.txt", "imports/gpustat.json", "imports/nvitop.csv", "imports/dcgm-answer.json")


@pytest.mark.parametrize("log", LOGS)
def test_a_gzip_file_is_read_as_what_it_holds(imported, tmp_path, log):
    packed = tmp_path / f"{log.rpartition('/')[2]}.1.gz"
    packed.write_bytes(gzip.compress((DATA / log).read_bytes()))
    assert imported(packed).rows == imported(log).rows


def test_parts_that_were_packed_one_after_the_other_are_one_log(imported, tmp_path):
    data = (DATA / LOGS[0]).read_bytes()
    packed = tmp_path / "dmon.gz"
    packed.write_bytes(gzip.compress(data[:5000]) + gzip.compress(data[5000:]))
    assert imported(packed).rows == imported(LOGS[0]).rows


def test_of_a_gzip_file_that_is_cut_what_is_there_is_read(imported, tmp_path):
    packed = tmp_path / "dmon.gz"
    packed.write_bytes(gzip.compress((DATA / LOGS[0]).read_bytes())[:-400])
    rows, whole = imported(packed).rows, imported(LOGS[0]).rows
    assert 0 < len(rows) < len(whole)
    assert rows == whole[: len(rows)]


@pytest.mark.parametrize("log", LOGS)
def test_a_log_in_utf_16(imported, tmp_path, log):
    path = tmp_path / "log"
    path.write_bytes((DATA / log).read_text().replace("\n", "\r\n").encode("utf-16"))
    assert imported(path).rows == imported(log).rows
