"""What to look at for what took time at moments: drops, stalls, other processes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from gpu_report.analyse.causes.confidence import LIKELY
from gpu_report.analyse.causes.main_process import CODE_CAUSES
from gpu_report.analyse.context import Context
from gpu_report.analyse.results import thresholds as th
from gpu_report.analyse.results.verdict.drops import merged_drops
from gpu_report.analyse.results.verdict.leads.costs import cost_in_run_s
from gpu_report.analyse.results.verdict.leads.lead import LOOK, Lead, seconds_trained
from gpu_report.analyse.results.verdict.places import is_own, worst_place
from gpu_report.analyse.signals.code.stack_kinds import WORKERS
from gpu_report.analyse.signals.thresholds import MOSTLY_SHARE, OWN_SHARE, PHASE_EDGE_S
from gpu_report.analyse.timeseries.intervals import length_s, minus, union
from gpu_report.catalogue import CAUSES, OTHER_NODE, RULES, UNEXPLAINED, WAITING_FOR_PEER, CauseRow, RuleRow, rule_words
from gpu_report.gpu_words import gpus_words
from gpu_report.model import UNSURE, Advice, CodeLocation, Finding, Sentence, SpeedupLimit, epoch_now_s
from gpu_report.wording import about_length, counted, every_words, place_words, shown_ratio, upper_first

# Whose stay or stretches cost a part of the time that they take.
COSTS = frozenset({"other-process", "power-cap", "lower-clock"})


def drop_leads(
    context: Context, findings: Sequence[Finding], limits: Sequence[SpeedupLimit], epochs: int
) -> Iterator[Lead]:
    """Yield what to look at for each cause that took time at moments: all of its findings together.

    Drops too short for a warning count beside one that is not: the verdict counts them all.
    """
    every = _by_cause(findings)
    lasting = {f.cause.name for f in findings if f.rule == "starved" and f.cause and f.severity != "info"}
    waited_for = {WAITING_FOR_PEER} if len(every) > 1 else set()  # what was waited for says why
    for cause, found in every:
        # what holds back all of a training is told of its steps; the ends of its epochs are no part of these
        mine = [one for one in found if RULES[one.rule].at_epoch_ends] if cause in lasting else found
        if mine and cause not in waited_for:
            is_whole = len([1 for each, _ in every if each == cause]) == 1
            yield _drop_lead(context, cause, mine, limits, epochs, is_whole=is_whole)


def _by_cause(findings: Sequence[Finding]) -> list[tuple[str, list[Finding]]]:
    """Return the findings that took time, by their cause: apart those of a paused training, and those that recur."""
    every: dict[tuple[str, bool, int | None], list[Finding]] = {}
    for finding in findings:
        rule = RULES[finding.rule]
        takes = rule.takes_time or rule.takes_epoch_time or rule.explains_slow_epoch
        if takes and not finding.expected and finding.cause and (rule.drop or finding.severity != "info"):
            every.setdefault((finding.cause.name, _was_paused(finding), finding.every_epochs), []).append(finding)
    return [(cause, mine) for (cause, *_), mine in every.items() if any(one.severity != "info" for one in mine)]


def _drop_lead(  # noqa: PLR0913 - what it is about, and what is known of that
    context: Context,
    cause: str,
    findings: Sequence[Finding],
    limits: Sequence[SpeedupLimit],
    epochs: int,
    *,
    is_whole: bool,
) -> Lead:
    at_ends = any(RULES[one.rule].at_epoch_ends for one in findings)
    same = (each for each in limits if each.cause == cause)
    limit = max(same, key=lambda each: each.at_epoch_ends == at_ends, default=None)
    whole = limit if is_whole and limit is not None and _is_all_of(limit, at_ends=at_ends) else None
    known_s = None if whole is None else whole.costs_in_run_s
    took_s = _took_s(findings) if known_s is None else known_s
    took = f"{_last(context, findings)}{about_length(took_s)}"
    cost_s, faster = cost_in_run_s(context, findings, whole), faster_without(limit, epoch_now_s(limits))
    saves_s = _saves_s(context, findings, cost_s, None if limit is None else limit.saves_at_most_s * max(epochs, 1))
    sentence, then = _look(_TimeTaken(cause, findings, took, cost_s, faster, known_s))
    saves_s = saves_s if known_s is None else known_s
    return Lead(sentence, saves_s * (UNSURE if cause == UNEXPLAINED else 1.0), then)


def _is_all_of(limit: SpeedupLimit, *, at_ends: bool) -> bool:
    """Tell whether a limit is of all that took time at moments, within epochs or at their ends."""
    return limit.is_mean and limit.at_epoch_ends == at_ends and limit.in_epochs is None


def _saves_s(context: Context, findings: Sequence[Finding], cost_s: float | None, at_most_s: float | None) -> float:
    """Return what findings of one cause cost on the clock (s), as far as it is known, and no more than their limit.

    What left GPUs idle cost the time in which they were. What worked beside a training, or slowed it, cost a part of
    its stay: where nobody knows which, it comes after all that is known.
    """
    of_known = [one.span for one in findings if one.lost_gpu_s is not None]
    idle = [one for one in findings if one.lost_gpu_s is None and RULES[one.rule].takes_time]
    if cost_s is None and not idle:
        least_s = th.WORTH_LEADING_SHARE * seconds_trained(context)
        return min(_took_s(findings), least_s if at_most_s is None else at_most_s)
    beside = minus(union([one.span for finding in idle for one in finding.each]), union(of_known))
    saves_s = (cost_s or 0.0) + length_s(beside) * _lost_share(idle)
    return saves_s if at_most_s is None else min(saves_s, at_most_s)


def _was_paused(finding: Finding) -> bool:
    """Tell whether a signal had stopped a process of the training meanwhile."""
    return any(each.key == "stopped_processes" for each in finding.evidence)


def _took_s(findings: Sequence[Finding]) -> float:
    """Return the seconds on the clock that findings took; several GPUs that felt one at once count once."""
    return length_s(union([one.span for finding in findings for one in finding.each]))


def _lost_share(findings: Sequence[Finding]) -> float:
    """Return which share of their time (0 to 1) findings took: a slowdown what utilisation fell by, others all."""
    seconds = sum(finding.took_s for finding in findings)
    lost_s = sum(
        f.took_s * (1 - f.low_pct / f.level_pct if f.level_pct and f.low_pct is not None else 1.0) for f in findings
    )
    return lost_s / seconds if seconds else 1.0


def _last(context: Context, findings: Sequence[Finding]) -> str:
    """Return that the only time was the last that was seen of training, in words: it may go on so."""
    of, *others = [one for finding in findings for one in finding.each]
    ends_s = [span[1] for each in context.trainings for span in (*each.train_spans[-1:], each.span)]
    goes_on = not others and any(abs(of.end_t_s - end_s) <= PHASE_EDGE_S for end_s in ends_s)
    rule = RULES[findings[0].rule]
    return "the last " if goes_on and (rule.fall or rule.at_epoch_ends) else ""


@dataclass(frozen=True, eq=False)
class _TimeTaken:
    """What one cause took at moments: its findings, and for how long, in words.

    `cost_s` is what they cost on the clock, None where that is not known, `faster` how much faster epochs would be
    without a line of the user's, empty where that is not known. `known_s` is the cost that a limit has, of which `took`
    is then; None without one.
    """

    cause: str
    findings: Sequence[Finding]
    took: str
    cost_s: float | None
    faster: str
    known_s: float | None = None

    @cached_property
    def worst(self) -> Finding:
        return max(self.findings, key=lambda finding: (finding.severity != "info", finding.duration_s))

    @cached_property
    def at(self) -> CodeLocation | None:
        """Return the line in which the training was meanwhile, None where that is not known."""
        return worst_place(self.worst, OWN_SHARE if self.cause == WAITING_FOR_PEER else MOSTLY_SHARE)

    @property
    def advice(self) -> Advice | None:
        return next((each for each in self.worst.advice if each.short and not each.is_next), None)

    @property
    def next_step(self) -> str:
        """Return what to do then, as a sentence; empty where nothing is known to be the next limit."""
        return next((f"{each.short}." for each in self.worst.advice if each.is_next), "")

    @property
    def row(self) -> CauseRow:
        return CAUSES[self.cause]

    @property
    def rule(self) -> RuleRow:
        return RULES[self.worst.rule]

    @property
    def leaves_idle(self) -> bool:
        """Tell whether it left the GPU idle for as long as it took, and did not slow it."""
        return self.rule.drop or self.rule.at_epoch_ends

    @property
    def sure(self) -> str:
        """Return "probably " where the cause, or its line, is a guess; that it comes round is none."""
        worst, at = self.worst, self.at
        is_sure = worst.cause is None or worst.cause.confidence >= LIKELY or worst.every_epochs is not None
        return "" if is_sure and (at is None or at.dumps is None) else "probably "  # a few dumps are no measured time

    @property
    def took_is_cost(self) -> bool:
        """Tell whether `took` is what it cost on the clock, and it did not last as long."""
        lasted_s = _took_s(self.findings)
        return self.known_s is not None and abs(self.known_s - lasted_s) > th.AS_LONG_SHARE * lasted_s

    @property
    def felt(self) -> str:
        """Return for how long it was felt, or what it cost, where that is not as long."""
        if self.known_s is not None and self.took_is_cost:
            return f"it {self.sure}cost about {about_length(self.known_s)} of training"
        felt = f"the GPU was {self.sure}idle" if self.leaves_idle else f"the training was {self.sure}slowed"
        return f"{felt} for {self.took}"

    @property
    def names_own(self) -> bool:
        """Tell whether it was in a line of the user's: what a rank did that waited for another node says nothing."""
        return self.worst.waited_for != OTHER_NODE and self.at is not None and not self.at.is_yolo


def _look(taken: _TimeTaken) -> tuple[Sentence, str]:
    """Return where to look for what took time at moments: the line of code, the process, else what its cause says.

    With it comes in which line a process was meanwhile, empty where that is said or not known.
    """
    advice, planned = taken.advice, every_words(taken.worst.every_epochs)
    then = ""
    if taken.worst.waited_for == OTHER_NODE:  # what this rank did meanwhile was to wait: that is no cost of its own
        waited = about_length(_took_s(taken.findings))
        text = (
            f"{upper_first(_gpus([taken.worst]))} waited {waited} for {OTHER_NODE}: nvidia-smi shows this wait as busy"
        )
    elif taken.names_own and taken.at is not None:
        text = f"Look at {place_words(taken.at)}: {taken.felt} there{planned}{taken.faster}"
    elif advice is not None:
        text = f"{advice.short}: {_effect(taken)}{taken.faster}"
        then = "" if taken.cause in COSTS else _line_meanwhile(taken.at, taken.row)
    elif planned and (not taken.row.once or taken.cause in CODE_CAUSES):
        text = f"Look at what runs{planned} (callbacks, an evaluation of your own): {taken.felt}"
    elif _was_paused(taken.worst):
        text = f"Find who paused the training (Ctrl-Z, `kill -STOP`): {taken.felt}"
    elif taken.cause == UNEXPLAINED or not taken.row.once:
        took = "cost" if taken.took_is_cost else "took"
        text = f"{_times(taken.worst, taken.findings)} {took} {taken.took}; the cause is unknown"
    else:
        cost = about_length(taken.cost_s) if taken.cost_s else taken.took
        text = taken.row.once.format(took=_lost(taken), probably=taken.sure, gpu=_gpus(taken.findings), cost=cost)
        then = _line_meanwhile(taken.at, taken.row)
    ids = tuple(finding.id for finding in taken.findings)
    # to look at a line says not yet what to do there
    said = Sentence(LOOK, f"{text}.", ids, taken.cause, advice, taken.names_own, how=not taken.names_own)
    return said, then or taken.next_step


def _effect(taken: _TimeTaken) -> str:
    """Return what a cause did that there is advice on, and for how long."""
    if taken.cause in COSTS:  # how much it slowed the training is not always known
        cost_s = taken.cost_s
        return f"it cost about {about_length(cost_s)} of training" if cost_s else f"it was there for {taken.took}"
    if taken.row.is_input and not taken.leaves_idle:  # what it took is not as long as it lasted
        return f"the GPU {taken.sure}waited {_lost(taken)} for data"
    return taken.felt


def _lost(taken: _TimeTaken) -> str:
    """Return how long the GPU waited in all: as its limit says, as long as drops lasted, of a slowdown its share."""
    if taken.rule.drop:
        return taken.took
    lost_s = _took_s(taken.findings) * _lost_share(taken.findings) if taken.known_s is None else taken.known_s
    return about_length(lost_s)


def _times(worst: Finding, findings: Sequence[Finding]) -> str:
    """Return how many drops there were, or what it was where the worst is none, and how many times."""
    if RULES[worst.rule].drop:
        return counted(len(merged_drops(findings)), "drop in GPU utilisation", "drops in GPU utilisation")
    several = f" ({len(findings):,} times)" if len(findings) > 1 else ""
    return f"{rule_words(worst.rule)}{several}"


def faster_without(limit: SpeedupLimit | None, now_s: float | None) -> str:
    """Return how much faster epochs would be without what makes the end of each longer, as the end of a sentence.

    Likewise without other processes on the GPU.
    """
    is_meant = limit is not None and (limit.at_epoch_ends or limit.cause == "other-process")
    if limit is None or now_s is None or not is_meant or limit.saves_at_most_s >= now_s:
        return ""
    ratio = shown_ratio(now_s, now_s - limit.saves_at_most_s)
    return f" (epochs up to {ratio:.1f}\u00d7 faster without)" if ratio >= th.FASTER_FROM else ""


def _line_meanwhile(at: CodeLocation | None, row: CauseRow) -> str:
    """Return in which line a process was meanwhile, as a sentence of its own, where that says more than the cause.

    A training that waits for data stands in a line of its loader, which is YOLO's or torch's: only one of the user's
    own says why. What workers were in does, whoever's it is.
    """
    if at is None or not (row.is_input or not row.once):
        return ""
    if row.is_input and at.process != WORKERS and not is_own(at):
        return ""
    who = "Data-loader workers were" if at.process == WORKERS else "The training was"
    return f"{who} in {place_words(at)}."


def _gpus(findings: Sequence[Finding]) -> str:
    return gpus_words(sorted({finding.gpu for finding in findings if finding.gpu is not None})) or "the GPU"
