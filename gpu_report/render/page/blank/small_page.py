"""A page without the report's timeline: same look, policy and escaping as a run's report."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from gpu_report.render.page.blank import assets
from gpu_report.render.page.blank.skeleton import environment
from gpu_report.template_files import find_templates

SCRIPTS = ("settings", "compare")


@dataclass(frozen=True)
class SmallPageParts:
    """What the page carries besides its words: our own files, the policy that allows exactly these, and packed data."""

    policy: str
    style: Markup
    script: Markup
    data: Markup


def small_page(template: str, styles: str, view: object, scripts: Sequence[str] = SCRIPTS, data: str = "") -> str:
    """Return a template with its own styles beside the report's, and what it says; `data` is base128, which is safe."""
    templates = find_templates()
    style = assets.read_style(templates) + (templates / styles).read_text(encoding="utf-8")
    script = assets.read_script(templates, scripts)
    parts = SmallPageParts(
        policy=assets.content_security_policy((script,), (style,)),
        style=Markup(style),  # noqa: S704 (our own files)
        script=Markup(script),  # noqa: S704 (our own files)
        data=Markup(data),  # noqa: S704 (base128.py)
    )
    return environment(templates).get_template(template).render(view=view, page=parts)
