"""Where the time went that was no work, which GPUs did nothing, and what the run cost."""

from collections.abc import Iterator, Sequence

import numpy as np

from gpu_report.analyse.busy_in_training import Busy, saw_training
from gpu_report.analyse.context import Context
from gpu_report.analyse.results import thresholds as th
from gpu_report.analyse.results.verdict.leads.lead import Lead
from gpu_report.analyse.results.verdict.what_happened import has_problems
from gpu_report.analyse.results.verdict.work import (
    healthy_steady_pct,
    is_long,
)
from gpu_report.analyse.rules.gpus.unused_gpus import held_by, idle_gpus
from gpu_report.catalogue import (
    CAUSES,
    GAPS,
    RULES,
    UNEXPLAINED,
    row_words,
)
from gpu_report.gpu_words import gpu_number
from gpu_report.model import (
    HEALTHY_PCT,
    Finding,
    LedgerRow,
    Sentence,
)
from gpu_report.wording import length, lower_first, money_words


def largest_loss(
    context: Context, trained: Busy, findings: Sequence[Finding], ledger: Sequence[LedgerRow], lead: Lead | None
) -> Iterator[Sentence]:
    """Yield where most of the time went when it did not go into work, unless the findings have said more already.

    Of a training that is busy enough, only how long its start-up was. That is none of training's losses: where it is
    the largest, the largest of those is said with it.
    """
    lost = sorted((r for r in ledger if r.name not in {"work", "idle", "unmeasured"}), key=lambda r: -r.gpu_seconds)
    if trained is None or trained[0] >= HEALTHY_PCT or not lost:
        yield from _long_start(context, ledger)
        return
    startup = f"Start-up took {100 * lost[0].share:.0f} % of the recorded GPU time" if lost[0].name == "startup" else ""
    most = _most_of_training(context, trained, findings, lost, lead)
    if most is None:
        yield from [Sentence("largest loss", f"{startup}.", about="startup")] if startup else []
        return
    words = lower_first(row_words(most.name, is_training=saw_training(context)))
    what = "waiting, for an unknown reason" if most.name == UNEXPLAINED else words
    if startup:
        yield Sentence("largest loss", f"{startup}, {what} {100 * most.share:.0f} %.", about=most.name)
        return
    # a drop that lasted longer may stand before it: it cost less than it lasted
    is_largest = most.gpu_seconds >= max(row.gpu_seconds for row in ledger if row.name != "work")
    is_largest = is_largest and not any(RULES[f.rule].drop and not f.expected for f in findings)
    first = "Largest loss" if is_largest else "Besides"
    text = f"{first}: {what}, {length(most.gpu_seconds)} ({100 * most.share:.0f} % of the recorded GPU time)."
    yield Sentence("largest loss", text, about=most.name)


def _most_of_training(
    context: Context, trained: Busy, findings: Sequence[Finding], lost: Sequence[LedgerRow], lead: Lead | None
) -> LedgerRow | None:
    """Return the largest of training's losses; None where that is not worth a sentence.

    It is not in a training that is short, or healthy once it is warm, nor where findings have said more. Gaps, which
    nobody can act on, are no loss to speak of beside what can be changed.
    """
    most = next((row for row in lost if not CAUSES[row.name].paid_once), None)
    if most is None or not is_long(trained) or (most.name == GAPS and lead is not None):
        return None
    is_healthy = healthy_steady_pct(context, findings) is not None and not has_problems(findings)
    return None if is_healthy or _mentioned_s(findings, lost) >= most.gpu_seconds else most


def _long_start(context: Context, ledger: Sequence[LedgerRow]) -> Iterator[Sentence]:
    """Yield how long the start-up of a healthy training was, where that was minutes, and much of the recording."""
    share = sum(row.share for row in ledger if row.name == "startup")
    took_s = sum(end - start for start, end in context.activity.startups)
    if share >= th.LONG_START_SHARE and took_s >= th.LONG_START_S:
        text = f"Start-up took {length(took_s)} ({100 * share:.0f} % of the recorded GPU time)."
        yield Sentence("largest loss", text, about="startup")


def _mentioned_s(findings: Sequence[Finding], lost: Sequence[LedgerRow]) -> float:
    """Return the GPU time (s) whose loss findings have said already, with its cause."""
    known = [f for f in findings if f.cause and not f.expected and (f.rule != "starved" or f.is_explained)]
    causes = {f.cause.name for f in known if f.cause}
    return sum(row.gpu_seconds for row in lost if row.name in causes)


def unused_gpus(context: Context, findings: Sequence[Finding], lead: Lead | None) -> Iterator[Sentence]:
    """Yield which GPUs did nothing in all of the recording, unless that leads."""
    unused = [gpu_number(series.gpu) for series in idle_gpus(context)]
    if unused and (lead is None or lead.sentence.about != "unused-gpu"):
        several = len(unused) > 1
        names = f"GPU{'s' if several else ''} {', '.join(unused)}"
        taken = "" if several else held_by(context, idle_gpus(context)[0])
        ids = tuple(finding.id for finding in findings if finding.rule == "unused-gpu")
        though = f", though {taken}" if taken else ""
        yield Sentence("unused GPU", f"{names} {'were' if several else 'was'} never used{though}.", ids)


def gpus_of_others(context: Context) -> Iterator[Sentence]:
    """Yield which GPUs only other processes used: that is no loss of the training, and yet somebody may wonder."""
    theirs = [series for series in context.series if series.gpu in context.gpus_of_others]
    busy_pct = {series.gpu: series.mean_util_of(np.ones(len(series.t_s), dtype=bool)) for series in theirs}
    known = {gpu: pct for gpu, (pct, seconds) in busy_pct.items() if seconds}
    names, least, most = (
        ", ".join(map(gpu_number, known)),
        min(known.values(), default=0.0),
        max(known.values(), default=0.0),
    )
    busy = f"{most:.0f}" if f"{least:.0f}" == f"{most:.0f}" else f"{least:.0f} to {most:.0f}"
    are_seen = set(known) <= {each.gpu for each in context.other_processes}
    of = "training" if context.run.has_training else "run"
    if len(known) == 1:
        who = "another process" if are_seen else "something else"  # as in another container
        yield Sentence("other GPU", f"GPU {names} was not part of this {of}: {who} used it ({busy} % busy).")
    elif known:
        who = "other processes" if are_seen else "something else"
        yield Sentence("other GPU", f"GPUs {names} were not part of this {of}: {who} used them ({busy} % busy).")


def cost_of_run(context: Context, findings: Sequence[Finding], ledger: Sequence[LedgerRow]) -> Iterator[Sentence]:
    """Yield what the run cost, and how much of it was wasted, where a price was given.

    Wasted is what is no work and no part of training (validation, start-up, ...), with the whole time of GPUs that the
    training could have had.
    """
    price = context.options.price_per_hour
    if price is None:
        return
    known = [row for row in ledger if row.money is not None]
    total = sum(row.money or 0.0 for row in known)
    wasted = sum(row.money or 0.0 for row in known if not row.expected and row.name not in {"work", "unmeasured"})
    free = [f for f in findings if f.rule == "unused-gpu" and f.severity != "info"]
    wasted += len(idle_gpus(context)) * context.run.duration_s / 3600 * price if free else 0.0
    yield Sentence("cost", f"The run cost {money_words(total)}, of which {money_words(wasted)} was wasted.")
