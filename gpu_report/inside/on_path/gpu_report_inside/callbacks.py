"""The functions that ultralytics calls. They stay plain and at module level: DDP pickles them by their names.

None of them raises, and none keeps a trainer alive: what is remembered is a weak reference or its id.
"""

from __future__ import annotations

import os
import sys
from time import monotonic
from typing import Any

from . import DEFAULT_CALLBACKS, facts
from .calls import CLOCKS, KNOWN, Prediction
from .lines import LINES, guarded, report
from .profiler.windows import WINDOWS
from .runs import CURRENT, ReportedRun
from .training import BATCHES, ReportedTraining
from .validation import VALIDATION

MODULE = "gpu_report_inside.callbacks"  # how the name of this module ends, under which it is imported
note_start, note_end = BATCHES.starts.append, BATCHES.ends.append  # looked up once: at each batch, caches are cold


def _training_of(trainer: Any) -> ReportedTraining:
    """Return the training of this trainer, begun now where it has not been heard of."""
    run = CURRENT.run
    return run if isinstance(run, ReportedTraining) and run.is_of(trainer) else _begin_training(trainer)


def _begin_training(trainer: Any) -> ReportedTraining:
    _silence_other_copy()
    _end_earlier()
    run = ReportedTraining(trainer)
    CURRENT.begin(run)
    return run


def _silence_other_copy() -> None:
    """Take from ultralytics' defaults the callbacks of this module under its other name: one of us speaks in a process.

    A rank has both where its model's callbacks were attached and pickled, and the hook added those of its own.
    """
    base = sys.modules.get(DEFAULT_CALLBACKS)
    for functions in getattr(base, "default_callbacks", {}).values():
        functions[:] = [each for each in functions if not _is_of_other_copy(each)]


def _is_of_other_copy(function: Any) -> bool:
    module = str(getattr(function, "__module__", ""))
    return module.endswith(MODULE) and module != __name__


def _end_earlier() -> None:
    """End what the user's code has left without a word; what a parent process does is not ours to end."""
    if CURRENT.watched_pid not in {0, os.getpid()}:
        CURRENT.run = None
        return
    WINDOWS.abandon()
    VALIDATION.abandon()
    if isinstance(CURRENT.run, Prediction):
        CURRENT.run.close()
    elif isinstance(CURRENT.run, ReportedTraining):
        CURRENT.run.end_silently()
        CURRENT.end("exception", CURRENT.run.abandoned())


@guarded
def on_pretrain_routine_start(trainer: Any) -> None:
    """Begin, always anew: a trainer of rank 0 is being made, and each once."""
    _begin_training(trainer).watch_startup(trainer)


@guarded
def on_pretrain_routine_end(trainer: Any) -> None:
    """Leave startup's parts: model, loaders and optimizer stand."""
    _training_of(trainer).set_up(trainer)


@guarded
def on_train_start(trainer: Any) -> None:
    """Tell how it will train, now that all is known."""
    _training_of(trainer).settings(trainer)
    if facts.rank() == 0:
        WINDOWS.follow()
    _call_last(trainer, "on_train_epoch_start", data_wait_begins)


@guarded
def on_train_epoch_start(trainer: Any) -> None:
    """Begin an epoch."""
    WINDOWS.abandon()
    VALIDATION.abandon()
    _training_of(trainer).epoch_begins(trainer)
    _call_last(trainer, "on_train_batch_end", on_train_batch_end)


def data_wait_begins(trainer: Any) -> None:  # noqa: ARG001 - the callback's signature
    """Note that an epoch's first batch is asked for next: the user's callbacks of its beginning are done."""
    try:
        BATCHES.mark = monotonic()
    except Exception as error:  # noqa: BLE001 - the training must go on
        report("data_wait_begins", error)


def on_train_batch_start(trainer: Any) -> None:  # noqa: ARG001 - the callback's signature
    """Note that a batch has been fetched: what passed since the last one was waiting."""
    try:
        note_start(monotonic())
    except Exception as error:  # noqa: BLE001 - the training must go on
        report("on_train_batch_start", error)


def on_train_batch_end(trainer: Any) -> None:
    """Note that a batch is done, and the user's callbacks of its end; what the profiler takes is the batch's, too."""
    try:
        if WINDOWS.wanted:
            WINDOWS.batch_done(trainer)
        at = monotonic()
        note_end(at)
        if at >= BATCHES.due and isinstance(CURRENT.run, ReportedTraining) and not WINDOWS.is_open:
            CURRENT.run.batches_done()
    except Exception as error:  # noqa: BLE001 - the training must go on
        report("on_train_batch_end", error)


@guarded
def on_train_epoch_end(trainer: Any) -> None:
    """Sum up the training part of an epoch."""
    WINDOWS.close()
    _training_of(trainer).epoch_trained(trainer)


@guarded
def on_fit_epoch_end(trainer: Any) -> None:
    """End an epoch with all that belongs to it; called once more after the final evaluation."""
    _training_of(trainer).epoch_ends(trainer)


@guarded
def on_train_end(trainer: Any) -> None:
    """End a training in which everything was done (rank 0 only)."""
    WINDOWS.abandon()
    training = _training_of(trainer)
    training.leave(trainer)
    CURRENT.end(training.over(trainer))


@guarded
def teardown(trainer: Any) -> None:
    """End what has not been ended: newer versions call this after an exception, too."""
    WINDOWS.abandon()
    VALIDATION.abandon()
    run = CURRENT.run
    if isinstance(run, ReportedTraining) and run.is_of(trainer):
        run.leave(trainer)
        how, fields = run.torn_down(trainer)
        CURRENT.end(how, **fields)


@guarded
def on_val_start(validator: Any) -> None:
    """Begin a validation: the trainer's own, or of a model by itself. One in a callback is part of what goes on."""
    run, epoch = CURRENT.run, None
    if isinstance(run, ReportedTraining):
        if not run.validates_with(validator):
            return
        epoch = run.validation_begins(standalone=not validator.training)
    else:
        _end_earlier()
        _begin("val", "validation", validator, facts.VALIDATION)
    _call_last(validator, "on_val_batch_end", on_val_batch_end)
    VALIDATION.begin(validator, epoch)


def on_val_batch_start(validator: Any) -> None:  # noqa: ARG001 - the callback's signature
    """Note that a batch has been fetched."""
    try:
        VALIDATION.batch_begins()
    except Exception as error:  # noqa: BLE001 - the training must go on
        report("on_val_batch_start", error)


def on_val_batch_end(validator: Any) -> None:
    """Go on with what is profiled of a validation, which is the batch's, and note that the batch is done."""
    try:
        WINDOWS.validation_batch_done(validator)
        VALIDATION.batch_ends()
    except Exception as error:  # noqa: BLE001 - the training must go on
        report("on_val_batch_end", error)


@guarded
def on_val_end(validator: Any) -> None:
    """End a validation (rank 0 only)."""
    run = CURRENT.run
    if isinstance(run, ReportedTraining) and not run.validates_with(validator):
        return
    WINDOWS.validated()
    VALIDATION.end(validator)
    if isinstance(run, ReportedTraining):
        run.validation_ends()
    elif run is not None and run.instance == id(validator):
        CURRENT.end("finished")


@guarded
def on_predict_start(predictor: Any) -> None:
    """Begin a prediction; one within a training is its check of mixed precision."""
    if CURRENT.is_training():
        return
    with KNOWN.beginning:  # of several threads one begins the run
        run = CURRENT.run
        if not isinstance(run, Prediction):
            _end_earlier()
            run = Prediction(predictor)
            CURRENT.begin(run)
        run.predicts(predictor)


def on_predict_batch_start(predictor: Any) -> None:
    """Note that a batch of images has been loaded: a call begins. One that is open still gave embeddings."""
    try:
        clock = CLOCKS.get(id(predictor))
        if clock is not None:
            if clock.begun_s:
                on_predict_end(predictor)
            clock.begun_s = monotonic()
    except Exception as error:  # noqa: BLE001 - the service must go on
        report("on_predict_batch_start", error)


def on_predict_batch_end(predictor: Any) -> None:
    """Keep a call."""
    at, clock = monotonic(), CLOCKS.get(id(predictor))
    try:
        run = CURRENT.run
        if clock is not None and clock.begun_s and isinstance(run, Prediction):
            results = predictor.results
            run.ends(clock, at, len(predictor.batch[0]), results[0].speed if results else None)
    except Exception as error:  # noqa: BLE001 - the service must go on
        if clock is not None:
            clock.begun_s = 0.0  # what comes next is no part of it
        report("on_predict_batch_end", error)


@guarded
def on_predict_end(predictor: Any) -> None:
    """Keep the last call of a predictor that gave embeddings: their batches have no end."""
    clock, run = CLOCKS.get(id(predictor)), CURRENT.run
    if clock is not None and clock.begun_s and isinstance(run, Prediction):
        run.ends(clock, monotonic(), len(predictor.batch[0]), None)


@guarded
def on_export_start(exporter: Any) -> None:
    """Begin an export."""
    if not CURRENT.is_training():
        _end_earlier()
        _begin("export", "export", exporter, facts.EXPORT)


@guarded
def on_export_end(exporter: Any) -> None:
    """End an export."""
    if CURRENT.run is not None and CURRENT.run.instance == id(exporter):
        CURRENT.end("finished")


def _call_last(trainer: Any, event: str, function: Any) -> None:
    """Have one of ours called after the user's, whose time is then no wait for data.

    Never of the event that is going on: ultralytics walks its list.
    """
    registered = getattr(trainer, "callbacks", {}).setdefault(event, [])
    if registered[-1:] != [function]:
        registered[:] = [*(each for each in registered if each is not function), function]


def _begin(task: str, phase: str, instance: Any, readers: Any) -> None:
    run = ReportedRun(task, instance)
    CURRENT.begin(run)
    LINES.write("settings", facts.read(readers, instance))
    run.phase(phase)


CALLBACKS = {
    function.__name__: function
    for function in (
        on_pretrain_routine_start,
        on_pretrain_routine_end,
        on_train_start,
        on_train_epoch_start,
        on_train_batch_start,
        on_train_batch_end,
        on_train_epoch_end,
        on_fit_epoch_end,
        on_train_end,
        teardown,
        on_val_start,
        on_val_batch_start,
        on_val_batch_end,
        on_val_end,
        on_predict_start,
        on_predict_batch_start,
        on_predict_batch_end,
        on_predict_end,
        on_export_start,
        on_export_end,
    )
}
