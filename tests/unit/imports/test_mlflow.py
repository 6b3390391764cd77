"""Import of MLflow's system metrics: its own package wrote the files, of a run that was played to NVML."""

import json
import sqlite3
from contextlib import closing

import pytest

from gpu_report.errors import InputError
from gpu_report.imports.formats import format_of
from gpu_report.imports.selection import Selection

from .conftest import DATA

STORE = "imports/mlflow"
FOLDER = DATA / STORE / "run-1" / "metrics" / "system"


def metrics():
    """The metrics of the real run: key, value, time in ms and step."""
    for file in sorted(FOLDER.iterdir()):
        for line in file.read_text().splitlines():
            stamp, value, step = line.split()
            yield f"system/{file.name}", float(value), int(stamp), int(step)


@pytest.fixture
def database(tmp_path):
    """A database as MLflow's, with the real run in it and as many copies as are asked for."""

    def make(*runs):
        path = tmp_path / "mlflow.db"
        with closing(sqlite3.connect(path)) as store, store:
            store.execute(
                "CREATE TABLE metrics (key TEXT, value REAL, timestamp INT, run_uuid TEXT, step INT, is_nan INT)"
            )
            rows = [(key, value, stamp, run, step, 0) for run in runs for key, value, stamp, step in metrics()]
            store.executemany("INSERT INTO metrics VALUES (?, ?, ?, ?, ?, ?)", rows)
        return path

    return make


def test_a_real_store_of_files(imported):
    run = imported(STORE)
    assert (run.facts["source"], len(run.rows)) == ("MLflow", 27)
    assert run.facts["interval_s"] == pytest.approx(5, abs=0.1)
    megabytes = [float(line.split()[1]) for line in (FOLDER / "gpu_0_memory_usage_megabytes").read_text().splitlines()]
    assert run.column("memory_used_mib") == pytest.approx([value * 1e6 / 2**20 for value in megabytes], abs=0.6)
    assert 50 < max(run.column("gpu_util_pct")) <= 100
    assert max(run.column("power_w")) > 300
    assert float(run.host[-1]["memory_used_mib"]) > 100
    assert any("gpu_N_power_usage_percentage" in note for note in run.notes)


def test_a_database(imported, database):
    run = imported(database("r1"))
    assert run.rows == imported(STORE).rows


def test_of_several_runs_one_is_chosen(imported, database):
    path = database("r1", "r2")
    with pytest.raises(InputError, match=r"of 2 runs: choose one with --label run=ID \(r1, r2\)"):
        imported(path)
    assert len(imported(path, selection=Selection((("run", "r2"),))).rows) == 27


def test_a_saved_answer_of_the_rest_api(imported, written):
    found = [dict(zip(("key", "value", "timestamp", "step"), each, strict=True)) for each in metrics()]
    log = written(json.dumps({"metrics": found}), "history.json")
    assert format_of(log) == "mlflow"
    assert imported(log).rows == imported(STORE).rows


@pytest.mark.parametrize(("tokens", "said"), [(["a"], True), (["a", None], False), ([None], False)])
def test_pages_that_are_not_there_are_said(imported, written, tokens, said):
    key = "system/gpu_0_utilization_percentage"
    pages = [
        {"metrics": [{"key": key, "value": 5, "timestamp": 1e12 + 1e4 * at}], "next_page_token": token}
        for at, token in enumerate(tokens)
    ]
    notes = imported(written("\n".join(map(json.dumps, pages)), "history.json")).notes
    assert [note.endswith(f"with page_token for the rest of {key}.") for note in notes] == [True] * said


def test_a_node_stands_in_the_name(imported, written):
    found = [{"key": f"system/node_{n}/gpu_0_utilization_percentage", "value": n, "timestamp": 10**12} for n in (1, 2)]
    log = written(json.dumps(found), "history.json")
    assert imported(log, selection=Selection((("node", "node_2"),))).column("gpu_util_pct") == [2]
    with pytest.raises(InputError, match="2 nodes"):
        imported(log)


def test_what_has_no_system_metrics_is_refused(imported, tmp_path, database):
    (tmp_path / "mlruns").mkdir()
    for path in (tmp_path / "mlruns", database()):
        with pytest.raises(InputError, match="holds no system metrics"):
            imported(path, source="mlflow")
    (tmp_path / "broken.db").write_bytes(b"SQLite format 3\0" + b"x" * 100)
    with pytest.raises(InputError, match=r"broken\.db cannot be read"):
        imported(tmp_path / "broken.db")


def test_they_are_known_by_their_content(database, tmp_path):
    assert format_of(DATA / STORE) == format_of(database("r1")) == "mlflow"
    assert format_of(tmp_path) == "tensorboard"  # any other folder
