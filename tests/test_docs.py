"""The documents say what the code does."""

import re
from pathlib import Path

from gpu_report import schema
from gpu_report.analyse.compare.gate_syntax import default_gates, parse_gate
from gpu_report.analyse.compare.metrics import METRICS, STATISTICS
from gpu_report.catalogue import CAUSES, RULES
from gpu_report.cli import cli

ROOT = Path(__file__).resolve().parent.parent
OURS = ("gpu_report", "templates", "tests", "benchmarks", "docs", "sample_runs")
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


def test_every_command_is_on_the_page_of_commands():
    page = (ROOT / "docs" / "commands.md").read_text()
    assert [name for name in cli.commands if f"gpu-report {name}" not in page] == []


def test_every_rule_and_every_cause_has_its_paragraph():
    page = (ROOT / "docs" / "findings.md").read_text()
    headings = set(re.findall(r"^### (.+)$", page, re.MULTILINE))
    causes = {cause.id for cause in CAUSES.values() if cause.of_findings}
    assert {*RULES, *causes} - headings == set()


def test_every_cause_says_what_speaks_for_it_what_against_and_what_it_is_mistaken_for():
    page = (ROOT / "docs" / "findings.md").read_text().split("## Causes")[1].split("\n## ")[0]
    for paragraph in page.split("\n### ")[1:]:
        for part in ("For", "Against", "Mistaken for", "Do"):
            assert paragraph.count(f"- **{part}**: ") == 1, f"{paragraph.splitlines()[0]}: {part}"


COMPARE = (ROOT / "docs" / "compare.md").read_text()


def test_the_metrics_that_the_document_names_are_those_that_there_are():
    rows = re.findall(r"^\| `(\w+)` \| (\S+) \| (lower|higher|) ?\| ", COMPARE.split("## Comparable?")[0], re.MULTILINE)
    assert rows == [(metric.name, metric.unit, metric.better or "") for metric in METRICS.values()]
    assert all(f"`{name}`" in COMPARE for name in STATISTICS)


def test_the_default_gates_are_those_of_the_document():
    for command, baseline in (("compare", True), ("check", False)):
        (cells,) = re.findall(rf"^\| `{command}` \| (.*) \| (.*) \|$", COMPARE, re.MULTILINE)
        for level, cell in zip(("fail", "warn"), cells, strict=True):
            written = [gate.text for gate in default_gates(baseline=baseline) if gate.level == level]
            assert re.findall(r"`([^`]+)`", cell) == written


def test_every_gate_of_the_document_is_one():
    section = COMPARE.split("## Gates")[1].split("With none given")[0]
    gates = re.findall(r"^\| `([^`]+:[^`]+)` \|", section, re.MULTILINE) + re.findall(r'"(\w[^"]*:[^"]+)"', section)
    assert len(gates) > 12
    for gate in gates:
        parse_gate(gate)


def test_every_file_that_a_document_links_exists():
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "sample_runs" / "README.md"]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.name} links {target}"


def test_every_file_of_ours_that_a_document_names_exists():
    ours = [f"/{path.relative_to(ROOT).as_posix()}" for part in OURS for path in (ROOT / part).rglob("*.*")]
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "tests").rglob("*.md")]:
        for name in re.findall(r"`(?:gpu_report/)?([\w./-]+\.(?:py|c|css|md))`", path.read_text()):
            known = "NAME" in name or (path.parent / name).exists() or any(file.endswith(f"/{name}") for file in ours)
            assert known or (ROOT / name).exists(), f"{path.name} names {name}"


def test_the_changelog_has_an_unreleased_section_or_this_version():
    from gpu_report import __version__  # noqa: PLC0415 - one test needs it

    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert "## [Unreleased]" in changelog or f"## [{__version__}]" in changelog
