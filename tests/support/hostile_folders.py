"""Run folders that were made to hang a reader, or to fill its memory: each a small real run with one thing wrong."""

import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from gpu_report.schema import EVENT_KINDS, INSIDE_KINDS

SAMPLE = Path(__file__).resolve().parents[2] / "sample_runs" / "s-healthy"
MIB = 2**20
FULL = os.environ.get("HOSTILE") == "full"  # as large as `make fuzz` makes them; else a tenth, which takes a third
MANY = 200_000 if FULL else 20_000  # lines, rows, items
HUGE = "9" * 400
ODD = (
    *(None, True, [], {}, "", "text", -1, 0, 1e308, 10**400, float("nan"), float("-inf"), 2**63, 0.5, "1", "\ud800"),
    *([None] * 2000, {"a": {"b": [1]}}, [{}], [[[[[]]]]], "9" * 400, {str(n): n for n in range(500)}, "x" * 5000),
)
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


# --- events.jsonl, and what callbacks wrote -----------------------------------------------------------------------


def _fields(kinds: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each kind with each name that may be a field of one: all words of what the schema says of them."""
    names = sorted({name for words in kinds.values() for name in re.findall("[a-z_]{2,}", words)})
    return ((kind, name) for kind in kinds for name in names)


def _odd_events(kinds: Mapping[str, str]) -> Iterator[dict[str, object]]:
    """Yield every kind with every field of a wrong type: a part of all pairs, each field with each value."""
    for number, (kind, name) in enumerate(_fields(kinds)):
        yield {"kind": kind, name: ODD[number % len(ODD)]}
        yield {"kind": kind, "gpu": ODD[(number // 3) % len(ODD)], name: ODD[(number // 7) % len(ODD)]}


def _spoilt(path: Path) -> None:
    """Spoil each field of each real line of a file in turn."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    fields = [(line, name) for line in lines for name in line]
    spoilt = [{**line, name: ODD[number % len(ODD)]} for number, (line, name) in enumerate(fields)]
    path.write_text("".join(json.dumps(line) + "\n" for line in [*lines, *spoilt]))


def _huge_numbers(path: Path) -> None:
    """Append real lines whose numbers have 400 digits, or are none."""
    text = path.read_text()
    digits = re.sub(r"(?<=: )[0-9.]+", HUGE, text)
    of_fields = re.sub(r'("(?!wall_s|mono_s)[a-z_]+": )[0-9.]+', rf"\g<1>-{HUGE}", text)
    none = re.sub(r'("(?!wall_s|mono_s)[a-z_]+": )[0-9.]+', r"\1NaN", text)
    infinite = re.sub(r'("(?!kind)[a-z_]+": )[0-9.]+', r"\1-Infinity", text)
    path.write_text("\n".join([text, digits, of_fields, none, infinite]))


def _odd_times(path: Path) -> None:
    """Append real lines at times that are none, or in no order."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    times = [(1e300, 1e300), (-1e300, None), (1e11, -1e11), (0, 0), (WALL_S, 1e300), (WALL_S, None), (-1e11, 1e11)]
    away = [{**line, "wall_s": wall, "mono_s": mono} for line in lines for wall, mono in times]
    moved = [{**line, "mono_s": line["mono_s"] * 3.3 % 60 + MONO_S} for line in lines * 20]
    path.write_text("".join(json.dumps(line) + "\n" for line in [*lines[::-1], *away, *moved]))


def _nested(path: Path) -> None:
    """Append lines that are nested more deeply than any parser bears."""
    with path.open("a") as file:
        for kind in ("marker", "epoch", "phase", "settings", "gap"):
            for opening, closing in ("[]", ('{"a":', "}")):
                inner = opening * MANY + "1" + closing * MANY
                file.write(f'{{"wall_s": {WALL_S}, "mono_s": {MONO_S}, "kind": "{kind}", "metrics": {inner}}}\n')


def _long_lines(path: Path, kinds: Iterable[str]) -> None:
    """Append a line of ten megabytes of each kind, in each field that is a text."""
    text = "x=1 NVRM: Xid (PCI:0000:01:00): 79, " * (MIB // 4)
    names = ("text", "reason", "path", "name", "detail", "error", "where", "model", "data_folder")
    with path.open("a") as file:
        for kind in kinds:
            line = {"wall_s": WALL_S, "mono_s": MONO_S, "kind": kind, **dict.fromkeys(names[:1], text)}
            short = {**line, **dict.fromkeys(names, text[: MIB // 8])}
            file.write(json.dumps(line) + "\n" + json.dumps(short) + "\n")


@_hostile
def events_of_wrong_types(folder: Path) -> None:
    _spoilt(folder / "events.jsonl")
    _events(folder, _odd_events(EVENT_KINDS))


@_hostile
def callbacks_of_wrong_types(folder: Path) -> None:
    path = _inside(folder)
    _spoilt(path)
    _events(folder, _odd_events(INSIDE_KINDS), str(path.relative_to(folder)))


@_hostile
def events_with_numbers_of_four_hundred_digits(folder: Path) -> None:
    _huge_numbers(folder / "events.jsonl")


@_hostile
def callbacks_with_numbers_of_four_hundred_digits(folder: Path) -> None:
    _huge_numbers(_inside(folder))


@_hostile
def events_at_odd_times(folder: Path) -> None:
    _odd_times(folder / "events.jsonl")


@_hostile
def callbacks_at_odd_times(folder: Path) -> None:
    _odd_times(_inside(folder))


@_hostile
def events_nested_deeply(folder: Path) -> None:
    _nested(folder / "events.jsonl")


@_hostile
def callbacks_nested_deeply(folder: Path) -> None:
    _nested(_inside(folder))


@_hostile
def a_marker_of_ten_megabytes(folder: Path) -> None:
    _long_lines(folder / "events.jsonl", ["marker"])


@_hostile
def a_kernel_line_of_ten_megabytes(folder: Path) -> None:
    _long_lines(folder / "events.jsonl", ["kernel"])


@_hostile
def reasons_of_megabytes(folder: Path) -> None:
    kinds = ("gap", "nvml_error", "nvml_unavailable", "kernel_log", "rows_lost", "yolo_run", "xid_events")
    for kind in kinds:
        _events(folder, [{"kind": kind, "gpu": 0, "reason": "r " * MIB, "path": "/p" * MIB, "quantity": "q" * MIB}])


@_hostile
def callbacks_of_ten_megabytes(folder: Path) -> None:
    _long_lines(_inside(folder), ["run", "settings", "phase", "error", "ended"])


@_hostile
def an_epoch_with_endless_metrics(folder: Path) -> None:
    metrics = {f"m{number}": number for number in range(5 * MANY)}
    _events(folder, ({"kind": "epoch", "run": 1, "epoch": 9 + n, "time_s": 90, "metrics": metrics} for n in range(3)))


# --- yolo/ --------------------------------------------------------------------------------------------------------


def _results(folder: Path, lines: Iterable[str]) -> None:
    _without_epochs(folder)
    (folder / "yolo" / "results.csv").write_text("\n".join([*lines, ""]))


@_hostile
def results_of_sixteen_thousand_columns(folder: Path) -> None:
    header = ["epoch", "time", *(f"c{n}" for n in range(9_000))]
    _results(folder, [",".join(header), *(",".join([str(n), str(n * 5), *["1"] * 9_000]) for n in range(1, 20))])


@_hostile
def results_with_columns_of_one_name(folder: Path) -> None:
    _results(folder, ["epoch, epoch,time,time ,epoch", *(f"{n},{n},{5 * n},{5 * n},7" for n in range(1, 9))])


@_hostile
def results_of_odd_numbers(folder: Path) -> None:
    cells = (HUGE, "nan", "inf", "-inf", "1e300", "-1", "", "x", "1e308", "0", "9007199254740993", "True", "1_0")
    rows = (f"{a},{b},{c}" for a in cells for b in cells for c in cells[:3])
    _results(folder, ["epoch,time,train/box_loss", *rows])


@_hostile
def results_of_a_resume_a_row(folder: Path) -> None:
    _results(folder, ["epoch,time,loss", *(f"{n % 100},{(MANY - n) / 1000},1" for n in range(MANY))])


@_hostile
def results_with_cells_of_a_megabyte(folder: Path) -> None:
    _results(folder, ["epoch,time,loss", *(f"{n},{n * 5},{'7' * MIB}" for n in range(1, 7))])


@_hostile
def results_with_a_quote_that_never_ends(folder: Path) -> None:
    _results(folder, ["epoch,time,loss", '1,5,"' + "1,2,3\n" * 2 * MANY])


def _args(folder: Path, text: str) -> None:
    (folder / "yolo" / "args.yaml").write_text(text)


@_hostile
def settings_of_wrong_types(folder: Path) -> None:
    names = re.findall(r"(?m)^(\w+):", (folder / "yolo" / "args.yaml").read_text())
    _args(folder, "".join(f"{name}: {json.dumps(ODD[n % len(ODD)])}\n" for n, name in enumerate(names)))


@_hostile
def settings_nested_deeply(folder: Path) -> None:
    _args(folder, "data: " + "[" * 100_000 + "]" * 100_000)


@_hostile
def settings_that_share_parts_a_million_times(folder: Path) -> None:
    levels = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30))
    _args(folder, f"a0: &a0 [x, x]\n{levels}")


@_hostile
def settings_of_as_many_keys_as_are_read(folder: Path) -> None:
    _args(folder, "".join(f"k{n}: {n}\n" for n in range(18_000)))


@_hostile
def settings_of_numbers_without_end(folder: Path) -> None:
    numbers = (HUGE, "1:" * 5000 + "1", "0x" + "f" * 9000, "1_" * 5000 + "1", ".nan", "-.inf", "1e400", "0b1" * 9)
    _args(
        folder,
        "".join(
            f"{name}: {number}\n"
            for name, number in zip(
                ("batch", "epochs", "imgsz", "workers", "lr0", "close_mosaic", "patience", "cache"),
                numbers,
                strict=True,
            )
        ),
    )


@_hostile
def settings_of_ten_megabytes(folder: Path) -> None:
    _args(folder, "model: " + "m" * 10 * MIB)


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
