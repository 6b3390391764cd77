import importlib.util
from collections.abc import Callable, Iterator, Mapping
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
COMPLETE = "html[data-ready=yes]"
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


@dataclass
class Tab:
    """A page that is kept from test to test: a new one in a context of its own takes half of what a report takes."""

    page: Page
    color_scheme: str | None
    lent_to: Opened | None = None

    @classmethod
    def made(cls, browser: Browser, options: Mapping[str, object]) -> "Tab":
        """Return a page in a context of its own, with everything told to the one who has it."""
        tab = cls(browser.new_context(**options).new_page(), options.get("color_scheme"))
        tab.page.on("console", lambda message: tab.tell(message.text) if message.type == "error" else None)
        tab.page.on("pageerror", lambda error: tab.tell(str(error)))
        tab.page.on("dialog", lambda dialog: (tab.tell(f"dialog: {dialog.message}"), dialog.dismiss()))
        tab.page.on("request", lambda request: tab.lent_to and tab.lent_to.requests.append(request.url))
        tab.page.add_init_script(
            "addEventListener('securitypolicyviolation', (e) => console.error('CSP', e.violatedDirective));"
        )
        return tab

    def tell(self, wrong: str) -> None:
        """Note what went wrong with the one who has the page."""
        if self.lent_to:
            self.lent_to.errors.append(wrong)

    def open(self, path: Path, address: str, complete: str) -> Opened:
        """Open a report, and wait until it has what it has when it is complete."""
        self.lent_to = Opened(self.page, path)
        self.page.goto(path.as_uri() + address)
        self.page.wait_for_selector(complete, timeout=30_000)
        return self.lent_to

    def clear(self) -> None:
        """Take back what a test changed: what the page keeps, where the mouse is, the medium, permissions."""
        self.page.evaluate("localStorage.clear()")
        self.lent_to = None
        self.page.mouse.move(0, 0)
        self.page.goto("about:blank")
        self.page.emulate_media(media="null", color_scheme=self.color_scheme or "light")
        self.page.context.clear_permissions()


@pytest.fixture(scope="session")
def tabs() -> dict[str, Tab]:
    """Pages that no test has now, by the settings of their contexts."""
    return {}


@pytest.fixture
def open_report(
    browser: Browser, tabs: dict[str, Tab], write_report: Callable[[Analysis], Path]
) -> Iterator[Callable[..., Opened]]:
    """A function that opens an analysis's report in a page as good as new and waits until it is complete.

    `script` runs before those of the report, in a page that nobody has afterwards. `complete` selects what is awaited.
    """
    lent: list[tuple[str, Tab]] = []

    def opener(
        of: Analysis, address: str = "", *, script: str = "", complete: str = COMPLETE, **settings: object
    ) -> Opened:
        options = {"viewport": {"width": 1400, "height": 1000}, "timezone_id": "UTC", **settings}
        name = "" if script else repr(sorted(options.items()))
        tab = tabs.pop(name, None) or Tab.made(browser, options)
        if script:
            tab.page.add_init_script(script)
        lent.append((name, tab))
        return tab.open(write_report(of), address, complete)

    yield opener
    for name, tab in lent:
        if name and name not in tabs and tab.page.url.startswith("file:"):
            tab.clear()
            tabs[name] = tab
        else:
            tab.page.context.close()
