"""What held an earlier training of a recording back, and was changed before the last one: it is over, and is a note."""

from collections.abc import Sequence
from dataclasses import replace

from gpu_report.analyse.context import Context
from gpu_report.analyse.timeline.thresholds import LEVEL_AT_LEAST_S
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.analyse.timeseries.intervals import length_s
from gpu_report.catalogue import CAUSES, LAUNCH_BOUND, PAST_KEY, STEADY_KEY
from gpu_report.gpu_words import gpu_words
from gpu_report.model import GPUS, Evidence, Finding
from gpu_report.wording import about_length

# Arguments by which a cause is mended, and what else is known of the images that a loader reads.
OF_LOADER, OF_STEPS = ("workers", "cache"), ("batch",)
OF_IMAGES = {"data_folder": "reads {}", "image_px": "has images of {} px"}


def with_past_causes_as_notes(context: Context, findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings, those of a cause that lasted in an earlier training and is over as notes that say so.

    It is over where the last training on that GPU had another setting that the cause is about, and is without it.
    """
    if len(context.trainings) < 2:
        return list(findings)
    lasting = [each for each in findings if each.rule == "starved" and each.is_explained]
    return [_past(context, each, lasting) if each in lasting else each for each in findings]


def _past(context: Context, finding: Finding, lasting: Sequence[Finding]) -> Finding:
    training = context.training_at(finding.start_t_s, finding.gpu)
    later = _last_after(context, training, finding.gpu)
    if training is None or later is None or _still_there(context, later, finding, lasting):
        return finding
    changed = _changed(finding.cause_name, training, later)
    if not changed:
        return finding
    number = context.trainings.index(later) + 1
    since = Evidence("over in training", number, "", key=PAST_KEY)
    text = f"In {context.which_training(training)} {_waited(finding, training)}. Training {number} {changed}"
    return replace(
        finding,
        severity="info",
        summary=text.replace(GPUS, "the GPU" if len(training.gpus) == 1 else gpu_words(finding.gpu or 0)),
        of_gpus=text,
        evidence=(*finding.evidence, since),
        advice=(),
    )


def _waited(finding: Finding, training: Training) -> str:
    """Return for how long a GPU waited in a training, as far as that is known, and why."""
    busy_pct, why = finding.number(STEADY_KEY), finding.cause.explanation if finding.cause else ""
    if busy_pct is None:
        return f"{GPUS} waited: {why}"
    waited_s = (1 - busy_pct / 100) * length_s(training.train_spans)
    return f"{GPUS} waited about {about_length(waited_s)}: {why}"


def _last_after(context: Context, training: Training | None, gpu: int | None) -> Training | None:
    """Return the last training on a GPU after another one, if it was long enough to show what held it back."""
    if training is None or gpu is None:
        return None
    later = [each for each in context.trainings if each.span[0] >= training.span[1] and gpu in each.gpus]
    last = later[-1] if later else None
    judged = last is not None and context.signals.of_training(gpu, last) is not None
    return last if last is not None and judged and length_s(last.train_spans) >= LEVEL_AT_LEAST_S else None


def _still_there(context: Context, later: Training, finding: Finding, lasting: Sequence[Finding]) -> bool:
    same = (each for each in lasting if each.cause_name == finding.cause_name and each.gpu == finding.gpu)
    return any(context.training_at(each.start_t_s, each.gpu) is later for each in same)


def _changed(cause: str, before: Training, later: Training) -> str:
    """Return what a later training has of that which its cause is about, and the one before had not; else nothing."""
    names = OF_LOADER if CAUSES[cause].is_input else OF_STEPS if cause == LAUNCH_BOUND else ()
    for name in names:
        if _differs(name, before, later):
            return f"has {name}={_value(name, later)}"
    images = OF_IMAGES if CAUSES[cause].is_input else {}
    return next(
        (text.format(_value(name, later)) for name, text in images.items() if _differs(name, before, later)), ""
    )


def _differs(name: str, before: Training, later: Training) -> bool:
    values = {_value(name, each) for each in (before, later)}
    return len(values) == 2 and None not in values


def _value(name: str, training: Training) -> str | None:
    """Return what a training had, None where that is not known."""
    known = [each[name] for each in (training.settings, training.args) if name in each]
    value = next((each for each in known if each is not None), None)
    if name == "cache" and known:
        return str(value or False)
    return None if value is None else str(value)
