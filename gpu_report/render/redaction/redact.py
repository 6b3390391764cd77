"""An analysis for sharing: without hosts, users, paths, command lines, addresses and serial numbers.

Every text that the model holds is looked through, also in fields that are yet to come: only those named in _OURS, whose
words are our own, stay as they are.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import PurePath
from re import fullmatch
from typing import Any

import pandas as pd

from gpu_report.model import Analysis, Comparison, Difference, Job, Raised
from gpu_report.render.redaction.placeholders import Hider

STATEMENT = (
    "Hosts, users, folders, commands, addresses and serial numbers were replaced by placeholders (--redact): the same "
    "placeholder is the same thing"
)

# Fields whose words are our own or a version's number, by (class, field); None is any class.
_OURS = frozenset(
    {
        *((kind, "process") for kind in ("CodeLocation", "CodeLine", "LineChange")),
        ("LineChange", "waits_for"),
        ("MemoryHolder", "place"),
        ("SettingLocation", "name"),
        *(("CodeTime", name) for name in ("role", "phases")),
        ("CodeFrame", "kind"),
        *((None, name) for name in ("rule", "severity", "kind", "status", "anchor", "argument", "ended_by")),
        *((None, name) for name in ("exit_signal", "driver", "cuda", "python", "torch", "ultralytics")),
        *((None, name) for name in ("tool_version", "xid_events", "energy_source", "task", "ended", "phase")),
        *(
            ("Finding", "id"),
            ("Phase", "name"),
            ("Phase", "source"),
            ("EpochSummary", "source"),
            ("EpochSummary", "stall_cause"),
            ("Cause", "name"),
        ),
        *(("ProfilerWindow", name) for name in ("name", "failed", "reason")),
        *(("LaunchTiming", "bound"), ("FamilyTime", "name"), ("OptimizerTime", "style"), ("AllocatorCalls", "name")),
        *((kind, name) for kind in ("KernelTime", "OperatorTime") for name in ("family", "name")),
        *(("CopyKind", name) for name in ("direction", "host_memory")),
        *(("SyncPoint", name) for name in ("operator", "call")),
        *(("Gate", name) for name in ("text", "metric", "statistic", "kind", "level")),
        *(("MetricComparison", name) for name in ("metric", "statistic", "unit", "basis", "judgement", "note")),
        *(("GateResult", "outcome"), ("Comparison", "setup"), ("Comparison", "judgement")),
        *(
            ("Cause", "runner_up"),
            ("Ending", "name"),
            ("Evidence", "key"),
            ("Evidence", "reference"),
            ("Outlier", "part"),
            ("Outlier", "cause"),
            ("Sentence", "kind"),
            ("Sentence", "findings"),
            ("Sentence", "about"),
            ("LedgerRow", "name"),
            ("SpeedupLimit", "cause"),
            ("CallGroup", "label"),
            ("Gpu", "name"),
            ("NodeGpu", "name"),
            ("JobNode", "name"),
            ("JobFinding", "id"),
            ("JobFinding", "node"),
            ("JobFinding", "cause"),
            ("RankRow", "node"),
            ("RankTraining", "epochs"),
            ("JobPart", "scheduler"),
            ("Job", "scheduler"),
            ("Gpu", "pci_bus_id"),
        ),
    }
)
_PACKAGES = re.compile(r"[\\/](?:site|dist)-packages[\\/]")
_LINES_OF_CODE = ("CodeLocation", "CodeLine", "CodeFrame", "LineChange", "MemoryHolder", "SettingLocation")
_OUR_COLUMNS = frozenset({"change", "owner"})  # of the table of processes
_PATHS = frozenset({"path", "file", "folder", "working_directory", "save_dir"})  # entries of events that hold one
Hide = Callable[[Any, Any, Hider], Any]  # what a field becomes, given its value, its owner and the hider
_OWN_NAMES = r"\d{8}-\d{6}(?:-\d+)?"  # of run folders: the time at which they were made


def redact(analysis: Analysis) -> Analysis:
    """Return the analysis with placeholders for everything that says where it was made, by whom and of what."""
    hider = Hider()
    _hidden(analysis, hider)  # learns all names, wherever they stand; the second time they are known from the start
    hidden: Analysis = _hidden(analysis, hider)
    problems = (*hidden.run.problems, STATEMENT)
    return replace(hidden, run=replace(hidden.run, problems=problems))


def redact_comparison(comparison: Comparison) -> Comparison:
    """Return a comparison with the same placeholders in all of its runs."""
    hider = Hider()
    _hidden(comparison, hider)
    hidden: Comparison = _hidden(comparison, hider)
    return replace(hidden, notes=(*hidden.notes, f"{STATEMENT}."))


class JobRedaction:
    """Redacts a job of several nodes, with the same placeholders in all of them."""

    def __init__(self) -> None:
        self._hider = Hider()

    def learn(self, analysis: Analysis) -> None:
        """Learn the names in the analysis of a node: of a job less is kept, but its texts quote it."""
        _hidden(analysis, self._hider)

    def redact(self, job: Job) -> Job:
        """Return the job with placeholders, and without its id, which somebody may have given it."""
        nameless = replace(job, id=None)
        _hidden(nameless, self._hider)
        hidden: Job = _hidden(nameless, self._hider)
        return replace(hidden, notes=(*hidden.notes, STATEMENT))


def _hidden(value: Any, hider: Hider) -> Any:
    """Return a value of any type that the model is made of, with everything in it hidden."""
    if isinstance(value, str):
        return hider.text(value)
    if isinstance(value, Mapping):
        return {key: _entry(key, item, hider) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_hidden(item, hider) for item in value)
    if isinstance(value, pd.DataFrame):
        return _frame(value, hider)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{field.name: _field(value, field.name, hider) for field in fields(value)})
    return value


def _field(owner: Any, name: str, hider: Hider) -> Any:
    value, kind = getattr(owner, name), type(owner).__name__
    if isinstance(value, Raised):
        hider.exception(owner.error, value.message)
    if value is None or (isinstance(value, str | tuple) and not {(None, name), (kind, name)}.isdisjoint(_OURS)):
        return value
    special = _SPECIAL.get((kind, name))
    return special(value, owner, hider) if special else _hidden(value, hider)


def _entry(key: object, value: Any, hider: Hider) -> Any:
    """Return an entry of what an event carries."""
    if key == "command" and value and isinstance(value, str | list | tuple):  # in a hostile folder it may be anything
        words = value.split() if isinstance(value, str) else [str(word) for word in value]
        return " ".join(hider.command(tuple(words)))
    if key in _PATHS and isinstance(value, str):
        return hider.path(value)
    return _hidden(value, hider)


def _arguments(value: Any, hider: Hider) -> Any:
    if isinstance(value, str):
        return hider.value(value)
    if isinstance(value, Mapping):
        return {hider.argument(str(key)): _arguments(item, hider) for key, item in value.items()}
    return [_arguments(item, hider) for item in value] if isinstance(value, list | tuple) else value


def _differing(difference: Difference, text: str, hider: Hider) -> str:
    if difference.kind == "argument" and difference.baseline is not None and difference.run is not None:
        hider.change(difference.baseline, difference.run)
    return hider.host(text) if difference.name == "host" else hider.value(text)


def _function(name: str, line: Any, hider: Hider) -> str:
    return name if _is_nobodys(line) else hider.function(name)


def _is_nobodys(line: Any) -> bool:
    """Tell whether the name of a function is a library's, or that of a call which waits for the GPU."""
    return _is_library(line.file) or getattr(line, "kind", "") == "gpu"


def _is_library(file: str) -> bool:
    return _PACKAGES.search(file) is not None or file.startswith("<frozen ")


def _code_file(file: str, hider: Hider) -> str:
    """Return the file of a line of code: of a library where it lies in it, of the user's own a placeholder."""
    found = _PACKAGES.search(file)
    if found is not None:
        return file[found.end() - 1 :]
    return file if file.startswith("<frozen ") else hider.code_file(file)


def _run_path(path: str, hider: Hider) -> str:
    name = PurePath(path).name
    return name if fullmatch(_OWN_NAMES, name) else hider.path(path)


def _yolo_path(path: str, hider: Hider) -> str:
    """Return the folder of a YOLO run, whose weights an advice names: a path with blanks is not known by its looks."""
    hider.path(f"{path}/weights/last.pt")
    return hider.path(path)


def _frame(frame: pd.DataFrame, hider: Hider) -> pd.DataFrame:
    texts = [name for name in frame.columns if frame[name].dtype.kind not in "iufb" and name not in _OUR_COLUMNS]
    hidden = {
        name: frame[name].map(lambda cell: hider.process(cell) if isinstance(cell, str) else cell) for name in texts
    }
    return frame.assign(**hidden) if hidden else frame


# Fields that are no text to look through, by (class, field).
_SPECIAL: Mapping[tuple[str, str], Hide] = {
    **{(kind, "host"): lambda host, _, hider: hider.host(host) for kind in ("Recording", "NodeRun", "NcclProcess")},
    **{(kind, "path"): lambda path, _, hider: _run_path(path, hider) for kind in ("NodeRun", "Run")},
    ("YoloRun", "path"): lambda path, _, hider: _yolo_path(path, hider),
    ("Difference", "name"): lambda name, of, hider: hider.argument(name) if of.kind == "argument" else name,
    **{("Difference", side): lambda text, of, hider: _differing(of, text, hider) for side in ("baseline", "run")},
    ("Recording", "command"): lambda command, _, hider: hider.command(command),
    ("Recording", "user"): lambda user, _, hider: hider.user(user),
    ("Recording", "project"): lambda project, _, hider: hider.name(project),
    ("YoloRun", "args"): lambda args, _, hider: _arguments(args, hider),
    **{
        (kind, "settings"): lambda settings, _, hider: _arguments(settings, hider)
        for kind in ("InsideRun", "ModelCalls")
    },
    ("InsideRun", "models"): lambda models, _, hider: {n: _arguments(told, hider) for n, told in models.items()},
    ("KernelEvent", "process"): lambda process, _, hider: hider.process(process),
    ("Mount", "point"): lambda point, _, hider: hider.path(point),
    ("Mount", "source"): lambda source, of, hider: source if source == of.type else hider.source(source),
    ("ProcessWait", "file"): lambda file, _, hider: hider.path(file),
    ("OtherProgram", "name"): lambda name, of, hider: hider.program_of(of.who, name, of.user)[0],
    ("OtherProgram", "user"): lambda user, of, hider: hider.program_of(of.who, of.name, user)[1],
    **{(line, "file"): lambda file, _, hider: _code_file(file, hider) for line in _LINES_OF_CODE},
    **{(line, "function"): _function for line in _LINES_OF_CODE},
    ("MemoryHolder", "name"): _function,
    **{(kind, name): lambda *_: () for kind, name in (("Run", "stacks"), ("Run", "dumps"), ("Nccl", "traces"))},
    ("Run", "traces"): lambda *_: {},
    ("Raised", "frames"): lambda *_: (),
    ("Raised", "message"): lambda *_: "",
    ("Ending", "message"): lambda *_: None,
}
