"""`gpu_report.show`: which run it takes, what a notebook gets of it, and where its report goes."""

import time

import pytest
from support.samples import SAMPLES

import gpu_report
from gpu_report.errors import InputError, UsageError
from gpu_report.notebook import attaching

LONGEST_S = 1.0


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(attaching, "attached", [])
    return tmp_path


def test_a_named_run_is_shown_as_html_and_as_text(here):
    shown = gpu_report.show(SAMPLES / "n-starved")
    made = shown._repr_mimebundle_(include=None, exclude=None)
    assert set(made) == {"text/html", "text/plain"}
    assert "<b>Set <code>workers=11</code>" in made["text/html"]
    assert made["text/plain"].startswith("Set `workers=11`")
    assert str(shown) == repr(shown) == made["text/plain"]
    assert "save(" in made["text/html"]
    assert not list(here.iterdir())


def test_left_out_it_is_the_training_attached_last_else_the_newest_run(here):
    with pytest.raises(InputError, match="no run under"):
        gpu_report.show()
    (here / "gpu-runs").mkdir()
    (here / "gpu-runs" / "one").symlink_to(SAMPLES / "fed")
    assert gpu_report.show().analysis.run.path == "gpu-runs/one"
    attaching.attached.append(SAMPLES / "n-starved")
    assert gpu_report.show().analysis.run.path == str(SAMPLES / "n-starved")
    with pytest.raises(InputError, match="name one of them"):
        gpu_report.show(SAMPLES)


def test_the_full_report_is_saved_and_linked(here):
    shown = gpu_report.show(SAMPLES / "fed").save("my reports/fed.html")
    assert 'href="my%20reports/fed.html"' in shown._repr_mimebundle_()["text/html"]
    assert (here / "my reports" / "fed.html").read_text().startswith("<!doctype html>")


def test_a_report_that_a_notebook_cannot_open_is_named(here, monkeypatch):
    (here / "notebooks").mkdir()
    monkeypatch.chdir(here / "notebooks")
    html = gpu_report.show(SAMPLES / "fed").save("../fed.html")._repr_mimebundle_()["text/html"]
    assert "The full report: <code>../fed.html</code>" in html
    assert "href" not in html


def test_a_report_takes_the_place_of_nothing_that_was_recorded(here):
    shown = gpu_report.show(SAMPLES / "fed")
    for path in (here, here / "run.json", here / "samples.csv"):
        with pytest.raises(UsageError, match="name another file"):
            shown.save(path)
    (here / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        shown.save(here / "file" / "report.html")


def test_it_takes_less_than_a_second_of_cpu(here):
    gpu_report.show(SAMPLES / "fed")._repr_mimebundle_()  # imports
    began = time.process_time()  # other tests run beside this one
    gpu_report.show(SAMPLES / "m-ddp4")._repr_mimebundle_()
    assert time.process_time() - began < LONGEST_S
    assert here.exists()
