"""Stage 4: what was found out about a run, in the forms that people and machines read."""

from gpu_report.render.page.blank.skeleton import BlankPage, begin_blank_page
from gpu_report.render.page.page import page_texts, render_html
from gpu_report.render.samples.columns import Packing

__all__ = ["BlankPage", "Packing", "begin_blank_page", "page_texts", "render_html"]
