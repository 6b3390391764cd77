"""PyTorch's profiler for a few steps of a training: where the recorder was asked for it, and where it asks.

Only started, stopped and exported here. Reading the trace takes far longer than writing it, and is done by others. It
is written to this machine's temporary folder, not to the run folder, whose disk may hang: the recorder packs it there.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import tempfile
import threading
import time
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

from .hide_secrets import hide_and_cut
from .lines import LINES, RUN_FOLDER_VARIABLE, report
from .training import BATCHES

if TYPE_CHECKING:
    from collections.abc import Callable

VARIABLE = "GPU_REPORT_PROFILE"  # a plan in JSON, made when the command started
FOLDER, REQUEST = "profile", "request.json"  # in the run folder: what is asked for meanwhile
LOOK_EVERY_S = 1.0  # for a request
DISCARDED = 3  # steps before those that are kept: the GPU's events come only after a while
FIRST_BATCHES = 20  # of a training, which are slow: cuDNN tries its algorithms, and memory grows
VALIDATION_STEPS = 4
MOST_STEPS = 64
LONGEST_S = 60.0  # of a window: then it ends with the steps that it has
CLEARS = "(Warning: )?Profiler clears events"  # as is meant
SPACE_MIB = 512  # free on the temporary disk before a window: eight steps took 60 to 140 MB
TEARDOWN = "TEARDOWN_CUPTI"  # libkineto: without it the GPU is watched for ever, and each step stays slower
TEARDOWN_SAFE = (12, 6)  # CUDA: before it, tearing down crashes programs that replay CUDA graphs


class Plan(NamedTuple):
    """What is asked for: `steps` from `epoch` on (None: now), why, and whether with shapes and layer names."""

    steps: int
    epoch: int | None
    full: bool
    reason: str


def plan_of(text: str | None) -> Plan | None:
    """Return the plan in a text from outside, None where it holds none."""
    try:
        said = json.loads(text or "")
        steps, epoch = int(said["steps"]), said.get("epoch")
        reason = str(said.get("reason", "asked"))[:40]
        return Plan(
            min(max(steps, 1), MOST_STEPS), None if epoch is None else int(epoch), bool(said.get("full")), reason
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


class Window:
    """One session of the profiler, from its first discarded step to the exported trace."""

    def __init__(self, plan: Plan, said: dict[str, Any], discarded: int, model: Any = None) -> None:
        self._name = f"{os.getpid()}-{said['number']}"
        self._said = {"name": self._name, **plan._asdict(), "discarded": discarded, **said}
        self._plan, self._discarded = plan, discarded
        self._layers = _Layers(model) if plan.full else None
        self._profiler: Any = None
        self._began_s = 0.0
        self._count = 0

    def begin(self) -> None:
        """Start, in a callback between two steps."""
        self._began_s = time.monotonic()
        self._said["begin_mono_s"] = round(self._began_s, 6)
        if shutil.disk_usage(tempfile.gettempdir()).free < SPACE_MIB << 20:
            self._tell(failed="no_space")
            return
        _let_cupti_go()
        self._profiler = _profiler(self._discarded, self._plan, self._export)
        if self._layers is not None:
            self._layers.name()
        self._profiler.start()
        self._said["enter_s"] = _since(self._began_s)

    def step(self) -> bool:
        """Go on to the next step; return whether the window is over."""
        if self._profiler is None:
            return True
        began_s = time.monotonic()
        self._count += 1
        if self._count == self._discarded:
            self._said["kept_mono_s"] = round(began_s, 6)
        self._profiler.step()
        if self._count >= self._discarded + self._plan.steps or began_s - self._began_s > LONGEST_S:
            self.stop()
        return self._profiler is None

    def stop(self) -> None:
        """End it with the steps that it has; without any it is of no use."""
        profiler, self._profiler = self._profiler, None
        if profiler is not None:
            if self._layers is not None:
                self._layers.forget()
            profiler.stop()
            if "failed" not in self._said and "file" not in self._said:
                self._tell(failed="too_short")

    def fail(self, error: BaseException) -> None:
        """Say why there is no trace, and let go of everything; whatever that raises is one more reason to be silent."""
        self._tell(failed="error", error=hide_and_cut(f"{type(error).__name__}: {error}"))
        with contextlib.suppress(Exception):  # it has been said already
            self.stop()

    def _export(self, profiler: Any) -> None:
        """Write the trace: called by the profiler's last step."""
        if "failed" in self._said:
            return
        began_s = time.monotonic()
        folder = tempfile.mkdtemp(prefix="gpu-report-profile-")
        path = os.path.join(folder, f"{self._name}.json")  # noqa: PTH118 - as in writer.py
        try:
            profiler.export_chrome_trace(path)
            size = os.path.getsize(path)  # noqa: PTH202 - likewise
        except (OSError, RuntimeError, ValueError) as error:
            shutil.rmtree(folder, ignore_errors=True)
            self._tell(failed="export", error=hide_and_cut(f"{type(error).__name__}: {error}"))
            return
        self._said["kept_steps"] = max(self._count - self._discarded, 0)
        self._tell(file=path, bytes=size, export_s=_since(began_s))

    def _tell(self, **more: Any) -> None:
        self._said.update(more)
        LINES.write("profile", self._said)


class Windows:
    """The windows of this process: planned, asked for, and the one that is open. `wanted` is looked at each batch."""

    def __init__(self) -> None:
        self.wanted = False
        self._plans: list[Plan] = []
        self._window: Window | None = None
        self._validated: Plan | None = None  # what the next validation is profiled for
        self._followed: tuple[int, str | None] = (0, None)
        self._seen = 0
        self._number = 0

    @property
    def is_open(self) -> bool:
        """Whether the profiler runs because of us."""
        return self._window is not None

    def follow(self) -> None:
        """Take the plan of the command, and look for requests from now on; once a process and run folder."""
        folder = os.environ.get(RUN_FOLDER_VARIABLE)
        if not folder or self._followed == (os.getpid(), folder):
            return
        self._followed = os.getpid(), folder
        plan = plan_of(os.environ.get(VARIABLE))
        if plan is not None:
            self._ask(plan)
        threading.Thread(target=self._look, args=(folder,), name="gpu-report-profile", daemon=True).start()

    def batch_done(self, trainer: Any) -> None:
        """Go on with the open window, or open one that is due; never raises."""
        self._guarded(lambda: self._next(trainer))

    def close(self) -> None:
        """End an open window: nothing is profiled across the end of an epoch or of a validation; never raises."""
        self._guarded(self._stop)

    def validation_batch_done(self, validator: Any) -> None:
        """Profile some steps of a validation that is part of a planned epoch; never raises."""
        if self._window is not None:
            self._guarded(self._step)
        elif self._validated is not None:
            self._guarded(lambda: self._begin_validation(validator))

    def _guarded(self, function: Callable[[], None]) -> None:
        try:
            function()
        except Exception as error:  # noqa: BLE001 - the training must go on
            window, self._window = self._window, None
            if window is not None:
                window.fail(error)
            report("profile", error)
        self.wanted = bool(self._plans) or self._window is not None

    def _next(self, trainer: Any) -> None:
        if self._window is not None:
            self._step()
            return
        epoch, done, left = _place(trainer)
        first = 1 if epoch > 1 else min(FIRST_BATCHES, (done + left) // 3)
        due = next((plan for plan in self._plans if epoch >= min(plan.epoch or 0, trainer.epochs)), None)
        if due is None or done < first or left <= DISCARDED + 1:
            return
        self._plans.remove(due)
        steps = min(due.steps, left - DISCARDED - 1)
        said = {"phase": "train", "epoch": epoch, "first_batch": done}
        self._validated = due if due.epoch is not None and trainer.args.val else None
        self._open(due._replace(steps=steps), said, DISCARDED, trainer.model)

    def _begin_validation(self, validator: Any) -> None:
        plan, self._validated = self._validated, None
        steps = min(VALIDATION_STEPS, len(validator.dataloader) - 3)
        if plan is not None and steps > 0:
            self._open(plan._replace(steps=steps), {"phase": "validation", "epoch": None}, 1)

    def _open(self, plan: Plan, said: dict[str, Any], discarded: int, model: Any = None) -> None:
        self._number += 1
        self._window = Window(plan, {"number": self._number, **said}, discarded, model)
        self._window.begin()

    def _step(self) -> None:
        if self._window is not None and self._window.step():
            self._window = None

    def _stop(self) -> None:
        window, self._window = self._window, None
        if window is not None:
            window.stop()

    def _ask(self, plan: Plan) -> None:
        self._plans.append(plan)
        self.wanted = True

    def _look(self, folder: str) -> None:
        """Wait for requests in a run folder, in a thread of its own: a disk that hangs holds nobody else."""
        path = os.path.join(folder, FOLDER, REQUEST)  # noqa: PTH118 - as in writer.py
        self._seen = _written(path)
        while os.environ.get(RUN_FOLDER_VARIABLE) == folder:
            time.sleep(LOOK_EVERY_S)
            written = _written(path)
            if written != self._seen:
                self._seen = written
                plan = _request(path)
                if plan is not None:
                    self._ask(plan)


class _Layers:
    """Names the layers of a YOLO model in the trace, as long as a window is open."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._handles: list[Any] = []

    def name(self) -> None:
        """Have each layer say when it begins and ends."""
        torch = sys.modules["torch"]
        mark = getattr(torch._C._profiler, "_RecordFunctionFast", None)
        model = getattr(self._model, "module", self._model)  # of DDP
        if mark is None or hasattr(model, "_orig_mod"):  # old torch; a compiled model would be compiled anew
            return
        for number, layer in enumerate(getattr(model, "model", ())):
            kind = str(getattr(layer, "type", type(layer).__name__)).rpartition(".")[2]
            span = mark(f"layer {number} {kind}"[:80])
            self._handles.append(layer.register_forward_pre_hook(lambda *_, span=span: span.__enter__() and None))
            self._handles.append(layer.register_forward_hook(lambda *_, span=span: span.__exit__(None, None, None)))

    def forget(self) -> None:
        """Take that back."""
        while self._handles:
            self._handles.pop().remove()


def _profiler(discarded: int, plan: Plan, export: Callable[[Any], None]) -> Any:
    torch = sys.modules["torch"]
    kineto = torch.profiler
    activities = [kineto.ProfilerActivity.CPU]
    if torch.cuda.is_available():
        activities.append(kineto.ProfilerActivity.CUDA)
    warnings.filterwarnings("ignore", message=CLEARS)
    schedule = kineto.schedule(wait=0, warmup=discarded, active=plan.steps, repeat=1)
    # Without `acc_events`: with it, the last step reads all events into Python. That took 16 s (torch 2.11, H100).
    return kineto.profile(activities=activities, schedule=schedule, on_trace_ready=export, record_shapes=plan.full)


def _let_cupti_go() -> None:
    """Have the GPU no longer watched after the window, where that is safe and nobody has decided it.

    On an H100 steps stayed 60 % slower without (torch 2.11, YOLO26n, batch 4), and were as before with it.
    """
    torch = sys.modules["torch"]
    version = tuple(int(part) for part in str(torch.version.cuda or "0").split(".")[:2])
    if version >= TEARDOWN_SAFE:
        os.environ.setdefault(TEARDOWN, "1")


def _place(trainer: Any) -> tuple[int, int, int]:
    """Return the epoch, from 1, how many of its batches are done with this one, and how many are left."""
    done = BATCHES.count + len(BATCHES.ends) + 1
    return trainer.epoch + 1, done, max(len(trainer.train_loader) - done, 0)


def _written(path: str) -> int:
    """Return when a request was written (ns), 0 where there is none."""
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116 - as in writer.py
    except OSError:
        return 0


def _request(path: str) -> Plan | None:
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123 - as in writer.py
            return plan_of(file.read(4096))
    except (OSError, UnicodeDecodeError):
        return None


def _since(mono_s: float) -> float:
    return round(time.monotonic() - mono_s, 6)


WINDOWS = Windows()
