"""A training that was cut short is told how it can go on, where the recording knows from where."""

import shlex
from dataclasses import replace

import pytest
from support.runs import make_run, readings

from gpu_report.analyse import analyse
from gpu_report.analyse.rules.training_end.resume_command import resumed_with
from gpu_report.model import InsideEpoch, InsideRun, Phase, RecordedEvent, YoloRun
from gpu_report.render.redaction.redact import redact

KILL = RecordedEvent(110.0, "command_ended", None, {"signal": "SIGTERM"})
FOLDER = "/home/user/runs/a"


def told(*, ended=None, last="train", epochs=30):
    """Return a training that saved epochs 1 and 2, and was in epoch 3 as it ended."""
    phases = []
    for n, start in ((1, 10.0), (2, 50.0)):
        phases += [Phase("train", n, start, start + 30, "inside"), Phase("validation", n, start + 30, start + 35, "x")]
        phases.append(Phase("checkpoint", n, start + 35, start + 40, "inside"))
    phases.append(Phase(last, 3, 90.0, 110.0, "inside"))
    done = tuple(InsideEpoch(n, 1, s, s + 30.0, 100, 10, 0.0, 0.0, 0.0) for n, s in ((1, 10.0), (2, 50.0)))
    return InsideRun(1, 0, 41, "train", {"epochs": epochs}, tuple(phases), done, ended)


def begun_anew():
    """Return that training with its third epoch over, not saved, for its loss was NaN, and begun once more."""
    training = told()
    again = [("validation", 110.0, 112.0), ("checkpoint", 112.0, 113.0), ("train", 113.0, 114.0)]
    return replace(training, phases=(*training.phases, *(Phase(name, 3, a, b, "inside") for name, a, b in again)))


def cut_short(*inside, path=FOLDER, saved=(None, None), args=None, rows=((1, 45.0), (2, 85.0)), events=(KILL,)):
    run = make_run(readings((0, 10), (90, 110)), rows=rows, events=events)
    placed = [replace(row, saved_t_s=t_s) for row, t_s in zip(run.epoch_rows, saved, strict=False)]
    yolo = YoloRun(1, path, {"epochs": 30, "task": "detect", **(args or {})}, "recorded", None)
    return replace(run, inside=inside, epoch_rows=tuple(placed), yolo_runs=(yolo,))


def resuming(run):
    """Return the advice to resume of each finding that a training was cut short."""
    found = [finding for finding in analyse(run).findings if finding.rule == "run-ended"]
    return [advice.text for finding in found for advice in finding.advice if advice.resume]


def go_on(epoch, task="detect", model=f"model={FOLDER}/weights/last.pt"):
    return [f"Resume after epoch {epoch}, the last with saved weights: `yolo {task} train resume {model}`"]


@pytest.mark.parametrize(
    ("run", "advice"),
    [
        (cut_short(told()), go_on(2)),
        (cut_short(saved=(46.0, 86.0)), go_on(2)),  # by the files' times
        (cut_short(saved=(46.0, None)), go_on(1)),
        (cut_short(told(last="checkpoint")), go_on(2)),  # the third was not whole yet
        (cut_short(begun_anew()), go_on(2)),
        (cut_short(told(), args={"task": "segment"}), go_on(2, "segment")),
        (cut_short(told(), args={"task": "rm -rf /"}), go_on(2)),
        (cut_short(told(), args={"task": []}), go_on(2)),
        (cut_short(told(), path="/my runs/$(a)"), go_on(2, model="'model=/my runs/$(a)/weights/last.pt'")),
    ],
)
def test_the_last_saved_epoch_and_the_command_are_named(run, advice):
    assert resuming(run) == advice


@pytest.mark.parametrize(
    ("command", "folder", "said"),
    [
        (
            ("python3", "src/train.py", "4"),
            FOLDER,
            f'in train.py, `YOLO("{FOLDER}/weights/last.pt").train(resume=True)`',
        ),
        (
            ("torchrun", "--nproc", "2", "train.py", "yolo"),
            "a b",
            'in train.py, `YOLO("a b/weights/last.pt").train(resume=True)`',
        ),
        (("/usr/bin/yolo", "train", "data=a.py"), "a", "`yolo detect train resume model=a/weights/last.pt`"),
        (("bash", "run.sh"), "a", "`yolo detect train resume model=a/weights/last.pt`"),
        (("python", "train.py"), 'a"b', "`yolo detect train resume 'model=a\"b/weights/last.pt'`"),
        (("python", "a`b.py"), "a", "`yolo detect train resume model=a/weights/last.pt`"),
    ],
)
def test_a_script_is_resumed_in_python(command, folder, said):
    run = cut_short(told(), path=folder)
    run = replace(run, recording=replace(run.recording, command=command))
    assert resuming(run) == [f"Resume after epoch 2, the last with saved weights: {said}"]


@pytest.mark.parametrize(
    ("argument", "value", "called"),
    [("batch", "32", "batch=32"), ("cache", "ram", 'cache="ram"'), ("cache", "False", "cache=False")],
)
def test_what_is_set_is_a_literal_of_python(argument, value, called):
    assert resumed_with("yolo train resume model=a", argument, value) == f"yolo train resume model=a {argument}={value}"
    assert resumed_with('YOLO("a").train(resume=True)', argument, value) == f'YOLO("a").train(resume=True, {called})'


@pytest.mark.parametrize(
    "run",
    [
        cut_short(),  # nobody saw weights being written
        cut_short(told(), path=None),
        cut_short(told(), path="/a`b"),
        cut_short(told(), path="/a\nb"),
        cut_short(told(), args={"save": False}),
        cut_short(told(epochs=2)),  # it had trained all that was asked for
        cut_short(told(ended="finished")),
        cut_short(told(ended="finished"), events=()),
    ],
)
def test_nothing_is_said_where_it_is_not_known_or_there_is_nothing_to_resume(run):
    assert resuming(run) == []


def test_a_batch_that_no_arguments_are_known_of_is_not_named():
    training = told(ended="exception")
    oom = replace(training, error="OutOfMemoryError", settings={**training.settings, "batch": 64})
    (found,) = [finding for finding in analyse(cut_short(oom)).findings if finding.rule == "run-ended"]
    assert [each.argument for each in found.advice] == [None, None]


@pytest.mark.parametrize(
    ("settings", "advice", "change"),
    [
        ({"batch": 64}, "Set `batch=32` (now 64), or lower `imgsz`", " batch=32"),
        ({"batch": 6, "world_size": 2}, "Set `batch=2` (now 6), or lower `imgsz`", " batch=2"),
        ({"batch": 1}, "Lower `batch` or `imgsz`", ""),
        ({"batch": -1}, "Lower `batch` or `imgsz`", ""),
        ({"batch": "64; reboot"}, "Lower `batch` or `imgsz`", ""),
        ({}, "Lower `batch` or `imgsz`", ""),
    ],
)
def test_out_of_gpu_memory_is_resumed_with_half_the_batch(settings, advice, change):
    training = told(ended="exception")
    oom = replace(training, error="OutOfMemoryError", settings={**training.settings, **settings})
    (found,) = [
        finding for finding in analyse(cut_short(oom, args={"batch": 64})).findings if finding.rule == "run-ended"
    ]
    assert found.advice[0].short == advice
    (resume,) = [each.resume for each in found.advice if each.resume]
    assert resume == f"yolo detect train resume model={FOLDER}/weights/last.pt{change}"


@pytest.mark.parametrize(
    "folder", ["/home/quagga/okapi/run", "/srv/okapi of quagga/a run", "/srv/it's okapi/run", "okapi"]
)
def test_the_folder_is_redacted_as_it_is_elsewhere(folder):
    run = cut_short(told(), path=folder)
    hidden = redact(analyse(run))
    texts = [advice.text for finding in hidden.findings for advice in finding.advice]
    assert any("resume" in text for text in texts)
    assert not any(secret in text for secret in ("okapi", "quagga") for text in texts)


def test_the_command_is_one_word_for_each_argument():
    (text,) = resuming(cut_short(told(), path='/it\'s; a "run"'))
    assert shlex.split(text.split("`")[1])[-1] == 'model=/it\'s; a "run"/weights/last.pt'


def test_a_final_evaluation_that_was_cut_short_leaves_nothing_to_be_trained_again():
    run = cut_short(told(last="final evaluation"), saved=(46.0, 86.0))
    analysis = analyse(run)
    (finding,) = [each for each in analysis.findings if each.rule == "run-ended"]
    assert resuming(run) == []
    assert finding.advice[-1].text.endswith(f"Evaluate them: `yolo detect val model={FOLDER}/weights/best.pt`")
    assert "(in the final evaluation, after all of its epochs)" in analysis.verdict.text


def test_without_saved_weights_nobody_says_that_they_can_be_evaluated():
    run = cut_short(told(last="final evaluation"), args={"save": False})
    (finding,) = [each for each in analyse(run).findings if each.rule == "run-ended"]
    assert not any("best.pt" in advice.text for advice in finding.advice)


def followed(model, path="/home/user/runs/a2"):
    """Return the training that was cut short, and after it one with that model, which finished in its own folder."""
    first = cut_short(replace(told(ended="exception"), error="KeyboardInterrupt"), events=())
    later = Phase("train", 1, 130.0, 170.0, "inside")
    second = InsideRun(2, 0, 42, "train", {"epochs": 1}, (later,), (), "finished")
    yolo = YoloRun(2, path, {"epochs": 1, "model": model}, "recorded", None)
    return replace(first, inside=(*first.inside, second), yolo_runs=(*first.yolo_runs, yolo), duration_s=180.0)


@pytest.mark.parametrize("model", [f"{FOLDER}/weights/last.pt", "runs/a/weights/best.pt"])
def test_weights_that_a_later_training_took_are_not_to_be_resumed(model):
    assert resuming(followed("yolo26n.pt")) == go_on(2)
    assert resuming(followed(model)) == []
    stopped = next(finding for finding in analyse(followed(model)).findings if finding.rule == "run-ended")
    assert (
        stopped.summary == "Stopped by Ctrl-C in epoch 3 of 30 (training 1 of 2); training 2 continued from its weights"
    )


def test_a_training_that_went_on_in_its_folder_is_not_to_be_resumed():
    assert resuming(followed("last.pt")) == go_on(2)  # nobody knows of which training
    assert resuming(followed("last.pt", path=FOLDER)) == []
