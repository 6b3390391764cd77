"""The one sentence that a person came for."""

from collections.abc import Sequence

from gpu_report.analyse import thresholds as th
from gpu_report.analyse.activity import outside
from gpu_report.analyse.context import Context
from gpu_report.analyse.throttles import POWER_CAP, THERMAL
from gpu_report.analyse.unused_gpu import idle_tracks
from gpu_report.model import Bound, Finding, LedgerRow
from gpu_report.vocabulary import cause_words

HEALTHY = ", which is healthy for YOLO"
# Drops have a sentence of their own, what the kernel said may concern another program, and an unused GPU did no work.
NOT_MARRING = frozenset({"drop", "sustained-low", "kernel", "unused-gpu"})
TOLD_ONCE = (
    *("slowdown", "other-process", "waiting-for-peer", "slow-epoch", "epochs-slowing", "data-wait-growing"),
    "memory-growth",
)

Trained = tuple[float, float] | None  # mean utilisation in %, and seconds


def verdict(
    context: Context, findings: Sequence[Finding], ledger: Sequence[LedgerRow], bounds: Sequence[Bound] = ()
) -> str:
    """Return what the run comes to, in plain words, with the numbers behind it."""
    trained, unseen = training(context), sum(row.share for row in ledger if row.name == "unmeasured")
    parts = [
        _ended(findings),
        _fault(findings),
        _environment(findings),
        _work(context, trained, findings),
        _starved(findings),
        _won(bounds, findings),
    ]
    parts += [_drops(findings, trained, unseen), _beside(findings), _throttled(findings), _unseen(unseen)]
    parts += [_largest(trained, findings, ledger), _unused(context)]
    return " ".join(part for part in parts if part)


def training(context: Context) -> Trained:
    """Return mean utilisation (%) and length (s) of the training of the used GPUs, None where nothing ran.

    Training is the train phases; where no epochs are known, all outside startup and idle.
    """
    spans = [(p.start_t_s, p.end_t_s) for p in context.phases if p.name == "train"]
    weight = busy = 0.0
    for track, usable in zip(context.tracks, context.usable, strict=True):
        mine = usable & ~outside(track, spans) if spans else usable
        weight += float(track.hold_s[mine].sum())
        busy += float((track.hold_s * track.util_pct)[mine].sum())
    return (busy / weight, weight / len(context.activity.used_gpus)) if weight else None


def _ended(findings: Sequence[Finding]) -> str:
    """Return how a training ended that came to no good end."""
    ended = [f for f in findings if f.rule == "run-ended"]
    return f"{ended[0].summary}, {length(ended[0].end_t_s)} after the recording began." if ended else ""


def _starved(findings: Sequence[Finding]) -> str:
    """Return what holds training back all the time, where that is known."""
    causes = {f.cause.explanation: None for f in findings if f.rule == "starved" and f.cause and f.cause.confidence > 0}
    return " ".join(f"{cause[:1].upper()}{cause[1:]}." for cause in causes)


def _won(bounds: Sequence[Bound], findings: Sequence[Finding]) -> str:
    """Return what could be won against what holds training back all the time, and what a repair is likely to reach."""
    standing = {f.cause.name for f in findings if f.rule == "starved" and f.cause and f.severity != "info"}
    bound = next((bound for bound in bounds if bound.cause in standing), None)
    if bound is None:
        return ""
    without = "If it never waited" if bound.cause == "unexplained" else "Without that"
    at_best = f"{without}, the {epoch_length(bound.epoch_s_now)} of training an epoch become "
    at_best += f"{epoch_length(bound.epoch_s_at_best)} at best, {bound.speed_up_at_most:.1f} times faster"
    if bound.epoch_s_estimate is None:
        return f"{at_best}."
    return f"{at_best}; with {bound.repair} expect about {epoch_length(bound.epoch_s_estimate)}."


def epoch_length(seconds: float) -> str:
    """Return an epoch's length: to a tenth of a second where that is worth telling."""
    return f"{seconds:.1f} s" if seconds < 10 else length(seconds)


def _beside(findings: Sequence[Finding]) -> str:
    """Return who else was on the GPUs, who waited for whom, slow epochs, growing memory: the longest of each."""
    sentences = []
    for rule in TOLD_ONCE:
        mine = [f for f in findings if f.rule == rule and not f.expected]
        if mine:
            sentences.append(f"{max(mine, key=lambda f: f.duration_s).summary}.")
    return " ".join(sentences)


def _throttled(findings: Sequence[Finding]) -> str:
    """Return what held clocks down at a cost that matters: the worst of each cause."""
    mine = [f for f in findings if f.rule in {POWER_CAP, THERMAL} and f.severity != "info"]
    worst = {f.rule: f for f in reversed(mine)}  # findings come worst first
    return " ".join(f"{worst[rule].summary}." for rule in sorted(worst))


def _fault(findings: Sequence[Finding]) -> str:
    """Return the worst thing that the kernel or the driver said during the run, unless the end has said it already."""
    told = {near.event.kind for f in findings if f.rule == "run-ended" for near in f.kernel_events}
    heard = [f for f in findings if f.rule in {"kernel", "gpu-lost"} and f.severity != "info" and f.end_t_s >= 0]
    faults = [f for f in heard if not any(near.event.kind in told for near in f.kernel_events)]
    worst = min(faults, key=lambda f: (f.severity != "critical", f.start_t_s), default=None)
    return f"{worst.summary[:1].upper()}{worst.summary[1:]}." if worst else ""


def _environment(findings: Sequence[Finding]) -> str:
    """Return what of the set-up does not fit the machine, where that is more than a note: the worst."""
    odds = [f for f in findings if f.rule == "environment" and f.severity != "info"]  # findings come worst first
    return f"{odds[0].summary}." if odds else ""


def _is_marred(findings: Sequence[Finding]) -> bool:
    """Tell whether something went wrong that a healthy utilisation would hide, such as a bad end or a guest."""
    return any(f.rule not in NOT_MARRING and f.severity != "info" and not f.expected for f in findings)


def _work(context: Context, trained: Trained, findings: Sequence[Finding]) -> str:
    if trained is None:
        return "No GPU worked during this recording."
    util, seconds = trained
    gpus = len(context.activity.used_gpus)
    subject = "The GPU was" if gpus == 1 else f"{gpus} GPUs were"
    if any(phase.name == "train" for phase in context.phases):
        what = f"the {length(seconds)} in which {'it' if gpus == 1 else 'they'} trained"
    else:
        what = f"{length(seconds)} after startup"
    reading = _reading(util) if seconds >= th.LEVEL_AT_LEAST_S else ", which is too short to judge"
    reading = "" if reading == HEALTHY and _is_marred(findings) else reading
    return f"{subject} busy {util:.0f} % of {what}{reading}."


def _reading(util: float) -> str:
    if util < th.STARVED_PCT:
        return ": it mostly waited"
    if util < th.ROOM_PCT:
        return ": there is room to win"
    if util > th.COMPUTE_BOUND_PCT:
        return ": the time is in the model"
    return HEALTHY


def _drops(findings: Sequence[Finding], trained: Trained, unseen: float) -> str:
    drops = [f for f in findings if f.rule in {"drop", "sustained-low"} and not f.expected]
    if not drops:
        # a GPU that never worked has no level to fall from, and where nobody looked nothing is seen to fall
        telling = trained is not None and trained[0] >= th.STARVED_PCT and unseen <= 1 - th.WELL_COVERED
        return "No unexpected drop." if telling and not _is_marred(findings) else ""
    total = sum(f.duration_s for f in drops)
    noun = "drop" if len(drops) == 1 else "drops"
    return f"{len(drops):,} unexpected {noun} took {length(total)}: {_by_cause(drops)}."


def _by_cause(drops: Sequence[Finding]) -> str:
    """Return the causes of drops in words, the one that took most first, with what each took where they are several."""
    took: dict[str, float] = {}
    for drop in drops:
        name = drop.cause.name if drop.cause else "unexplained"
        took[name] = took.get(name, 0.0) + drop.duration_s
    each = " ({})" if len(took) > 1 else ""
    ordered = sorted(took, key=lambda name: -took[name])
    return ", ".join(lower_first(cause_words(name)) + each.format(length(took[name])) for name in ordered)


def lower_first(words: str) -> str:
    """Return words as they stand within a sentence; an abbreviation stays as it is."""
    return words if words[:2].isupper() else words[:1].lower() + words[1:]


def _unseen(unseen: float) -> str:
    if unseen <= 1 - th.WELL_COVERED:
        return ""
    return f"{100 * unseen:.0f} % of the time was not measured: what happened then is not known."


def _largest(trained: Trained, findings: Sequence[Finding], ledger: Sequence[LedgerRow]) -> str:
    """Return where most of the time went when it did not go into work, unless the drops have said it already."""
    lost = [row for row in ledger if row.name not in {"work", "idle", "unmeasured"}]
    if trained is None or trained[0] >= th.ROOM_PCT or not lost:
        return ""
    row = max(lost, key=lambda r: r.gpu_seconds)
    told = [f for f in findings if f.cause and not f.expected and (f.rule != "starved" or f.cause.confidence > 0)]
    if any(f.cause and f.cause.name == row.name for f in told):
        return ""
    what = "waiting that nothing recorded explains" if row.name == "unexplained" else row.name
    return f"The largest loss is {what}: {length(row.gpu_seconds)}, {100 * row.share:.0f} % of all GPU time."


def _unused(context: Context) -> str:
    unused = [track.gpu for track in idle_tracks(context)]
    if not unused:
        return ""
    names = ", ".join(str(gpu) for gpu in unused)
    return f"GPU {names} was never used." if len(unused) == 1 else f"GPUs {names} were never used."


def length(seconds: float) -> str:
    """Return a duration as a person says it: 44 s, 2 min 5 s, 3 h 10 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
