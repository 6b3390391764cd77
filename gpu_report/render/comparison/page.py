"""The comparison as one HTML page that needs nothing else: same look, policy and escaping as the report."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from gpu_report.model import Comparison
from gpu_report.render.comparison.compose import compose_comparison
from gpu_report.render.page.blank import assets
from gpu_report.render.page.blank.skeleton import environment
from gpu_report.template_files import find_templates

TEMPLATE = "compare.html.j2"
STYLE = "compare.css"
SCRIPTS = ("settings", "compare")


@dataclass(frozen=True)
class ComparisonParts:
    """What the page carries besides its words: our own files, and the policy that allows exactly these."""

    policy: str
    style: Markup
    script: Markup


def render_comparison_html(comparison: Comparison) -> str:
    """Return a comparison with a baseline as one HTML page that works offline and loads nothing."""
    return small_page(TEMPLATE, STYLE, compose_comparison(comparison))


def small_page(template: str, styles: str, view: object, scripts: Sequence[str] = SCRIPTS) -> str:
    """Return a page without the report's timeline: a template, its own styles beside the report's, and what it says."""
    templates = find_templates()
    style = assets.read_style(templates) + (templates / styles).read_text(encoding="utf-8")
    script = assets.read_script(templates, scripts)
    parts = ComparisonParts(
        policy=assets.content_security_policy((script,), (style,)),
        style=Markup(style),  # noqa: S704 (our own files)
        script=Markup(script),  # noqa: S704 (our own files)
    )
    return environment(templates).get_template(template).render(view=view, page=parts)
