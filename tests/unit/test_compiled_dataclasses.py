import dataclasses
import sys
from dataclasses import FrozenInstanceError, dataclass, field, replace

import pytest

from gpu_report import compiled_dataclasses as module_of_it
from gpu_report.compiled_dataclasses import compiled_dataclasses


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module of a folder in which Python keeps what it compiled."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    (tmp_path / "__pycache__").mkdir()
    return tmp_path / "model.py"


@pytest.fixture
def compiled(monkeypatch):
    """The texts that were compiled."""
    texts = []
    monkeypatch.setattr(
        module_of_it, "compile", lambda *given, **named: texts.append(given) or compile(*given, **named), False
    )
    return texts


def span():
    @dataclass(frozen=True, order=True)
    class Span:
        start_s: float
        end_s: float = 1.0
        names: tuple[str, ...] = field(default=(), compare=False)

    return Span


def test_methods_are_compiled_once_and_are_those_of_any_dataclass(module, compiled):
    for each in range(2):
        with compiled_dataclasses(module):
            made = span()
        assert bool(compiled) == (each == 0)
        assert made(0.5) == made(0.5, names=("a",)) < made(0.5, 2.0) != span()(0.5, 2.0)
        assert hash(made(0.5)) == hash(made(0.5, names=("a",)))
        assert repr(replace(made(0.5), end_s=3.0)) == "span.<locals>.Span(start_s=0.5, end_s=3.0, names=())"
        with pytest.raises(FrozenInstanceError):
            made(0.5).end_s = 2.0
        compiled.clear()


def test_a_class_that_changes_is_compiled_and_kept_beside_the_others(module, compiled):
    with compiled_dataclasses(module):
        span()
    compiled.clear()
    for count in (1, 0):
        with compiled_dataclasses(module):
            span()
            dataclass(type("Point", (), {"__annotations__": {"x": "float"}}))
        assert bool(compiled) == bool(count)
        compiled.clear()


def test_a_file_that_was_cut_or_has_grown_too_large_is_made_anew(module, compiled, monkeypatch):
    with compiled_dataclasses(module):
        span()
    (kept,) = (module.parent / "__pycache__").iterdir()
    whole = kept.read_bytes()
    for data in (whole[:-1], whole[:9], b"", b"N", whole + bytes(module_of_it.MOST_BYTES)):
        kept.write_bytes(data)
        compiled.clear()
        with compiled_dataclasses(module):
            span()
        assert compiled
        assert kept.read_bytes() == whole


def test_nothing_is_changed_where_python_keeps_nothing_and_when_it_is_over(module, monkeypatch):
    begun = compiled_dataclasses(module)
    begun.__enter__()
    assert "exec" in vars(dataclasses)
    assert not begun.__exit__(KeyError, KeyError(), None)
    assert "exec" not in vars(dataclasses)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    with compiled_dataclasses(module):
        assert "exec" not in vars(dataclasses)
