"""Rule: what the epochs of a run tell beside each other. Their parts are worked out once for all that look at them."""

from collections.abc import Sequence

from gpu_report.analyse.context import Context
from gpu_report.analyse.rules.epochs.comparable_epochs import Trained, trained_epochs
from gpu_report.analyse.rules.epochs.data_wait import data_wait_growing
from gpu_report.analyse.rules.epochs.slow_epochs import epochs_slowing, slow_epochs
from gpu_report.analyse.rules.slowdowns import slowdowns
from gpu_report.analyse.rules.throttling import throttling
from gpu_report.analyse.timeseries.interval_cover import Disturbances, disturbances
from gpu_report.model import Finding

RULES = (slow_epochs, epochs_slowing, data_wait_growing)


def odd_epochs(context: Context) -> list[Finding]:
    """Report epochs that stand out, epochs that get slower, and data waits that grow.

    Slowdowns and throttling are dear to find: it is only done again where they may explain something.
    """
    epochs = trained_epochs(context)
    if not _found(context, epochs, _held_up(context)):
        return []
    held_down = [finding for finding in throttling(context) if finding.severity != "info"]
    return _found(context, epochs, _held_up(context, [*slowdowns(context), *held_down]))


def _held_up(context: Context, findings: Sequence[Finding] = ()) -> Disturbances:
    """Return when a GPU fell idle, waited for a peer or had a guest, when nobody recorded, and what `findings` say."""
    spans = [(drop.start_t_s, drop.end_t_s) for drop in context.drops]
    spans += [(finding.start_t_s, finding.end_t_s) for finding in findings]
    spans += [(wait.start_t_s, wait.end_t_s) for wait in context.waits]
    spans += [guest.span for guest in context.guests if guest.worked and guest.gpu in context.activity.used_gpus]
    missing = ((event.t_s, event.fields.get("seconds")) for event in context.run.events if event.kind == "gap")
    spans += [(t_s - seconds, t_s) for t_s, seconds in missing if isinstance(seconds, int | float)]
    return disturbances(spans)


def _found(context: Context, epochs: Sequence[Trained], held_up: Disturbances) -> list[Finding]:
    return [finding for rule in RULES for finding in rule(context, epochs, held_up)]
