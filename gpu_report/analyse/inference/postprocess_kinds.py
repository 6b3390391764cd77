"""What a call's post-processing does, by the lines in which its threads stood: NMS, masks, copies of the images."""

import re
from functools import lru_cache
from typing import Final, Literal

from gpu_report.analyse.context import Context
from gpu_report.analyse.inference import thresholds as th
from gpu_report.analyse.inference.gap_kinds import is_in_call
from gpu_report.analyse.inference.gaps import noted_stacks
from gpu_report.analyse.timeseries.sums import sums_by_key
from gpu_report.model import Frame, ServedModel, Stack

PostKind = Literal["NMS", "masks", "copies of images", "the rest"]
POSTPROCESS: Final = "postprocess"
NMS: Final = re.compile(r"[\\/]ultralytics[\\/]utils[\\/]nms\.py$")
MASKS: Final = re.compile(r"[\\/]ultralytics[\\/]models[\\/](?:yolo[\\/]segment|fastsam|sam)[\\/]predict\.py$")
MASK_FUNCTIONS: Final = frozenset({"process_mask", "process_mask_native", "crop_mask", "scale_masks"})
NMS_FUNCTION, COPIES = "non_max_suppression", "convert_torch2numpy_batch"  # ultralytics' own


def most_of_postprocessing(context: Context, served: ServedModel) -> PostKind | None:
    """Return what takes half of the post-processing of a model's calls or more, None where notes do not say it."""
    noted = noted_stacks(context, served.calls.pid, (served.start_s, served.end_s))
    seconds = sums_by_key((kind, spent) for stack, spent in noted if (kind := kind_in_postprocess(stack)) is not None)
    total = sum(seconds.values())
    most = max(seconds, key=lambda kind: seconds[kind], default=None)
    is_known = most is not None and total >= th.GAP_NOTES_S and seconds[most] >= th.MOST_OF_PART * total
    return most if is_known else None


@lru_cache(maxsize=8192)
def kind_in_postprocess(stack: Stack) -> PostKind | None:
    """Return what a thread does in a stack within post-processing, None elsewhere; innermost frames come first."""
    at = next((at for at, frame in enumerate(stack) if frame.function == POSTPROCESS), None)
    if at is None or not is_in_call(stack):
        return None
    inner = stack[:at]
    if any(frame.function == NMS_FUNCTION or NMS.search(frame.file) for frame in inner):
        return "NMS"
    if any(map(_makes_masks, inner)):
        return "masks"
    return "copies of images" if any(frame.function == COPIES for frame in inner) else "the rest"


def _makes_masks(frame: Frame) -> bool:
    return frame.function in MASK_FUNCTIONS or MASKS.search(frame.file) is not None
