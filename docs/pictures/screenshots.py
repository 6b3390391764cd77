"""Make the pictures of docs/ from sample runs, and of the example for CI: `make screenshots`.

Needs Chromium; fonts are those of the machine.
"""

import io
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import ci_example
import fleet_page
import live_page
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from playwright.sync_api import Browser, FloatRect, Page, sync_playwright

from gpu_report.analyse import analyse
from gpu_report.analyse.compare import compare
from gpu_report.analyse.compare.gate_syntax import default_gates
from gpu_report.load import load_run
from gpu_report.model import Analysis, Options
from gpu_report.render import render_html
from gpu_report.render.comparison.page import render_comparison_html

DOCS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(DOCS.parent / "tests"))
from support.chromium import HOW, find_chromium  # noqa: E402 - the path is set above

SAMPLES = DOCS.parent / "sample_runs"
FOLDER = DOCS / "pictures"
CI_EXAMPLE = "ci-example"
LIVE = "live"
LIVE_RUN, LIVE_UNTIL_S = "s-loader-stall", 78.9
COLOURS = 256  # of a picture's palette
WIDE, PHONE = (1200, 900), (390, 844)
# Lanes that these pictures are not about.
FOLDED = ("Loss", "Learning rate", "Memory used", "Temperature", "SM clock", "Processes waiting", "Reads")


@dataclass(frozen=True)
class Picture:
    """A picture of a page: `what` is a run, two to compare, or none for a fleet; `take` returns the part to show."""

    name: str
    what: tuple[str, ...]
    take: Callable[[Page], FloatRect]
    size: tuple[int, int] = WIDE
    scheme: str = "light"


def top(page: Page, until: str = "#overview", margin: int = 8) -> FloatRect:
    """Return the page from its top to where a part begins."""
    end = page.locator(until).bounding_box()
    return {"x": 0, "y": 0, "width": page.viewport_size["width"], "height": end["y"] + scrolled(page) - margin}


def timeline(page: Page) -> FloatRect:
    """Fold what the picture is not about, and return the timeline."""
    for name in FOLDED:
        title = page.locator("#lane-heads button[aria-expanded=true]", has_text=name)
        if title.count():
            title.first.click()
    page.mouse.move(0, 0)
    page.wait_for_timeout(300)
    return between(page, "#timeline", "#timeline")


def snapshot(page: Page) -> FloatRect:
    """Click into the middle of the first drop, and return what is on the screen."""
    page.locator(".chart-frame").evaluate("frame => frame.scrollIntoView({ behavior: 'instant' })")
    page.evaluate("location.hash = '#t=47'")
    page.locator("#snapshot").wait_for()
    page.wait_for_timeout(300)
    return {"x": 0, "y": scrolled(page), "width": WIDE[0], "height": WIDE[1]}


def first_finding(page: Page) -> FloatRect:
    """Return the page from its top to the end of the first finding."""
    return top(page, until="#findings article:nth-of-type(2)")


def phone(page: Page) -> FloatRect:
    """Return the first screen and a half of a phone."""
    return {"x": 0, "y": 0, "width": PHONE[0], "height": page.viewport_size["height"] * 1.4}


def comparison(page: Page) -> FloatRect:
    """Return the comparison down to the chart of its epochs."""
    return top(page, until="#aligned + details")


def inside_a_step(page: Page) -> FloatRect:
    """Return the first window of the profiler, down to its first table."""
    return between(page, "#profiler", "#profiler .profiler-window:first-of-type h4 + .scroll")


def calls_of_a_model(page: Page) -> FloatRect:
    """Return the section of a program that calls a model, down to the chart of its latency."""
    return between(page, "#inference", "#inference .latency")


def groups_of_runs(page: Page) -> FloatRect:
    """Return the report of a fleet, down to its users."""
    return top(page, until="#groups tbody tr:nth-of-type(4)")


def between(page: Page, first: str, last: str) -> FloatRect:
    """Return a part of the page from one element's top to another's end."""
    start, end = page.locator(first).bounding_box(), page.locator(last).bounding_box()
    height = end["y"] + end["height"] - start["y"] + 22
    return {"x": 0, "y": start["y"] + scrolled(page) - 16, "width": page.viewport_size["width"], "height": height}


def scrolled(page: Page) -> float:
    """Return how far the page is scrolled, in pixels."""
    return float(page.evaluate("scrollY"))


PICTURES = (
    Picture("verdict", ("n-starved",), top),
    Picture("timeline", ("s-loader-stall",), timeline),
    Picture("snapshot", ("m-blocked",), snapshot),
    Picture("two-gpus", ("m-ddp-stopped",), timeline),
    Picture("dark", ("m-mixed",), first_finding, scheme="dark"),
    Picture("phone", ("n-starved",), phone, size=PHONE),
    Picture("profiler", ("n-profiled",), inside_a_step),
    Picture("inference", ("serve-s-own-code",), calls_of_a_model),
    Picture("compare", ("n-starved", "n-fed"), comparison),
    Picture("fleet", (), groups_of_runs),
)


def main() -> None:
    """Make every picture, or those that are named."""
    chromium = find_chromium() or sys.exit(HOW)
    FOLDER.mkdir(exist_ok=True)
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for picture in PICTURES:
            if picture.name in (sys.argv[1:] or [picture.name]):
                path = FOLDER / f"{picture.name}.png"
                path.write_bytes(small(taken(browser, picture, Path(folder))))
                sys.stdout.write(f"{path.relative_to(DOCS.parent)}: {path.stat().st_size / 1000:.0f} kB\n")
        if CI_EXAMPLE in (sys.argv[1:] or [CI_EXAMPLE]):
            path = ci_example.EXAMPLE / "rendered.png"
            path.write_bytes(small(ci_example_taken(browser), ci_example.digest()))
            sys.stdout.write(f"{path.relative_to(DOCS.parent)}: {path.stat().st_size / 1000:.0f} kB\n")
        if LIVE in (sys.argv[1:] or [LIVE]):
            path = FOLDER / f"{LIVE}.png"
            path.write_bytes(small(live_taken(browser, Path(folder) / LIVE_RUN)))
            sys.stdout.write(f"{path.relative_to(DOCS.parent)}: {path.stat().st_size / 1000:.0f} kB\n")
        browser.close()


def live_taken(browser: Browser, into: Path) -> bytes:
    """Return the picture of the live page in a drop as PNG."""
    run = live_page.replayed(SAMPLES / LIVE_RUN, LIVE_UNTIL_S, into)
    with live_page.served(run) as address:
        page = browser.new_page(viewport={"width": WIDE[0], "height": WIDE[1]}, timezone_id="UTC")
        page.goto(address)
        page.locator("#verdict p").first.wait_for(timeout=60_000)
        page.locator("#alarms .alarm").first.wait_for()
        page.wait_for_timeout(500)
        png = page.screenshot(full_page=True, animations="disabled", caret="hide")
        page.close()
    return png


def ci_example_taken(browser: Browser) -> bytes:
    """Return the picture of the example for CI as PNG."""
    page = browser.new_page(viewport={"width": 1100, "height": 900})
    page.set_content(ci_example.page())
    page.evaluate("document.fonts.ready")
    png = page.screenshot(full_page=True)
    page.close()
    return png


def taken(browser: Browser, picture: Picture, folder: Path) -> bytes:
    """Return a picture as PNG."""
    address = folder / "page.html"
    address.write_text(html(*(analyse(load_run(SAMPLES / run), Options()) for run in picture.what)), encoding="utf-8")
    width, height = picture.size
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme=picture.scheme,
        timezone_id="UTC",
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.goto(address.as_uri())
    page.wait_for_selector("html[data-ready=yes]" if len(picture.what) < 2 else "main")
    page.evaluate("document.fonts.ready")
    shown = picture.take(page)
    png = page.screenshot(full_page=True, clip=shown, animations="disabled", caret="hide")
    context.close()
    return png


def html(*analyses: Analysis) -> str:
    """Return the report of a run, the comparison of a baseline and a run, or the report of a fleet."""
    if not analyses:
        return fleet_page.html()
    if len(analyses) == 1:
        return render_html(analyses[0])
    baseline, run = analyses
    return render_comparison_html(compare([baseline], run, default_gates(baseline=True)))


def small(png: bytes, made_from: str = "") -> bytes:
    """Return a PNG with a palette: these pages have few colours; and in it what it was made from."""
    said = PngInfo()
    if made_from:
        said.add_text(ci_example.MADE_FROM, made_from)
    packed = io.BytesIO()
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    # by coverage: by frequency thin lines and small signs, which are few pixels, would lose their colours
    picture.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(
        packed, "PNG", optimize=True, pnginfo=said
    )
    return packed.getvalue()


if __name__ == "__main__":
    main()
