"""nvidia-smi logs that went through another program, or were cut: what is read of them, and what is said."""

import pytest

from gpu_report.errors import InputError

HEADER = "timestamp, index, fan.speed [%], utilization.gpu [%], power.draw [W]"
ROWS = [f"2026/11/21 01:00:{n:02d}.250, 0, [N/A], {n} %, 79.5 W" for n in range(20)]
LOG = "\n".join([HEADER, *ROWS]) + "\n"
DMON = "#Date       Time        gpu    pwr     sm\n#YYYYMMDD   HH:MM:SS    Idx      W      %\n"


def resaved(separator, decimals="."):
    rows = [each.replace(".", decimals).replace(", ", separator) for each in ROWS]
    return "\n".join([HEADER.replace(", ", separator), *rows]) + "\n"


@pytest.mark.parametrize(
    "text",
    [
        resaved(";"),
        resaved(";", ","),
        resaved("\t", ","),
        LOG.replace("2026/11/21", "2026-11-21"),
        "\n".join('"' + line.replace(", ", '","') + '"' for line in LOG.splitlines()) + "\n",
    ],
    ids=["semicolons", "german", "tabs", "pandas", "powershell"],
)
def test_what_other_programs_saved_is_read_alike(imported, written, text):
    assert imported(written(text)).rows == imported(written(LOG, "own.csv")).rows


def test_a_time_that_lost_its_seconds_is_quoted(imported, written):
    text = LOG.replace("2026/11/21 01:00", "11/21/2026 1:00")
    with pytest.raises(InputError, match=r"has times as '11/21/2026 1:00:00.250'.*a spreadsheet saved"):
        imported(written(text))


@pytest.mark.parametrize("prefix", ["0: ", "logger-1  | ", "Nov 21 01:00:00 node1 smi[12]: ", "2026-11-21T01:00:00Z "])
@pytest.mark.parametrize("text", [LOG, DMON + " 20261121    01:05:00      0     79      5\n"])
def test_lines_with_something_before_them_are_refused_for_that(imported, written, prefix, text):
    log = written("".join(prefix + line + "\n" for line in text.splitlines()))
    with pytest.raises(InputError, match="which nvidia-smi did not write: remove what is before") as error:
        imported(log)
    assert repr(prefix) in str(error.value)


def test_columns_without_a_place_are_listed(imported, written):
    assert imported(written(LOG)).notes == ("Not imported of nvidia-smi, for a run has no such column: fan.speed.",)


def test_what_pmon_has_no_place_for_is_listed_beside_another_log_too(imported):
    notes = imported("imports/healthy-dmon.txt", "imports/healthy-pmon.txt").notes
    assert [note for note in notes if note.startswith("Not imported of nvidia-smi pmon")]
