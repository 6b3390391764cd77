"""Images on disk that are far larger than what a training uses of them: to resize them once, and what that wins."""

from math import sqrt

from gpu_report.analyse.advice import thresholds as th
from gpu_report.analyse.advice.fixes import epoch_without_data_wait_s
from gpu_report.analyse.advice.run_settings import RunSettings
from gpu_report.analyse.causes.thresholds import WORKER_FULL_PCT
from gpu_report.analyse.signals.interval_signals import IntervalSignals
from gpu_report.analyse.timeline.thresholds import OVERSIZED_FROM
from gpu_report.analyse.timeline.trainings import BYTES_PER_PIXEL
from gpu_report.catalogue import CAUSES
from gpu_report.model import Advice, SpeedupLimit
from gpu_report.wording import memory_words

BY_READING = frozenset({"input-cpu", "input-storage"})  # causes that large files make, where no stacks say what else


def resize_images(
    settings: RunSettings, cause: str, limit: SpeedupLimit | None, signals: IntervalSignals
) -> Advice | None:
    """Offer to resize the images once, where workers that are waited for mostly read and decode far larger ones.

    YOLO scales the longer side of each image to imgsz before anything else, so that the rest of its pixels is lost.
    """
    imgsz, larger, loader = settings.imgsz, settings.scaled_down, signals.loader
    if settings.image_px is None:
        return _by_bytes(settings, cause, signals)
    if not imgsz or larger is None or not larger.is_far_larger or settings.cached:
        return None
    if cause not in BY_READING if loader is None else not CAUSES[cause].is_input or loader.reading < th.READING_SHARE:
        return None
    expected_s = None if limit is None else _expected_s(limit, signals, larger.pixels_used)
    share = None if loader is None else f"{100 * loader.reading:.0f} % of the workers' time"
    reading = "" if share is None else f". Reading and decoding takes {share}"
    short = f"Resize the images once to {imgsz} px (now {larger.px:,})"
    if larger.share < th.ALIKE_SHARE:
        short = f"Resize images of over {imgsz} px once ({100 * larger.share:.0f} % of them, mostly {larger.px:,} px)"
    labels = "YOLO's labels are relative and stay as they are"
    return Advice(
        f"{short}: training uses one of {1 / larger.pixels_used:.0f} pixels{reading}. {labels}",
        gain_at_most=None if limit is None else limit.saves_at_most_s / limit.whole_s,
        gain_estimate=None if limit is None or expected_s is None else (limit.epoch_s_now - expected_s) / limit.whole_s,
        short=short,
        of_epoch=True,
        images_px=imgsz,
    )


def _by_bytes(settings: RunSettings, cause: str, signals: IntervalSignals) -> Advice | None:
    """Offer it where the size of images is not known, as of classification: what takes so many bytes is far larger.

    A photo takes a sixth of them or less: how much smaller it becomes, and what that wins, is not known.
    """
    imgsz, mib, loader = settings.imgsz, settings.image_mib, signals.loader
    if not imgsz or not mib or settings.cached or not CAUSES[cause].is_input:
        return None
    if sqrt(mib * 2**20 / BYTES_PER_PIXEL) < OVERSIZED_FROM * imgsz:
        return None
    if cause not in BY_READING if loader is None else loader.reading < th.READING_WITH_CROPS:
        return None
    short = f"Resize the images once (now {memory_words(mib)} each, for imgsz={imgsz})"
    return Advice(
        f"{short}: decoding takes as long as they have pixels. Leave some margin for random crops", short=short
    )


def _expected_s(limit: SpeedupLimit, signals: IntervalSignals, kept: float) -> float | None:
    """Return the epoch with images of which a share of the pixels is `kept` (0 to 1), None where nothing says.

    Workers that compute all the time need less by what reading and decoding took of it: that goes with the pixels.
    """
    busiest = signals.within("busiest_worker_cpu_pct")
    if signals.loader is None or limit.cause != "input-cpu" or busiest is None or busiest < WORKER_FULL_PCT:
        return None
    saved = signals.loader.reading * (1 - kept)
    return max(epoch_without_data_wait_s(limit), limit.epoch_s_now * (1 - saved))
