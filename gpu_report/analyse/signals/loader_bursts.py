"""Drops that are no events: batches come in bursts all through a training, and its GPU waits for the next burst.

Each worker of a loader makes whole batches, and those of all workers are ready at about the same time. A GPU that is
done with them sooner than the next are made waits: as long as a drop, where batches or images are large.
"""

from collections.abc import Sequence

import numpy as np

from gpu_report.analyse.signals import thresholds as th
from gpu_report.analyse.signals.gpu.utilisation_drops import Drop
from gpu_report.analyse.signals.interval_signals import IntervalSignals
from gpu_report.analyse.signals.signals_index import SignalsIndex
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.analyse.timeseries.intervals import Span, as_array, intersect, length_s


def drops_between_bursts(drops: Sequence[Drop], trainings: Sequence[Training], signals: SignalsIndex) -> set[Drop]:
    """Return the drops of one GPU or several that are the way of their training; `signals` are those outside drops."""
    found: set[Drop] = set()
    for training in trainings:
        for gpu in training.gpus:
            mine = [drop for drop in drops if drop.gpu == gpu and intersect([drop.span], training.train_spans)]
            if not _recur(mine, training.train_spans):
                continue
            of_each = [signals.of(gpu, *drop.span) for drop in mine]
            alike = [drop for drop, each in zip(mine, of_each, strict=True) if _is_as_usual(each)]
            found |= set(alike) if _waited(of_each) and _recur(alike, training.train_spans) else set()
    return found


def _recur(drops: Sequence[Drop], trained: Sequence[Span]) -> bool:
    """Tell whether drops take much of a training, and about as much in each third of it."""
    within = intersect([drop.span for drop in drops], trained)
    if len(drops) < th.BURSTS_AT_LEAST or length_s(within) < th.BURSTS_SHARE * length_s(trained):
        return False
    # seconds of training before each moment, and of drops before each second of training
    edges = as_array(trained)
    before_s = np.append(0.0, np.cumsum(edges[:, 1] - edges[:, 0])).repeat(2)[1:-1]
    at_s = np.interp(as_array(within), edges.ravel(), before_s)
    dropped_s = np.append(0.0, np.cumsum(at_s[:, 1] - at_s[:, 0])).repeat(2)[1:-1]
    in_each_s = np.diff(np.interp(np.linspace(0.0, before_s[-1], th.BURSTS_PARTS + 1), at_s.ravel(), dropped_s))
    return bool(in_each_s.min() >= th.BURSTS_EVEN_SHARE * in_each_s.mean())


def _waited(drops: Sequence[IntervalSignals]) -> bool:
    """Tell whether training waited for data meanwhile, where that is known: of all, for reports are seldomer."""
    known = [(share, each.end_t_s - each.start_t_s) for each in drops if (share := each.waited_share) is not None]
    waited_s = sum(share * length for share, length in known)
    return waited_s >= th.BURSTS_WAITED_SHARE * sum(length for _, length in known)


def _is_as_usual(signals: IntervalSignals) -> bool:
    """Tell whether workers went on as they do outside drops, for a main process that waited, and nobody else came."""
    workers, usual = signals.within("workers_cpu_pct"), signals.typical("workers_cpu_pct")
    cpu, usual_cpu, main = signals.within("cpu_pct"), signals.typical("cpu_pct"), signals.within("main_cpu_pct")
    if not workers or not usual or cpu is None or usual_cpu is None or main is None:
        return False
    waits = main < th.WAITING_MAIN_PCT or (
        signals.idle_location is not None and signals.idle_location.in_loader >= th.MOSTLY_SHARE
    )
    return waits and workers >= th.WENT_ON_SHARE * usual and cpu <= usual_cpu + th.OTHERS_CAME_PCT
