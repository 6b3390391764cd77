"""Images on disk that are larger than a training uses them."""

from collections.abc import Mapping
from dataclasses import dataclass, fields

from gpu_report.analyse.timeline.thresholds import OVERSIZED_FROM
from gpu_report.analyse.timeline.trainings import whole

ABSURD_PX = 1_000_000  # of a side: no image format of ultralytics has more


@dataclass(frozen=True)
class ScaledDown:
    """The images that are larger than imgsz: their share (0 to 1) and the median of their longer sides (px).

    `pixels_used` is the share of all images' pixels, 0 to 1, that is left once these are scaled to imgsz.
    """

    share: float
    px: int
    pixels_used: float

    @property
    def is_far_larger(self) -> bool:
        """Tell whether so many pixels are lost that to resize the images once is worth it."""
        return self.pixels_used <= OVERSIZED_FROM**-2


def scaled_down(settings: Mapping[str, object]) -> ScaledDown | None:
    """Return what is known of the images larger than imgsz; in older recordings, that most of them are of one size."""
    told = settings.get("scaled_down")
    if isinstance(told, list):
        known = [float(each) for each in told if isinstance(each, int | float) and 0 < each < ABSURD_PX]
        return ScaledDown(known[0], int(known[1]), known[2]) if len(known) == len(fields(ScaledDown)) else None
    imgsz, px = whole(settings.get("imgsz")), whole(settings.get("image_px"))
    return ScaledDown(1.0, px, (imgsz / px) ** 2) if imgsz and px and px > imgsz else None
