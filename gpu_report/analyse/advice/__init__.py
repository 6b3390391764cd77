"""Advice for a run: a cause that holds it back all the time gets what can be changed against it, and what that wins."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from gpu_report.analyse.advice.fixes import Fix, cache_images, find_fix
from gpu_report.analyse.advice.judged_epochs import training_of_limits
from gpu_report.analyse.advice.larger_batches import LargerBatches
from gpu_report.analyse.advice.lasting_limits import lasting_causes
from gpu_report.analyse.advice.limit_at_full_clock import with_limit_at_full_clock
from gpu_report.analyse.advice.next_limit import next_limit
from gpu_report.analyse.advice.run_settings import run_settings_of
from gpu_report.analyse.advice.smaller_images import resize_images
from gpu_report.analyse.causes.slower_storage import faster_disk
from gpu_report.analyse.context import Context
from gpu_report.analyse.signals.interval_signals import IntervalSignals
from gpu_report.analyse.signals.thresholds import MOSTLY_SHARE
from gpu_report.analyse.timeline.thresholds import ENDED_TOGETHER_S
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.catalogue import LAUNCH_BOUND, RULES, SINCE_EPOCH_KEY
from gpu_report.model import Advice, EpochSummary, Finding, Setting, SpeedupLimit

# rules, of what does not go on all the time
OF_MOMENTS = frozenset({"drop", "sustained-low", "slowdown", "held-epoch-end"})


@dataclass(frozen=True)
class _AdviceAtEnd:
    """What the end of a training asks to set (argument to value), and whether GPU memory was too small for it."""

    asked: Mapping[str, str]
    filled_memory: bool

    def opposes(self, setting: Setting) -> bool:
        """Tell whether it speaks against setting an argument so: a larger batch only fills memory sooner."""
        raises_batch = setting.argument == "batch" and float(setting.to_value) > float(setting.from_value or 0)
        return self.asked.get(setting.argument, setting.to_value) != setting.to_value or (
            self.filled_memory and raises_batch
        )


def advise(
    context: Context, epochs: Sequence[EpochSummary], findings: Sequence[Finding], limits: Sequence[SpeedupLimit]
) -> tuple[list[Finding], tuple[SpeedupLimit, ...]]:
    """Return the findings with advice against their causes, and the limits with what the fix would reach.

    Advice is given where the cause held all the time, in the training that limits are of: no argument would have kept a
    moment's fault away. None of it is for a training that ended for want of host memory: a larger batch, more workers
    and a cache all take more. An argument that its end asks to change is not to be set otherwise.
    """
    training = training_of_limits(context, epochs)
    if training is None or any(_ran_out_of_memory(finding, training) for finding in findings):
        return list(findings), tuple(limits)
    end = _end_of(training, findings)
    findings = [_without_opposites(finding, end) for finding in findings]
    findings = with_limit_at_full_clock(context, training, epochs, findings)
    held_back = [f for f in lasting_causes(context, training, findings) if _can_change(f)]
    lasting = {finding.cause.name for finding in held_back if finding.cause}
    of_training = [limit for limit in limits if not limit.at_epoch_ends]
    offered = {
        limit.cause: found
        for limit in of_training
        if limit.cause in lasting and (found := _find_fix(context, training, limit, end)) is not None
    }
    of = {limit.cause: limit for limit in of_training}
    added = {
        cause: (
            *_resize(context, training, cause, of.get(cause)),
            *((_advice(of[cause], offered[cause]),) if cause in offered else ()),
            *(_next_limit(context, training, of[cause], offered[cause]) if cause in offered else ()),
            *_not_by_workers(context, training, cause),
        )
        for cause in lasting
    }
    advised = [
        replace(f, advice=(*f.advice, *_fitting(f, added[f.cause.name]), *_faster_disk(context, training, f)))
        if f in held_back and f.cause
        else f
        for f in findings
    ]
    advised = [_with_smaller_images(context, training, finding) for finding in advised]
    return advised, tuple(_with_estimate(limit, offered.get(limit.cause)) for limit in limits)


def _with_smaller_images(context: Context, training: Training, finding: Finding) -> Finding:
    """Return a finding of a moment at which the loader was at its limit; first of its advice is to resize large images.

    That some images take longer than others is then explained: training uses few of the pixels that they have. Of the
    ends of epochs, as of each validation, it is else to cache the images.
    """
    momentary = finding.rule in OF_MOMENTS and finding.cause is not None and finding.cause.name == "input-cpu"
    if not momentary or finding.gpu is None or finding.gpu not in training.gpus:
        return finding
    signals = context.signals.of(finding.gpu, *finding.span)
    settings = run_settings_of(context, training)
    found = resize_images(settings, "input-cpu", None, signals)
    if found is None and finding.rule == "held-epoch-end":
        found = cache_images(settings, signals)
    return finding if found is None or signals.loader is None else replace(finding, advice=(found, *finding.advice))


def _can_change(finding: Finding) -> bool:
    """Tell whether an argument may help against a lasting finding: against a note, only a batch for its small steps."""
    is_small_steps = finding.cause is not None and finding.cause.name == LAUNCH_BOUND
    return finding.severity != "info" or is_small_steps


def _ran_out_of_memory(finding: Finding, training: Training) -> bool:
    """Tell whether a training ended for want of host memory, for certain or likely."""
    start_s, end_s = training.span
    short = finding.cause is not None and finding.cause.runner_up == "memory-pressure"
    return finding.rule == "run-ended" and short and start_s <= finding.end_t_s <= end_s + ENDED_TOGETHER_S


def _without_opposites(finding: Finding, end: _AdviceAtEnd) -> Finding:
    """Return a finding without advice that the end of the training speaks against; an end keeps its own."""
    if RULES[finding.rule].ending:
        return finding
    kept = [each for each in finding.advice if not any(end.opposes(one) for one in each.settings)]
    return replace(finding, advice=tuple(kept))


def _end_of(training: Training, findings: Sequence[Finding]) -> _AdviceAtEnd:
    start_s, end_s = training.span
    ends = [f for f in findings if RULES[f.rule].ending and start_s <= f.end_t_s <= end_s + ENDED_TOGETHER_S]
    asked = {one.argument: one.to_value for f in ends for advice in f.advice for one in advice.settings}
    return _AdviceAtEnd(asked, training.filled_gpu_memory)


def _find_fix(context: Context, training: Training, limit: SpeedupLimit, end: _AdviceAtEnd) -> Fix | None:
    signals = _signals(context, training)
    return None if signals is None else find_fix(run_settings_of(context, training), limit, signals, end.opposes)


def _resize(context: Context, training: Training, cause: str, limit: SpeedupLimit | None) -> tuple[Advice, ...]:
    signals = _signals(context, training)
    found = None if signals is None else resize_images(run_settings_of(context, training), cause, limit, signals)
    return () if found is None else (found,)


def _fitting(finding: Finding, advice: Sequence[Advice]) -> list[Advice]:
    """Return the advice without that to resize images where a loader lacks CPU since some epoch: it had enough before.

    The same images were loaded in time then.
    """
    kept_up = finding.cause_name == "input-cpu" and finding.number(SINCE_EPOCH_KEY) is not None
    return [each for each in advice if not (kept_up and each.images_px is not None)]


def _faster_disk(context: Context, training: Training, finding: Finding) -> tuple[Advice, ...]:
    """Return to put the images on a faster disk, where nothing else is known of storage that is waited for."""
    is_storage = finding.cause_name == "input-storage" and not finding.advice
    return faster_disk(_signals(context, training)) if is_storage else ()


def _not_by_workers(context: Context, training: Training, cause: str) -> tuple[Advice, ...]:
    """Return that more workers gain nothing, where images that come slowly would else be a matter of their number."""
    rate = run_settings_of(context, training).loader_rate if cause == "input-latency" else None
    return () if rate is None else (rate.advice,)


def _next_limit(context: Context, training: Training, limit: SpeedupLimit, found: Fix) -> tuple[Advice, ...]:
    """Return what would hold steps back next where a larger batch makes them faster, without more workers for it."""
    signals, settings = _signals(context, training), run_settings_of(context, training)
    if signals is None or found.argument != "batch" or found.also or found.epoch_s is None or not settings.batch:
        return ()
    if signals.worker_code is not None and signals.worker_code.share >= MOSTLY_SHARE:  # the cause has said so
        return ()
    batches = LargerBatches(settings, limit, signals, settings.batch, settings.batch)
    advice = next_limit(context, training, batches, found.epoch_s)
    return () if advice is None else (advice,)


def _signals(context: Context, training: Training) -> IntervalSignals | None:
    return context.signals.of_training(min(training.gpus), training) if training.gpus else None


def _advice(limit: SpeedupLimit, found: Fix) -> Advice:
    return Advice(
        text=found.reason,
        argument=found.argument,
        from_value=found.from_value,
        to_value=found.to_value,
        gain_at_most=limit.saves_at_most_s / limit.whole_s,
        gain_estimate=None if found.epoch_s is None else (limit.epoch_s_now - found.epoch_s) / limit.whole_s,
        short=found.short,
        of_epoch=True,
        also=found.also,
    )


def _with_estimate(limit: SpeedupLimit, found: Fix | None) -> SpeedupLimit:
    if found is None or found.epoch_s is None or limit.at_epoch_ends:
        return limit
    return replace(limit, epoch_s_estimate=found.epoch_s, fix=_advice(limit, found).typed)
