"""PyTorch's profiler for a few steps of a training: where the recorder was asked for it, and where it asks.

Only started, stopped and exported here. Reading the trace takes far longer than writing it, and is done by others. It
is written to this machine's temporary folder, not to the run folder, whose disk may hang: the recorder packs it there.
"""

from __future__ import annotations

import atexit
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
SPACE_MIB = 512  # free on the temporary disk before a window ...
STEP_MIB = 20  # ... and for each step: eight took 60 to 90 MB
TEARDOWN = "TEARDOWN_CUPTI"  # libkineto: without it the GPU is watched for ever, and each step stays slower
BEGAN_S = time.time()  # requests that are older are none of this process's
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
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
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
        torch = sys.modules["torch"]
        if torch.autograd._profiler_enabled():  # the user's own, which ours would end
            self._tell(failed="other_profiler")
            return
        space = SPACE_MIB + STEP_MIB * self._plan.steps
        if shutil.disk_usage(tempfile.gettempdir()).free < space << 20:
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

    def abandon(self) -> None:
        """End it without a trace: the training has come to something else, or to its end."""
        if self._profiler is not None:
            self._tell(failed="interrupted")
            self.stop()

    def fail(self, error: BaseException) -> None:
        """Say why there is no trace, and let go of everything; whatever that raises is one more reason to be silent."""
        self._tell(failed="error", error=hide_and_cut(f"{type(error).__name__}: {error}"))
        with contextlib.suppress(Exception):  # it has been said already
            self.stop()

    def _export(self, profiler: Any) -> None:
        """Write the trace: called by the profiler's last step."""
        if "failed" in self._said:
            return
        if self._count <= self._discarded:
            self._tell(failed="too_short")
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
        self._said["kept_steps"] = self._count - self._discarded
        self._tell(file=path, bytes=size, export_s=_since(began_s))

    def _tell(self, **more: Any) -> None:
        self._said.update(more)
        LINES.write("profile", self._said)


class Windows:
    """The windows of this process: planned, asked for, and the one that is open."""

    def __init__(self) -> None:
        self._plans: list[Plan] = []
        self._window: Window | None = None
        self._validated: Plan | None = None  # what the next validation is profiled for
        self._followed: tuple[int, str | None] = (0, None)
        self._number = 0
        self._is_recorded = True
        self._closes_at_exit_of = 0

    @property
    def wanted(self) -> bool:
        """Whether there is anything to do at the end of a batch."""
        return self._window is not None or bool(self._plans)

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
            self._plans.append(plan)
        threading.Thread(target=self._follow, args=(folder,), name="gpu-report-profile", daemon=True).start()

    def batch_done(self, trainer: Any) -> None:
        """Go on with the open window, or open one that is due; never raises."""
        self._guarded(lambda: self._next(trainer))

    def close(self) -> None:
        """End an open window: nothing is profiled across the end of an epoch or of a validation; never raises."""
        self._guarded(self._stop)

    def abandon(self) -> None:
        """End an open window without a trace: its epoch begins again, or the training is over; never raises."""
        self._validated = None
        self._guarded(self._drop)

    def validated(self) -> None:
        """End the window of a validation that is over; never raises."""
        self._validated = None
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

    def _next(self, trainer: Any) -> None:
        if self._window is not None:
            self._step()
            return
        epoch, done, left = _place(trainer)
        started = getattr(trainer, "start_epoch", 0)  # a resumed training's first epoch is slow, too
        first = 1 if epoch > started + 1 else min(FIRST_BATCHES, (done + left) // 3)
        due = next((plan for plan in self._plans if epoch >= _due(plan, started, trainer.epochs)), None)
        if due is None or done < first or left <= DISCARDED + 1:
            return
        if not self._is_recorded:  # nobody would pack the trace
            self._plans.clear()
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
        if self._closes_at_exit_of != os.getpid():
            self._closes_at_exit_of = os.getpid()
            atexit.register(self._at_exit)  # an interpreter that ends with the profiler on crashes
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

    def _drop(self) -> None:
        window, self._window = self._window, None
        if window is not None:
            window.abandon()

    def _at_exit(self) -> None:
        if self._closes_at_exit_of == os.getpid():
            self.abandon()

    def _follow(self, folder: str) -> None:
        """Wait for requests in a run folder, in a thread of its own: a disk that hangs holds nobody else."""
        path = os.path.join(folder, FOLDER, REQUEST)  # noqa: PTH118 - as in writer.py
        seen = 0 if _written(path) > BEGAN_S * 1e9 else _written(path)
        try:
            while os.environ.get(RUN_FOLDER_VARIABLE) == folder:
                written = _written(path)
                plan = _request(path) if written != seen else None
                seen = written
                if plan is not None:
                    self._plans.append(plan)
                time.sleep(LOOK_EVERY_S)
                self._is_recorded = _is_recorded(folder)
        except Exception as error:  # noqa: BLE001 - nobody may hear of it
            report("profile requests", error)


class _Layers:
    """Names the layers of a YOLO model in the trace, as long as a window is open.

    Hooks of all modules, not of these: what a model carries would be saved and copied with it.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._names: dict[int, str] = {}
        self._mark: Any = None
        self._open: list[tuple[int, Any]] = []
        self._handles: list[Any] = []

    def name(self) -> None:
        """Have each layer say when it begins and ends."""
        torch = sys.modules["torch"]
        self._mark = getattr(torch._C._profiler, "_RecordFunctionFast", None)
        model = getattr(self._model, "module", self._model)  # of DDP
        if self._mark is None or hasattr(model, "_orig_mod"):  # old torch; a compiled model would be compiled anew
            return
        for number, layer in enumerate(getattr(model, "model", ())):
            kind = str(getattr(layer, "type", type(layer).__name__)).rpartition(".")[2]
            self._names[id(layer)] = f"layer {number} {kind}"[:80]
        module = torch.nn.modules.module
        self._handles.append(module.register_module_forward_pre_hook(self._begins))
        self._handles.append(module.register_module_forward_hook(self._ends))

    def forget(self) -> None:
        """Take that back, and end what an exception has left open."""
        while self._handles:
            self._handles.pop().remove()
        while self._open:
            with contextlib.suppress(Exception):
                self._open.pop()[1].__exit__(None, None, None)

    def _begins(self, module: Any, *_: Any) -> None:
        name = self._names.get(id(module))
        if name is not None:
            with contextlib.suppress(Exception):
                mark = self._mark(name)
                mark.__enter__()
                self._open.append((id(module), mark))

    def _ends(self, module: Any, *_: Any) -> None:
        """End a layer, with those within it that an exception has left open."""
        if any(place == id(module) for place, _ in self._open):
            place = None
            while place != id(module):
                place, mark = self._open.pop()
                with contextlib.suppress(Exception):
                    mark.__exit__(None, None, None)


def _profiler(discarded: int, plan: Plan, export: Callable[[Any], None]) -> Any:
    torch = sys.modules["torch"]
    kineto = torch.profiler
    activities = [kineto.ProfilerActivity.CPU]
    if torch.cuda.is_available():
        activities.append(kineto.ProfilerActivity.CUDA)
    if not any(getattr(known[1], "pattern", None) == CLEARS for known in warnings.filters):
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


def _due(plan: Plan, started: int, epochs: int) -> int:
    """Return from which epoch on a plan is due; one that a resumed training has behind it, in its second."""
    if plan.epoch is None:
        return 0
    return min(plan.epoch if plan.epoch > started else started + 2, epochs)


def _is_recorded(folder: str) -> bool:
    """Tell whether a recorder holds the run folder: it has a lock on its samples."""
    try:
        import fcntl  # noqa: PLC0415 - not there on Windows

        with open(os.path.join(folder, "samples.csv"), "rb") as file:  # noqa: PTH118, PTH123 - as in writer.py
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except (OSError, ImportError):
        return False
    return False


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
