"""A real benchmark on the CPU, from the command line to the page."""

import json
from importlib.util import find_spec

import pytest
from support.yolo import SMALL_MODEL, version

from gpu_report import schema
from gpu_report.bench import known_names
from gpu_report.bench.rounds import ROUNDS_AT_LEAST, is_precise

pytestmark = pytest.mark.yolo

# 8.3 needs more than these with a torch of today
HAS_ONNX = version() >= (8, 4) and find_spec("onnxruntime") and find_spec("onnx")
FORMATS = ("pt", "torchscript", *(("onnx",) if HAS_ONNX else ()))


def test_names_that_ultralytics_knows_are_told_from_others():
    assert known_names.unknown_models(["nope.pt", "yolo11n.pt", "yolo11n", "yolo11s-seg.yaml"]) == ["nope.pt"]
    assert [known_names.unknown_data(name) for name in ("coco8.yaml", "coc8.yaml", "https://a.b/c.yaml")] == [
        False,
        True,
        False,
    ]


def test_variants_of_a_model_serve_in_turn_and_agree(run_cli, yolo_home, offline):
    words = ("--imgsz", 32, "--seconds", 1, "--device", "cpu", "--json", "b.json", "--output", "run", "b.html")
    words = ("bench", SMALL_MODEL, "--formats", ",".join(FORMATS), *words)
    done = run_cli(*words, env=offline, cwd=yolo_home, timeout=200)
    assert done.returncode == 0, done.stderr
    said = json.loads((yolo_home / "b.json").read_text())
    assert {each["format"] for each in said["variants"]} == set(FORMATS)
    for variant in said["variants"]:
        assert variant["latency"]["calls"] > 10
        assert all(part > 0 for part in variant["parts_ms"].values())
        assert 0 < variant["latency"]["p50"]["value_ms"] <= variant["latency"]["worst_ms"]
        in_calls = variant["images_per_s"]["value"] * variant["latency"]["mean_ms"] / 1000
        assert 0.2 < in_calls < 1.1  # a turn has nothing but calls
        assert variant["settings"].get("format", variant["format"]) == variant["format"]  # unknown before 8.4
        assert (variant["format"] == "pt") == (variant["build_s"] is None) == (variant["outputs"] is None)
        assert variant["outputs"] is None or variant["outputs"]["same_share"] > 0.9
    assert said["choice"] in done.stdout.splitlines()[0]
    recorded = json.loads((yolo_home / "run" / schema.BENCH_JSON).read_text())["variants"]
    (turns,) = {len(each["turns"]) for each in recorded}  # as many of each
    served = [([turn["median_ms"] for turn in each["turns"]], each["turns"]) for each in recorded]
    precise = all(is_precise(medians, sum(turn["calls"] for turn in of)) for medians, of in served)
    assert turns == ROUNDS_AT_LEAST or (precise and turns < ROUNDS_AT_LEAST)  # they end once all medians are precise
    assert len({each["pid"] for each in recorded}) == len(FORMATS)
    assert "the weights are random" in (yolo_home / "b.html").read_text()
