"""The page before anything of a run is in it: its template, style and scripts, and the chart library.

None of it depends on the run, so that it is made while the run is read.
"""

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from gpu_report.render.formatting import clean
from gpu_report.render.page.blank import assets
from gpu_report.render.page.blank.compiled_templates import compiled_templates
from gpu_report.render.page.blank.gzipped_library import gzipped_library
from gpu_report.render.samples.base128 import to_text
from gpu_report.template_files import PAGE_TEMPLATE, find_templates
from gpu_report.terminal import is_typed

PARTIALS, TEMPLATE = "partials/", ".html.j2"


@dataclass(frozen=True, eq=False)
class BlankPage:
    """A page's template, its policy, and its own files, safe to stand as they are."""

    template: Template
    policy: str
    style: Markup
    script: Markup
    library: Markup


def blank_page() -> BlankPage:
    """Return what every report begins with; GpuReportError where the templates are not there."""
    templates = find_templates()
    style, script = assets.read_style(templates), assets.read_script(templates)
    library = assets.read_chart_library(templates)
    made = environment(templates)
    for name in made.list_templates(filter_func=lambda name: name.startswith(PARTIALS) and name.endswith(TEMPLATE)):
        made.get_template(name)  # keeps it, for when the page includes it
    return BlankPage(
        template=made.get_template(PAGE_TEMPLATE),
        policy=assets.content_security_policy((script, library), (style, assets.EMPTY_STYLE)),
        style=Markup(style),  # noqa: S704 (our own file)
        script=Markup(script),  # noqa: S704 (our own file)
        library=Markup(to_text(gzipped_library(library, Path(__file__)))),  # noqa: S704 (base128.py)
    )


def begin_blank_page() -> Future[BlankPage]:
    """Begin to make it in a thread of its own."""
    pool = ThreadPoolExecutor(1, thread_name_prefix="blank page")
    page = pool.submit(blank_page)
    pool.shutdown(wait=False)
    return page


@cache
def environment(templates: Path) -> Environment:
    """Return what reads templates: all that comes from outside is escaped, and what no page can show is left out.

    It keeps them compiled until their files change (compiled_templates.py).
    """
    made = Environment(
        loader=FileSystemLoader(templates),
        bytecode_cache=compiled_templates(Path(__file__)),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.tests["typed"] = is_typed
    return made


def printable(value: object) -> object:
    """Return text from outside without what no page can show; everything else as it is."""
    return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value
