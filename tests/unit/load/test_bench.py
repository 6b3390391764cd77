"""The run folder of a benchmark: what is read of it, with a GPU and without, whole and damaged."""

import json

import numpy as np
import pytest

from gpu_report import schema
from gpu_report.errors import InputError
from gpu_report.load import load_bench
from gpu_report.model import HostLoop

MONO_S, WALL_S = 500.0, 1.7e9
VARIANT = {
    "name": "n PyTorch FP32, batch 1",
    "short": "n",
    "format": "pt",
    "half": False,
    "batch": 1,
    "pid": 77,
    "load_s": 2.5,
    "settings": {"device": "cuda:0", "providers": None},
    "turns": [{"start_mono_s": MONO_S + 10, "end_mono_s": MONO_S + 12, "calls": 9}],
    "warm_up": {"start_mono_s": MONO_S + 1, "end_mono_s": MONO_S + 2},
    "agreement": {"reference": "x", "images": 16, "boxes": 3, "share": 0.5, "score_difference": None},
}


def write(folder, *variants, calls="", **more):
    folder.mkdir(exist_ok=True)
    fields = {"format": 1, "device": "0", "gpu": "NVIDIA H100", "gpu_uuid": "GPU-1", "versions": {"torch": "2.9"}}
    (folder / schema.BENCH_JSON).write_text(json.dumps({**fields, "variants": variants, **more}))
    gpus = [{"index": 0, "uuid": "GPU-0"}, {"index": 1, "uuid": "GPU-1"}]
    info = {"format": 1, "start": {"wall_s": WALL_S, "mono_s": MONO_S}, "gpus": gpus}
    (folder / schema.RUN_JSON).write_text(json.dumps(info))
    (folder / schema.INSIDE_DIR).mkdir(exist_ok=True)
    header = ",".join(column.name for column in schema.CALLS_COLUMNS)
    (folder / schema.INSIDE_DIR / f"77{schema.CALLS_SUFFIX}").write_text(f"{header}\n{calls}")
    return folder


def test_without_a_gpu_the_clock_is_that_of_the_recording(tmp_path):
    calls = f"{MONO_S + 10.5},1,1,640,640,1,8,1,10,\n{MONO_S + 10.6},1,1,640,640,1,8,1,12,90\n"
    run = load_bench(write(tmp_path / "run", VARIANT, calls=calls))
    (variant,) = run.variants
    assert (variant.turns, variant.warm_up) == (((10.0, 12.0),), (1.0, 2.0))
    (found,) = variant.calls
    assert found.start_s.tolist() == pytest.approx([10.5, 10.6])
    assert found.total_ms.tolist() == [10.0, 12.0]
    assert (variant.load_s, variant.build_s, variant.failed_in) == (2.5, None, None)
    assert variant.agreement.share == 0.5
    assert (run.start_wall_s, len(run.power_t_s)) == (WALL_S, 0)


def test_how_fast_the_host_was_is_read_where_both_loops_of_a_turn_are_there(tmp_path):
    turn, both = VARIANT["turns"][0], {"loop_ms": 0.5, "loop_after_ms": 0.7}
    others = [
        {**both, "typical_loop_ms": 0.9, "core": 3, "waited_s": 0.5},
        {"loop_ms": 0.5},
        {**both, "loop_ms": 0},
        {**both, "loop_ms": "x"},
    ]
    turns = [turn, {**turn, **both}, *({**turn, **each} for each in others)]
    (variant,) = load_bench(write(tmp_path / "run", {**VARIANT, "turns": turns})).variants
    assert variant.loops == (HostLoop(0.6), HostLoop(0.6, 0.25))
    assert len(variant.turns) == len(turns)


@pytest.mark.parametrize("finest", [True, False])
def test_power_is_that_of_the_gpu_that_served_at_the_finest_readings_there_are(tmp_path, finest):
    folder = write(tmp_path / "run", VARIANT)
    columns = ["wall_s", "mono_s", "gpu", "power_w"]
    rows = [(WALL_S + t, MONO_S + t, gpu, 100 + 100 * gpu) for t in range(20) for gpu in (0, 1)]
    text = "\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)])
    (folder / schema.SAMPLES_CSV).write_text(text + "\n")
    fine = [(WALL_S + t, MONO_S + t, 1, 333) for t in np.arange(0, 19, 0.5)] if finest else []
    ring = "\n".join([",".join(columns), *(",".join(map(str, row)) for row in fine)])
    (folder / schema.RING_CSV).write_text(ring + "\n")
    run = load_bench(folder)
    assert set(run.power_w.tolist()) == {333.0 if finest else 200.0}
    assert len(run.power_t_s) == (38 if finest else 20)


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"pid": "77", "turns": 5, "settings": [], "agreement": 3, "failed": "yes", "batch": -1},
        {"turns": [None, {"start_mono_s": "now"}, {"start_mono_s": 9, "end_mono_s": 3}], "half": 1, "name": ["x"]},
        {"size_mib": float("nan"), "load_s": True, "batch": 1e400, "agreement": {"share": "all"}},
    ],
)
def test_what_makes_no_sense_is_not_known(tmp_path, entry):
    (variant,) = load_bench(write(tmp_path / "run", entry)).variants
    assert (variant.turns, variant.calls, variant.half, variant.batch) == ((), (), False, 1)
    assert (variant.size_mib, variant.load_s) == (None, None)


def test_a_folder_without_a_benchmark_is_refused(tmp_path):
    folder = write(tmp_path / "run")
    (folder / schema.BENCH_JSON).unlink()
    with pytest.raises(InputError, match=r"bench\.json"):
        load_bench(folder)


def test_a_recording_that_does_not_say_when_it_began_is_refused(tmp_path):
    folder = write(tmp_path / "run", VARIANT)
    (folder / schema.RUN_JSON).write_text("{}")
    with pytest.raises(InputError, match="does not say when the recording began"):
        load_bench(folder)


def test_links_that_lead_out_of_the_folder_are_not_followed(tmp_path):
    folder = write(tmp_path / "run", VARIANT)
    (folder / schema.BENCH_JSON).rename(tmp_path / "elsewhere.json")
    (folder / schema.BENCH_JSON).symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(InputError, match="leads out of"):
        load_bench(folder)
