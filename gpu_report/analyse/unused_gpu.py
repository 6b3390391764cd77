"""Rule: a GPU that the recording saw did nothing while another one trained."""

from collections.abc import Sequence

import numpy as np

from gpu_report.analyse import thresholds as th
from gpu_report.analyse.context import Context
from gpu_report.analyse.spans import Span
from gpu_report.analyse.stats import weighted_stats
from gpu_report.analyse.torch_devices import known_order
from gpu_report.analyse.track import Track, mean_within
from gpu_report.analyse.training_parts import trainings
from gpu_report.model import Advice, Cause, Evidence, Finding

NOT_OURS = "it did no work; a recording sees every GPU of the machine, also those that the job was not given"
FREE = "nobody else was on it, and nothing kept the training from it"
BY_ORDER = "YOLO's device ids count the GPUs that torch sees, which here are those of the machine in their order"


def unused_gpus(context: Context) -> list[Finding]:
    """Report, in one finding, the GPUs that did nothing while the run trained on others.

    A warning where the training, recorded on its own machine, could have had them; else a note.
    """
    idle, trained = idle_tracks(context), _trained(context)
    if not idle or trained is None:
        return []
    could = all(_could_have_had(context, track) for track in idle)
    return [_finding(context, idle, trained, could=could)]


def idle_tracks(context: Context) -> list[Track]:
    """Return the GPUs that were measured and did nothing, with others that did.

    No MIG device is one of them, since a training uses no two, nor a GPU that is cut into MIG devices.
    """
    used = context.activity.used_gpus
    devices = {gpu.index: gpu.parent_index for gpu in context.run.gpus if gpu.parent_index is not None}
    whole = [t for t in context.tracks if t.gpu not in devices and t.gpu not in devices.values()]
    return [t for t in whole if used and t.gpu not in used and len(t.t_s) and t.mean_pct(0.0, np.inf) < th.UNUSED_PCT]


def _trained(context: Context) -> Span | None:
    """Return from when to when the run trained, None where it did not."""
    found = trainings(context)
    return (found[0].parts[0].start_s, found[-1].end_s) if found else None


def _could_have_had(context: Context, track: Track) -> bool:
    """Tell whether nothing speaks against it that the training might have used a GPU.

    That is known where we started the command, with no CUDA_VISIBLE_DEVICES to restrict it, and where processes were
    recorded and nobody was on the GPU.
    """
    run = context.run
    ours = any(event.kind == "command_started" for event in run.events) and len(run.processes) > 0
    alone = not (run.processes["gpu"] == track.gpu).any()
    failed = any(e.kind == "nvml_error" and e.fields.get("quantity") == "processes" for e in run.events)
    return ours and alone and not failed and run.recording.cuda_visible_devices is None


def _finding(context: Context, idle: list[Track], trained: Span, *, could: bool) -> Finding:
    names, used = _named([track.gpu for track in idle]), _named(sorted(context.activity.used_gpus))
    return Finding(
        id="unused-gpu-1",
        rule="unused-gpu",
        severity="warning" if could else "info",
        gpu=idle[0].gpu if len(idle) == 1 else None,
        start_t_s=trained[0],
        end_t_s=trained[1],
        summary=f"{names} {'was' if len(idle) == 1 else 'were'} free while {used} trained",
        evidence=tuple(fact for track in idle for fact in _facts(track, trained)),
        cause=Cause("unused-gpu", 0.9, FREE) if could else Cause("unused-gpu", 0.5, NOT_OURS),
        advice=_advice(context, idle) if could else (),
    )


def _named(gpus: Sequence[int]) -> str:
    return f"GPU{'s' if len(gpus) > 1 else ''} {', '.join(map(str, gpus))}"


def _facts(track: Track, trained: Span) -> list[Evidence]:
    rows = track.between_rows(*trained)
    power = weighted_stats(track.rows["power_w"].to_numpy(dtype=float)[rows], track.row_hold_s[rows])
    util = track.mean_pct(*trained)
    found = [Evidence(f"utilisation of GPU {track.gpu} meanwhile (mean)", util, "%")] if np.isfinite(util) else []
    return found + ([Evidence(f"power of GPU {track.gpu} meanwhile (mean)", power.mean, "W")] if power else [])


def _advice(context: Context, idle: list[Track]) -> tuple[Advice, ...]:
    """Return the device argument that would have used all GPUs, where the run has it and they did not wait for data."""
    args = context.run.yolo_runs[-1].args if context.run.yolo_runs else {}
    if "device" not in args or _waits(context):
        return ()
    text = "Train on the free GPUs, too: the batch is shared out among them and must be a multiple of their number"
    if not known_order(context.run):
        return (Advice(f"{text}; name them by torch's numbers, which may differ from those of this report"),)
    if not _shares_out(args.get("batch"), len(context.activity.used_gpus) + len(idle)):
        return (Advice(f"{text}, which `batch={args['batch']}` is not: name both. {BY_ORDER}"),)
    every = ",".join(str(gpu) for gpu in sorted({*context.activity.used_gpus, *(track.gpu for track in idle)}))
    now = str(args["device"]) if args["device"] not in (None, "", []) else None
    return (Advice(f"{text}. {BY_ORDER}", "device", now, every),)


def _shares_out(batch: object, gpus: int) -> bool:
    """Tell whether a batch can be shared out among GPUs: ultralytics refuses AutoBatch (-1) and fractions on several.

    One that is not known is not objected to.
    """
    return batch is None or (isinstance(batch, int) and batch > 0 and batch % gpus == 0)


def _waits(context: Context) -> bool:
    """Tell whether a GPU that trained mostly waited: more of them would wait, too."""
    tracks = [track for track in context.tracks if track.gpu in context.activity.used_gpus]
    means = [mean_within(track, context.scenes.calm) for track in tracks]
    return any(seconds >= th.STARVED_AT_LEAST_S and mean < th.ROOM_PCT for mean, seconds in means)
