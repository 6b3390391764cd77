"""The verdict's words on how busy the GPUs were in training, and why they were not where that is known."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import TypeGuard

from gpu_report.analyse.busy_in_training import (
    Busy,
    busy_in_training,
    busy_words,
    of_what_time,
    saw_training,
    steady_utilisation,
    steady_words,
)
from gpu_report.analyse.causes.confidence import LIKELY
from gpu_report.analyse.causes.main_process import PROFILE
from gpu_report.analyse.context import Context
from gpu_report.analyse.results import thresholds as th
from gpu_report.analyse.results.code_locations import workers_line
from gpu_report.analyse.results.short_training import is_enough
from gpu_report.analyse.results.unseen_waits import idle_share_beside_drops, waits_unseen
from gpu_report.analyse.results.verdict.leads.larger_batch import no_larger_batch
from gpu_report.analyse.results.verdict.leads.lead import LOOK
from gpu_report.analyse.results.verdict.leads.without_gpu import on_cpu
from gpu_report.analyse.results.verdict.other_program import UNSEEN, is_unseen_program, what_it_computed
from gpu_report.analyse.results.verdict.which_training import which_training
from gpu_report.analyse.results.verdict.without_work import HARDLY_WAITED, data_wait_share, without_work
from gpu_report.analyse.rules.other_processes import others_work
from gpu_report.analyse.rules.thresholds import DATA_WAIT_SHARE, LONG_ENDS_LEAST
from gpu_report.analyse.timeline.activity import outside
from gpu_report.analyse.timeline.thresholds import LEVEL_AT_LEAST_S, SETTLED_READINGS
from gpu_report.analyse.timeseries.intervals import as_array, length_s, union
from gpu_report.catalogue import ENDS_EPOCHS_KEY, ENDS_SHARE_KEY, LAUNCH_BOUND, ON_CPU_KEY, RULES, STEADY_KEY
from gpu_report.gpu_words import gpu_words
from gpu_report.model import HEALTHY_PCT, Cause, Finding, Gpu, Sentence
from gpu_report.wording import counted, is_short, length, lower_first, place_words, upper_first

NOTHING, NO_FAULT, NO_FIX = "Nothing to fix: ", "No fault found: ", "No clear fix found: "
LIMIT = "; the model itself is the limit"
GOOD = f"{HEALTHY_PCT:.0f} % or more is good for YOLO"


def is_long(trained: Busy) -> TypeGuard[tuple[float, float]]:
    """Tell whether there was training enough to judge it."""
    return trained is not None and trained[1] >= LEVEL_AT_LEAST_S


def is_judged(context: Context, trained: tuple[float, float], findings: Sequence[Finding]) -> bool:
    """Tell whether there was training enough to judge it, or a finding says enough of it."""
    return is_enough(context, trained) or any(map(_says_enough, findings))


def _says_enough(finding: Finding) -> bool:
    """Tell whether a finding says enough of a training that is short; a long validation tells nothing of its steps."""
    epochs = finding.number(ENDS_EPOCHS_KEY) or 0.0
    return finding.rule == "starved" or epochs >= LONG_ENDS_LEAST


@dataclass(frozen=True)
class RestOfVerdict:
    """What the verdict says and knows beside how busy the GPUs were.

    How busy they were leads where it `is_lead`. A training `is_marred` where something else went wrong. `others_said`
    says that who used the cores of a training on the CPU stands before it, `unknown_rest` that nobody knows what kept
    the GPUs from working in a good part of training, `has_lead` that what to change stands before it. `current` is the
    training that it is about, where what held earlier ones back is over; else empty.
    """

    is_lead: bool
    is_marred: bool
    others_said: bool
    unknown_rest: bool
    has_lead: bool = False
    current: str = ""


@dataclass(frozen=True)
class _JudgedTraining:
    """A training long enough to be judged: how busy its GPUs were (%) in how many seconds, and what was found."""

    context: Context
    util: float
    seconds: float
    findings: Sequence[Finding]
    beside: RestOfVerdict

    @property
    def is_lead(self) -> bool:
        """Tell whether it leads, and readings are fine enough to say what to think of it."""
        return self.beside.is_lead and not self.context.too_coarse

    @property
    def busy(self) -> str:
        """Return for how much of which time its GPUs were busy, in words."""
        return self._busy(by_nature=False)

    @property
    def busy_by_nature(self) -> str:
        """Return likewise, of a GPU that is for some of the time idle by nature: within a sentence."""
        return lower_first(self._busy(by_nature=True))

    def _busy(self, *, by_nature: bool) -> str:
        who = f"{_who(self.context)} {_be(self.context)}"
        current = self.beside.current
        time = f"the time in {current}" if current else of_what_time(self.context, self.seconds)
        return f"{who} busy {busy_words(self.util, by_nature=by_nature)} of {time}"


def work_sentences(
    context: Context, trained: Busy, unseen: float, findings: Sequence[Finding], beside: RestOfVerdict
) -> Iterator[Sentence]:
    """Yield how busy the GPUs were in training, with the cause where one lasts; as the lead, what to think of it.

    `unseen` is the share (0 to 1) of the time that was not measured.
    """
    if trained is None:
        cpu_said = any(each.number(ON_CPU_KEY) is not None for each in findings)
        yield from on_cpu(context, others_said=beside.others_said, cpu_said=cpu_said)
        if said := without_work(context, unseen):
            yield Sentence("work", said)
    elif not is_judged(context, trained, findings):
        yield from _too_short(context, trained[1], is_lead=beside.is_lead)
    elif (few := few_readings(context, trained[1])) and _would_judge(context, findings, beside):
        busy = f"{lower_first(_who(context))} {_be(context)} busy {busy_words(trained[0], by_nature=True)}"
        yield Sentence("work", f"Too few readings to judge: {busy} in {counted(few, 'reading')} of training.")
    else:
        training = _JudgedTraining(context, *trained, findings, beside)
        no_fault = _no_fault(training) if training.is_lead and training.util < HEALTHY_PCT else ()
        yield from tuple(no_fault) or _how_busy(training)


def _would_judge(context: Context, findings: Sequence[Finding], beside: RestOfVerdict) -> bool:
    """Tell whether how busy the GPUs were would lead, as all that there is to judge a training by."""
    return beside.is_lead and not context.too_coarse and not any(map(_says_enough, findings))


def few_readings(context: Context, seconds: float) -> int | None:
    """Return of how many readings so much of training is, None where these are enough for their mean."""
    readings = seconds / max((series.interval_s for series in context.used_series), default=1.0)
    return max(1, round(readings)) if readings < SETTLED_READINGS and seconds > LEVEL_AT_LEAST_S else None


def _too_short(context: Context, seconds: float, *, is_lead: bool) -> Iterator[Sentence]:
    did = "trained" if saw_training(context) else "worked"
    what = "Too short to judge" if is_lead else "The training itself is too short to judge"
    yield Sentence("work", f"{what}: {lower_first(_who(context))} {did} for only {length(seconds)}.")
    yield from _waited_for_data(context)


@dataclass(frozen=True)
class _Why:
    """Why GPUs waited all the time, with a doubt (`sure`) where there is one; empty where that is not known.

    `which` is the training that did, of several, `steady` how busy they were without drops.
    """

    sure: str
    cause: str
    findings: tuple[str, ...]
    which: str
    steady: str


def _why(context: Context, util: float, findings: Sequence[Finding], current: str) -> _Why:
    (sure, cause), ids = _because(findings)
    if not cause:
        return _Why("", "", ids, "", "")
    which = which_training(context, [finding for finding in findings if finding.id in ids])
    steady_pct = _steady_pct(findings)
    when = "Without drops" if context.drops else "Without interruptions"  # as by others on the GPU, or a long warm-up
    lasting = {each.cause.name for each in findings if each.rule == "starved" and each.cause}
    fell = any(RULES[f.rule].drop and not f.expected and f.cause and f.cause.name not in lasting for f in findings)
    steady = f"{when} it was {steady_pct:.0f} %" if steady_words(util, steady_pct, fell=fell) else ""
    return _Why(sure, cause, ids, "" if which == current else which, steady)


def _how_busy(training: _JudgedTraining) -> Iterator[Sentence]:
    """Yield how busy GPUs were, what else is to be said of it, and the cause: in one sentence where that is all."""
    context, findings, util, seconds = training.context, training.findings, training.util, training.seconds
    before = _before(training) if training.is_lead else ""
    why, ends = _why(context, util, findings, training.beside.current), _at_epoch_ends(context, findings, seconds)
    unseen = waits_unseen(context, (util, seconds))
    good = f" ({GOOD})" if training.is_lead and not unseen and HEALTHY_PCT <= util < th.QUESTIONED_PCT else ""
    is_apart = bool(ends) or any(finding.number(ENDS_SHARE_KEY) is not None for finding in findings)
    beside = ", not counting the ends of epochs" if is_apart else ""
    busy = f"{before}{lower_first(training.busy) if before else training.busy}{beside}{good}"
    if why.cause and not (why.steady or before or ends or why.which):
        yield from with_cause("work", busy, (why.sure, why.cause), why.findings)
        yield from _no_larger_batch(context, findings)
        return
    after = "" if ends else _after(training, why)
    about = () if why.cause else why.findings or tuple(each.id for each in _unknown(findings))
    yield Sentence("work", f"{busy}{after}.", about)
    if training.is_lead and util >= HEALTHY_PCT and is_unseen_program(context):
        yield from what_it_computed(context)
    if unseen and training.is_lead and util >= HEALTHY_PCT:
        yield from _time_hardly_worked(context, seconds)
    if len(context.used_series) > 1:  # of one there is no mean that hides it
        yield from _least_busy(_unknown(findings), util)
    if ends:
        yield Sentence("work", f"{ends}.")
    if why.steady:
        yield from with_cause("starved", why.steady, (why.sure, why.cause), why.findings)
    elif why.cause:
        text = f"{why.which}: {why.sure}{why.cause}" if why.which else f"{why.sure}{why.cause}"
        yield Sentence("starved", f"{upper_first(text)}.", why.findings)
    yield from _no_larger_batch(context, findings)


def _time_hardly_worked(context: Context, seconds: float) -> Iterator[Sentence]:
    """Yield for how much of so many seconds of training GPUs hardly worked, where that is much."""
    still = idle_share_beside_drops(context)
    if still >= th.IDLE_BESIDE_DROPS_SHARE:
        who = "They" if len(context.activity.used_gpus) > 1 else "It"
        yield Sentence("work", f"{who} hardly worked for {length(still * seconds)} of it ({100 * still:.0f} %).")


def _no_larger_batch(context: Context, findings: Sequence[Finding]) -> Iterator[Sentence]:
    """Yield why small steps are not to be larger ones, where they may be small or slow (PROFILE)."""
    small = next((f for f in findings if f.rule == "starved" and is_launch_bound(f) and PROFILE in f.advice), None)
    if small is not None and (why := no_larger_batch(context, small, findings)):
        yield Sentence("starved", f"A larger batch would keep it busier, but {why}.", (small.id,))


def _before(training: _JudgedTraining) -> str:
    """Return what to think of a training, empty where something critical is said of it beside."""
    util, findings, beside = training.util, training.findings, training.beside
    if util >= HEALTHY_PCT and any(each.severity == "critical" for each in findings):
        return ""
    unseen = waits_unseen(training.context, (util, training.seconds))
    if util < HEALTHY_PCT or _unknown(findings):  # of one GPU is enough, however busy the others are
        return NO_FIX
    if unseen and util < th.QUESTIONED_PCT:
        return NO_FIX
    is_marred = beside.is_marred or _has_small_steps(findings)
    is_doubted = beside.unknown_rest or bool(unseen) or is_unseen_program(training.context)
    return _when_busy(is_marred=is_marred, is_doubted=is_doubted)


def _when_busy(*, is_marred: bool, is_doubted: bool) -> str:
    """Return what to think of a training whose GPUs were busy enough, and before which nothing leads.

    It is not fine where something went wrong, and nobody knows that it is where some of its time is in doubt.
    """
    return "Little to fix: " if is_marred else NO_FAULT if is_doubted else NOTHING


def _after(training: _JudgedTraining, why: _Why) -> str:
    """Return whose work it was where much was another's, or that the model is the limit; empty for neither.

    Nor where something to change leads, which says what the limit is.
    """
    context, util, findings, has_lead = training.context, training.util, training.findings, training.beside.has_lead
    if more := "" if why.cause else _shared(context):
        return f"{', and' if util < HEALTHY_PCT else ', but'} {more}"
    has_problems = _has_small_steps(findings) or any(each.severity != "info" for each in findings)
    if util <= th.COMPUTE_BOUND_PCT or has_problems or has_lead:
        return ""
    return UNSEEN if is_unseen_program(context) else LIMIT


def _has_small_steps(findings: Sequence[Finding]) -> bool:
    return any(each.rule == "starved" and is_launch_bound(each) for each in findings)


def is_launch_bound(finding: Finding) -> bool:
    """Tell whether a finding's cause is batches that are too small for the GPU."""
    return finding.cause is not None and finding.cause.name == LAUNCH_BOUND


def _unknown(findings: Sequence[Finding]) -> list[Finding]:
    """Return the warnings of GPUs that wait all the time for something unknown."""
    return [each for each in findings if each.rule == "starved" and each.severity != "info" and not each.is_explained]


def _least_busy(unknown: Sequence[Finding], util: float) -> Iterator[Sentence]:
    """Yield which GPUs waited for something unknown, where the mean of all hides it."""
    for finding in unknown:
        steady_pct = finding.number(STEADY_KEY)
        if util >= HEALTHY_PCT and finding.gpu is not None and steady_pct is not None:
            yield Sentence("starved", f"{gpu_words(finding.gpu)} was busy only {steady_pct:.0f} %.", (finding.id,))


def with_cause(kind: str, said: str, why: tuple[str, str], ids: tuple[str, ...]) -> Iterator[Sentence]:
    """Yield something and its cause, with a doubt where there is one: in one sentence where that is short."""
    sure, cause = why
    whole = f"{said}, {sure}because {cause}."
    if is_short(whole):
        yield Sentence(kind, whole, ids)
    else:
        yield Sentence(kind, f"{said}.")
        yield Sentence("starved", f"{upper_first(sure + cause)}.", ids)


def _no_fault(training: _JudgedTraining) -> Iterator[Sentence]:
    """Yield why GPUs were less busy in training than is good, where nothing went wrong; nothing where that is not so.

    It only warmed up, or did so for long, or the model is small for the GPU and nobody can give it larger batches.
    """
    context, findings, beside = training.context, training.findings, training.beside
    starved = [finding for finding in findings if finding.rule == "starved"]
    if not starved and _at_epoch_ends(context, findings, training.seconds):
        return
    steady_pct = healthy_steady_pct(context, findings)
    if steady_pct is not None and waits_unseen(context, (training.util, training.seconds)):
        return
    if steady_pct is not None:
        said = _when_busy(is_marred=beside.is_marred, is_doubted=beside.unknown_rest)
        yield Sentence("work", f"{said}{training.busy_by_nature}, {steady_pct:.0f} % in steady state.")
        yield Sentence("work", f"{GOOD}.")
    elif not starved and not beside.is_marred and not context.cached(_mean_steady_pct):
        yield Sentence("work", f"Too short to judge: {training.busy_by_nature}, warming up included.")
        yield from _waited_for_data(context)
    elif starved and all(finding.cause and _is_by_nature(finding.cause) for finding in starved):
        yield from _small_steps(training, starved)


def _small_steps(training: _JudgedTraining, starved: Sequence[Finding]) -> Iterator[Sentence]:
    """Yield that GPUs wait by nature for small steps to be launched, and whether a larger batch may be tried."""
    ids = tuple(finding.id for finding in starved)
    why = no_larger_batch(training.context, starved[0], training.findings)
    judged = "Little found to fix" if training.beside.is_marred else "Nothing found to fix" if why else "No fault found"
    yield Sentence("work", f"{judged}: {training.busy_by_nature}.")
    yield Sentence("starved", "The CPU launches kernels more slowly than this GPU runs them (launch-bound).", ids)
    if why:
        yield Sentence("starved", f"A larger batch would keep it busier, but {why}.", ids)
    else:
        yield Sentence(LOOK, "Try a batch twice as large: it would keep the GPU busier.", ids, LAUNCH_BOUND)


def _is_by_nature(cause: Cause) -> bool:
    return cause.name == LAUNCH_BOUND and cause.confidence >= LIKELY


def healthy_steady_pct(context: Context, findings: Sequence[Finding]) -> float | None:
    """Return mean utilisation (%) in the steady state, of all trainings and their GPUs.

    None where it is not known, or where a GPU waited for something all the time.
    """
    if any(finding.rule == "starved" for finding in findings):
        return None
    steady_pct = context.cached(_mean_steady_pct)
    return steady_pct if steady_pct >= HEALTHY_PCT else None


def _mean_steady_pct(context: Context) -> float:
    """Return mean utilisation (%) in the steady state of all trainings' GPUs, 0 where that of one is not known."""
    known = [
        steady_utilisation(context, training, series, use)
        for training in context.trainings
        for series, use in zip(context.series, context.usable, strict=True)
        if series.gpu in training.gpus
    ]
    values = [value for value in known if value is not None]
    return mean(values) if values and len(values) == len(known) else 0.0


def _at_epoch_ends(context: Context, findings: Sequence[Finding], trained_s: float) -> str:
    """Return for which share of the time of epochs something held up their ends, empty where nothing did."""
    took_s = length_s(union([each.span for f in findings if RULES[f.rule].at_epoch_ends for each in f.each]))
    whole_s = max(context.in_ended_epochs_s or trained_s + took_s, took_s)
    share_pct = 100 * took_s / whole_s if took_s else 0.0
    return f"Waiting at the ends of epochs took {share_pct:.0f} % of the epochs' time" if took_s else ""


def _shared(context: Context) -> str:
    """Return which share of that was the work of other processes, empty where it was little."""
    spans = as_array(context.all_train_spans)
    work_s = theirs_s = 0.0
    for series, usable in zip(context.series, context.usable, strict=True):
        busy_s = series.weight_s[mine := usable & ~outside(series, spans)] * series.util_pct[mine]
        share = context.cached(others_work).get(series.gpu)
        work_s += float(busy_s.sum())
        theirs_s += 0.0 if share is None else float((busy_s * share[mine]).sum())
    share_pct = 100 * theirs_s / work_s if work_s else 0.0
    return f"{share_pct:.0f} % of that was another process's work" if share_pct >= th.SHARED_PCT else ""


def _who(context: Context) -> str:
    used = context.activity.used_gpus
    if len(used) > 1:
        return f"{len(used)} GPUs"
    device = context.run.gpu(min(used)) if used else None
    if device is not None and device.parent_index is not None:
        return f"{gpu_words(device.index)} (MIG {_profile(device)})"
    return "The GPU" if len(context.series) == 1 else gpu_words(min(used))


def _profile(device: Gpu) -> str:
    """Return the profile of a MIG device (3g.40gb), which ends the name that its driver gives it."""
    return (device.name or "").partition(" MIG ")[2] or "device"


def _be(context: Context) -> str:
    return "were" if len(context.activity.used_gpus) > 1 else "was"


def _because(findings: Sequence[Finding]) -> tuple[tuple[str, str], tuple[str, ...]]:
    """Return why the GPUs waited all the time, with a doubt where there is one, and the findings that say so."""
    mine = [f for f in findings if f.rule == "starved" and f.is_explained]
    causes = dict.fromkeys(f.cause.explanation for f in mine if f.cause)
    if len(causes) != 1 or mine[0].cause is None:
        return ("", ""), tuple(f.id for f in mine if not causes)
    sure = "" if mine[0].cause.confidence >= LIKELY else "probably "
    return (sure, mine[0].cause.explanation), tuple(f.id for f in mine)


def _steady_pct(findings: Sequence[Finding]) -> float | None:
    """Return mean utilisation in the steady state of the GPUs that waited all the time, None where it is not known."""
    known = [finding.number(STEADY_KEY) for finding in findings if finding.rule == "starved"]
    values = [value for value in known if value is not None]
    return mean(values) if values else None


def _waited_for_data(context: Context) -> Iterator[Sentence]:
    """Yield for how much of a short training it waited for data, and what workers did, or that it hardly did."""
    waited = data_wait_share(context)
    if waited is None:
        return
    if waited < HARDLY_WAITED and is_enough(context, busy_in_training(context)):
        yield Sentence("work", f"It hardly waited for data ({100 * waited:.1f} % of that time).")
    if waited >= DATA_WAIT_SHARE:
        yield Sentence("work", f"{100 * waited:.0f} % of that went into waiting for data.")
        at = workers_line(context, context.all_train_spans)
        if at is not None:
            yield Sentence("where", f"Data-loader workers were in {place_words(at)}.")
