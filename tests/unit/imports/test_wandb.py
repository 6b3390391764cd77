"""Import of wandb's system metrics: its own package wrote the log, of a run that was played to NVML."""

import json

import pytest

from gpu_report.errors import InputError
from gpu_report.imports.formats import format_of
from gpu_report.imports.selection import Selection

from .conftest import DATA

LOG = "imports/run-wandb.wandb"


def rows_of(imported):
    """The rows of the real log under the names that the history has."""
    names = {"gpu_util_pct": "gpu", "power_w": "powerWatts", "memory_used_mib": "memoryAllocatedBytes"}
    factor = {"memory_used_mib": 2**20}
    return [
        {
            "_timestamp": float(row["wall_s"]),
            "_runtime": float(row["mono_s"]),
            **{f"system.gpu.0.{theirs}": float(row[ours]) * factor.get(ours, 1) for ours, theirs in names.items()},
        }
        for row in imported.rows
    ]


def test_a_real_local_log(imported):
    run = imported(LOG)
    assert (run.facts["source"], run.facts["interval_s"], len(run.rows)) == ("Weights & Biases", 5.0, 29)
    first = run.rows[0]
    assert (first["gpu_util_pct"], first["memory_util_pct"], first["power_w"]) == ("97", "53", "610.5")
    assert (first["memory_used_mib"], first["temperature_c"], first["sm_clock_mhz"]) == ("43945", "49", "1965")
    assert run.column("energy_j") == sorted(run.column("energy_j"))
    assert float(run.host[0]["memory_available_mib"]) > 20_000
    assert run.host[0]["cpu_pct"] == ""  # wandb's `cpu` is of one process


def test_names_without_a_place_are_listed(imported):
    (note,) = imported(LOG).notes
    assert "gpu.N.powerPercent" in note
    assert "network.recv" in note


def test_a_log_that_is_cut_gives_what_is_whole(imported, tmp_path):
    data = (DATA / LOG).read_bytes()
    for size in (8_000, 20_000):
        path = tmp_path / f"run-{size}.wandb"
        path.write_bytes(data[:size])
        assert 0 < len(imported(path).rows) < 29


def test_damage_is_survived(imported, tmp_path):
    data = bytearray((DATA / LOG).read_bytes())
    data[9_000:9_050] = b"\xff" * 50
    path = tmp_path / "run.wandb"
    path.write_bytes(bytes(data))
    assert 0 < len(imported(path).rows) <= 29


@pytest.mark.parametrize("kind", ["csv", "lines", "list", "columns"])
def test_the_history_as_csv_or_json(imported, written, kind):
    real = imported(LOG)
    rows = rows_of(real)
    if kind == "csv":
        text = "\n".join([",".join(["", *rows[0]]), *(",".join(["0", *map(repr, row.values())]) for row in rows), ""])
    elif kind == "columns":
        text = json.dumps({name: {str(at): row[name] for at, row in enumerate(rows)} for name in rows[0]})
    else:
        text = "\n".join(map(json.dumps, rows)) if kind == "lines" else json.dumps(rows)
    log = written(text, f"history.{kind}")
    assert format_of(log) == "wandb"
    run = imported(log)
    for name in ("gpu_util_pct", "power_w", "memory_used_mib"):
        assert run.column(name) == pytest.approx(real.column(name), abs=0.6)


def test_a_power_limit_is_of_the_card(imported, written):
    rows = [{"_timestamp": at, "system.gpu.0.gpu": 5, "system.gpu.0.enforcedPowerLimitWatts": 700} for at in (0, 15)]
    run = imported(written(json.dumps(rows), "history.json"))
    assert (run.facts["gpus"][0]["power_limit_w"], run.notes) == (700, ())


def test_nodes_are_chosen_by_a_label(imported, written):
    rows = [{"_timestamp": 100 + at, "system.gpu.0.gpu/l:a": 1, "system.gpu.0.gpu/l:b": 2} for at in (0, 15)]
    log = written(json.dumps(rows), "history.json")
    with pytest.raises(InputError, match=r"2 nodes: choose one with --label node=NAME \(a, b\)"):
        imported(log)
    run = imported(log, selection=Selection((("node", "b"),)))
    assert run.column("gpu_util_pct") == [2, 2]
    assert run.facts["host"]["name"] == "b"


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", "[]", "_timestamp\n1\n"])
def test_a_log_without_readings_is_refused(imported, written, text):
    with pytest.raises(InputError, match="history"):
        imported(written(text, "history.csv"), source="wandb")


def test_it_is_known_by_its_content(tmp_path, imported):
    assert format_of(DATA / LOG) == "wandb"
    (tmp_path / "run-1.wandb").write_bytes((DATA / LOG).read_bytes())
    assert format_of(tmp_path) == "wandb"
    assert imported(tmp_path).rows == imported(LOG).rows
