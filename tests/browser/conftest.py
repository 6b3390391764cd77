import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import pytest
from playwright.sync_api import Browser, Page, sync_playwright
from support.chromium import HOW, find_chromium

from gpu_report.model import Analysis
from gpu_report.render import render_html

# No GPU process, no QUIC, and nothing that Chromium would load of its own accord.
CHROMIUM_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
BUILDER = Path(__file__).parents[1] / "unit" / "render" / "analysis_builder.py"


@dataclass
class Opened:
    """A report open in Chromium, with everything that went wrong in it so far and everything it asked for."""

    page: Page
    path: Path
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@pytest.fixture(scope="session")
def builder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("analysis_builder", BUILDER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def analysis(builder: ModuleType) -> Analysis:
    return builder.build_analysis()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    chromium = find_chromium()
    if chromium is None:
        pytest.fail(HOW, pytrace=False)
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_ARGUMENTS)
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def write_report(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Analysis], Path]:
    """A function that renders an analysis to a file, once for each analysis."""
    written: dict[int, tuple[Analysis, Path]] = {}  # which are kept: another one could have the id of one that is gone

    def write(of: Analysis) -> Path:
        if id(of) not in written:
            written[id(of)] = of, tmp_path_factory.mktemp("report") / "report.html"
            written[id(of)][1].write_text(render_html(of), encoding="utf-8")
        return written[id(of)][1]

    return write


@pytest.fixture
def open_report(browser: Browser, write_report: Callable[[Analysis], Path]) -> Iterator[Callable[..., Opened]]:
    """A function that opens an analysis's report in a fresh page and waits until it is complete."""
    contexts = []

    def opener(of: Analysis, address: str = "", **settings: object) -> Opened:
        options = {"viewport": {"width": 1400, "height": 1000}, "timezone_id": "UTC", **settings}
        contexts.append(browser.new_context(**options))
        page = contexts[-1].new_page()
        opened = Opened(page, write_report(of))
        page.on("console", lambda message: opened.errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: opened.errors.append(str(error)))
        page.on("dialog", lambda dialog: (opened.errors.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: opened.requests.append(request.url))
        page.add_init_script(
            "addEventListener('securitypolicyviolation', (e) => console.error('CSP', e.violatedDirective));"
        )
        page.goto(opened.path.as_uri() + address)
        page.wait_for_selector("html[data-ready=yes]", timeout=30_000)
        return opened

    yield opener
    for context in contexts:
        context.close()
