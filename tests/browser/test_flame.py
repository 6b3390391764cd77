"""The flame graph of idle GPU time: what it draws, and how it is zoomed, searched, filtered and driven by keys."""

import dataclasses
import re

import numpy as np
import pytest
from playwright.sync_api import Page
from support.browser import wait_until
from support.samples import run_of

from gpu_report.analyse import analyse
from gpu_report.model import Analysis, Frame, ProcessStacks

pytestmark = pytest.mark.browser

YOLO = "/venv/lib/python3.11/site-packages/ultralytics/engine/trainer.py"
MAIN = Frame("/home/me/train.py", 3, "<module>")
STEP, LOG = Frame(YOLO, 632, "_do_train"), Frame("/home/me/callbacks.py", 41, "log_<b>images</b>")
READ = Frame("/home/me/data.py", 29, "read_slowly")
LOOP = Frame("/venv/lib/python3.11/site-packages/torch/utils/data/_utils/worker.py", 375, "_worker_loop")
LOADER = Frame("/venv/lib/python3.11/site-packages/torch/utils/data/dataloader.py", 733, "__next__")
STACKS = {1: (STEP, MAIN), 2: (LOG, STEP, MAIN), 3: (LOADER, STEP, MAIN), 4: (READ, LOOP)}
DETAIL, BOX = "[data-flame-detail]", "#code .flame [data-node]"


def process(role: str, pid: int, *stays: tuple[float, int], end_s: float) -> ProcessStacks:
    starts = np.array([start for start, _ in stays])
    numbers = np.array([number for _, number in stays], dtype=np.int32)
    return ProcessStacks(pid, role, starts, np.append(starts[1:], end_s), numbers, STACKS)


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    run = run_of("s-loader-stall")
    end_s = run.duration_s
    main = process("main", 1, (0.0, 1), (20.0, 2), (40.0, 3), end_s=end_s)
    worker = process("worker 0", 2, (0.0, 4), end_s=end_s)
    return analyse(dataclasses.replace(run, stacks=(main, worker)))


@pytest.fixture
def page(open_report, analysis: Analysis) -> Page:
    opened = open_report(analysis)
    wait_until(opened.page, "() => document.querySelectorAll('#code .flame [data-node]').length > 0")
    opened.page.locator("#code").scroll_into_view_if_needed()
    return opened.page


def names(page: Page) -> list[str]:
    return [text for text in page.locator("#code .flame text").all_text_contents() if text]


def seconds(page: Page) -> float:
    return float(re.search(r"([\d,.]+)\xa0s", page.locator(DETAIL).text_content()).group(1).replace(",", ""))


def test_each_box_is_a_line_of_code_and_all_of_them_are_the_idle_time(page: Page, analysis: Analysis) -> None:
    main = next(time for time in analysis.code_time if time.role == "main")
    assert names(page)[:3] == ["All idle GPU time", "<module> (train.py:3)", "_do_train (trainer.py:632)"]
    assert seconds(page) == pytest.approx(main.idle_gpu_s[main.after_startup].sum(), abs=0.1)
    assert {"log_<b>images</b> (callbacks.py:41)", "__next__ (dataloader.py:733)"} <= set(names(page))
    assert page.locator("#code b").count() == 0  # a name from outside is text
    classes = {box.get_attribute("class").split()[0] for box in page.locator(BOX).all()}
    assert classes == {"flame-all", "flame-own", "flame-yolo", "flame-loader"}
    first_row = page.locator("#code .code-lines tbody tr").first.text_content()
    worst = analysis.code_lines[0]
    assert f"{worst.function} (" in first_row


def test_a_click_zooms_and_escape_shows_the_whole(page: Page) -> None:
    box = page.locator(BOX).filter(has_text="callbacks.py:41").first
    before = box.locator("rect").bounding_box()["width"]
    box.click()
    after = page.locator(BOX).filter(has_text="callbacks.py:41").first.locator("rect").bounding_box()["width"]
    assert after > 1.5 * before
    assert "/home/me/callbacks.py" in page.locator(DETAIL).text_content()
    page.locator("#code .flame").press("Escape")
    assert page.locator("[data-flame=whole]").is_disabled()
    assert "All idle GPU time" in names(page)[0]


def test_keys_move_from_box_to_box(page: Page) -> None:
    graph = page.locator("#code .flame")
    graph.focus()
    told = []
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight", "ArrowUp"):
        graph.press(key)
        told.append(page.locator(f"{DETAIL} strong").text_content().split(" ")[0])
    assert told[:2] == ["<module>", "_do_train"]
    assert {told[2], told[3]} == {"log_<b>images</b>", "__next__"}
    assert told[4] == "_do_train"
    graph.press("Enter")
    assert not page.locator("[data-flame=whole]").is_disabled()


def test_a_search_marks_what_it_finds_and_says_how_much_it_is(page: Page) -> None:
    page.locator("[data-flame=search]").fill("CALLBACKS.py")
    assert page.locator(f"{BOX}.match").count() == 1
    assert "“callbacks.py”" in page.locator(DETAIL).text_content()


def test_measure_process_phase_and_the_timelines_window_choose_what_is_summed(page: Page, analysis: Analysis) -> None:
    page.locator("[data-flame=measure]").select_option("seconds")
    startup = sum(phase.duration_s for phase in analysis.phases if phase.name == "startup")
    wait_until(page, "() => document.querySelector('#code .flame text').textContent === 'All time'")
    assert seconds(page) == pytest.approx(analysis.run.duration_s - startup, abs=1)  # after start-up
    page.locator("[data-flame=phase]").select_option("")
    later = analysis.run.duration_s - startup + 1
    wait_until(page, f"() => parseFloat(document.querySelector('{DETAIL}').textContent.slice(8)) > {later}")
    wait_until(page, "() => document.querySelector('#code .flame text').textContent === 'All time'")
    assert seconds(page) == pytest.approx(analysis.run.duration_s, abs=0.1)
    page.locator("[data-flame=phase]").select_option("startup")
    wait_until(page, f"() => parseFloat(document.querySelector('{DETAIL}').textContent.slice(8)) < 60")
    assert seconds(page) == pytest.approx(startup, abs=1)
    page.locator("[data-flame=phase]").select_option("")
    page.locator("[data-flame=window]").check()
    page.locator("#zoom-in").click()
    page.locator("#zoom-in").click()
    quarter = analysis.run.duration_s / 4
    wait_until(page, f"() => parseFloat(document.querySelector('{DETAIL}').textContent.slice(8)) < 30")
    assert seconds(page) == pytest.approx(quarter, rel=0.02)
    page.locator("[data-flame=window]").uncheck()
    page.locator("[data-flame=role]").select_option(label="Loader workers")
    shown = "[...document.querySelectorAll('#code .flame text')].map((text) => text.textContent).join()"
    wait_until(page, f"() => {shown}.includes('read_slowly')")
    assert "read_slowly (data.py:29)" in names(page)


def test_without_notes_there_is_no_such_section(open_report) -> None:
    assert open_report(analyse(run_of("s-loader-stall"))).page.locator("#code").count() == 0
