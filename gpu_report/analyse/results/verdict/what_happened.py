"""What happened beside what leads: kernel faults, configuration, drops, other processes, throttling."""

from collections.abc import Iterator, Sequence
from itertools import islice

from gpu_report.analyse.context import Context
from gpu_report.analyse.results.not_checked import not_checked
from gpu_report.analyse.results.verdict.drops import MergedDrop, drop_sentences, waiting_sentence
from gpu_report.analyse.results.verdict.end import ran_out_before
from gpu_report.analyse.results.verdict.leads.lead import Lead
from gpu_report.analyse.signals.gpu.clock_fall import LOWER_CLOCK
from gpu_report.analyse.signals.gpu.clock_rows import POWER_CAP, THERMAL
from gpu_report.catalogue import (
    RULES,
    UNEXPLAINED,
    WAITING_FOR_PEER,
    cause_words,
)
from gpu_report.gpu_words import gpu_words
from gpu_report.model import (
    Finding,
    Sentence,
)
from gpu_report.wording import lower_first, upper_first


def kernel_fault(of: Sequence[Finding]) -> Iterator[Sentence]:
    """Yield the worst thing that the kernel said during the run, unless the end or a lost GPU has said it already."""
    said = {near.event.kind for f in of if RULES[f.rule].owns_kernel_lines for near in f.kernel_events}
    messages = [f for f in of if f.rule == "kernel" and f.severity != "info" and f.end_t_s >= 0]
    faults = [f for f in messages if not any(near.event.kind in said for near in f.kernel_events)]
    worst = min(faults, key=lambda f: (f.severity != "critical", f.start_t_s), default=None)
    if worst:
        yield Sentence("fault", f"{_of_another(worst) or upper_first(worst.summary)}.", (worst.id,))


def _of_another(finding: Finding) -> str:
    """Return that a fault was another program's, empty where that is not known."""
    event = next((near.event for near in finding.kernel_events if near.event.of_another), None)
    if event is None:
        return ""
    who = f"{event.who('a process')}, not this training"
    if event.code is None:
        return f"A kernel message is about {who}"
    return f"Xid {event.code} on {gpu_words(event.gpu)} came from {who}"


def setup_problem(findings: Sequence[Finding], before: Sequence[Sentence] = ()) -> Iterator[Sentence]:
    """Yield the worst configuration problem that is more than a note, and that no sentence before is about.

    Nor is it one of the same cause, such as too few cores.
    """
    said = {name for sentence in before for name in sentence.findings}
    causes = {sentence.about for sentence in before if sentence.about}
    mine = (f for f in findings if f.rule == "environment" and f.severity != "info" and f.id not in said)
    issues = (f for f in mine if f.cause is None or f.cause.name not in causes)
    yield from (Sentence("set-up", f"{upper_first(f.summary)}.", (f.id,)) for f in islice(issues, 1))


def other_findings(findings: Sequence[Finding], merged: Sequence[MergedDrop]) -> Iterator[Sentence]:
    """Yield who else was on the GPUs, who waited for whom, slow epochs, growing memory: the longest of each."""
    ended = [f for f in findings if RULES[f.rule].ending and not f.was_resumed]
    for rule in (rule.id for rule in RULES.values() if rule.mentioned_once):
        mine = [f for f in findings if f.rule == rule and not f.expected]
        mine = [f for f in mine if not ended or not ran_out_before(f, ended[0])]
        mine = [f for f in mine if rule != "slowdown" or f.severity != "info"]  # of seconds, in a training of hours
        waited = waiting_sentence(merged, mine) if rule == WAITING_FOR_PEER else ""
        if waited:
            yield Sentence(rule, waited)
        elif mine:
            longest = max(mine, key=lambda f: f.duration_s)
            yield Sentence(rule, f"{longest.summary}{_why(longest)}.", (longest.id,))


def _why(finding: Finding) -> str:
    """Return a finding's cause, as the end of a sentence, where its summary has none."""
    known = RULES[finding.rule].without_cause and finding.is_explained
    return f"; cause: {lower_first(cause_words(finding.cause.name))}" if known and finding.cause else ""


def throttled(findings: Sequence[Finding], lead: Lead | None = None) -> Iterator[Sentence]:
    """Yield what held clocks down at a cost that matters: the worst of each cause.

    Nothing where the lead is about several GPUs: one of them alone would contradict it.
    """
    mine = [f for f in findings if f.rule in {POWER_CAP, THERMAL, LOWER_CLOCK} and f.severity != "info"]
    led = lead.sentence.findings if lead is not None else ()
    several = {f.rule for f in mine if sum(o.rule == f.rule and o.id in led for o in mine) > 1}
    worst = {f.rule: f for f in reversed(mine) if f.rule not in several}  # findings come worst first
    yield from (Sentence("throttled", f"{worst[rule].summary}.", (worst[rule].id,)) for rule in sorted(worst))


def drops_together(
    context: Context,
    merged: Sequence[MergedDrop],
    findings: Sequence[Finding],
    lead: Lead | None,
    *,
    shows_drops: bool,
) -> Iterator[Sentence]:
    """Yield the drops together, or that there was none where that is known; else why it is not."""
    unchecked = [each.reason for each in context.cached(not_checked) if each.rule == "drop"]
    several = len(context.activity.used_gpus) > 1
    if merged and not _says_all(lead, merged, several_gpus=several):
        said = lead.sentence.findings if lead else ()
        ids = tuple(found for each in merged for found in each.ids)
        yield from (Sentence("drops", text, ids) for text in drop_sentences(merged, said, several_gpus=several))
    elif not merged and shows_drops and not unchecked and not has_problems(findings):
        yield Sentence("drops", "GPU utilisation never dropped unexpectedly.")
    for reason in unchecked[:1]:  # beside drops that were found, it is about others
        text = upper_first(reason) if merged else f"Not checked for drops: {reason}"
        yield Sentence("not checked", f"{text}.")


def _says_all(lead: Lead | None, merged: Sequence[MergedDrop], *, several_gpus: bool) -> bool:
    """Tell whether the lead has said of the drops what there is to say: how many, or of one its length and cause."""
    if lead is None or not {found for each in merged for found in each.ids} <= set(lead.sentence.findings):
        return False
    return lead.sentence.about == UNEXPLAINED or (len(merged) == 1 and not several_gpus)


def has_problems(findings: Sequence[Finding]) -> bool:
    """Tell whether something went wrong that a healthy utilisation would hide, such as a bad end or another process."""
    return any(not RULES[f.rule].harmless and f.severity != "info" and not f.expected for f in findings)
