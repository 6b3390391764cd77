"""The page: view, data and parts put together into one HTML text that needs nothing else."""

from dataclasses import dataclass

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from gpu_report.model import Analysis
from gpu_report.render import assets
from gpu_report.render.chart import chart_data, to_json
from gpu_report.render.columns import Packing
from gpu_report.render.compose import compose
from gpu_report.render.view import ReportView
from gpu_report.render.words import clean


@dataclass(frozen=True)
class PageParts:
    """What the page carries besides its words: policy, style, scripts and data, safe to stand as they are."""

    policy: str
    style: Markup
    script: Markup
    library: Markup
    data: Markup
    first: Markup
    columns: Markup


def render_html(analysis: Analysis, packing: Packing | None = None) -> str:
    """Return the report of a run as one HTML page that works offline and loads nothing.

    `packing` is that of the run's columns where it was begun before (`begin_packing`).
    """
    templates = assets.find_templates()
    environment = Environment(
        loader=FileSystemLoader(templates),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(assets.PAGE_TEMPLATE).render(context(analysis, packing))


def context(analysis: Analysis, packing: Packing | None = None) -> dict[str, ReportView | PageParts]:
    """Return all that the template is given."""
    return {"report": compose(analysis), "page": page_parts(analysis, packing)}


def page_parts(analysis: Analysis, packing: Packing | None = None) -> PageParts:
    """Return the page's style, scripts and data, and the policy that allows exactly these."""
    templates = assets.find_templates()
    style, script = assets.read_style(templates), assets.read_script(templates)
    library = assets.read_chart_library(templates)
    data, columns = chart_data(analysis, packing)
    # Our own files, JSON without a single "<", and text in which only a letter follows one (dense.py): nothing here can
    # end the element it stands in.
    return PageParts(
        policy=assets.content_security_policy((script, library), (style, assets.EMPTY_STYLE)),
        style=Markup(style),  # noqa: S704 (our own file)
        script=Markup(script),  # noqa: S704 (our own file)
        library=Markup(assets.squeeze(library)),  # noqa: S704 (dense.py)
        data=Markup(to_json(data)),  # noqa: S704 (JSON with every < escaped)
        first=Markup(columns[: data["first_characters"]]),  # noqa: S704 (dense.py)
        columns=Markup(columns[data["first_characters"] :]),  # noqa: S704 (dense.py)
    )


def printable(value: object) -> object:
    """Return text from outside without what no page can show; everything else as it is."""
    return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value
