"""Reading and driving a report that is open in Chromium (tests/browser)."""

import time

from playwright.sync_api import Page

WAIT_S = 10


def drawn(page: Page, gpu: int | None, quantity: str) -> dict:
    """Return a line of the chart: x in ms since 1970, y, and whether every sample in view is in it."""
    script = """([gpu, quantity]) => {
      const { data } = document.getElementById("chart");
      const found = data.find((t) => t.meta.quantity === quantity && t.meta.gpu === gpu);
      return { x: [...found.x], y: [...found.y], exact: found.meta.exact };
    }"""
    return page.evaluate(script, [gpu, quantity])


def wait_until(page: Page, script: str, argument: object = None) -> None:
    """Wait until a script is true: Playwright's own wait evaluates text in the page, which the policy forbids."""
    deadline = time.monotonic() + WAIT_S
    while not page.evaluate(script, argument):
        assert time.monotonic() < deadline, f"never came true: {script}"
        page.wait_for_timeout(20)


def wait_for_plotly(page: Page) -> None:
    """Wait until Plotly has drawn what a canvas shows while it changes."""
    wait_until(page, "() => document.getElementById('sketch').hidden")


def settled_screen(page: Page, selector: str) -> bytes:
    """Return an element on the screen, once it is twice the same: a busy machine shows the frame before for a while."""
    before, now = b"", page.locator(selector).screenshot()
    while now != before:
        page.wait_for_timeout(300)
        before, now = now, page.locator(selector).screenshot()
    return now


def click_at(page: Page, t_s: float) -> None:
    """Click the timeline at a moment of the run, on the utilisation lane."""
    place = page.evaluate(
        """(wall) => {
          const chart = document.getElementById("chart");
          const area = chart.getBoundingClientRect();
          const { range } = chart.layout.xaxis;
          const share = (wall - range[0]) / (range[1] - range[0]);
          return [area.left + 50 + share * (area.width - 50 - 14), area.top + 220];
        }""",
        t_s * 1000,
    )
    page.mouse.click(*place)


def show_timeline(page: Page) -> None:
    """Scroll to the timeline."""
    page.locator(".chart-frame").evaluate("frame => frame.scrollIntoView({ behavior: 'instant' })")


def show_window(page: Page, start_ms: float, from_s: float, to_s: float) -> None:
    """Zoom to a window of the run, in seconds since its start, and wait until it is drawn."""
    page.evaluate("(hash) => { location.hash = hash; }", f"#t={from_s},{to_s}")
    wait_until(
        page,
        "(a) => Math.abs(document.getElementById('chart').layout.xaxis.range[0] - a) < 1",
        start_ms + from_s * 1000,
    )
    wait_for_plotly(page)


def milliseconds(line: dict, start_ms: float) -> dict[int, float]:
    """Return what a line draws, by ms since the run's start, without its breaks."""
    points = zip(line["x"], line["y"], strict=True)
    return {round(x - start_ms): y for x, y in points if y is not None}


def cell(page: Page, gpu: int, quantity: str) -> str:
    """Return what the snapshot says of a quantity of a GPU."""
    return (
        page.locator(f'#snapshot [data-gpu="{gpu}"] [data-quantity="{quantity}"]').inner_text().replace("\u00a0", " ")
    )


def hover_at(page: Page, t_s: float) -> None:
    """Point at a moment of the run on the utilisation lane, and wait for the readout."""
    place = page.evaluate(
        """(wall) => {
          const chart = document.getElementById("chart");
          const area = chart.getBoundingClientRect();
          const { range } = chart.layout.xaxis;
          return [area.left + 50 + ((wall - range[0]) / (range[1] - range[0])) * (area.width - 64), area.top + 220];
        }""",
        t_s * 1000,
    )
    page.mouse.move(*place)
    wait_until(page, "() => !document.getElementById('readout').hidden")
