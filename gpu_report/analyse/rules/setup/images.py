"""Configuration problem: images that YOLO enlarges for training, far beyond what they are on disk."""

from math import ceil

from gpu_report.analyse.busy_in_training import busy_in_training
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.setup.check import SetupIssue
from gpu_report.analyse.timeline.trainings import STRIDE_PX, Training, whole
from gpu_report.catalogue import ENLARGED_KEY
from gpu_report.model import HEALTHY_PCT, Advice, Evidence
from gpu_report.wording import upper_first


def enlarged(context: Context, training: Training) -> SetupIssue | None:
    """Find images that are much smaller than imgsz: YOLO scales their longer side up to it.

    It is the same with `rect` and `multi_scale`, around whose mean sizes vary. Worth more than a note where the GPU is
    the limit: its work goes with the pixels. Data sets for classification report no size.
    """
    imgsz, image_px = whole(training.settings.get("imgsz")), whole(training.settings.get("image_px"))
    if not imgsz or not image_px or (training.args and "imgsz" not in training.args):
        return None
    fit = max(STRIDE_PX * ceil(image_px / STRIDE_PX), th.IMGSZ_LEAST_PX)
    if imgsz < th.ENLARGED_FROM * fit:
        return None
    busy = busy_in_training(context, training)
    is_limit = busy is not None and busy[0] >= HEALTHY_PCT
    gain = busy[0] / 100 * (1 - (fit / imgsz) ** 2) if busy is not None and is_limit else None
    times = (imgsz / image_px) ** 2
    text = "Enlarging adds no detail, but small objects may be found better: compare mAP at both sizes"
    return SetupIssue(
        "warning" if is_limit else "info",
        f"Images of {image_px} px are enlarged to {_shown(times)} times the pixels",
        (imgsz, image_px),
        (
            *evidence(("longer side of the images on disk, median", image_px, "px")),
            Evidence("pixels in training, against those on disk", times, "times", key=ENLARGED_KEY),
        ),
        (Advice(text, "imgsz", str(imgsz), str(fit), gain_at_most=gain),),
    )


def repeated_images(_: Context, training: Training) -> SetupIssue | None:
    """Note lists that have the same files several times. In training that may be meant: it weights what is rare."""
    seen = (("training", "images", "distinct_images"), ("validation", "val_images", "val_distinct_images"))
    counts = [(of, whole(training.settings.get(a)), whole(training.settings.get(b))) for of, a, b in seen]
    found = [(of, n, d) for of, n, d in counts if n and d and n >= th.REPEATED_DATA * d]
    if not found:
        return None
    named = " and ".join(f"the {of} list names {n:,} images, of which {d:,} are different" for of, n, d in found)
    once = "List each validation image once: it says as much in less time"
    validates = any(of == "validation" for of, _, _ in found)
    text = once if validates else "If that is not meant to weight them, list each image once"
    return SetupIssue("info", upper_first(named), tuple(found), (), (Advice(text),))


def _shown(times: float) -> str:
    return f"{round(times, 1 if times < 10 else None):g}"
