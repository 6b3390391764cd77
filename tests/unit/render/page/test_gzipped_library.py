import gzip
import sys

import pytest

from gpu_report.render.page.blank.gzipped_library import gzipped_library

LIBRARY = b"let plotly;" * 9


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module of a folder in which Python keeps what it compiled."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    (tmp_path / "__pycache__").mkdir()
    return tmp_path / "page.py"


def test_a_library_is_gzipped_once_until_it_changes(module, monkeypatch):
    first = gzipped_library(LIBRARY, module)
    assert gzip.decompress(first) == LIBRARY
    with monkeypatch.context() as patched:
        patched.setattr("gpu_report.render.page.blank.gzipped_library._gzipped", None)
        assert gzipped_library(LIBRARY, module) == first
    assert gzip.decompress(gzipped_library(LIBRARY + b"2", module)) == LIBRARY + b"2"


def test_a_file_that_was_cut_is_made_anew(module):
    first = gzipped_library(LIBRARY, module)
    (kept,) = (module.parent / "__pycache__").iterdir()
    for cut in (first[:-1], first[:20], b""):
        kept.write_bytes(cut)
        assert gzipped_library(LIBRARY, module) == first
        assert kept.read_bytes() == first


def test_what_cannot_be_kept_is_gzipped_each_time(module, monkeypatch):
    first = gzipped_library(LIBRARY, module)
    (kept,) = (module.parent / "__pycache__").iterdir()
    kept.unlink()
    kept.mkdir()
    assert gzipped_library(LIBRARY, module) == first
    assert [path.name for path in kept.parent.iterdir()] == [kept.name]
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert gzipped_library(LIBRARY, module) == first
