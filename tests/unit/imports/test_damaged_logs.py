"""Whatever becomes of a log: it is read, as far as it goes, or refused in one line."""

import errno
import random
import sqlite3
from datetime import datetime

import pytest

from gpu_report.errors import InputError
from gpu_report.imports.formats import FORMATS, format_of
from gpu_report.imports.import_logs import import_logs
from gpu_report.imports.times import zone_name
from gpu_report.load import load_run

from .conftest import DATA

LOGS = {
    "dmon": "imports/ddp-dmon.txt",
    "pmon": "imports/ddp-pmon.txt",
    "nvidia-smi-table": "imports/nvidia-smi-table.txt",
    "gpustat": "imports/gpustat.json",
    "telegraf": "imports/telegraf.influx",
    "nvitop": "imports/nvitop.csv",
    "prometheus": "imports/dcgm-answer.json",
    "wandb": "imports/run-wandb.wandb",
    "mlflow": "imports/mlflow/run-1/metrics/system/gpu_0_utilization_percentage",
}
MUTATIONS = 12  # of each: `make fuzz` has more time


def mutated(data, rng):
    """Return a log that was cut, had bytes changed, or pieces removed, repeated or put elsewhere."""
    data = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at, length = rng.randrange(len(data)), rng.randint(1, 400)
        kind = rng.choice(["cut", "bytes", "remove", "repeat", "digits", "zeros"])
        if kind == "cut" and at > 200:
            del data[at:]
        elif kind == "bytes":
            data[at : at + 8] = rng.randbytes(8)
        elif kind == "remove":
            del data[at : at + length]
        elif kind == "repeat":
            data[at:at] = data[max(at - length, 0) : at]
        elif kind == "digits":
            data[at:at] = b"9" * rng.choice([3, 20, 400])
        elif kind == "zeros":
            data[at : at + length] = bytes(length)
        if not data:
            return b"x"
    return bytes(data)


@pytest.mark.parametrize("name", LOGS)
def test_a_damaged_log_is_read_or_refused_in_one_line(tmp_path, name):
    rng = random.Random(name)
    data = (DATA / LOGS[name]).read_bytes()
    read = 0
    for number in range(MUTATIONS):
        folder = tmp_path / str(number)
        path = folder / "metrics" / "system" / "gpu_0_utilization_percentage" if name == "mlflow" else folder / "log"
        path.parent.mkdir(parents=True)
        path.write_bytes(mutated(data, rng))
        try:
            import_logs([folder if name == "mlflow" else path], folder / "run", source=name, timezone="UTC")
        except InputError as error:
            assert "\n" not in str(error)  # noqa: PT017 (both ways out are right)
            continue
        load_run(folder / "run")
        read += 1
    assert read > 0


def test_a_damaged_database_is_refused_in_one_line(tmp_path):
    path = tmp_path / "mlflow.db"
    with sqlite3.connect(path) as store:
        store.execute("CREATE TABLE metrics (key TEXT, value REAL, timestamp INT, run_uuid TEXT, step INT, is_nan INT)")
        store.executemany(
            "INSERT INTO metrics VALUES (?, 1, ?, 'r', 0, 0)",
            [("system/gpu_0_utilization_percentage", 10**12 + at) for at in range(2000)],
        )
    data = path.read_bytes()
    path.write_bytes(data[:4096] + b"\xff" * 5000 + data[9096:])
    with pytest.raises(InputError) as raised:
        import_logs([path], tmp_path / "run")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("name", FORMATS)
def test_a_log_that_cannot_be_opened_is_refused_in_one_line(tmp_path, monkeypatch, name):
    """Also for root, whom no permission stops: the name is too long, or opening fails."""
    path = tmp_path / "log"
    path.write_text("x")

    def barred(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    with monkeypatch.context() as patch:
        for opener in ("pathlib.Path.open", "builtins.open", "io.open", "os.open"):
            patch.setattr(opener, barred)
        with pytest.raises(InputError, match="Permission denied"):
            import_logs([path], tmp_path / "run", source=name)
    with pytest.raises(InputError, match="File name too long"):
        import_logs([tmp_path / ("a" * 300)], tmp_path / "run", source=name)


def test_a_log_whose_name_is_too_long_is_in_no_format(tmp_path):
    with pytest.raises(InputError, match="File name too long"):
        format_of(tmp_path / ("a" * 300))


def test_a_year_at_the_edge_of_the_calendar_has_a_zone():
    assert zone_name(None, datetime.min)  # noqa: DTZ901 (a local time)


def test_every_format_has_its_row_in_the_documentation():
    page = (DATA.parents[1] / "docs" / "imports.md").read_text()
    assert [name for name in FORMATS if f"| `{name}` |" not in page] == []


def test_a_log_in_no_known_format_says_how_to_log(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("hello\n")
    assert format_of(path) == "nvidia-smi"
    with pytest.raises(InputError, match=r"no header with nvidia-smi's columns .* \(dmon, pmon, .*tensorboard\)"):
        import_logs([path], tmp_path / "run")


def test_the_help_names_every_format():
    from gpu_report.imports.format_names import NAMES  # noqa: PLC0415

    assert set(NAMES) == set(FORMATS)
