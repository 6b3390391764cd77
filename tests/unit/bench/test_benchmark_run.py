"""A whole benchmark with workers that answer at once: order, reasons of failures, and what is written."""

import json
from collections import defaultdict
from pathlib import Path

import pytest
from support.bench import BOX, HELLO, FakeChild

from gpu_report import schema
from gpu_report.bench.benchmark_run import BenchmarkRun, Terminated
from gpu_report.bench.child import ChildFailed
from gpu_report.bench.plan import BenchPlan
from gpu_report.bench.rounds import BLOCKS, turn_lengths

LOADED = {"load_s": 2.0, "settings": {"format": "pt", "half": False, "device": "cuda:0"}}
SERVED = {"start_mono_s": 1.0, "end_mono_s": 2.0, "calls": 9, "median_ms": 20.0}


class Machine:
    """Starts fake workers; `different` says by a variant's file name what its worker answers otherwise."""

    def __init__(self, tmp_path, different=None):
        self.weights = tmp_path / "n.pt"
        self.weights.write_bytes(b"weights")
        self.children = defaultdict(list)
        self.turns = []
        self._different = different or {}

    def start(self, name):
        def weights(request):
            return {"file": str(self.weights), "task": "detect", "random": False}

        def built(request):
            file = Path(request["weights"]).with_suffix(".out")
            file.write_bytes(b"x")
            return {"file": str(file), "build_s": 3.0}

        def serve(request):
            self.turns.append((name, request))
            return SERVED

        loaded = {**LOADED, "settings": {**LOADED["settings"], "half": "fp16" in name}}
        answers = {"hello": {**HELLO, "pid": 1}, "weights": weights, "build": built, "load": loaded, "serve": serve}
        answers |= {"boxes": {"boxes": [[BOX]]}, "memory": {"memory_mib": 700.0, "gpu_memory_mib": 300.0}}
        answers |= {"val": {"map50_95": 0.5}, **self._different.get(name, {})}
        child = FakeChild(answers)
        self.children[name].append(child)
        return child


def conducted(tmp_path, machine, **plan):
    plan = BenchPlan(**{"models": ("n.pt",), "built": str(tmp_path / "built"), "seconds": 4.0, **plan})
    said = []
    ran = BenchmarkRun(plan, tmp_path, machine.start, said.append).run()
    written = json.loads((tmp_path / schema.BENCH_JSON).read_text())
    return ran, written, {each["name"]: each for each in written["variants"]}, said


def test_all_variants_serve_in_turn_and_what_is_known_of_them_is_written(tmp_path):
    machine = Machine(tmp_path)
    ran, written, variants, _ = conducted(tmp_path, machine, formats=("pt", "engine"), half=True, data="d.yaml")
    rounds, turn_s, settle_s = turn_lengths(4.0)
    counted = [(name, request) for name, request in machine.turns if "settle_s" in request]
    assert len(counted) == 4 * rounds
    for number in range(rounds):
        names = [name for name, _ in counted[4 * number : 4 * number + 4]]
        assert len(set(names)) == 4  # nobody serves twice before all have
    assert counted[0][1] == {"do": "serve", "seconds": turn_s, "settle_s": settle_s}
    assert ran
    assert (written["gpu"], written["gpu_uuid"]) == ("NVIDIA H100", "GPU-1")
    engine = variants["n TensorRT FP16, batch 1"]
    assert (engine["build_s"], engine["reused"], engine["load_s"], engine["pid"]) == (3.0, False, 2.0, 1)
    assert (engine["map50_95"], engine["memory_mib"], len(engine["turns"])) == (0.5, 700.0, rounds)
    assert engine["agreement"]["reference"] == "n PyTorch FP32, batch 1"
    assert engine["agreement"]["share"] == 1.0
    assert "agreement" not in variants["n PyTorch FP32, batch 1"]


def test_serving_ends_when_all_medians_are_known(tmp_path):
    noisy = iter(20.0 * (1 + turn % 7) for turn in range(10_000))
    steady = {**SERVED, "calls": 200}
    machine = Machine(tmp_path, {"n-pt-fp32-b1": {"serve": steady}, "n-engine-fp32-b1": {"serve": steady}})
    _, written, variants, said = conducted(tmp_path, machine, formats=("pt", "engine"), seconds=60.0)
    assert {len(each["turns"]) for each in variants.values()} == {BLOCKS}
    assert f"medians are known after {BLOCKS} of 300 rounds" in said
    assert written["finished"]
    machine = Machine(
        tmp_path,
        {
            "n-pt-fp32-b1": {"serve": steady},
            "n-engine-fp32-b1": {"serve": lambda request: {**steady, "median_ms": next(noisy)}},
        },
    )
    _, _, variants, _ = conducted(tmp_path, machine, formats=("pt", "engine"), seconds=6.0)
    assert {len(each["turns"]) for each in variants.values()} == {30}


def test_every_process_is_ended(tmp_path):
    machine = Machine(tmp_path, {"n-pt-fp32-b8": {"serve": ChildFailed("CUDA out of memory")}})
    conducted(tmp_path, machine, batches=(1, 8))
    assert all(child.ended == 1 for children in machine.children.values() for child in children)


@pytest.mark.parametrize(
    ("stage", "request_name", "worker"),
    [
        ("model", "weights", "builder"),
        ("build", "build", "builder"),
        ("start", "hello", "n-engine-fp32-b1"),
        ("load", "load", "n-engine-fp32-b1"),
        ("serve", "serve", "n-engine-fp32-b1"),
        ("check", "boxes", "n-engine-fp32-b1"),
    ],
)
def test_a_variant_that_fails_keeps_its_reason_and_the_others_go_on(tmp_path, stage, request_name, worker):
    reason = "AttributeError: engine was built for another GPU"
    machine = Machine(tmp_path, {worker: {request_name: ChildFailed(reason)}})
    if request_name == "serve":  # not in its warm-up
        machine = Machine(tmp_path, {worker: {"serve": lambda r: ChildFailed(reason) if "settle_s" in r else SERVED}})
    ran, _, variants, said = conducted(tmp_path, machine, formats=("pt", "engine"))
    assert variants["n TensorRT FP32, batch 1"]["failed"] == {"stage": stage, "reason": reason}
    assert ran == (stage != "model")
    assert ("failed" in variants["n PyTorch FP32, batch 1"]) == (stage == "model")  # both are of one model
    assert any(reason in line for line in said)


def test_a_model_that_cannot_be_read_is_asked_for_once(tmp_path):
    machine = Machine(tmp_path, {"builder": {"weights": ChildFailed("TypeError: no YOLO")}})
    ran, _, variants, _ = conducted(tmp_path, machine, formats=("pt", "onnx"), batches=(1, 8))
    assert not ran
    assert {each["failed"]["reason"] for each in variants.values()} == {"TypeError: no YOLO"}
    assert sum(len(child.requests("weights")) for child in machine.children["builder"]) == 1


def test_a_builder_that_failed_is_replaced(tmp_path):
    machine = Machine(tmp_path, {"builder": {"build": ChildFailed("its process ended with signal SIGSEGV")}})
    _, _, variants, _ = conducted(tmp_path, machine, formats=("pt", "onnx", "engine"))
    assert len(machine.children["builder"]) == 2  # one for all until ONNX failed, one for TensorRT
    assert "turns" in variants["n PyTorch FP32, batch 1"]


def test_fp16_that_runs_in_fp32_is_no_fp16(tmp_path):
    settings = {**LOADED["settings"], "half": False}
    machine = Machine(tmp_path, {"n-pt-fp16-b1": {"load": {"load_s": 1.0, "settings": settings}}})
    _, _, variants, _ = conducted(tmp_path, machine, half=True)
    failed = variants["n PyTorch FP16, batch 1"]["failed"]
    assert failed["stage"] == "load"
    assert "FP16 needs a GPU" in failed["reason"]


def test_the_precision_of_an_exported_file_is_its_own(tmp_path):
    loaded = {"load_s": 1.0, "settings": {"format": "onnx", "half": False}}  # its inputs are FP32, its weights FP16
    machine = Machine(tmp_path, {"n-onnx-fp16-b1": {"load": loaded}})
    _, _, variants, _ = conducted(tmp_path, machine, formats=("onnx",), half=True)
    assert "failed" not in variants["n ONNX FP16, batch 1"]


def test_without_the_device_every_variant_says_so(tmp_path):
    machine = Machine(tmp_path, {"builder": {"hello": ChildFailed("ValueError: device 3 is not there")}})
    ran, written, variants, _ = conducted(tmp_path, machine, device="3")
    assert not ran
    assert variants["n PyTorch FP32, batch 1"]["failed"]["stage"] == "start"
    assert written["device"] is None


def test_a_builder_that_cannot_start_fails_every_variant(tmp_path):
    def start(name):
        raise OSError("[Errno 11] Resource temporarily unavailable")

    assert not BenchmarkRun(BenchPlan(("n.pt",)), tmp_path, start, print).run()
    (variant,) = json.loads((tmp_path / schema.BENCH_JSON).read_text())["variants"]
    assert variant["failed"] == {"stage": "start", "reason": "[Errno 11] Resource temporarily unavailable"}


def test_numbers_that_are_none_are_not_known_and_the_others_go_on(tmp_path):
    nan = float("nan")
    worker = {"val": {"map50_95": nan}, "boxes": {"boxes": [[[*BOX[:4], nan, BOX[5]]]]}}
    machine = Machine(tmp_path, {"n-pt-fp16-b1": worker})
    ran, _, variants, _ = conducted(tmp_path, machine, half=True, data="d.yaml")
    broken = variants["n PyTorch FP16, batch 1"]
    assert ran
    assert broken["map50_95"] is None
    assert (broken["agreement"]["share"], broken["agreement"]["score_difference"]) == (0.0, None)
    assert variants["n PyTorch FP32, batch 1"]["map50_95"] == 0.5


def test_every_process_is_ended_also_where_nothing_can_be_written(tmp_path, monkeypatch):
    def full(path, value):
        raise OSError("No space left on device")

    machine = Machine(tmp_path)
    monkeypatch.setattr("gpu_report.run_folder.write_json", full)
    with pytest.raises(OSError, match="No space"):
        conducted(tmp_path, machine)
    assert [child.ended for children in machine.children.values() for child in children] == [1, 1]


def test_secrets_of_a_plan_and_of_reasons_are_not_written(tmp_path):
    url = "https://bob:hunter2@host/d.yaml"
    machine = Machine(tmp_path, {"n-onnx-fp32-b1": {"val": ChildFailed(f"OSError: cannot read {url}")}})
    _, written, variants, _ = conducted(tmp_path, machine, formats=("pt", "onnx"), data=url)
    assert "hunter2" not in (tmp_path / schema.BENCH_JSON).read_text()
    assert written["plan"]["data"] == "https://***@host/d.yaml"
    assert variants["n ONNX FP32, batch 1"]["failed"]["reason"] == "OSError: cannot read https://***@host/d.yaml"
    assert [request["data"] for request in machine.children["n-pt-fp32-b1"][0].requests("val")] == [url]


def test_without_pytorch_the_first_variant_is_what_outputs_are_compared_with(tmp_path):
    machine = Machine(tmp_path)
    _, _, variants, _ = conducted(tmp_path, machine, formats=("onnx", "engine"))
    assert variants["n TensorRT FP32, batch 1"]["agreement"]["reference"] == "n ONNX FP32, batch 1"


@pytest.mark.parametrize(("how", "passed_on"), [(KeyboardInterrupt, False), (Terminated, True)])
def test_a_benchmark_that_is_interrupted_leaves_what_it_knew(tmp_path, how, passed_on):
    def interrupted(request):
        raise how

    machine = Machine(tmp_path, {"n-pt-fp32-b1": {"boxes": interrupted}})
    with pytest.raises(how):
        conducted(tmp_path, machine)
    written = json.loads((tmp_path / schema.BENCH_JSON).read_text())
    (variant,) = written["variants"]
    assert not written["finished"]
    assert len(variant["turns"]) == turn_lengths(4.0)[0]
    (worker,) = machine.children["n-pt-fp32-b1"]
    assert (worker.interrupted, worker.ended) == (passed_on, 1)  # a terminal's Ctrl-C has reached it already


def test_models_load_some_at_a_time_and_each_warms_up_alone(tmp_path, monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    machine = Machine(tmp_path)
    order = []
    for do in ("hello", "load"):
        original = FakeChild.send

        def send(self, request, original=original, do=do):
            if request["do"] == do and self not in machine.children["builder"]:
                order.append(do)
            original(self, request)

        monkeypatch.setattr(FakeChild, "send", send)
    conducted(tmp_path, machine, batches=(1, 2, 3))
    assert order == ["hello", "hello", "load", "load", "hello", "load"]
    assert [request.get("settle_s") for _, request in machine.turns[:3]] == [None] * 3
