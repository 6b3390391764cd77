"""A run folder in which every field that comes from outside carries text that means harm to a page or a terminal."""

import json
import shutil
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path

PLANTED = "window.planted=1"
STRINGS = (
    f"</script><script>{PLANTED}</script>",
    f"<img src=x onerror={PLANTED}><svg/onload={PLANTED}>",
    f"'\"`--><a href=javascript:{PLANTED}>javascript:{PLANTED}</a>",
    f"</title></style><style>*{{display:none}}</style><base href=//evil.test><iframe src='<script>{PLANTED}</script>'>",
    "{{ 7*7 }}{% include '/etc/passwd' %} ${7*7} %s %n __proto__",
    "\x00\x07\x1b[31m\x7f\x9b31m bell and escape",
    "\u202egnp.exe\u2066 right to left \u2028 lines \u2029 \ufeff",
    "\ud800 half a pair",
    "W" * 3000,
    "\u0301" * 400 + "marks",
    "مرحبا عالم שלום 训练 👩🏽‍🔬",
)
MEGABYTE = "M" * (1 << 20)
LONG = "L" * 100_000  # as much as is read of args.yaml
LONGEST_KEY = 300  # YAML allows no key of more than 1024 characters, escapes included
RAW = b'\xff\xfe\x80"</script>\xc3('  # no UTF-8
# Keys whose word decides what a line is at all: their values stay, and lines with hostile ones come on top.
_MEANT = frozenset({"kind", "task", "ended_by", "change", "owner"})


def poison(source: Path, folder: Path) -> Path:
    """Copy a run, and put hostile strings into all of its text, and whole hostile rows beside the good ones."""
    shutil.copytree(source, folder)
    words = cycle(STRINGS)

    def take() -> str:
        return next(words)

    _write_json(folder / "run.json", _poisoned(json.loads((folder / "run.json").read_text()), take))
    for path in [folder / "events.jsonl", *(folder / "inside").glob("*.jsonl")]:
        _poison_lines(path, take)
    with (folder / "events.jsonl").open("a", encoding="utf-8") as file:
        for line in _more_events(folder, take):
            file.write(json.dumps(line) + "\n")
    _poison_processes(folder / "processes.csv", take)
    for name in ("samples.csv", "ring.csv", "host.csv"):
        _add_rows(folder / name)
    _poison_yolo(folder / "yolo", take)
    for path in folder.rglob("*.*"):
        if path.suffix in {".csv", ".jsonl"}:
            path.write_bytes(path.read_bytes() + RAW + b"\n")
    return folder


def _poisoned(value: object, take: Callable[[], str], key: str = "") -> object:
    if isinstance(value, str):
        return value if key in _MEANT else take()
    if isinstance(value, list):
        return [_poisoned(item, take, key) for item in value]
    if isinstance(value, dict):
        return {name: _poisoned(item, take, name) for name, item in value.items()}
    return value


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")


def _poison_lines(path: Path, take: Callable[[], str]) -> None:
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    phases = {line["name"] for line in lines if line.get("kind") == "phase"}
    kept = phases | {line["text"] for line in lines if line.get("kind") == "kernel" and "Xid" in line["text"]}
    hurt = [_poisoned(line, take) | {k: v for k, v in line.items() if str(v) in kept} for line in lines]
    path.write_text("".join(json.dumps(line) + "\n" for line in hurt), encoding="utf-8")


def _more_events(folder: Path, take: Callable[[], str]) -> Iterator[dict[str, object]]:
    """Yield kernel messages, notes and gaps in the middle of the run, and events of kinds that nobody knows."""
    first = json.loads((folder / "events.jsonl").read_text(encoding="utf-8").splitlines()[0])
    at = {"wall_s": first["wall_s"] + 40, "mono_s": first["mono_s"] + 40}
    bad = list(STRINGS)
    yield {**at, "kind": "kernel_log", "status": "read", "source": bad[0], "reason": bad[1], "advice": bad[2]}
    for number, text in enumerate([*bad, MEGABYTE]):
        moment = {"wall_s": at["wall_s"] + number, "mono_s": at["mono_s"] + number}
        xid = f"NVRM: Xid (PCI:0000:00:06): {31 + number}, pid={number}, name={text}, {text}"
        yield {**moment, "kind": "kernel", "text": xid, "level": 3, "source": text, "stamp_s": None}
        yield {**moment, "kind": "marker", "gpu": None, "text": text}
        yield {**moment, "kind": "nvml_error", "gpu": 0, "quantity": text, "reason": text}
        yield {**moment, "kind": "gap", "gpu": 0, "seconds": 0.5, "reason": text}
        yield {**moment, "kind": text, take(): text}


def _poison_processes(path: Path, take: Callable[[], str]) -> None:
    head, *rows = path.read_text(encoding="utf-8").splitlines()
    cells = [row.split(",") for row in rows]
    names = [*(row[4] for row in cells), *STRINGS, MEGABYTE]
    rows = [[*row[:4], _cell(take()), *row[5:]] for row in cells]
    rows += [
        [*cells[0][:3], str(9000 + i), _cell(name), "1024", "appeared", "other", "50"] for i, name in enumerate(names)
    ]
    text = "\n".join([head, *(",".join(row) for row in rows)])
    path.write_text(text.encode("utf-8", "replace").decode() + "\n", encoding="utf-8")


def _cell(text: str) -> str:
    quoted = text.replace('"', '""').replace("\x00", "")
    return f'"{quoted}"'


def _add_rows(path: Path) -> None:
    """Add rows whose cells are all hostile; the good ones stay, for without them there is nothing to show."""
    text = path.read_text(encoding="utf-8")
    columns = text.splitlines()[0].count(",") + 1
    rows = [",".join([_cell(bad.encode("utf-8", "replace").decode())] * columns) for bad in STRINGS]
    path.write_text(text + "\n".join(rows) + "\n", encoding="utf-8")


def _poison_yolo(folder: Path, take: Callable[[], str]) -> None:
    args = folder / "args.yaml"
    lines = []
    for line in args.read_text(encoding="utf-8").splitlines():
        key, _, value = line.partition(": ")
        is_text = value and not value.replace(".", "").lstrip("-").isdigit() and value not in {"true", "false", "null"}
        lines.append(f"{key}: {json.dumps(take())}" if is_text else line)
    lines += [f"{json.dumps(bad)}: {json.dumps(bad)}" for bad in STRINGS if len(bad) < LONGEST_KEY]
    args.write_text("\n".join([*lines, f"note: {LONG}"]) + "\n", encoding="utf-8", errors="replace")
    results = folder / "results.csv"
    head, *rows = results.read_text(encoding="utf-8").splitlines()
    results.write_text(
        "\n".join([f"{head},{STRINGS[0]}", *(f"{row},{STRINGS[1]}" for row in rows)]) + "\n", encoding="utf-8"
    )
