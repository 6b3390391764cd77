"""Run folders that were made to hang a reader, or to fill its memory: each a small real run with one thing wrong."""

import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

SAMPLE = Path(__file__).resolve().parents[2] / "sample_runs" / "s-healthy"
MIB = 2**20
FULL = os.environ.get("HOSTILE") == "full"  # as large as `make fuzz` makes them; else a tenth, which takes a third
MANY = 200_000 if FULL else 20_000  # lines, rows, items
HUGE = "9" * 400
WALL_S, MONO_S = 1_795_258_300.0, 1_233.6  # a moment in the run

Make = Callable[[Path], object]
HOSTILE: dict[str, Make] = {}


def hostile_folder(name: str, folder: Path) -> Path:
    """Make the run folder that is called so."""
    shutil.copytree(SAMPLE, folder)
    HOSTILE[name](folder)
    return folder


def _hostile(make: Make) -> Make:
    HOSTILE[make.__name__.replace("_", " ")] = make
    return make


# --- tools --------------------------------------------------------------------------------------------------------


def _column(path: Path, name: str, change: Callable[[int, str], object]) -> None:
    """Replace the cells of a column, each by what `change` makes of its row number and its text."""
    header, *rows = path.read_text().splitlines()
    at = header.split(",").index(name)
    cells = [row.split(",") for row in rows]
    lines = [",".join([*row[:at], str(change(n, row[at])), *row[at + 1 :]]) for n, row in enumerate(cells)]
    path.write_text("\n".join([header, *lines, ""]))


def _rows(path: Path, rows: Iterable[str]) -> None:
    """Replace all rows of a CSV."""
    header = path.read_text().split("\n", 1)[0]
    path.write_text("\n".join([header, *rows, ""]))


def _info(folder: Path, **changes: Any) -> None:
    path = folder / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def _events(folder: Path, events: Iterable[dict[str, object]], name: str = "events.jsonl") -> None:
    """Append events, each a little after the one before."""
    with (folder / name).open("a") as file:
        for number, event in enumerate(events):
            at_s = number * 50 / MANY
            stamps = {"wall_s": round(WALL_S + at_s, 4), "mono_s": round(MONO_S + at_s, 4)}
            file.write(json.dumps({**stamps, **event}) + "\n")


def _without_epochs(folder: Path) -> None:
    """Leave no stamped epoch, so that results.csv must tell when they were."""
    lines = [line for line in (folder / "events.jsonl").read_text().splitlines() if '"kind": "epoch"' not in line]
    (folder / "events.jsonl").write_text("\n".join([*lines, ""]))


def _kernel(texts: Iterable[str]) -> Iterator[dict[str, object]]:
    return ({"kind": "kernel", "text": text, "level": 4, "source": "/dev/kmsg", "stamp_s": None} for text in texts)


def _inside(folder: Path) -> Path:
    (path,) = (folder / "inside").glob("*.jsonl")
    return path


def _of_gpu(gpu: int, second: int) -> str:
    return f"{WALL_S + second},{MONO_S + second},{gpu},{90 if second % 7 else 3},40,1000,600,300" + "," * 19


# --- samples.csv and the other tables -----------------------------------------------------------------------------


@_hostile
def a_header_of_commas(folder: Path) -> None:
    (folder / "host.csv").write_text("," * 50 * MANY + "\n")


@_hostile
def a_header_of_sixteen_thousand_columns(folder: Path) -> None:
    header = (folder / "samples.csv").read_text().split("\n", 1)[0]
    more = ["c"] * 16_000
    rows = [_of_gpu(0, second) + "," * len(more) for second in range(500)]
    (folder / "samples.csv").write_text("\n".join([",".join([header, *more]), *rows, ""]))


@_hostile
def a_row_without_end(folder: Path) -> None:
    with (folder / "samples.csv").open("a") as file:
        file.write("1" * 125 * MANY + "," * 125 * MANY + "\n")


@_hostile
def zeros_without_end(folder: Path) -> None:
    os.truncate(folder / "samples.csv", 20 * 1024 * MIB)  # takes no room on the disk


@_hostile
def zeros_between_rows(folder: Path) -> None:
    path = folder / "samples.csv"
    rows = path.read_bytes()
    os.truncate(path, 20 * 1024 * MIB)
    with path.open("ab") as file:
        file.write(b"\n" + rows.split(b"\n", 1)[1])


@_hostile
def a_quote_that_never_ends(folder: Path) -> None:
    with (folder / "samples.csv").open("a") as file:
        file.write('"' + "1,2,3\n" * 20 * MANY)


@_hostile
def as_many_gpus_as_are_read(folder: Path) -> None:
    _rows(folder / "samples.csv", (_of_gpu(gpu, second) for second in range(60) for gpu in range(256)))


@_hostile
def twenty_thousand_gpus(folder: Path) -> None:
    _info(folder, gpus=[{"index": index, "name": "x" * 50} for index in range(20_000)])
    _rows(folder / "samples.csv", (_of_gpu(gpu, second) for second in range(20) for gpu in range(20_000)))


@_hostile
def a_boot_a_row(folder: Path) -> None:
    fallen = (f"{WALL_S + n},{MONO_S * 2 - 2 * n / MANY * 100},0,90,40,1000,600,300" + "," * 19 for n in range(MANY))
    _rows(folder / "samples.csv", (row for row in fallen))
    _column(folder / "samples.csv", "mono_s", lambda n, _: 5000 if n % 2 else 10)


@_hostile
def a_clock_a_million_times_too_fast(folder: Path) -> None:
    _column(folder / "samples.csv", "mono_s", lambda _, cell: float(cell) * 1e6)


@_hostile
def a_clock_that_runs_backwards(folder: Path) -> None:
    _column(folder / "samples.csv", "mono_s", lambda _, cell: -float(cell))
    _column(folder / "samples.csv", "wall_s", lambda _, cell: -float(cell))


@_hostile
def a_row_a_day_for_a_year(folder: Path) -> None:
    _column(folder / "samples.csv", "mono_s", lambda n, _: n * 86_400 * 4.6)
    (folder / "yolo" / "args.yaml").unlink()


@_hostile
def a_year_of_which_a_second_was_recorded(folder: Path) -> None:
    _rows(folder / "samples.csv", [_of_gpu(0, 0), _of_gpu(0, 1), _of_gpu(0, 365 * 86_400)])
    _without_epochs(folder)


@_hostile
def readings_as_large_as_a_float_holds(folder: Path) -> None:
    for name, skipped in (("samples.csv", 3), ("host.csv", 2), ("ring.csv", 3), ("processes.csv", 4)):
        for column in (folder / name).read_text().split("\n", 1)[0].split(",")[skipped:]:
            if column not in {"name", "change", "owner"} and not column.endswith("_pct"):
                _column(folder / name, column, lambda n, _: "1e308" if n % 3 else "-0")


@_hostile
def numbers_of_four_hundred_digits(folder: Path) -> None:
    for name in ("samples.csv", "host.csv", "ring.csv", "processes.csv"):
        columns = (folder / name).read_text().split("\n", 1)[0].split(",")
        for column in columns:
            _column(folder / name, column, lambda n, cell: HUGE if n % 5 == 4 else cell)
    info = (folder / "run.json").read_text()
    (folder / "run.json").write_text(info.replace(": 0", f": {HUGE}").replace(": 1", f": {HUGE}"))
    events = (folder / "events.jsonl").read_text()
    (folder / "events.jsonl").write_text(events.replace(": 1,", f": {HUGE},").replace(": 0,", f": -{HUGE},"))


@_hostile
def a_flood_of_the_drivers_own_readings(folder: Path) -> None:
    _rows(
        folder / "ring.csv", (f"{WALL_S + n / 20_000},{MONO_S + n / 20_000:.6f},0,{n % 101}," for n in range(5 * MANY))
    )


@_hostile
def a_flood_of_rows_of_the_host(folder: Path) -> None:
    _rows(folder / "host.csv", (f"{WALL_S},{MONO_S + n / 20_000:.6f},{n % 101}" + "," * 22 for n in range(5 * MANY)))


@_hostile
def processes_without_number(folder: Path) -> None:
    row = "{0},{1},0,{2},p{2},10,{3},other,5"
    times = [(WALL_S + n * 50 / MANY, MONO_S + n * 50 / MANY, n) for n in range(MANY)]
    _rows(folder / "processes.csv", (row.format(*each, "appeared" if each[2] % 3 else "gone") for each in times))


@_hostile
def a_process_that_comes_and_goes(folder: Path) -> None:
    row = "{0},{1},0,777,other.py,{2},{3},other,50"
    times = [(WALL_S + n * 50 / MANY, MONO_S + n * 50 / MANY, n % 1000) for n in range(MANY)]
    _rows(
        folder / "processes.csv",
        (row.format(*each, ("appeared", "changed", "gone")[n % 3]) for n, each in enumerate(times)),
    )


@_hostile
def names_of_a_megabyte(folder: Path) -> None:
    row = f"{WALL_S},{MONO_S},0,{{}},{'n' * MIB},10,appeared,other,5"
    _rows(folder / "processes.csv", (row.format(9000 + n) for n in range(MANY // 5000)))


# --- run.json -----------------------------------------------------------------------------------------------------


@_hostile
def an_interval_of_nothing(folder: Path) -> None:
    _info(folder, interval_s=1e-300)


@_hostile
def an_interval_of_a_day(folder: Path) -> None:
    _info(folder, interval_s=86_400)


@_hostile
def megabytes_of_brackets(folder: Path) -> None:
    (folder / "run.json").write_text('{"format": 1, "host": [' + ",".join(["[[],{}]"] * 2 * MANY) + "]}")


@_hostile
def a_command_of_endless_words(folder: Path) -> None:
    _info(folder, command=["--word"] * 2 * MANY)


@_hostile
def an_end_a_year_later(folder: Path) -> None:
    _info(folder, end={"wall_s": WALL_S + 365 * 86_400, "mono_s": MONO_S + 365 * 86_400})


@_hostile
def many_yolo_runs(folder: Path) -> None:
    _info(folder, yolo=[{"number": number, "path": "/x"} for number in range(MANY // 2)])
    for number in range(1, MANY // 60):
        (folder / "yolo" / str(number)).mkdir()


# --- all of it ----------------------------------------------------------------------------------------------------


@_hostile
def zeros_for_all_text(folder: Path) -> None:
    for path in [*folder.glob("*.csv"), *folder.glob("*.jsonl"), *folder.rglob("*.yaml")]:
        if path.name != "samples.csv":
            path.write_bytes(b"\0" * 40 * MANY)


@_hostile
def another_encoding(folder: Path) -> None:
    for path in [*folder.rglob("*.csv"), *folder.rglob("*.json*"), *folder.rglob("*.yaml")]:
        path.write_bytes(path.read_text().encode("utf-16"))


@_hostile
def pipes_among_what_is_not_read(folder: Path) -> None:
    for name in ("labels.json", "inside/1.jsonl", "weights", "yolo/7"):
        (folder / name).unlink(missing_ok=True)
        os.mkfifo(folder / name)
