"""Rule: what the epochs of a run tell beside each other. Their parts are worked out once for all that look at them."""

from collections.abc import Sequence

from gpu_report.analyse.context import Context
from gpu_report.analyse.data_wait import data_wait_growing
from gpu_report.analyse.disturbances import Disturbances, disturbances
from gpu_report.analyse.epoch_parts import Trained, trained_epochs
from gpu_report.analyse.slow_epochs import epochs_slowing, slow_epochs
from gpu_report.analyse.slowing import slowdowns
from gpu_report.analyse.throttling import throttling
from gpu_report.model import Finding

RULES = (slow_epochs, epochs_slowing, data_wait_growing)


def odd_epochs(context: Context) -> list[Finding]:
    """Report epochs that stand out, epochs that get slower, and data waits that grow.

    Slowdowns and throttling are dear to find: it is only done again where they may explain something.
    """
    epochs = trained_epochs(context)
    if not _found(context, epochs, disturbances(context)):
        return []
    held_down = [finding for finding in throttling(context) if finding.severity != "info"]
    return _found(context, epochs, disturbances(context, [*slowdowns(context), *held_down]))


def _found(context: Context, epochs: Sequence[Trained], held_up: Disturbances) -> list[Finding]:
    return [finding for rule in RULES for finding in rule(context, epochs, held_up)]
