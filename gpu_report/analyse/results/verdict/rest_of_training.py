"""What the GPUs did in training beside working, where nothing is to be fixed: a share alone makes people ask."""

from collections.abc import Iterator, Sequence

from gpu_report.analyse.busy_in_training import Busy
from gpu_report.analyse.context import Context
from gpu_report.analyse.results import thresholds as th
from gpu_report.analyse.results.unseen_waits import waits_unseen
from gpu_report.analyse.results.verdict.without_work import data_wait_share
from gpu_report.analyse.results.verdict.work import few_readings, healthy_steady_pct, is_long
from gpu_report.catalogue import GAPS, UNEXPLAINED, cause_words
from gpu_report.model import HEALTHY_PCT, Finding, LedgerRow, Sentence
from gpu_report.wording import lower_first

_WORDS = {
    UNEXPLAINED: "idle (cause unknown)",
    GAPS: "gaps between training steps (launching, Python, logging)",
}


def rest_of_training(
    context: Context, trained: Busy, findings: Sequence[Finding], ledger: Sequence[LedgerRow]
) -> Iterator[Sentence]:
    """Yield what GPUs that are busy enough, and yet make people ask, did in the rest of training.

    Nothing where they waited for what was not seen, or only warmed up: that is said.
    """
    if not is_long(trained) or trained[0] >= th.QUESTIONED_PCT or waits_unseen(context, trained):
        return
    if context.too_coarse or few_readings(context, trained[1]):
        return
    if trained[0] < HEALTHY_PCT and healthy_steady_pct(context, findings) is None:
        return
    if any(finding.rule == "starved" for finding in findings):
        return
    named = [(name, share) for name, share in training_parts(ledger).items() if share >= th.REST_SHARE]
    words = [_WORDS.get(name, lower_first(cause_words(name))) for name, _ in named]
    several = len(named) > 1
    if several:
        words = [f"{100 * share:.0f} % {each}" for each, (_, share) in zip(words, named, strict=True)]
    if words:
        rest = f"The rest of training time{':' if several else ' went into'} {', '.join(words)}."
        yield Sentence("work", rest)
        yield from _waits(context)


def training_parts(ledger: Sequence[LedgerRow]) -> dict[str, float]:
    """Return what training lost to what, as shares (0 to 1) of all of it, the largest first."""
    work_s = sum(row.gpu_seconds for row in ledger if row.name == "work")
    lost = [row for row in ledger if not row.expected and row.name != "unmeasured"]
    trained_s = work_s + sum(row.gpu_seconds for row in lost)
    in_order = sorted(lost, key=lambda row: -row.gpu_seconds)
    return {row.name: row.gpu_seconds / trained_s for row in in_order} if trained_s else {}


def is_mostly_known(ledger: Sequence[LedgerRow]) -> bool:
    """Tell whether hardly any of training went to what nobody knows: else there may be something to fix."""
    return training_parts(ledger).get(UNEXPLAINED, 0.0) < th.UNKNOWN_SHARE


def _waits(context: Context) -> Iterator[Sentence]:
    """Yield how much the training waited for data, where callbacks said that."""
    share = data_wait_share(context)
    if share is not None:
        much = f"{100 * share:.0f} % of training time was waiting for data."
        yield Sentence("work", much if share >= th.REST_SHARE else "Training hardly waited for data.")
