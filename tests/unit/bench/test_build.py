"""What is exported, and what is taken from an earlier benchmark."""

from pathlib import Path

import pytest
from support.bench import HELLO, FakeChild

from gpu_report.bench.build import Export, size_mib
from gpu_report.bench.child import ChildFailed
from gpu_report.bench.variants import Variant

AROUND = {"imgsz": 640, **{name: HELLO[name] for name in ("device", "gpu", "versions")}}
ENGINE = Variant("n.pt", "n", "engine", half=True, batch=8)


def exporter(seconds=42.0):
    def made(request):
        file = Path(request["weights"]).with_suffix(f".{request['format']}")
        file.write_bytes(b"exported")
        return {"file": str(file), "build_s": seconds}

    return FakeChild({"build": made})


def build(child, *export):
    made = Export(*export)
    return made.earlier() or made.make(child)


@pytest.fixture
def weights(tmp_path):
    file = tmp_path / "n.pt"
    file.write_bytes(b"weights")
    return file


def test_an_engine_is_built_in_a_folder_of_its_own_with_its_arguments(weights, tmp_path):
    child = exporter()
    found = build(child, ENGINE, weights, tmp_path / "built", AROUND)
    (request,) = child.requests("build")
    assert (request["format"], request["batch"], request["half"], request["imgsz"]) == ("engine", 8, True, 640)
    assert (found.build_s, found.reused) == (42.0, False)
    assert Path(found.file).parent.parent == tmp_path / "built"
    assert [path.name for path in tmp_path.iterdir()] == ["n.pt", "built"] or weights.read_bytes() == b"weights"
    assert sorted(path.name for path in Path(found.file).parent.iterdir()) == ["build.json", "n.engine"]


def test_what_was_built_alike_is_taken_and_its_time_is_still_known(weights, tmp_path):
    first = build(exporter(), ENGINE, weights, tmp_path / "built", AROUND)
    child = exporter()
    again = build(child, ENGINE, weights, tmp_path / "built", AROUND)
    assert (again.file, again.build_s, again.reused, child.asked) == (first.file, 42.0, True, [])


@pytest.mark.parametrize(
    "other",
    [
        {"gpu": "NVIDIA L4"},
        {"versions": {"tensorrt": "11"}},
        {"imgsz": 320},
        {"weights": b"trained on"},
        {"half": False},
        {"batch": 1},
    ],
    ids=lambda other: next(iter(other)),
)
def test_an_engine_of_another_gpu_version_size_or_weights_is_built_anew(weights, tmp_path, other):
    build(exporter(), ENGINE, weights, tmp_path / "built", AROUND)
    weights.write_bytes(other.get("weights", b"weights"))
    variant = Variant("n.pt", "n", "engine", half=other.get("half", True), batch=other.get("batch", 8))
    around = {**AROUND, **{name: value for name, value in other.items() if name in AROUND}}
    assert not build(exporter(), variant, weights, tmp_path / "built", around).reused


def test_a_build_that_broke_off_is_no_build(weights, tmp_path):
    with pytest.raises(ChildFailed, match="no TensorRT"):
        build(FakeChild({"build": ChildFailed("no TensorRT")}), ENGINE, weights, tmp_path / "built", AROUND)
    child = exporter()
    assert not build(child, ENGINE, weights, tmp_path / "built", AROUND).reused
    (folder,) = (tmp_path / "built").iterdir()
    (folder / "build.json").write_text('{"file": "n.eng')
    assert not build(child, ENGINE, weights, tmp_path / "built", AROUND).reused


def test_the_size_of_a_folder_is_that_of_its_files(tmp_path):
    (tmp_path / "a.bin").write_bytes(b"x" * 2**20)
    (tmp_path / "b.bin").write_bytes(b"x" * 2**20)
    assert size_mib(tmp_path) == 2.0
    assert size_mib(tmp_path / "nothing") is None
