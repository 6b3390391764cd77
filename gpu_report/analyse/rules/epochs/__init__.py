"""Rules: what the epochs of a run tell beside each other. Their parts are worked out once for all that look at them."""

from collections.abc import Sequence, Set

from gpu_report.analyse.context import Context
from gpu_report.analyse.rules.epochs.comparable_epochs import KnownSlowdowns, TrainedEpoch, trained_epochs
from gpu_report.analyse.rules.epochs.data_wait import data_wait_growing
from gpu_report.analyse.rules.epochs.early_slow_cpu import waits_since_slower_cpu
from gpu_report.analyse.rules.epochs.growing_epoch_ends import growing_epoch_ends
from gpu_report.analyse.rules.epochs.growing_pauses import growing_pauses
from gpu_report.analyse.rules.epochs.long_epoch_ends import long_epoch_ends
from gpu_report.analyse.rules.epochs.slow_epochs import epochs_slowing, slow_epochs, slow_first_epochs
from gpu_report.analyse.rules.epochs.slow_parts import slow_parts
from gpu_report.analyse.rules.epochs.slowing_steps import slowing_steps
from gpu_report.analyse.rules.epochs.validation_code import validation_code
from gpu_report.analyse.rules.thresholds import EXPLAINED_SHARE
from gpu_report.analyse.timeseries.interval_cover import interval_cover
from gpu_report.catalogue import GROWTH_KEY, PAUSES_KEY, RULES
from gpu_report.model import Cause, Finding

EPOCH_RULES = (growing_pauses, slow_first_epochs, slow_epochs, epochs_slowing, growing_epoch_ends, data_wait_growing)


def compare_epochs(context: Context, found: Sequence[Finding]) -> list[Finding]:
    """Report ends of epochs and what runs in them, epochs that stand out or get slower, and growing waits.

    What was `found` explains some of them.
    """
    epochs = trained_epochs(context)
    ends = [*long_epoch_ends(context, epochs, found), *validation_code(context, found)]
    if not _of_epochs(context, epochs, ()):  # what explains some cannot bring up others
        return ends
    return [*ends, *_of_epochs(context, epochs, found)]


def _of_epochs(context: Context, epochs: Sequence[TrainedEpoch], found: Sequence[Finding]) -> list[Finding]:
    held_up = _held_up(context, found)
    told = [finding for rule in EPOCH_RULES for finding in rule(context, epochs, held_up)]
    told = [finding for finding in told if not any(_is_growth_of(finding, pauses) for pauses in told)]
    told += slowing_steps(context, held_up, found, told)
    told += waits_since_slower_cpu(context, told)
    lasting = {finding.cause for finding in found if finding.rule == "starved"}
    parts = slow_parts(context, epochs, held_up, told)
    notes = [finding for finding in told if finding.severity == "info" and _is_of(finding, lasting)]
    told = [finding for finding in told if finding not in notes]
    return [*told, *(part for part in parts if not _is_of(part, lasting))]


def _is_growth_of(finding: Finding, pauses: Finding) -> bool:
    """Tell whether training got slower for pauses that grow, and are told: most of its growth is theirs."""
    grew_s, theirs_s = finding.number(GROWTH_KEY), pauses.number(GROWTH_KEY)
    if finding is pauses or grew_s is None or theirs_s is None or pauses.number(PAUSES_KEY) is None:
        return False
    apart = finding.end_t_s <= pauses.start_t_s or pauses.end_t_s <= finding.start_t_s
    return not apart and theirs_s >= EXPLAINED_SHARE * grew_s


def _is_of(part: Finding, lasting: Set[Cause | None]) -> bool:
    """Tell whether training went slower for a while for what holds back all of it: such a loader is never even."""
    return part.cause is not None and part.cause.name in {cause.name for cause in lasting if cause is not None}


def _held_up(context: Context, found: Sequence[Finding]) -> KnownSlowdowns:
    """Return when a GPU fell idle, was slowed, waited for a peer or had another process, and when nobody recorded."""
    spans = [f.span for f in found if RULES[f.rule].explains_slow_epoch and f.severity != "info"]
    spans += [wait.span for wait in context.busy_waits]
    spans += [other.span for other in context.used_by_others]
    missing = ((event.t_s, event.fields.get("seconds")) for event in context.run.events if event.kind == "gap")
    spans += [(t_s - seconds, t_s) for t_s, seconds in missing if isinstance(seconds, int | float)]
    return KnownSlowdowns(drops=interval_cover(drop.span for drop in context.drops), others=interval_cover(spans))
