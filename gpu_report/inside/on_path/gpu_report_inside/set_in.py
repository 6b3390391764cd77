"""Which lines of the user's own code switched on what slows a training, found in the sources that it has imported.

Only what is known to be on is looked for, and only files that name it are parsed: a training that sets nothing pays for
a look at the names of its modules. Nothing is executed. A file is one that Python has compiled in this process already,
or the script that started it, and of those only such as a person writes: MOST_BYTES each.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections import Counter
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MOST_BYTES = 2**16  # of a file: 64 KiB are 1,700 lines; Python's parser holds the GIL for 0.1 s while it reads them
MOST_FILES = 200
MOST_READ = 2**21  # bytes in all
MOST_PARSED = 2**17  # bytes of those that name a setting: half a second of CPU
LONGEST_LINE = 10_000  # characters: up to Python 3.10 the parser overflows the stack on what is nested some deeper
MOST_PARTS = 8  # of a dotted name
MOST_PLACES = 3  # of one setting; where there are more, nobody knows which one it was
GENERATIONS = 4  # of processes above a rank: those of torch.distributed, and the script
INSTALLED = re.compile(r"[\\/](?:(?:site|dist)-packages|lib(?:64)?[\\/]python3[^\\/]*|gpu_report_inside)[\\/]")
LIBRARIES = {"torch", "ultralytics"}  # also where they lie beside the user's own code
ESCAPE = re.compile(r"\\(?:N\{[^}\n]*\}|[^\r\n'\"])")  # of which the parser warns, on the training's own stderr
OFF = frozenset({None, False, "", "0"})  # values by which code switches off
ENVIRON = "os.environ"
ASKS = ".cpu_affinity"  # a function that sets something only where it is given what
COMPUTED = object()  # a value that does not stand in the source


class Setter(NamedTuple):
    """How code switches something on: by a call, or an assignment, of a name that ends so, or by a variable."""

    calls: tuple[str, ...] = ()
    assigned: tuple[str, ...] = ()
    variable: str = ""

    @property
    def words(self) -> tuple[str, ...]:
        """Return what a file contains that does it, one of these at least."""
        named = (name.rpartition(".")[2] for name in (*self.calls, *self.assigned))
        return (*named, *([self.variable] if self.variable else []))


SETTERS: Mapping[str, Setter] = {
    "launch_blocking": Setter(variable="CUDA_LAUNCH_BLOCKING"),
    "no_memory_caching": Setter(variable="PYTORCH_NO_CUDA_MEMORY_CACHING"),
    "p2p": Setter(variable="NCCL_P2P_DISABLE"),
    "shm": Setter(variable="NCCL_SHM_DISABLE"),
    "torch_profiler": Setter(calls=("torch.profiler.profile", "autograd.profiler.profile", "profiler.emit_nvtx")),
    "cudnn_off": Setter(assigned=("cudnn.enabled",)),
    "tf32": Setter(assigned=("cudnn.allow_tf32",)),
    "detect_anomaly": Setter(calls=("autograd.set_detect_anomaly", "autograd.detect_anomaly")),
    "memory_history": Setter(calls=("memory._record_memory_history",)),
    "trace_function": Setter(calls=("sys.settrace", "threading.settrace")),
    "profile_function": Setter(calls=("sys.setprofile", "threading.setprofile", "cProfile.Profile")),
    "tracemalloc": Setter(calls=("tracemalloc.start",)),
    "frequent_gc": Setter(calls=("gc.set_threshold",)),
    "affinity": Setter(calls=("os.sched_setaffinity", "Process.cpu_affinity")),
    "threads": Setter(calls=("torch.set_num_threads",), variable="OMP_NUM_THREADS"),
}


def switched_on(told: Mapping[str, Any]) -> list[str]:
    """Return what of SETTERS the settings of a training say is on, and which fewer cores it may use than there are."""
    ways = told.get("nccl_disabled") or []
    in_32_bits = told.get("amp") is False and told.get("tf32") is False
    threads = told.get("torch_threads") or 1
    return [*ways, *(["tf32"] if in_32_bits else []), *(["threads"] if threads > 1 else []), *_affinity()]


def _affinity() -> list[str]:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
    return ["affinity"] if 0 < usable < (os.cpu_count() or 1) else []


def found(names: Sequence[str]) -> list[dict[str, Any]]:
    """Return `places` as the fields of lines."""
    return [{"name": name, "file": file, "line": line} for name, file, line in places(names)]


def places(names: Sequence[str]) -> list[tuple[str, str, int]]:
    """Return which lines switch on what is on: (name, file, line), in order; never more than MOST_PLACES of a name."""
    wanted = {name: SETTERS[name] for name in names if name in SETTERS}
    if not wanted:
        return []
    above = _ancestors()
    given = {name: Setter(variable=each.variable) for name, each in wanted.items() if _is_given(os.getpid(), each)}
    mine = {name: each._replace(variable="") if name in given else each for name, each in wanted.items()}
    told = _in_files(_own_files([os.path.dirname(script) for _, script in above if script]), mine)  # noqa: PTH120
    for pid, script in above:  # who was not started with a variable that this process was is where it was set
        theirs = {name: each for name, each in given.items() if not _is_given(pid, each)}
        told += _in_files([script] if script else [], theirs)
        given = {name: each for name, each in given.items() if name not in theirs}
    count = Counter(name for name, _, _ in told)
    return [each for each in told if count[each[0]] <= MOST_PLACES]


def _in_files(files: Sequence[str], wanted: Mapping[str, Setter]) -> list[tuple[str, str, int]]:
    found, read, parsed = [], 0, 0
    for file in files[:MOST_FILES]:
        source = _source(file) if read < MOST_READ else ""
        read += len(source)
        asked = {name: each for name, each in wanted.items() if any(word in source for word in each.words)}
        if asked and parsed + len(source) <= MOST_PARSED:
            parsed += len(source)
            lines = _lines(source, asked)
            found += [(name, file, line) for name, line in sorted(lines, key=lambda each: each[1])]
    return found


def _source(file: str) -> str:
    """Return the text of a file, empty where it is none that a person writes, or cannot be read."""
    try:
        if not os.path.isfile(file):  # noqa: PTH113 - os.path suffices
            return ""
        with open(file, encoding="utf-8-sig", errors="replace") as opened:  # noqa: PTH123 - likewise
            source = opened.read(MOST_BYTES + 1)
    except (OSError, ValueError):  # the latter of a name with a zero byte
        return ""
    return source if len(source) <= MOST_BYTES else ""


def _lines(source: str, wanted: Mapping[str, Setter]) -> set[tuple[str, int]]:
    """Return the names of what is switched on, and the lines that do it."""
    if any(len(line) > LONGEST_LINE for line in source.split("\n")):
        return set()
    try:
        nodes = list(ast.walk(ast.parse(ESCAPE.sub("__", source))))
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # it has been changed since it was imported
        return set()
    known = _imported_names(nodes)
    steps = [(getattr(node, "lineno", 0), step) for node in nodes for step in _steps(node, known)]
    return {(name, line) for line, step in steps for name, setter in wanted.items() if _switches_on(step, setter)}


class Step(NamedTuple):
    """A call, an assignment, or the setting of a variable ("call", "assigned", "environ"): of which name, to what."""

    kind: str
    name: str
    value: Any


def _switches_on(step: Step, setter: Setter) -> bool:
    if step.kind == "environ":
        return bool(setter.variable) and step.name == setter.variable and step.value not in OFF
    if step.kind == "call":
        is_off = step.value in OFF and type(step.value) is not int  # 0 is the first of many things, such as a pid
        return _ends(step.name, setter.calls) and not is_off
    return _ends(step.name, setter.assigned) and step.value is not True  # all of these slow where they are False


def _steps(node: Any, known: Mapping[str, str]) -> Iterator[Step]:
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Attribute):
                yield Step("assigned", _dotted(target, known), _value(node.value))
            if isinstance(target, ast.Subscript) and _dotted(target.value, known) == ENVIRON:
                yield Step("environ", _text(target.slice), _value(node.value))
    elif isinstance(node, ast.Call):
        yield from _steps_of_call(node, _dotted(node.func, known))


def _steps_of_call(node: ast.Call, name: str) -> Iterator[Step]:
    given = [*node.args, *(each.value for each in node.keywords)]
    if name in {f"{ENVIRON}.setdefault", "os.putenv"} and len(given) > 1:
        yield Step("environ", _text(given[0]), _value(given[1]))
    elif name == f"{ENVIRON}.update":
        yield from (Step("environ", each.arg or "", _value(each.value)) for each in node.keywords)
        tables = (each for each in node.args if isinstance(each, ast.Dict))
        pairs = (pair for each in tables for pair in zip(each.keys, each.values))  # noqa: B905 - Python 3.8 to 3.10
        yield from (Step("environ", _text(key), _value(item)) for key, item in pairs)
    elif given or not name.endswith(ASKS):
        yield Step("call", name, _value(given[0]) if given else COMPUTED)


def _value(node: Any) -> Any:
    return node.value if isinstance(node, ast.Constant) else COMPUTED


def _text(node: Any) -> str:
    """Return a text that stands in the source; up to Python 3.8 that between brackets has a node around it."""
    value = _value(node.value if type(node).__name__ == "Index" else node)
    return value if isinstance(value, str) else ""


def _ends(name: str, endings: Sequence[str]) -> bool:
    return any(name == each or name.endswith(f".{each}") for each in endings)


def _imported_names(nodes: Sequence[Any]) -> dict[str, str]:
    """Return what the names that a file imports stand for: `ag` for `torch.autograd`."""
    known: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            known.update((each.asname, each.name) for each in node.names if each.asname)
        if isinstance(node, ast.ImportFrom) and node.module:
            known.update((each.asname or each.name, f"{node.module}.{each.name}") for each in node.names)
    return known


def _dotted(node: Any, known: Mapping[str, str]) -> str:
    """Return the name that an expression is, with what stands for its first part; of a call that of its function."""
    parts: list[str] = []
    while isinstance(node, (ast.Attribute, ast.Call)) and len(parts) < MOST_PARTS:
        if isinstance(node, ast.Attribute):
            parts.append(node.attr)
        node = node.value if isinstance(node, ast.Attribute) else node.func
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([known.get(node.id, node.id), *reversed(parts)])


# --- whose files


def _own_files(folders: Sequence[str]) -> list[str]:
    """Return the files of the modules of the user's own: below the folder of a script, or the current one."""
    main = _file(sys.modules.get("__main__"))
    roots = {os.path.dirname(_absolute(main)) if main else "", _absolute(""), *folders} - {"", "/"}  # noqa: PTH120
    named = ((name, _file(module)) for name, module in list(sys.modules.items()) if type(name) is str)
    mine = (file for name, file in named if file.endswith(".py") and name.partition(".")[0] not in LIBRARIES)
    files = (_absolute(file) for file in mine if not INSTALLED.search(file))
    below = tuple(root.rstrip(os.sep) + os.sep for root in roots)
    own = (file for file in files if file.startswith(below))
    return list(dict.fromkeys(own))


def _absolute(file: str) -> str:
    """Return where a file lies, empty where that is below a current folder that has been deleted."""
    try:
        return os.path.abspath(file)  # noqa: PTH100 - os.path suffices
    except OSError:
        return ""


def _file(module: object) -> str:
    """Return the file of a module, empty where it has none; one that loads when it is asked is not asked."""
    if not isinstance(module, ModuleType):
        return ""
    file = ModuleType.__getattribute__(module, "__dict__").get("__file__")
    return file if type(file) is str else ""  # a class derived from it has methods of its own


def _ancestors() -> list[tuple[int, str]]:
    """Return the processes above this one, the nearest first: pid and script, which is empty for none."""
    found: list[tuple[int, str]] = []
    pid = os.getppid()
    while pid > 1 and len(found) < GENERATIONS:
        found.append((pid, _script(pid)))
        pid = _parent(pid)
    return found


def _script(pid: int) -> str:
    """Return the script that a process of Python runs, absolute; empty where it is none of the user's."""
    words = _proc(pid, "cmdline").split(b"\0")
    script = next((os.fsdecode(word) for word in words[1:] if word.endswith(b".py")), "")
    if b"python" not in os.path.basename(words[0]) or not script:  # noqa: PTH119 - likewise
        return ""
    try:
        file = os.path.join(os.readlink(f"/proc/{pid}/cwd"), script)  # noqa: PTH115, PTH118 - likewise
    except OSError:
        return ""
    return "" if INSTALLED.search(file) else os.path.normpath(file)


def _parent(pid: int) -> int:
    fields = _proc(pid, "stat").rpartition(b")")[2].split()
    return int(fields[1]) if len(fields) > 1 else 0


def _is_given(pid: int, setter: Setter) -> bool:
    """Tell whether a process was started with this variable: then it is not its own code that sets it."""
    given = f"{setter.variable}=".encode()
    return bool(setter.variable) and any(each.startswith(given) for each in _proc(pid, "environ").split(b"\0"))


def _proc(pid: int, name: str) -> bytes:
    try:
        with open(f"/proc/{pid}/{name}", "rb") as opened:  # noqa: PTH123 - likewise
            return opened.read(MOST_BYTES)
    except OSError:
        return b""
