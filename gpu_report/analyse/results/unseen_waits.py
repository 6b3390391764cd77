"""How much GPUs waited in training where nobody saw for what: without callbacks, or while nothing at all ran."""

from gpu_report.analyse.busy_in_training import Busy
from gpu_report.analyse.context import Context
from gpu_report.analyse.results import thresholds as th
from gpu_report.analyse.signals.thresholds import STILL_PCT
from gpu_report.analyse.timeline.activity import outside
from gpu_report.analyse.timeseries.intervals import as_array


def waits_unseen(context: Context, trained: Busy) -> bool:
    """Tell whether GPUs waited so much that there may be something to fix, in a long training without callbacks.

    What callbacks report of waits for data tells of a GPU that is busy 60 to 80 % whether that is its nature.
    """
    if trained is None or trained[1] < th.CRITICAL_S or context.run.inside or context.too_coarse:
        return False
    return trained[0] < th.QUESTIONED_PCT or idle_share_beside_drops(context) >= th.IDLE_BESIDE_DROPS_SHARE


def idle_share_beside_drops(context: Context) -> float:
    """Return for which share (0 to 1) of training GPUs were idle beside drops, 0 where no epochs are known.

    For without them a validation may be part of it.
    """
    return context.cached(_idle_share_beside_drops)


def _idle_share_beside_drops(context: Context) -> float:
    spans = as_array(context.all_train_spans)
    still_s = trained_s = 0.0
    for series, trains in zip(context.series, context.trains, strict=True):
        fell = [drop.span for drop in context.drops if drop.gpu == series.gpu]
        mine = trains & ~outside(series, spans)
        trained_s += float(series.weight_s[mine].sum())
        still_s += float(series.weight_s[mine & outside(series, fell) & (series.util_pct < STILL_PCT)].sum())
    return still_s / trained_s if trained_s else 0.0
