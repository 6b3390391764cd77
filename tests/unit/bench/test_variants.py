"""The grid of variants, and what each is called."""

from gpu_report.bench.variants import format_of, grid


def test_each_model_comes_in_each_format_precision_and_batch_size():
    found = grid(["a/n.pt", "s.yaml"], ["pt", "onnx"], [1, 8], half=True)
    assert len(found) == 2 * 2 * 2 * 2
    assert len({variant.name for variant in found}) == len({variant.file_name for variant in found}) == 16
    assert found[0].name == "n PyTorch FP32, batch 1"
    assert found[-1].name == "s ONNX FP16, batch 8"


def test_without_half_there_is_fp32_alone():
    assert [variant.half for variant in grid(["n.pt"], ["pt"], [1], half=False)] == [False]


def test_an_exported_file_stays_in_its_format_and_its_own_precision():
    (one,) = grid(["runs/n.engine"], ["pt", "onnx"], [4], half=True)
    assert (one.format, one.given, one.name) == ("engine", True, "n TensorRT, batch 4")
    assert [format_of(name) for name in ("n_openvino_model/", "n.onnx", "n.pt", "n.yaml")] == [
        "openvino",
        "onnx",
        None,
        None,
    ]


def test_models_of_one_name_are_called_by_their_paths_and_a_model_named_twice_is_one():
    found = grid(["a/best.pt", "b/best.pt", "a/best.pt"], ["pt"], [1], half=False)
    assert [variant.short for variant in found] == ["a/best.pt", "b/best.pt"]
    assert all("/" not in variant.file_name for variant in found)
