"""The comparison as one HTML page that needs nothing else: same look, policy and escaping as the report."""

from gpu_report.model import Comparison
from gpu_report.render.comparison.compose import compose_comparison
from gpu_report.render.page.blank.small_page import small_page

TEMPLATE = "compare.html.j2"
STYLE = "compare.css"


def render_comparison_html(comparison: Comparison) -> str:
    """Return a comparison with a baseline as one HTML page that works offline and loads nothing."""
    return small_page(TEMPLATE, STYLE, compose_comparison(comparison))
