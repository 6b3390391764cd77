"""The schema of the tables is the one that docs/fleet.md has: who reads them relies on it."""

import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from gpu_report.fleet import extra
from gpu_report.fleet.cells import row, text
from gpu_report.fleet.store import live_folders
from gpu_report.fleet.tables import FORMAT, TABLES, arrow_schema

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "fleet.md").read_text()
SQL = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("table", TABLES)
def test_the_page_has_exactly_the_columns_of_a_table(table):
    section = PAGE.split(f"### `{table}`")[1].split("\n#")[0]
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.+) \|$", section, re.MULTILINE)
    assert rows == [(column.name, column.type, column.meaning) for column in TABLES[table]]
    assert f"format {FORMAT}" in PAGE


@pytest.mark.parametrize("table", TABLES)
def test_the_files_have_the_schema(kept_fleet, table):
    found = pq.read_schema(live_folders(kept_fleet[1])[0] / f"{table}.parquet")
    assert found.equals(arrow_schema(table), check_metadata=True)


@pytest.mark.parametrize("query", [each for block in SQL for each in block.split(";") if each.strip()])
def test_the_queries_of_the_page_have_answers(kept_fleet, query):
    duckdb = pytest.importorskip("duckdb")
    rows = duckdb.sql(query.replace("'fleet/", f"'{kept_fleet[1]}/")).fetchall()
    assert rows or "locations" in query  # neither run has notes of its lines of code


def test_a_row_lacks_no_column():
    with pytest.raises(KeyError, match="ledger"):
        row("ledger", {"run": "x", "name": "work"})


def test_numbers_that_are_none_are_null_and_never_zero():
    values = {"run": "x", "name": "work", "expected": True, "gpu_seconds": float("nan"), "energy_j": None}
    assert row("ledger", values) == ["x", "work", True, None, None]


def test_a_text_is_utf_8_without_secrets_and_without_end():
    assert text("\udcff" + "x" * 9000).startswith("\\udcffxxx")
    assert len(text("x" * 9000)) == 4000
    assert "hunter2" not in text("s3://bucket?password=hunter2hunter2")


def test_what_is_missing_of_the_extra_is_said_in_a_line(monkeypatch):
    monkeypatch.setattr(extra, "find_spec", lambda _: None)
    with pytest.raises(Exception, match=r"needs pyarrow in this Python: `pip install '\.\[fleet\]'` in a checkout"):
        extra.need("pyarrow")
