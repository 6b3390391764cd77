"""The page: view, data and parts put together into one HTML text that needs nothing else."""

from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from gpu_report.model import Analysis
from gpu_report.render.page.blank.skeleton import BlankPage, blank_page
from gpu_report.render.page.compose import compose
from gpu_report.render.page.script_data import chart_data, to_json
from gpu_report.render.samples.columns import Packing

# In the place of the columns, of which a template makes three copies: a week has 60 MB. Nothing else reads so: what
# comes from outside is escaped.
COLUMNS: Final = Markup("<columns>")


@dataclass(frozen=True)
class PageParts:
    """What the page carries besides its words: policy, style, scripts and data, safe to stand as they are."""

    policy: str
    style: Markup
    script: Markup
    library: Markup
    data: Markup
    first: Markup
    columns: Markup = COLUMNS


def render_html(analysis: Analysis, packing: Packing | None = None, blank: BlankPage | None = None) -> str:
    """Return the report of a run as one HTML page that works offline and loads nothing (see `page_texts`)."""
    return "".join(page_texts(analysis, packing, blank))


def page_texts(
    analysis: Analysis, packing: Packing | None = None, blank: BlankPage | None = None
) -> tuple[str, str, str]:
    """Return the report of a run as texts one behind the other, to be written so: as one a week's page takes 120 MB.

    For a sign beyond Latin, of which there are some, all of a text has two bytes a character.

    `packing` is that of the run's columns where it was begun before, `blank` likewise (`begin_blank_page`).
    """
    blank = blank or blank_page()
    report = compose(analysis)
    parts, columns = page_parts(analysis, blank, packing)
    before, after = blank.template.render(report=report, page=parts).split(COLUMNS)
    return before, columns, after


def page_parts(analysis: Analysis, blank: BlankPage, packing: Packing | None = None) -> tuple[PageParts, str]:
    """Return the page's style, scripts and data, and the policy that allows exactly these; and its columns."""
    data, first, columns = chart_data(analysis, packing)
    # JSON without a single "<", and text in which only a letter follows one (base128.py): nothing here can end the
    # element it stands in.
    parts = PageParts(
        policy=blank.policy,
        style=blank.style,
        script=blank.script,
        library=blank.library,
        data=Markup(to_json(data)),  # noqa: S704 (JSON with every < escaped)
        first=Markup(first),  # noqa: S704 (base128.py)
    )
    return parts, columns
