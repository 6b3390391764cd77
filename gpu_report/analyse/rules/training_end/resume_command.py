"""How a training that was cut short can go on: from the last epoch whose weights are known to have been saved."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import PurePosixPath

from gpu_report.analyse.context import Context
from gpu_report.analyse.timeline.thresholds import ENDED_TOGETHER_S
from gpu_report.analyse.timeline.trainings import Training, whole
from gpu_report.model import Advice, Finding, Severity

CUT_SHORT = "run-ended"
TASKS = frozenset({"detect", "segment", "classify", "pose", "obb"})
TAKEN = frozenset({"batch", "imgsz"})  # of a resumed training ultralytics takes these anew, to need less memory
NAMES_FOLDER = 3  # parts of a path to weights that names their training's folder: train/weights/last.pt
CALLED = "YOLO("  # how the command of a script begins
# What stands between backticks in our sentences, and is pasted into a shell, must not end there or begin a new line.
_NOT_TYPED = re.compile(r"[`\x00-\x1f\x7f]")
_NOT_QUOTED = re.compile(r"[\"\\]")  # would end a string of Python, or begin an escape
_LITERAL = re.compile(r"\d+(?:\.\d+)?|True|False|None")


def with_resume_command(context: Context, findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings, those of a training that was cut short with the command that resumes it, where it is known.

    ultralytics writes weights/last.pt after each epoch, and takes all arguments from it.
    """
    leaked = any(each.ran_out for each in findings)  # what needs less memory would only end later
    return [_with_resume_command(context, each, leaked=leaked) if each.rule == CUT_SHORT else each for each in findings]


def _with_resume_command(context: Context, finding: Finding, *, leaked: bool) -> Finding:
    if leaked:
        finding = replace(finding, advice=tuple(each for each in finding.advice if each.argument not in TAKEN))
    training = context.training_at(finding.end_t_s)
    if training is None or finding.end_t_s > training.span[1] + ENDED_TOGETHER_S:
        return finding
    if _in_final_evaluation(training):
        return replace(finding, advice=(*finding.advice, *_of_final_evaluation(context, training)))
    later = went_on(context, training)
    if later is not None:
        return _as_continued(context, finding, training, later)
    if _is_written_over(context, training):
        return finding
    epoch = _saved_epoch(context, training, finding.end_t_s)
    command = _command(context, training, finding.advice)
    if epoch is None or not command:
        return finding
    where = (
        f"in {script}, " if (script := _script(context.run.recording.command)) and command.startswith(CALLED) else ""
    )
    text = f"Resume after epoch {epoch}, the last with saved weights: {where}`{command}`"
    return replace(finding, advice=(*finding.advice, Advice(text, resume=command, resume_after=epoch)))


def went_on(context: Context, training: Training) -> Training | None:
    """Return the later training of the recording that went on from a training's weights; None without one.

    It resumed it, or trained on in the same folder, or took a file of its weights as the model.
    """
    return next((each for each in _after(context, training) if _continues(context, each, training)), None)


def _after(context: Context, training: Training) -> list[Training]:
    return [each for each in context.trainings if each.span[0] >= training.span[1]]


def _continues(context: Context, later: Training, training: Training) -> bool:
    is_on = later.settings.get("resumed") is not False and _in_same_folder(context, later, training)
    return is_on or _took_weights(later, _folder(context, training))


def _is_written_over(context: Context, training: Training) -> bool:
    """Tell whether a later training began anew in the same folder (`exist_ok=True`): what lies there is its own."""
    return any(_in_same_folder(context, later, training) for later in _after(context, training))


def _in_same_folder(context: Context, later: Training, training: Training) -> bool:
    folders = [each.settings.get("save_dir") or _folder(context, each) for each in (later, training)]
    return bool(folders[0]) and folders[0] == folders[1]


def _took_weights(later: Training, folder: str) -> bool:
    """Tell whether a training's model lies among the weights in a folder, empty where that is not known.

    A path that does not begin at the root counts where it names the folder itself.
    """
    model = later.args.get("model")
    named = PurePosixPath(model) if isinstance(model, str) else PurePosixPath()
    weights = PurePosixPath(folder, "weights", named.name)
    return bool(folder) and named.parts == weights.parts[-len(named.parts) :] and len(named.parts) >= NAMES_FOLDER


def _as_continued(context: Context, finding: Finding, training: Training, later: Training) -> Finding:
    """Return an end that a later training made up for: what made it is worth a look, and nobody is to resume it."""
    where = "" if finding.epoch is None or finding.names_epoch else f", in epoch {finding.epoch}"
    number = context.trainings.index(later) + 1
    then = f" ({context.which_training(training)}); training {number} continued from its weights"
    if later.settings.get("resumed") is True and _in_same_folder(context, later, training):
        then = ", and was resumed"
    severity: Severity = "info" if finding.severity == "info" else "warning"
    summary = f"{finding.summary}{where}{then}"
    return replace(finding, severity=severity, summary=summary, names_epoch=True, was_resumed=True)


def _in_final_evaluation(training: Training) -> bool:
    phases = training.rank_group.main.phases if training.rank_group else ()
    return len(phases) > 0 and phases[-1].name == "final evaluation"


def _of_final_evaluation(context: Context, training: Training) -> tuple[Advice, ...]:
    """Return that nothing of the training is lost, and what makes up for the evaluation that was cut short."""
    folder = _folder(context, training)
    if not folder or training.args.get("save") is False:  # of what was saved then nothing is known
        return ()
    evaluate = f"yolo {_task(training)} val {shlex.quote(f'model={folder}/weights/best.pt')}"
    return (Advice(f"Nothing is to be trained again, for all epochs are saved. Evaluate them: `{evaluate}`"),)


def _folder(context: Context, training: Training) -> str:
    """Return the folder of a training, empty where nobody recorded it, or it cannot be typed."""
    folder = next((yolo.path for yolo in context.run.yolo_runs if yolo.number == training.number), None) or ""
    return "" if _NOT_TYPED.search(folder) else folder


def _task(training: Training) -> str:
    task = training.args.get("task")
    return task if isinstance(task, str) and task in TASKS else "detect"


def _saved_epoch(context: Context, training: Training, end_s: float) -> int | None:
    """Return the last epoch whose checkpoint was seen to be written before an end, or was reported to be over by then.

    None where training was over: it was the last one that was asked for, or the final evaluation had begun, before
    which ultralytics takes from last.pt what a resume needs (`strip_optimizer`). An epoch that is begun anew after its
    validation was not saved: its loss was NaN.
    """
    rows = [row for row in context.run.epoch_rows if row.run == training.number]
    saved = {row.epoch for row in rows if row.saved_t_s is not None and row.saved_t_s <= end_s}
    phases = training.rank_group.main.phases if training.rank_group else ()
    reported = [phase for phase, after in pairwise(phases) if phase.name == "checkpoint" and phase.epoch != after.epoch]
    saved |= {phase.epoch for phase in reported if phase.epoch is not None}
    last = max(saved, default=None)
    asked = whole(training.settings.get("epochs")) or whole(training.args.get("epochs"))
    is_over = last == asked or _in_final_evaluation(training)
    return None if training.args.get("save") is False or is_over else last


def _command(context: Context, training: Training, advice: Sequence[Advice]) -> str:
    """Return what is typed to resume a training, with what is to be changed; empty where nobody recorded its folder."""
    folder = _folder(context, training)
    if not folder:
        return ""
    weights = f"{folder}/weights/last.pt"
    command = f"yolo {_task(training)} train resume {shlex.quote(f'model={weights}')}"
    if _script(context.run.recording.command) and not _NOT_QUOTED.search(folder):
        command = f'{CALLED}"{weights}").train(resume=True)'
    for each in advice:
        if each.argument in TAKEN and each.to_value:
            command = resumed_with(command, each.argument, each.to_value)
    return command


def resumed_with(command: str, argument: str, value: str) -> str:
    """Return what resumes a training, with an argument more: as YOLO's command takes it, or as Python does."""
    if not command.startswith(CALLED):
        return f"{command} {argument}={value}"
    literal = value if _LITERAL.fullmatch(value) else f'"{value}"'
    return f"{command[:-1]}, {argument}={literal})"


def _script(command: Sequence[str]) -> str:
    """Return the name of the Python file that was recorded; empty where it was YOLO's command, or is not known.

    What the file does besides, such as callbacks or a trainer of its own, YOLO's command would leave out.
    """
    names = (word.replace("\\", "/").rpartition("/")[2] for word in command)
    first = next((name for name in names if name == "yolo" or name.endswith(".py")), "")
    return "" if first == "yolo" or _NOT_TYPED.search(first) else first
