"""YOLO's fitness of an epoch, by which it keeps the best weights and counts its patience."""

import math
from collections.abc import Mapping

# Of boxes, masks and poses: ultralytics adds them up (8.4, `utils/metrics.py`; until 8.3 a tenth of it was mAP50).
MEAN_PRECISIONS = ("metrics/mAP50-95(B)", "metrics/mAP50-95(M)", "metrics/mAP50-95(P)")
ACCURACIES = ("metrics/accuracy_top1", "metrics/accuracy_top5")  # of classification: their mean
OTHERS = ("metrics/mIoU", "metrics/delta1")  # of semantic segmentation, and of depth


def fitness(metrics: Mapping[str, float]) -> float:
    """Return the fitness of an epoch by its row of results.csv, -inf where that has none of its metrics."""
    for names in (MEAN_PRECISIONS, ACCURACIES, OTHERS):
        known = [metrics[name] for name in names if name in metrics]
        if known:
            return sum(known)  # a sum is the largest where the mean is
    return -math.inf
