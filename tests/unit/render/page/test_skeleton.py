"""What a page begins with: its templates, compiled once."""

import os

from gpu_report.render.page.blank.skeleton import environment


def test_templates_stay_compiled_until_their_files_change(tmp_path):
    file = tmp_path / "a.html.j2"
    file.write_text("<p>{{ text }}</p>")
    first = environment(tmp_path).get_template(file.name)
    assert environment(tmp_path).get_template(file.name) is first
    file.write_text("<b>{{ text }}</b>")
    os.utime(file, (1.0, 1.0))
    assert environment(tmp_path).get_template(file.name).render(text="<x>") == "<b>&lt;x&gt;</b>"
