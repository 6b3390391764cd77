"""How the summary reads in a terminal: the order of the page, ids in one piece, 80 columns, colour, our words."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from support.compared import analysed
from support.plain_words import banned

from gpu_report.catalogue import UNEXPLAINED
from gpu_report.model import Advice, Sentence
from gpu_report.render.formatting import sentence
from gpu_report.render.next_steps import next_step
from gpu_report.render.run.summary_json import build_summary
from gpu_report.render.run.terminal import render_markdown, render_text
from gpu_report.render.sentence_kinds import own_text
from gpu_report.render.what_to_change import listed_changes
from gpu_report.terminal import is_typed
from gpu_report.wording import upper_first

WIDTHS = (80, 120)
RUNS = sorted(path.name for path in (Path(__file__).parents[4] / "sample_runs").iterdir() if path.is_dir())
ORDER = (
    *("What to change", "Where the GPU time went", "Possible speed-up", "Findings (", "Training", "GPUs, over"),
    "Recording",
)


def is_title(line, title):
    """Tell whether a line is a title, and no sentence that begins so."""
    return line == title or (line.startswith(title) and title not in {"Training", "Recording"})


@pytest.mark.parametrize("name", RUNS)
def test_our_own_words_are_those_of_the_field(name):
    analysis = analysed(name)
    for text in (render_text(analysis, width=1000), render_markdown(analysis)):
        assert banned(text, [analysis.run.path, name]) == []


@pytest.mark.parametrize("name", RUNS)
def test_it_has_the_order_of_the_page_in_80_and_120_columns(name):
    analysis = analysed(name)
    for width in WIDTHS:
        lines = render_text(analysis, width=width).splitlines()
        assert max(len(line) for line in lines if not is_typed(line.strip())) <= width  # commands are never broken
        assert not [line for line in lines if line != line.rstrip()]
        places = [next((at for at, line in enumerate(lines) if is_title(line, title)), None) for title in ORDER]
        known = [place for place in places if place is not None]
        assert known == sorted(known)
        assert " ".join(lines).startswith(analysis.verdict.sentences[0].text[:40])


@pytest.mark.parametrize("name", ["n-mixed", "m-storage", "s-leak-oom", "yolo26m-detail"])
def test_an_id_is_in_one_piece_with_its_severity_and_its_time(name):
    analysis = analysed(name)
    lines = render_text(analysis, width=80).splitlines()
    shown = [finding for finding in analysis.findings if not finding.expected]
    assert shown
    for finding in shown:
        (line,) = [each for each in lines if each.startswith(f"{finding.id} ")]
        assert re.fullmatch(
            rf"{finding.id}   {finding.severity}   \d\d:\d\d:\d\d UTC"
            r"(   epoch \d+( \(at the end of the epoch\))?)?",
            line,
        )


def test_the_ledger_begins_with_work_and_the_largest_loss_in_rows_of_one_line():
    lines = render_text(analysed("n-starved"), width=80).splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith("Where the GPU time went"))
    assert re.fullmatch(r"Work +6\.8 s +11 %", lines[begin + 2])
    assert re.search(r"31\.2 s +51 %$", lines[begin + 3])


def test_the_speed_up_is_expected_first_and_its_limit_last():
    lines = render_text(analysed("n-starved"), width=120).splitlines()
    row = next(line for line in lines if "faster) with workers=11" in line)
    assert re.search(r"13\.2 s  4\.0 s \(3\.3\u00d7 faster\) with workers=11  +3\.7 s$", row)


def test_energy_is_in_watt_hours_and_memory_in_gib():
    text = render_text(analysed("n-starved"), width=80)
    assert "2.8 Wh" in text
    assert "23.2 of 140.4 GiB" in text
    assert not re.search(r"\d kJ|\d MiB", text)


def test_colour_goes_by_severity_and_only_where_it_is_wanted():
    critical, fine = analysed("s-oom"), analysed("m-healthy")
    assert "\x1b" not in render_text(critical, width=80)
    assert "\x1b[1;31mended-1\x1b[0m" in render_text(critical, width=80, colour=True)
    assert render_text(fine, width=80, colour=True).startswith("\x1b[1;32m")


def test_without_colour_by_the_users_wish_severity_is_still_there(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    text = render_text(analysed("s-oom"), width=80, colour=True)
    assert not re.search(r"\x1b\[[0-9;]*3[1-6]", text)
    assert "critical" in text


def test_a_price_gives_the_ledger_a_column_of_money(run_warm):
    run = Path(__file__).parents[4] / "sample_runs" / "n-starved"
    with_price = run_warm("summary", run, "--price-per-hour", "36", env={"COLUMNS": "80"}).stdout
    assert re.search(r"GPU time  share  cost\n", with_price)
    assert re.search(r"31\.2 s   51 %  0\.31\n", with_price)


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", RUNS)
def test_a_command_to_copy_is_a_line_of_its_own_and_whole(name, width):
    analysis = analysed(name)
    printed = render_text(analysis, width=width).splitlines()
    typed = [code for said in analysis.verdict.sentences for code in own_text(said).split("`")[1::2] if is_typed(code)]
    assert [code for code in typed if " " in code and f"    {code}" not in printed] == []


def test_what_somebody_else_called_a_thing_is_no_command_to_copy():
    analysis = analysed("s-oom")
    hostile = Sentence("drops", "a `sudo rm -rf /` b")
    shown = render_text(replace(analysis, verdict=replace(analysis.verdict, sentences=(hostile,))), width=80)
    assert shown.splitlines()[0] == "a 'sudo rm -rf /' b"


def _leads(analysis):
    """Return the first sentence that says what to do; none says it of what nobody knows the cause of."""
    kinds = {"fix", "look", "prevent", "all nodes"}
    return next((each for each in analysis.verdict.sentences if each.kind in kinds and each.about != UNEXPLAINED), None)


@pytest.mark.parametrize("name", RUNS)
def test_what_to_change_has_what_the_verdict_says_in_its_order(name):
    analysis = analysed(name)
    listed = [(each.text, each.typed) for each in listed_changes(analysis)]
    said = [each.advice for each in analysis.verdict.sentences if each.advice and not each.advice.resume]
    places = [listed.index((each.text, each.typed)) for each in said]
    assert places == sorted(places)


@pytest.mark.parametrize("name", RUNS)
def test_what_to_change_begins_with_what_leads_in_each_output(name):
    analysis = analysed(name)
    lead = _leads(analysis)
    if lead is None:
        return
    led = [finding for finding in analysis.findings if finding.id in lead.findings]
    advised = {each.text for finding in led for each in finding.advice}
    own = {lead.text, *(sentence(next_step(finding, analysis)) for finding in led)}
    first, *_ = build_summary(analysis)["changes"]
    assert first["text"] in (advised or own) | {lead.advice.text if lead.advice else ""}
    begins = (first["title"] or first["argument"] or upper_first(first["text"])).partition("`")[0].rstrip()
    for shown in (render_text(analysis, width=1000), render_markdown(analysis)):
        title, _, after = shown.partition("What to change")[2].partition("\n")
        assert title == ""
        assert after.strip().removeprefix("- ").startswith(begins)


def test_what_leads_is_said_where_it_has_neither_argument_nor_title():
    summary = build_summary(analysed("m-mixed"))
    assert [each["text"].partition(":")[0] for each in summary["changes"]] == [
        "Find what the main process waited for",
        "Keep python3 (pid 2477) off GPU 0 while it trains",
        "Drop in GPU utilisation",
    ]
    assert "What to change\nFind what the main process waited for" in render_text(analysed("m-mixed"), width=200)
    assert "- Try a larger `batch`" in render_markdown(analysed("n-healthy-disk"))


def test_where_to_look_into_a_warning_without_advice_is_a_change_as_on_the_page():
    look = "GPU memory keeps growing: look for what is kept from batch to batch"
    assert any(each["text"].startswith(look) for each in build_summary(analysed("m-other-process-leak"))["changes"])
    assert look in render_text(analysed("m-other-process-leak"), width=300)


def test_what_the_verdict_says_something_else_in_place_of_is_no_change():
    analysis = analysed("s-oom")
    (less, *_) = analysis.findings[0].advice
    grew = Sentence("prevent", "Find what keeps GPU memory.", (analysis.findings[0].id,), replaces=less)
    said = replace(analysis, verdict=replace(analysis.verdict, sentences=(grew,)))
    assert less in listed_changes(analysis)
    assert less not in listed_changes(said)


def test_the_function_that_leads_is_what_to_change_before_the_resume():
    analysis = analysed("s-oom")
    ended = replace(analysis.findings[0], severity="info")
    waits = replace(ended, id="starved-1", rule="starved", advice=())
    look = Sentence("look", "Look at `clahe` (aug.py:7).", ("starved-1",), "input-cpu", names_own=True)
    stopped = replace(analysis, findings=(waits, ended), verdict=replace(analysis.verdict, sentences=(look,)))
    listed = render_text(stopped, width=200).partition("What to change\n")[2].splitlines()
    assert listed[0].startswith("Look at `clahe` (aug.py:7).")


def test_a_line_to_look_at_is_said_once_where_no_cause_is_known():
    analysis = analysed("s-oom")
    slow = replace(
        analysis.findings[0], id="slow-epoch-1", rule="slow-epoch", severity="warning", cause=None, advice=()
    )
    look = Sentence("look", "Look at `clahe` (aug.py:7): epoch 2 took 9 s.", ("slow-epoch-1",), names_own=True)
    told = replace(analysis, findings=(slow,), verdict=replace(analysis.verdict, sentences=(look,)))
    assert [each.text for each in listed_changes(told)] == [look.text]


def test_how_to_read_the_kernel_log_is_no_change_whatever_its_words():
    analysis = analysed("s-oom")
    read_log = Advice("read it as root", short="Read the kernel log", reads_kernel_log=True)
    drop = replace(analysis.findings[0], id="drop-1", rule="drop", severity="warning", cause=None, advice=(read_log,))
    unread = replace(analysis, findings=(drop,), verdict=replace(analysis.verdict, sentences=()))
    assert listed_changes(unread) == []
