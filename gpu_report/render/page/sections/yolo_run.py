"""The YOLO runs: where they lay, how well their phases are known, and their arguments, the changed ones first."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import PurePath

from gpu_report.model import FROM_CALLBACKS, FROM_TENSORBOARD, Analysis, InsideRun, YoloRun
from gpu_report.render.formatting import clean, duration, known, number
from gpu_report.render.page.sections.yolo_defaults import DEFAULTS, SAME_SINCE, is_changed
from gpu_report.render.page.views.report import YoloView
from gpu_report.render.page.views.tables import Fact
from gpu_report.wording import counted

_ANCHORS = {
    "recorded": "The end of each epoch was recorded when it came.",
    "tensorboard": "Epochs were placed by the times of YOLO's TensorBoard events.",
    "file-time": "Epochs were placed by the time of results.csv.",
    "train-start": "Epochs were placed by the start of training that was given.",
    "fitted": "Epochs were fitted to the samples.",
    "none": "Epochs could not be placed in time.",
    "no-epoch": "No epoch came to its end.",
}
# Arguments whose value in effect YOLO tells, and may have changed: workers are capped, a batch halved, auto decided.
_IN_EFFECT = (
    *("batch", "workers", "cache", "amp", "optimizer", "epochs", "imgsz", "close_mosaic", "patience"),
    *("compile", "val", "plots", "time"),
)
# What only a running training knows.
_SETTINGS = {
    "images": "training images",
    "batches": "batches an epoch",
    "accumulate": "batches a step (accumulate)",
    "world_size": "GPUs (world size)",
    "parameters": "parameters",
    "gflops": "GFLOPs",
    "device": "device",
}


def yolo(analysis: Analysis) -> tuple[YoloView, ...]:
    """Return each YOLO run with its arguments."""
    runs = analysis.run.yolo_runs
    reported = {
        process.run: process for process in analysis.run.inside if process.rank == 0 and process.task == "train"
    }
    return tuple(_yolo(run, reported.get(run.number), several=len(runs) > 1) for run in runs)


def set_up(analysis: Analysis) -> tuple[str, ...]:
    """Return model, batch, workers and image size in effect, of a recording with one YOLO run; empty of others."""
    if len(analysis.run.yolo_runs) != 1:
        return ()
    (run,) = analysis.run.yolo_runs
    reported = (each.settings for each in analysis.run.inside if each.rank == 0 and each.run == run.number)
    told = {**run.args, **{name: value for name, value in next(reported, {}).items() if value is not None}}
    model = PurePath(str(told.get("model") or "").replace("\\", "/")).stem
    words: dict[str, Callable[[int], str]] = {
        "batch": "batch {}".format,
        "workers": partial(counted, one="data-loader worker"),
        "imgsz": "{} px".format,
    }
    numbers = [in_words(value) for name, in_words in words.items() if isinstance(value := told.get(name), int)]
    return tuple(map(clean, filter(None, (model, *numbers))))


def phases_note(analysis: Analysis) -> str:
    """Return in a sentence or two where the phases are known from, empty where there are none."""
    sources = {phase.source for phase in analysis.phases if phase.name not in {"idle", "startup"}}
    if not sources:
        return ""
    if sources == {FROM_CALLBACKS}:
        return "Phases as reported by YOLO's callbacks."
    if FROM_TENSORBOARD in sources:
        return "Phases are by the times of YOLO's TensorBoard events: the ends of epochs, and of training within them."
    seen = "estimated from outside: the ends of epochs from the rows of results.csv"
    known_to_s = [phase.uncertainty_s for phase in analysis.phases if phase.uncertainty_s is not None]
    if known_to_s:
        seen += f", the phases within them from utilisation and power, to within {max(known_to_s):.1f} s"
    if FROM_CALLBACKS in sources:
        return f"Phases as reported by YOLO's callbacks; in runs without callbacks they are {seen}."
    return f"Phases are {seen}."


def _yolo(run: YoloRun, reported: InsideRun | None, *, several: bool) -> YoloView:
    placement = _ANCHORS[run.anchor]
    if known(run.uncertainty_s) is not None:
        placement += f" Uncertain by {duration(run.uncertainty_s)}."
    settings = reported.settings if reported else {}
    first = [name for name, value in run.args.items() if is_changed(name, value) or _differs(name, value, settings)]
    rest = [name for name in run.args if name not in first]
    return YoloView(
        title=f"YOLO run {run.number}" if several else "YOLO arguments",
        path=run.path or "",
        placement=f"{placement} {run.note}".strip(),
        changed=tuple(_argument(name, run.args[name], settings) for name in first),
        changed_note=f"Defaults as in ultralytics since {SAME_SINCE}." if first else "",
        reported=tuple(
            Fact(words, _setting(settings[name])) for name, words in _SETTINGS.items() if settings.get(name) is not None
        ),
        arguments=tuple(_argument(name, run.args[name], settings) for name in rest),
    )


def _differs(name: str, value: object, settings: Mapping[str, object]) -> bool:
    """Tell whether an argument is another in effect than was asked for; an unknown one is not."""
    reported = settings.get(name)
    return name in _IN_EFFECT and reported is not None and _value(reported).lower() != _value(value).lower()


def _argument(name: str, value: object, settings: Mapping[str, object]) -> Fact:
    notes = []
    if _differs(name, value, settings):
        notes.append(f"in effect {_value(settings[name])}")
    if is_changed(name, value) and DEFAULTS[name] is not None:
        notes.append(f"default {_value(DEFAULTS[name])}")
    return Fact(name, _value(value), ", ".join(notes))


def _value(value: object) -> str:
    """Return a value as args.yaml has it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return clean(str(value)) or "''"


def _setting(value: object) -> str:
    """Return a value for people: whole numbers with separators."""
    return number(value) if isinstance(value, int) and not isinstance(value, bool) else _value(value)
