"""What two runs were set up with: whether they can be compared at all, and what of a change that may explain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal

from gpu_report.analyse.compare import thresholds as th
from gpu_report.analyse.compare.samples import RunSample
from gpu_report.analyse.signals.host.filesystems import mount_of
from gpu_report.analyse.timeline.trainings import whole
from gpu_report.analyse.timeseries.intervals import union
from gpu_report.model import WELL_COVERED, Analysis, Difference, Gpu, Recording

Value = str | float | int | None

# Arguments that say where a run lies, or whose value in effect is compared instead.
NOT_COMPARED = frozenset({"project", "name", "save_dir", "exist_ok", "device", "model", "imgsz", "resume", "verbose"})
IN_EFFECT = ("batch", "workers", "cache")  # arguments that YOLO may replace: what it told is compared
OFF = "off"
CPU = "cpu"  # of the argument `device`
PIXELS = "pixels of an image"
LONGEST = 120  # characters of a value: a list of classes or a path is cut


@dataclass(frozen=True)
class Fingerprint:
    """What a run was set up with, by the names that people know; None is not known.

    `hard` must be the same for a comparison to mean anything, `arguments` are those of the training, `soft` is the
    rest. `parameters` is the model's size, by which models of different names may be the same; `images` are an epoch's.
    One `of_calls` is of a run that calls models, which no training is compared with.
    """

    hard: Mapping[str, Value]
    arguments: Mapping[str, Value]
    soft: Mapping[str, Value]
    parameters: int | None = None
    images: int | None = None
    of_calls: bool = False


def fingerprint(training: RunSample) -> Fingerprint:
    """Return the fingerprint of a run."""
    settings, args = _settings(training), _args(training)
    said: Mapping[str, object] = {**args, **{name: value for name, value in settings.items() if value is not None}}
    used = [summary.gpu for summary in training.analysis.gpus if summary.used]
    is_on_cpu = not used and str(said.get("device", "")).startswith(CPU)
    return Fingerprint(
        hard={
            "GPU model": "none" if is_on_cpu else gpu_names(used),
            "GPUs used": 0 if is_on_cpu else len(used) or None,
            "model": _model(args.get("model", settings.get("model"))),
            "imgsz": text_of(said.get("imgsz")),
            "training images": whole(settings.get("images")) or None,
        },
        arguments={
            **{name: text_of(value) for name, value in sorted(args.items()) if name not in {*NOT_COMPARED, *IN_EFFECT}},
            "batch": text_of(said.get("batch")),
            "workers": text_of(said.get("workers")),
            "cache": _cache(settings if "cache" in settings else args),
        },
        soft=_soft(training, used, settings),
        parameters=whole(settings.get("parameters")) or None,
        images=whole(settings.get("images")) or None,
    )


def differences(baseline: Fingerprint, run: Fingerprint) -> tuple[Difference, ...]:
    """Return what is not the same, hard ones first; what neither knows is reported where it would have decided."""
    found = [*_hard(baseline, run), *_unlike(baseline.arguments, run.arguments, "argument", both=True)]
    return (*found, *_unlike(baseline.soft, run.soft, "soft"))


def slug(known: Fingerprint) -> str:
    """Return the hard part of a fingerprint as the name of a folder."""
    gpus, count, model, imgsz, images = known.hard.values()
    what = "calls" if known.of_calls else f"{images or 'unknown'}-images"
    words = [f"{gpus or 'gpu'}-x{count or 0}", model or "model", f"{imgsz or 0}px", what]
    text = "-".join(str(word) for word in words)
    return "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in text).strip(".-") or "unknown"


def _hard(baseline: Fingerprint, run: Fingerprint) -> list[Difference]:
    found = []
    for name, before in baseline.hard.items():
        after = run.hard[name]
        same = _same(name, before, after, (baseline.parameters, run.parameters))
        if before is None or after is None or before != after:
            found.append(Difference(name, _shown(before), _shown(after), "hard" if same is False else "soft"))
    return sorted(found, key=lambda difference: difference.kind != "hard")


def _same(name: str, before: Value, after: Value, parameters: tuple[int | None, int | None]) -> bool | None:
    """Tell whether a hard trait is the same as far as a comparison is concerned, None where that is not known.

    Weights of the same size are the same work whatever their file is called; data sets within IMAGES_SHARE are, too.
    """
    if name == "model" and parameters[0] and parameters[1]:
        return abs(parameters[1] - parameters[0]) <= th.PARAMETERS_SHARE * parameters[0]
    if before is None or after is None:
        return None
    if name == "training images" and isinstance(before, int) and isinstance(after, int):
        return abs(after - before) <= th.IMAGES_SHARE * before
    if name == PIXELS and isinstance(before, int) and isinstance(after, int):
        return abs(after - before) <= th.PIXELS_SHARE * before
    return before == after


def _unlike(
    baseline: Mapping[str, Value],
    run: Mapping[str, Value],
    kind: Literal["argument", "soft"],
    *,
    both: bool = False,
) -> list[Difference]:
    """Return the traits that differ; with `both` only those that both sides have: versions have other arguments."""
    names = [name for name in dict.fromkeys((*baseline, *run)) if not both or (name in baseline and name in run)]
    pairs = [(name, baseline.get(name), run.get(name)) for name in names]
    return [Difference(name, _shown(a), _shown(b), kind) for name, a, b in pairs if a != b]


# --- one run ---------------------------------------------------------------------------------------------------


def _settings(training: RunSample) -> Mapping[str, object]:
    """Return what the training's rank 0 told of what was in effect, empty where it told nothing."""
    settings = [p for p in training.analysis.run.inside if p.rank == 0 and p.task == "train"]
    mine = [p.settings for p in settings if p.run in {training.number, None}]
    return mine[-1] if mine else {}


def _args(training: RunSample) -> Mapping[str, object]:
    return next((yolo.args for yolo in training.analysis.run.yolo_runs if yolo.number == training.number), {})


def _soft(training: RunSample, used: Sequence[Gpu], settings: Mapping[str, object]) -> dict[str, Value]:
    analysis = training.analysis
    sources = {epoch.source for epoch in training.epochs}
    return {
        **machine_traits(analysis, used),
        "processes of the training": whole(settings.get("world_size")) or None,
        "amp in effect": text_of(settings.get("amp")),
        "folder of the images": text_of(settings.get("data_folder")),
        "disk of the images": _disk(settings.get("data_folder"), analysis.run.recording),
        "epochs seen by": ", ".join(sorted(sources)) or None,
    }


def machine_traits(analysis: Analysis, used: Sequence[Gpu]) -> dict[str, Value]:
    """Return what a machine and its software are, and how well they were recorded."""
    recording = analysis.run.recording
    limits = {gpu.power_limit_w for gpu in used if gpu.power_limit_w is not None}
    return {
        "power limit": " and ".join(f"{limit:.0f} W" for limit in sorted(limits)) or None,
        "driver": recording.driver,
        "CUDA": recording.cuda,
        "torch": recording.torch,
        "ultralytics": recording.ultralytics,
        "host": recording.host,
        "cores": recording.cores,
        "other processes on the GPUs": _other_processes(analysis),
        "recording": _coverage(analysis),
    }


def _disk(folder: object, recording: Recording) -> str | None:
    """Return what the training images lie on, None where that was not recorded."""
    mount = mount_of(folder, recording.mounts) if isinstance(folder, str) else None
    if mount is None:
        return None
    kind = "" if mount.rotational is None else ", rotational" if mount.rotational else ", solid state"
    return f"{mount.type} on {mount.device or mount.source}{kind}"


def _other_processes(analysis: Analysis) -> str:
    """Return for how much of the time other processes worked on the GPUs, to the tenth: a fingerprint is no clock."""
    stays = union([stay.span for f in analysis.findings if f.rule == "other-process" for stay in f.each])
    seconds = sum(end - start for start, end in stays)
    share = seconds / analysis.run.duration_s if analysis.run.duration_s > 0 else 0.0
    return "none" if share < th.SHARED_GPU_SHARE else f"about {max(round(10 * share), 1) * 10} % of the time"


def _coverage(analysis: Analysis) -> str:
    return "complete" if analysis.coverage >= WELL_COVERED else f"{100 * analysis.coverage:.0f} % of the time"


def gpu_names(used: Sequence[Gpu]) -> str | None:
    """Return the names of some GPUs, each once; None where none is known."""
    names = sorted({gpu.name for gpu in used if gpu.name})
    return ", ".join(names) or None


def _model(value: object) -> str | None:
    """Return a model's name without folder and ending: yolo26n.pt and yolo26n.yaml are the same work.

    None for weights that a training wrote: last.pt may be of any model.
    """
    name = PurePath((text_of(value) or "").replace("\\", "/")).stem
    return None if name in {"", "last", "best"} else name


def _cache(said: Mapping[str, object]) -> str | None:
    if "cache" not in said:
        return None
    text = str(said["cache"])
    return {"None": OFF, "False": OFF, "": OFF, "True": "ram"}.get(text, text)


def text_of(value: object) -> str | None:
    """Return a value as text, None for what is not known."""
    return None if value is None else str(value)


def _shown(value: Value) -> str | None:
    if value is None:
        return None
    text = f"{value:,}" if isinstance(value, int) and value > 9999 else str(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
