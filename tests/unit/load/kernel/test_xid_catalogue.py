import re

import pytest

from gpu_report.load.kernel.xid_catalogue import CATALOGUE_DATE, XIDS, describe

# nvml.md 5.6, by severity: C needs a reset, a reboot or hardware; W ended a program or is to be watched; I informs.
CRITICAL = {46, 48, 54, 61, 62, 64, 74, 79, 95, 109, 110, 119, 120, 136, 140, 143, 151, 157, 158, 167, 169, 171, 172}
INFORMATIVE = {14, 16, 37, 38, 44, 45, 63, 66, 67, 92, 93, 121, 141, 162, 163, 164, 165}
WARNING = {
    *(8, 11, 13, 25, 31, 32, 43, 68, 69, 78, 80, 82, 83, 84, 85, 86, 88, 89, 94, 96, 97, 98, 122, 123, 124, 125),
    *(39, 40, 41, 70, 71, 72, 75, 76, 77, *range(99, 106), *range(126, 136), 137, 139, *range(144, 151), 152, 153),
    *(154, 155, 156, 159, 160, 161, 166, 168, 170, 173, 174, 175, 176),
}


def test_the_table_holds_every_number_of_the_reference_with_its_severity():
    by_severity = {
        severity: {code for code, xid in XIDS.items() if xid.severity == severity}
        for severity in ("critical", "warning", "info")
    }
    assert by_severity == {"critical": CRITICAL, "warning": WARNING, "info": INFORMATIVE}


@pytest.mark.parametrize("code", sorted(XIDS))
def test_every_entry_says_what_it_means_and_what_to_do(code):
    xid = describe(code)
    assert xid is XIDS[code]
    assert len(xid.meaning) > 10
    assert not xid.meaning.endswith(".")  # it stands in the middle of sentences
    assert xid.action.endswith(".")


@pytest.mark.parametrize("code", [0, 1, 177, 999, 999999])
def test_an_unknown_number_is_a_warning_that_points_at_the_raw_line(code):
    xid = describe(code)
    assert xid.severity == "warning"
    assert xid.kind == "unknown"
    assert f"Xid {code} is not in our table" in xid.meaning
    assert CATALOGUE_DATE in xid.meaning
    assert "raw line" in xid.meaning


def test_the_catalogue_is_dated():
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", CATALOGUE_DATE)
