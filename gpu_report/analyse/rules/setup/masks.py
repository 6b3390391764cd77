"""Configuration problem: masks that the loss of a segmentation computes finer than the model predicts them."""

from gpu_report.analyse.busy_in_training import busy_in_training
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.rules.setup.check import SetupIssue
from gpu_report.analyse.timeline.trainings import Training, whole
from gpu_report.model import HEALTHY_PCT, Advice

MASK_RATIO = 4  # cfg/default.yaml: pixels of an image, for one of the masks that a model predicts, each way

# The default's pixels, of which a loss takes enough to ask: `mask_ratio=1` has 16, and 2, which some choose for fine
# masks, 4. With 16, the first epoch took 30 instead of 26 s (YOLO26m-seg, batch 24, H200).
MANY_TIMES = 10


def finer_masks(context: Context, training: Training) -> SetupIssue | None:
    """Find masks for training that are finer than those that are predicted: the loss enlarges each of the latter.

    So it is in ultralytics 8.4 (v8SegmentationLoss), for each object that a prediction is for. Worth more than a note
    where the GPU is the limit; how much it takes depends on the objects, so that no gain is said.
    """
    ratio = whole(training.args.get("mask_ratio"))
    if training.args.get("task") != "segment" or not ratio or ratio >= MASK_RATIO:
        return None
    busy = busy_in_training(context, training)
    is_limit = busy is not None and busy[0] >= HEALTHY_PCT
    times = (MASK_RATIO / ratio) ** 2
    text = "Worth trying: predicted masks do not get finer by it. Compare time and mAP of an epoch"
    return SetupIssue(
        "warning" if is_limit and times >= MANY_TIMES else "info",
        f"The mask loss computes {times:.3g} times the pixels of the default (mask_ratio={ratio})",
        (ratio,),
        evidence(("pixels of a mask in training, against the default", times, "times")),
        (Advice(text, "mask_ratio", str(ratio), str(MASK_RATIO), short=f"Try `mask_ratio={MASK_RATIO}`"),),
    )
