"""The documents say what the code does."""

import re
from pathlib import Path

from gpu_report import schema
from gpu_report.cli import cli

ROOT = Path(__file__).resolve().parent.parent
FORMAT = (ROOT / "docs" / "format.md").read_text()
TABLES = {
    schema.RUN_JSON: (*schema.RUN_HOST, *schema.GPU_HEALTH),
    schema.SAMPLES_CSV: schema.SAMPLES_COLUMNS,
    schema.RING_CSV: schema.RING_COLUMNS,
    schema.HOST_CSV: schema.HOST_COLUMNS,
    schema.PROCESSES_CSV: schema.PROCESSES_COLUMNS,
}


def section(title):
    return FORMAT.split(f"## `{title}`")[1].split("\n## ")[0]


def test_the_format_names_exactly_the_columns_of_every_file():
    for name, columns in TABLES.items():
        rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", section(name), re.MULTILINE)
        assert rows == [(column.name, column.meaning) for column in columns]


def test_the_format_names_exactly_the_event_kinds():
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", section(schema.EVENTS_JSONL), re.MULTILINE)
    assert dict(rows) == schema.EVENT_KINDS
    assert f"format {schema.FORMAT_VERSION}" in FORMAT


def test_the_format_names_exactly_the_kinds_of_lines_from_inside():
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", section("inside/"), re.MULTILINE)
    assert dict(rows) == schema.INSIDE_KINDS


def test_every_command_and_option_is_in_the_readme_or_its_help():
    readme = (ROOT / "README.md").read_text()
    assert [name for name in cli.commands if f"gpu-report {name}" not in readme] == []


def test_every_file_that_a_document_links_exists():
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "sample_runs" / "README.md"]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.name} links {target}"


def test_the_changelog_has_an_unreleased_section_or_this_version():
    from gpu_report import __version__  # noqa: PLC0415 - one test needs it

    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert "## [Unreleased]" in changelog or f"## [{__version__}]" in changelog
