"""Rule: functions of the user's own that take a share of the time of epochs, or of validations alone."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gpu_report.analyse.causes.main_process import in_call, in_validations
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.signals.signals_index import OwnCode
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.analyse.timeseries.intervals import Span, length_s
from gpu_report.analyse.validations import is_validation, validations
from gpu_report.catalogue import RULES, USER_CODE_IDLE_KEY, USER_CODE_KEY
from gpu_report.gpu_words import gpu_words
from gpu_report.model import OF_EPOCHS, Advice, Cause, Evidence, Finding
from gpu_report.wording import amount, place_words, where_it_is

# of a validation that somebody asked for
FASTER_ALONE = "Do its work for all images at once (NumPy, torch), or once for each image, and keep the result"
DO_NOT_WAIT_ALONE = "Do what it waits for in a background thread, or once for all images"


def validation_code(context: Context, found: Sequence[Finding]) -> list[Finding]:
    """Report the functions in which validations waited for USER_CODE_SHARE of the time of a training's epochs.

    A validator or a metric of one's own is one. It warms nothing up: one validation tells. Not where what was `found`
    says why the ends of epochs take long. Where nothing was trained, it is the time of the validations.
    """
    if is_validation(context):
        spans = [(phase.start_t_s, phase.end_t_s) for _, phase in validations(context)]
        return list(_findings(context, None, spans, length_s(spans)))
    told = [each for each in found if RULES[each.rule].at_epoch_ends and each.severity != "info"]
    pairs = [(training, gpu) for training in context.trainings for gpu in sorted(training.gpus)]
    own = [each for training, gpu in pairs for each in _of_gpu(context, training, gpu)]
    return [each for each in own if not any(_is_of(other, each) for other in told)]


def _is_of(told: Finding, own: Finding) -> bool:
    """Tell whether a finding of an epoch's end is of the time of another one, on the same GPU if it is of one."""
    overlaps = told.start_t_s < own.end_t_s and told.end_t_s > own.start_t_s
    return overlaps and told.gpu in {None, own.gpu}


def _of_gpu(context: Context, training: Training, gpu: int) -> Iterator[Finding]:
    mine = [phase for phase in context.phases if phase.name in OF_EPOCHS and phase.source]
    spans = training.within([phase.span for phase in mine if phase.name == "validation"])
    return _findings(context, gpu, spans, length_s(training.within([phase.span for phase in mine])))


def _findings(context: Context, gpu: int | None, spans: Sequence[Span], whole_s: float) -> Iterator[Finding]:
    """Yield what took a share of so many seconds within validations; where no GPU is read, idle or not."""
    is_read = bool(context.used_series) if gpu is None else context.series_if_read(gpu) is not None
    lost = context.signals.calls(gpu, spans, only_idle=is_read) if spans else {}
    for call in sorted(lost, key=lambda each: -lost[each]):
        if lost[call] >= th.USER_CODE_SHARE * whole_s:
            share = context.signals.calls(gpu, spans)[call] / whole_s
            yield _finding(context, gpu, spans, context.signals.own_code(gpu, call, spans, share), lost[call] / whole_s)


def _finding(context: Context, gpu: int | None, spans: Sequence[Span], own: OwnCode, lost: float) -> Finding:
    alone = is_validation(context)
    of, cause = "validation" if alone else "the time of epochs", in_call(own, "validation", "computed")
    into = f"{where_it_is(own.at)}{_within(own)}" if alone else f"{where_it_is(own.at)}, in validation"
    advice = in_validations(place_words(own.at), cause.name)
    return context.finding(
        "user-code",
        "warning",
        (spans[0][0], spans[-1][1]),
        f"{100 * own.at.share:.0f} % of {of}{'' if gpu is None else f' on {gpu_words(gpu)}'} went into {into}",
        gpu=gpu,
        epoch=None,
        phase="validation",
        evidence=(
            Evidence(f"its share of {of}", 100 * own.at.share, "%", key=USER_CODE_KEY),
            Evidence(f"{of} for which the GPU waits because of it", 100 * lost, "%", key=USER_CODE_IDLE_KEY),
            *evidence(("CPU of the main process there", own.cpu_pct, "% of a core")),
        ),
        cause=cause,
        advice=(_alone(len(validations(context)), spans, own, cause, lost) if alone else replace(advice, short=""),),
        where=(own.at,),
    )


def _within(own: OwnCode) -> str:
    """Return which function of YOLO's the user's stands in for, where the line is in another: `update_metrics`, say."""
    called = own.function.function
    return "" if called == own.at.function else f", called in {called}()"


def _alone(count: int, spans: Sequence[Span], own: OwnCode, cause: Cause, lost: float) -> Advice:
    """Return what to do where nothing is trained, and what each of `count` validations comes to without it."""
    each_s = length_s(spans) / count
    now, then = (amount(seconds, "s") for seconds in (each_s, each_s * (1 - lost)))
    short = f"Look at {place_words(own.at)}: {now} a validation become about {then} without it"
    do = DO_NOT_WAIT_ALONE if cause.name == "trainer-blocked" else FASTER_ALONE
    return Advice(f"{short}. {do}", gain_at_most=lost, short=short)
