"""Rule: a function of the user's own that takes a share of the time of epochs within their validations."""

from collections.abc import Sequence

from gpu_report.analyse.causes.main_process import in_call
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.analyse.timeseries.intervals import Span, as_array, length_s
from gpu_report.catalogue import RULES, USER_CODE_IDLE_KEY, USER_CODE_KEY
from gpu_report.gpu_words import gpu_words
from gpu_report.model import OF_EPOCHS, Advice, Evidence, Finding
from gpu_report.wording import place_words, where_it_is

DO = "Do the work of {} for all images at once (NumPy, torch), or use it in fewer validations"
DO_NOT_WAIT = "Do what {} waits for in a background thread, or use it in fewer validations"


def validation_code(context: Context, found: Sequence[Finding]) -> list[Finding]:
    """Report the function in which validations waited for USER_CODE_SHARE of the time of a training's epochs.

    A validator or a metric of one's own is one. It warms nothing up: one validation tells. Not where what was `found`
    says why the ends of epochs take long.
    """
    told = [each for each in found if RULES[each.rule].at_epoch_ends and each.severity != "info"]
    pairs = [(training, gpu) for training in context.trainings for gpu in sorted(training.gpus)]
    own = [each for training, gpu in pairs if (each := _of_gpu(context, training, gpu)) is not None]
    return [each for each in own if not any(_is_of(other, each) for other in told)]


def _is_of(told: Finding, own: Finding) -> bool:
    """Tell whether a finding of an epoch's end is of the time of another one, on the same GPU if it is of one."""
    overlaps = told.start_t_s < own.end_t_s and told.end_t_s > own.start_t_s
    return overlaps and told.gpu in {None, own.gpu}


def _of_gpu(context: Context, training: Training, gpu: int) -> Finding | None:
    mine = [phase for phase in context.phases if phase.name in OF_EPOCHS and phase.source]
    epochs = training.within([phase.span for phase in mine])
    spans = training.within([phase.span for phase in mine if phase.name == "validation"])
    call, seconds = context.signals.longest_call(gpu, spans) if spans else (None, 0.0)
    share = seconds / length_s(epochs) if epochs else 0.0
    lost = share * (1 - _busy(context, gpu, spans))
    if call is None or lost < th.USER_CODE_SHARE:
        return None
    own = context.signals.own_code(gpu, call, spans, share)
    cause = in_call(own, "validation", "computed")
    do = (DO_NOT_WAIT if cause.name == "trainer-blocked" else DO).format(place_words(own.at))
    return context.finding(
        "user-code",
        "warning",
        (spans[0][0], spans[-1][1]),
        f"{100 * share:.0f} % of the time of epochs on {gpu_words(gpu)} went into {where_it_is(own.at)}, in validation",
        gpu=gpu,
        epoch=None,
        phase="validation",
        evidence=(
            Evidence("its share of the time of epochs", 100 * share, "%", key=USER_CODE_KEY),
            Evidence("time of epochs for which the GPU waits because of it", 100 * lost, "%", key=USER_CODE_IDLE_KEY),
            *evidence(("CPU of the main process there", own.cpu_pct, "% of a core")),
        ),
        cause=cause,
        advice=(Advice(do),),
        where=(own.at,),
    )


def _busy(context: Context, gpu: int, spans: list[Span]) -> float:
    """Return how busy a GPU was in some spans (0 to 1), 0 where nothing was read of it."""
    series = context.series_if_read(gpu)
    mean_pct, seconds = series.mean_util_in(as_array(spans)) if series is not None else (0.0, 0.0)
    return mean_pct / 100 if seconds > 0 else 0.0
