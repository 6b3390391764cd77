from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from gpu_report import model
from gpu_report.render.page.sections.yolo_defaults import DEFAULTS, is_changed
from gpu_report.render.page.sections.yolo_run import phases_note, set_up, yolo

ARGS = {"model": "yolo26n.pt", "batch": 64, "workers": 8, "amp": True, "cls_remap": False, "optimizer": "auto"}


def with_args(analysis: model.Analysis, settings: dict[str, object] | None = None) -> model.Analysis:
    run = replace(analysis.run, yolo_runs=(model.YoloRun(1, "runs/train", ARGS, "recorded", None),))
    inside = () if settings is None else (model.InsideRun(1, 0, 1, "train", settings, (), ()),)
    return replace(analysis, run=replace(run, inside=inside))


def test_changed_arguments_stand_first_with_their_default(analysis: model.Analysis) -> None:
    (view,) = yolo(with_args(analysis))
    assert [(f.label, f.value, f.note) for f in view.changed] == [
        ("model", "yolo26n.pt", ""),
        ("batch", "64", "default 16"),
    ]
    assert [f.label for f in view.arguments] == ["workers", "amp", "cls_remap", "optimizer"]


def test_the_set_up_is_the_one_in_effect(analysis: model.Analysis) -> None:
    capped = with_args(analysis, {"workers": 2, "imgsz": 640, "batch": None})
    assert set_up(capped) == ("yolo26n", "batch 64", "2 data-loader workers", "640 px")
    several = replace(analysis.run, yolo_runs=capped.run.yolo_runs * 2)
    assert set_up(replace(analysis, run=several)) == ()


def test_an_argument_of_unknown_default_is_never_called_changed() -> None:
    assert not is_changed("cls_remap", False)
    assert not is_changed("multi_scale", 0.5)


def test_one_is_not_true() -> None:
    assert is_changed("amp", 1)
    assert is_changed("cache", 0)
    assert not is_changed("fraction", 1)


def test_what_is_another_in_effect_stands_first_too(analysis: model.Analysis) -> None:
    settings = {"workers": 4, "batch": 64, "amp": True, "optimizer": "MuSGD", "images": 118_287, "gflops": None}
    (view,) = yolo(with_args(analysis, settings))
    notes = {fact.label: fact.note for fact in view.changed}
    assert notes == {"model": "", "batch": "default 16", "workers": "in effect 4", "optimizer": "in effect MuSGD"}
    assert [(fact.label, fact.value) for fact in view.reported] == [("training images", "118,287")]


def test_the_settings_of_another_run_say_nothing(analysis: model.Analysis) -> None:
    other = with_args(analysis, {"workers": 4})
    other = replace(other, run=replace(other.run, inside=(replace(other.run.inside[0], run=2),)))
    assert yolo(other)[0].reported == ()


@pytest.mark.parametrize(
    ("sources", "words"),
    [
        (["callbacks"], "as reported by YOLO's callbacks."),
        (["results.csv", "results.csv, edges from utilisation"], "estimated from outside"),
        (["callbacks", "results.csv"], "in runs without callbacks"),
        ([], ""),
    ],
)
def test_the_source_of_the_phases_is_said(analysis: model.Analysis, sources: list[str], words: str) -> None:
    phases = tuple(model.Phase("train", 1, n, n + 1.0, source) for n, source in enumerate(sources))
    idle = model.Phase("idle", None, 50.0, 60.0, "utilisation")
    note = phases_note(replace(analysis, phases=(*phases, idle)))
    assert words in note
    assert bool(note) == bool(sources)


def test_the_defaults_are_those_of_the_installed_ultralytics() -> None:
    spec = find_spec("ultralytics")
    if spec is None or spec.origin is None:
        pytest.skip("ultralytics is not installed")
    installed = yaml.safe_load((Path(spec.origin).parent / "cfg" / "default.yaml").read_text())
    assert {name: installed[name] for name in DEFAULTS} == DEFAULTS
