"""Stage 4: what was found out about a run, in the forms that people and machines read."""

from gpu_report.render.blank import BlankPage, begin_blank_page
from gpu_report.render.columns import Packing, begin_packing
from gpu_report.render.page import render_html

__all__ = ["BlankPage", "Packing", "begin_blank_page", "begin_packing", "render_html"]
