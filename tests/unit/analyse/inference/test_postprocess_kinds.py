"""What post-processing does, by the lines in which it stood."""

import pytest

from gpu_report.analyse.inference.postprocess_kinds import kind_in_postprocess
from gpu_report.model import Frame

YOLO = "/venv/lib/python3.11/site-packages/ultralytics"
CALL = (
    Frame(f"{YOLO}/models/yolo/detect/predict.py", 55, "postprocess"),
    Frame(f"{YOLO}/engine/predictor.py", 380, "stream_inference"),
    Frame("/home/me/serve.py", 12, "<module>"),
)


@pytest.mark.parametrize(
    ("inner", "kind"),
    [
        ((Frame(f"{YOLO}/utils/nms.py", 157, "non_max_suppression"),), "NMS"),
        ((Frame("/venv/torch/_ops.py", 1269, "__call__"), Frame(f"{YOLO}/utils/nms.py", 48, "nms")), "NMS"),
        ((Frame(f"{YOLO}/utils/ops.py", 545, "process_mask"),), "masks"),
        ((Frame(f"{YOLO}/models/yolo/segment/predict.py", 109, "construct_result"),), "masks"),
        ((Frame(f"{YOLO}/utils/ops.py", 730, "convert_torch2numpy_batch", called="cpu"),), "copies of images"),
        ((Frame(f"{YOLO}/utils/ops.py", 168, "scale_boxes"),), "the rest"),
    ],
)
def test_a_line_of_postprocessing_is_of_its_kind(inner, kind):
    assert kind_in_postprocess((*inner, *CALL)) == kind


def test_what_lies_outside_of_calls_or_of_postprocessing_is_of_none():
    inner = Frame(f"{YOLO}/utils/nms.py", 157, "non_max_suppression")
    assert kind_in_postprocess((inner, *CALL[1:])) is None
    assert kind_in_postprocess((inner, CALL[0], CALL[2])) is None
    assert kind_in_postprocess(()) is None
