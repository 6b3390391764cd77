import sys

from jinja2 import DictLoader, Environment

from gpu_report.render.page.blank.compiled_templates import compiled_templates


def rendered(cache, text):
    return (
        Environment(loader=DictLoader({"page": text}), bytecode_cache=cache, autoescape=True)
        .get_template("page")
        .render()
    )


def test_templates_are_kept_compiled_until_they_change(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    (tmp_path / "__pycache__").mkdir()
    cache = compiled_templates(tmp_path / "page.py")
    assert rendered(cache, "{{ 1 + 1 }}") == "2"
    (kept,) = (tmp_path / "__pycache__").iterdir()
    before = kept.stat().st_mtime_ns
    assert rendered(cache, "{{ 1 + 1 }}") == "2"
    assert kept.stat().st_mtime_ns == before
    assert rendered(cache, "{{ 1 + 2 }}") == "3"
    whole = kept.read_bytes()
    for end in (-20, 40, 20, 0):  # as a full disk leaves it
        kept.write_bytes(whole[:end])
        assert rendered(cache, "{{ 1 + 2 }}") == "3"


def test_what_cannot_be_written_is_compiled_each_time(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    (tmp_path / "__pycache__").mkdir()
    cache = compiled_templates(tmp_path / "page.py")
    (tmp_path / "__pycache__").rmdir()
    assert rendered(cache, "{{ 1 + 1 }}") == "2"
    assert compiled_templates(tmp_path / "page.py") is None
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert compiled_templates(tmp_path / "page.py") is None
