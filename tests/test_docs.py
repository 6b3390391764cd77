"""The documents say what the code does."""

import re
import subprocess
from collections import Counter
from importlib import metadata
from itertools import product
from pathlib import Path

import click
import pytest
import yaml
from support.prose import MOST_WORDS, banned_in, code_blocks, inline_code, paragraphs_and_rows, sentences

from gpu_report import __version__, schema
from gpu_report.analyse.compare.gate_syntax import default_gates, parse_gate
from gpu_report.analyse.compare.metrics import METRICS, STATISTICS
from gpu_report.catalogue import CAUSES, RULES
from gpu_report.cli import cli

ROOT = Path(__file__).resolve().parent.parent
OURS = ("gpu_report", "templates", "tests", "benchmarks", "docs", "sample_runs")
FORMAT = (ROOT / "docs" / "format.md").read_text()
TABLES = {
    schema.RUN_JSON: (*schema.RUN_HOST, *schema.RUN_JOB, *schema.JOB_CLOCK, *schema.GPU_HEALTH),
    schema.SAMPLES_CSV: schema.SAMPLES_COLUMNS,
    schema.RING_CSV: schema.RING_COLUMNS,
    schema.HOST_CSV: schema.HOST_COLUMNS,
    schema.PROCESSES_CSV: schema.PROCESSES_COLUMNS,
    schema.WAITS_CSV: schema.WAITS_COLUMNS,
    schema.OTHERS_CSV: schema.OTHERS_COLUMNS,
    f"inside/<pid>{schema.CALLS_SUFFIX}": schema.CALLS_COLUMNS,
    schema.BENCH_JSON: schema.BENCH_VARIANT,
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
    rows = re.findall(
        r"^\| `([\w.]+)` \| (\S+) \| (lower|higher|) ?\| ", COMPARE.split("## Comparable?")[0], re.MULTILINE
    )
    assert rows == [(metric.name, metric.unit, metric.better or "") for metric in METRICS.values()]
    assert all(f"`{name}`" in COMPARE for name in STATISTICS)


def test_the_default_gates_are_those_of_the_document():
    of_calls = {"": False, ", of calls": True}
    for command, kind in product(("compare", "check"), of_calls):
        (cells,) = re.findall(rf"^\| `{command}`{kind} \| (.*) \| (.*) \|$", COMPARE, re.MULTILINE)
        for level, cell in zip(("fail", "warn"), cells, strict=True):
            gates = default_gates(baseline=command == "compare", of_calls=of_calls[kind])
            written = [gate.text for gate in gates if gate.level == level]
            assert re.findall(r"`([^`]+)`", cell) == written


def test_every_gate_of_the_document_is_one():
    section = COMPARE.split("## Gates")[1].split("With none given")[0]
    gates = re.findall(r"^\| `([^`]+:[^`]+)` \|", section, re.MULTILINE) + re.findall(r'"(\w[^"]*:[^"]+)"', section)
    assert len(gates) > 12
    for gate in gates:
        parse_gate(gate)


PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "sample_runs" / "README.md"])
of_each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def anchors(page):
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#{1,6} (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@of_each_page
def test_every_link_leads_to_a_file_and_a_heading_that_there_are(page):
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", page.read_text()):
        file = page.parent / target if target else page
        assert file.exists(), f"{page.name} links {target}"
        assert not anchor or anchor in anchors(file), f"{page.name} links {target}#{anchor}"


def test_every_page_is_in_the_index():
    index = (ROOT / "docs" / "README.md").read_text()
    assert [path.name for path in (ROOT / "docs").glob("*.md") if f"({path.name})" not in index] == ["README.md"]


def test_every_file_of_ours_that_a_document_names_exists():
    ours = [f"/{path.relative_to(ROOT).as_posix()}" for part in OURS for path in (ROOT / part).rglob("*.*")]
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "tests").rglob("*.md")]:
        for name in re.findall(r"`(?:gpu_report/)?([\w./-]+\.(?:py|c|css|md))`", path.read_text()):
            known = "NAME" in name or (path.parent / name).exists() or any(file.endswith(f"/{name}") for file in ours)
            assert known or (ROOT / name).exists(), f"{path.name} names {name}"


def test_the_version_is_that_of_the_changelog_or_one_in_development_after_it():
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert changelog.index("## [Unreleased]") < changelog.index("## [0")
    newest, _date = re.findall(r"^## \[([\d.]+)\] - (\d{4}-\d\d-\d\d)$", changelog, re.MULTILINE)[0]
    assert __version__ == newest or (__version__.endswith(".dev0") and release(__version__) > release(newest))


def test_no_change_stands_twice_in_the_changelog():
    entries = re.findall(r"^- .+$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert [entry for entry, times in Counter(entries).items() if times > 1] == []  # git merges it as a union


def release(version):
    return tuple(int(part) for part in version.removesuffix(".dev0").split("."))


# --- the language -------------------------------------------------------------------------------------------------


@of_each_page
def test_no_sentence_has_more_words_than_a_reader_takes_in_at_once(page):
    long = [each for each in sentences(page.read_text()) if each.words > MOST_WORDS]
    assert [f"line {each.line}, {each.words} words: {each.text}" for each in long] == []


@of_each_page
def test_no_page_has_words_that_only_we_would_understand(page):
    found = [(number, phrase) for number, text in paragraphs_and_rows(page.read_text()) for phrase in banned_in(text)]
    assert [f"line {number}: {phrase}" for number, phrase in found] == []


def test_the_readme_is_read_in_a_minute():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 100


def test_the_readme_has_the_numbers_of_the_page_on_accuracy():
    accuracy = (ROOT / "docs" / "accuracy.md").read_text()
    readme = (ROOT / "README.md").read_text()
    counts = re.compile(r"^\| \*\*together\*\* \| (\d+) \| (\d+) \| (\d+) \|", re.MULTILINE)
    for title in ("Held out", "Fitted", "Imported", "Played"):
        part = accuracy.split(f"### {title}\n")[1]
        runs, minutes, alarms = re.search(r"(\d+) runs, (\d+) minutes; false alarms: (\d+)", part).groups()
        cells = r" \| ".join([*counts.search(part).groups(), f"{alarms} in {minutes} minutes"])
        assert re.search(rf"^\| {runs} .+ \| {cells} \|$", readme, re.MULTILINE), title


# --- the commands -------------------------------------------------------------------------------------------------

SHELL_END = re.compile(r"\s(?:\|\|?|&&|&|>|2>|<)(?=\s)|;|#.*")


def commands_of(page):
    """Yield the words of every call of ours in the code of a page, in blocks and within sentences."""
    text = page.read_text()
    blocks = "\n".join(block for _, _, block in code_blocks(text)).replace("\\\n", " ")
    for code in [*blocks.splitlines(), *inline_code(text)]:
        for call in re.findall(r"(?:^|[\s!(])gpu-report (?!:)(.+)", code):
            yield SHELL_END.split(re.sub(r"[\[\]`]", " ", call))[0].split(" -- ")[0].split()


def parsed_by(words):
    """Parse the words of a call as click would, without running it; what is not known is an error."""
    command = cli
    while True:
        options = [name for param in command.params for name in param.opts]
        while isinstance(command, click.Group) and words and words[0] in {*options, "--help", "-h"}:
            words = words[1:]
        if not isinstance(command, click.Group) or not words or words[0].isupper() or words[0] == "...":
            break
        assert words[0] in command.commands, f"there is no command {words[0]!r}"
        command, words = command.commands[words[0]], words[1:]
    if not isinstance(command, click.Group):
        context = click.Context(command)
        command.make_parser(context).parse_args([word for word in words if word not in {"...", "--help"}])


@of_each_page
def test_every_command_of_ours_parses(page):
    for words in commands_of(page):
        try:
            parsed_by(words)
        except click.UsageError as error:
            pytest.fail(f"{page.name}: gpu-report {' '.join(words)}: {error.message}")


def test_calls_are_found_in_blocks_and_in_sentences_and_wrong_ones_fail():
    assert len([words for page in PAGES for words in commands_of(page)]) > 60
    with pytest.raises(click.UsageError):
        parsed_by(["render", "report.html", "--no-such-option"])
    with pytest.raises(AssertionError):
        parsed_by(["no-such-command"])
    with pytest.raises(click.UsageError):
        parsed_by(["record", "--output"])


@pytest.mark.parametrize("name", ["commands.md", "compare.md", "get-started.md", "recording.md"])
def test_every_option_on_pages_of_ours_is_one(name):
    text = (ROOT / "docs" / name).read_text()
    groups = [command for command in cli.commands.values() if isinstance(command, click.Group)]
    commands = [cli, *cli.commands.values(), *(each for group in groups for each in group.commands.values())]
    known = {"--help", *(option for command in commands for param in command.params for option in param.opts)}
    others = {"--query-gpu", "--format", "--no-deps", "--wheel-dir", "--run"}  # of nvidia-smi and pip
    assert {
        code for span in inline_code(text) for code in re.findall(r"--[a-z][a-z-]+", span)
    } - known - others == set()


def test_nobody_is_told_to_install_by_a_name_that_is_on_no_index():
    by_name = re.compile(r"pip3? install (?:-\S+ )*'?gpu[-_]report(?![\w*-]*\*)")
    texts = [*ROOT.glob("gpu_report/**/*.py"), *ROOT.glob("docs/**/*.md"), ROOT / "README.md"]
    assert [path.name for path in texts if by_name.search(path.read_text())] == []


def test_every_extra_that_a_message_or_page_installs_is_one():
    texts = [*ROOT.glob("gpu_report/**/*.py"), *ROOT.glob("docs/**/*.md")]
    read = "".join(path.read_text() for path in texts)
    named = re.findall(r"command_for\(['\"](\w+)|pip install '\.\[(\w+)\]'", read)
    known = metadata.metadata("gpu-report").get_all("Provides-Extra")
    assert {one or other for one, other in named} <= set(known)


@of_each_page
def test_every_target_of_make_is_one(page):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    code = [*inline_code(page.read_text()), *(block for _, _, block in code_blocks(page.read_text()))]
    named = {name for span in code for name in re.findall(r"(?:^|\n)make ([a-z-]+)", span)}
    assert named - targets == set()


@of_each_page
def test_code_in_a_language_is_of_that_language(page):
    for language, line, code in code_blocks(page.read_text()):
        if language == "bash":
            subprocess.run(["bash", "-n"], input=code, text=True, check=True)
        elif language == "yaml":
            assert yaml.safe_load(code), f"{page.name}:{line}"
        elif language == "python":
            compile(re.sub(r"^!.*", "", code, flags=re.MULTILINE), f"{page.name}:{line}", "exec")
        else:
            assert language in {"", "dockerfile", "sql"}, f"{page.name}:{line} {language}"
