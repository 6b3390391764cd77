"""Stage 4: what was found out about a run, in the forms that people and machines read."""

from gpu_report.render.page import render_html

__all__ = ["render_html"]
