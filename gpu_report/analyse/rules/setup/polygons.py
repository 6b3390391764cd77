"""Configuration problem: labels that are polygons, which a detect model does not see.

Their boxes are what it learns. They fit more closely than those of rotated or sheared boxes: there polygons have a use.
"""

from gpu_report.analyse.causes.confidence import STRONG
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.setup.check import SetupIssue
from gpu_report.analyse.signals.code.stack_kinds import in_yolo, of_worker_alone
from gpu_report.analyse.signals.code.stack_profile import LEAST_IDLE_S
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.model import Advice, Cause, Stack

# What ultralytics' data set and augmentation do with polygons alone: labels that are boxes never come there.
OF_POLYGONS = frozenset({"resample_segments", "apply_segments", "segment2box", "segments2boxes"})
USES_POLYGONS = ("copy_paste", "degrees", "shear", "perspective")  # arguments for which their outlines matter


def polygon_labels(context: Context, training: Training) -> SetupIssue | None:
    """Find a detect training whose workers spend much of their work on polygons, and has no use for them.

    It is a note where training hardly waits for data: workers that have time left may do what they like.
    """
    if training.args.get("task") != "detect" or any(training.args.get(name) for name in USES_POLYGONS):
        return None
    worked_s, polygons_s = _worked_s(context, training)
    if worked_s < LEAST_IDLE_S or polygons_s < th.POLYGON_SHARE * worked_s:
        return None
    share, spans = polygons_s / worked_s, training.train_spans
    waited = context.throughput.data_wait_share(spans) if context.throughput and spans else None
    waits = waited is not None and waited >= th.DATA_WAIT_SHARE
    short = "Convert the labels from polygons to boxes, which are what a detect model learns"
    text = f"{short}. A line is class, x and y of the centre, width and height. Boxes that mosaic cuts get looser"
    return SetupIssue(
        "warning" if waits else "info",
        f"Data-loader workers spent {100 * share:.0f} % of their work on polygons (`resample_segments`)",
        (training.text("data_folder"),),
        evidence(
            ("share of the workers' work in functions for polygons", 100 * share, "%"),
            ("training time that waited for data", None if waited is None else 100 * waited, "%"),
        ),
        (Advice(text, short=short),),
        Cause("input-cpu", STRONG, "workers compute polygons, of which boxes are used") if waits else None,
    )


def _worked_s(context: Context, training: Training) -> tuple[float, float]:
    """Return how long the workers were at work in a training, all together, and how much of it was for polygons (s)."""
    workers = [each for each in context.signals.idle_stacks if each.process.is_worker]
    if not any(_is_of_polygons(stack) for each in workers for stack in each.process.stacks.values()):
        return 0.0, 0.0  # of few stacks: cheaper than their times
    stood = [pair for each in workers for pair in each.stood([training.span]) if of_worker_alone(pair[0])]
    return sum(s for _, s in stood), sum(s for stack, s in stood if _is_of_polygons(stack))


def _is_of_polygons(stack: Stack) -> bool:
    return any(frame.function in OF_POLYGONS and in_yolo(frame) for frame in stack)
