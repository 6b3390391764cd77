"""Which YOLO runs a recording has: their folders, and what run.json and the events say of each."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from gpu_report import schema
from gpu_report.load.problems import too_many
from gpu_report.load.run_json import whole_index

Events = Sequence[Mapping[str, Any]]
LONGEST_NUMBER: Final = 5  # digits of a YOLO run's folder
NUMBERED: Final = {
    "epoch": "run",
    "checkpoint": "run",
    "yolo_run": "number",
    "tensorboard": "run",
}  # kinds, and what says of which run


def places(folder: Path, events: Events, most: int) -> tuple[list[tuple[int, Path]], list[str]]:
    """Return the folders of YOLO runs by their numbers, and what is left out."""
    numbered = numbered_places(folder)
    if len(numbered) > most:
        return numbered[:most], [too_many(f"{schema.YOLO_DIR}/ has {len(numbered):,} runs", most)]
    if numbered:
        return numbered, []
    known = folder.is_dir() and any(folder.iterdir())
    return ([(1, folder)] if known or any(e["kind"] in {"epoch", "tensorboard"} for e in events) else []), []


def numbered_places(folder: Path) -> list[tuple[int, Path]]:
    """Return the folders 1/, 2/, ... of several YOLO runs by their numbers."""
    try:
        names = [path.name for path in folder.iterdir() if path.name.isdecimal() and len(path.name) <= LONGEST_NUMBER]
    except OSError:
        return []
    return sorted((int(name), folder / name) for name in names if (folder / name).is_dir())


def entries_by_run(info: Mapping[str, Any]) -> dict[int, Mapping[str, Any]]:
    """Return what run.json says of each YOLO run; the first entry of a number counts."""
    entries = info.get("yolo")
    found = [e for e in entries if isinstance(e, Mapping)] if isinstance(entries, list) else []
    numbered = ((whole_index(e.get("number")), e) for e in reversed(found))
    return {number: entry for number, entry in numbered if number is not None}


def events_by_run(events: Events) -> dict[int, dict[str, list[Mapping[str, Any]]]]:
    """Return the events of each YOLO run by their kind."""
    mine: dict[int, dict[str, list[Mapping[str, Any]]]] = {}
    for event in events:
        if (name := NUMBERED.get(event["kind"])) and (number := whole_index(event.get(name, 1))) is not None:
            mine.setdefault(number, {}).setdefault(event["kind"], []).append(event)
    return mine
