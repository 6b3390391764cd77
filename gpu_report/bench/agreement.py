"""Whether two variants of a model find the same: their boxes on the same images, matched one to one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Rows = Sequence[Sequence[float]]

SAME_IOU = 0.9  # no unit: FP16 and fused operators move a corner by a pixel or so, another box overlaps far less


@dataclass(frozen=True)
class Agreement:
    """How alike the outputs are: of all boxes the share that the other side has as well, and how scores differ.

    `share` is None where neither side found a box. `score_difference` is the largest of matched boxes, None without.
    """

    images: int
    boxes: int
    share: float | None
    score_difference: float | None


def agreement(reference: Sequence[Rows], other: Sequence[Rows]) -> Agreement:
    """Return how far a variant's boxes agree with the reference's.

    Each image has rows of x1, y1, x2, y2, score, class. Boxes match where their class is the same and their IoU is
    SAME_IOU or more, the best pairs first. A box whose score is NaN, as of FP16 that overflows, matches none.
    """
    pairs = list(zip(reference, other, strict=False))
    boxes = sum(len(side) for pair in pairs for side in pair)
    differences = [d for mine, theirs in pairs for d in _matched(_array(mine), _array(theirs))]
    share = 2 * len(differences) / boxes if boxes else None
    return Agreement(len(pairs), boxes, share, max(differences, default=None))


def _array(rows: Rows) -> Floats:
    return np.array(rows, dtype=np.float64).reshape(-1, 6)


def _matched(mine: Floats, theirs: Floats) -> list[float]:
    """Return the difference in score of each pair of boxes that are the same one; one whose score is NaN is none."""
    comparable = (mine[:, None, 5] == theirs[None, :, 5]) & np.isfinite(mine[:, None, 4] - theirs[None, :, 4])
    overlap = np.where(comparable, _iou(mine, theirs), 0.0)
    rows, columns = np.nonzero(overlap >= SAME_IOU)
    best_first = np.argsort(-overlap[rows, columns], kind="stable")
    found: dict[int, int] = {}
    for row, column in zip(rows[best_first].tolist(), columns[best_first].tolist(), strict=True):
        if row not in found and column not in found.values():
            found[row] = column
    return [abs(float(mine[row, 4] - theirs[column, 4])) for row, column in found.items()]


def _iou(mine: Floats, theirs: Floats) -> Floats:
    """Return the intersection over union of each pair of boxes, N x M."""
    corner = np.maximum(mine[:, None, :2], theirs[None, :, :2])
    end = np.minimum(mine[:, None, 2:4], theirs[None, :, 2:4])
    shared = np.clip(end - corner, 0.0, None).prod(axis=2)
    either = _area(mine)[:, None] + _area(theirs)[None, :] - shared
    iou: Floats = np.divide(shared, either, out=np.zeros_like(shared), where=either > 0)
    return iou


def _area(boxes: Floats) -> Floats:
    area: Floats = np.clip(boxes[:, 2:4] - boxes[:, :2], 0.0, None).prod(axis=1)
    return area


def as_fields(found: Agreement, reference: str) -> dict[str, Any]:
    """Return what bench.json keeps of it."""
    return {
        "reference": reference,
        "images": found.images,
        "boxes": found.boxes,
        "share": None if found.share is None else round(found.share, 6),
        "score_difference": None if found.score_difference is None else round(found.score_difference, 6),
    }
