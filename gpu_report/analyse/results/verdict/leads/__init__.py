"""What the verdict begins with: the one thing to change that saves most, else that there is nothing to fix."""

import math
from collections.abc import Sequence

from gpu_report.analyse.context import Context
from gpu_report.analyse.results import thresholds as th
from gpu_report.analyse.results.verdict.leads.from_drops import drop_leads
from gpu_report.analyse.results.verdict.leads.from_epoch_ends import long_epoch_ends, next_time
from gpu_report.analyse.results.verdict.leads.from_settings import (
    enlarged,
    growing_memory,
    in_steps,
    instead_of_setting,
    set_up,
    setting,
    unused,
    urgent,
)
from gpu_report.analyse.results.verdict.leads.from_starts import between_trainings, slow_exits, slow_starts
from gpu_report.analyse.results.verdict.leads.from_steady_state import growing, slow_epochs, steady_leads, user_code
from gpu_report.analyse.results.verdict.leads.lead import FIX, Lead, epoch_count, seconds_trained
from gpu_report.analyse.results.verdict.leads.without_gpu import others_on_cpu
from gpu_report.analyse.rules.epochs.validation_advice import WRITE
from gpu_report.model import EpochNow, Finding, Projection, SpeedupLimit


def leads(
    context: Context,
    findings: Sequence[Finding],
    limits: Sequence[SpeedupLimit],
    projection: Projection | None,
    now: EpochNow | None = None,
) -> list[Lead]:
    """Return what may be changed, what saves most first; what is too little to speak of is left out.

    `now` is what an epoch takes: what is won of steps alone is told of that.
    """
    found = [
        *urgent(findings),
        *set_up(context, findings, now),
        *enlarged(context, findings, now),
        *setting(context, findings, projection),
        *instead_of_setting(context, findings, limits, projection),
        *steady_leads(context, findings, limits, projection),
        *user_code(context, findings),
        *growing(context, findings, limits, epoch_count(context)),
        *slow_epochs(context, findings, limits),
        *drop_leads(context, findings, limits, epoch_count(context)),
        *long_epoch_ends(findings),
        *in_steps(context, findings),
        *slow_starts(findings, context.run.duration_s, epoch_count(context)),
        *between_trainings(findings),
        *slow_exits(findings),
        *unused(context, findings),
        *others_on_cpu(context),
    ]
    trained_s = seconds_trained(context)
    worth = [lead for lead in found if lead.saves_s >= th.WORTH_LEADING_SHARE * trained_s]
    return _in_order(worth, findings) or [*growing_memory(findings), *next_time(findings)]


def _in_order(worth: Sequence[Lead], findings: Sequence[Finding]) -> list[Lead]:
    """Return leads, what saves most first.

    A function of the user's, or files of predictions, of which the training as such needs nothing, come before a larger
    batch, which changes what is trained, unless that saves far more: with it they would take the same time.
    """
    own = {finding.id for finding in findings if finding.rule == "user-code"}
    batch_s = max((each.saves_s for each in worth if _changes_training(each)), default=0.0)

    def is_first(lead: Lead) -> bool:
        advice = lead.sentence.advice
        is_extra = bool(own.intersection(lead.sentence.findings)) or (advice is not None and advice.argument in WRITE)
        return is_extra and lead.saves_s >= th.INSTEAD_OF_BATCH * batch_s

    least_s = min((each.saves_s for each in worth if is_first(each)), default=math.inf)
    # A larger batch goes behind the last of these, and stays before what saves less.
    return sorted(
        worth,
        key=lambda each: (
            -min(each.saves_s, least_s if _changes_training(each) else math.inf),
            _changes_training(each),
        ),
    )


def _changes_training(lead: Lead) -> bool:
    """Tell whether a lead says to set an argument with which other weights come out."""
    advice = lead.sentence.advice
    return lead.sentence.kind == FIX and advice is not None and advice.argument == "batch"
