"""Logs of two machines, whose GPUs have the same indices, are not one run."""

import json

import pytest

from gpu_report.errors import InputError
from gpu_report.imports.selection import Selection

from .test_gpustat import document

HEADER = "timestamp, index, uuid, utilization.gpu [%]\n"


def smi(uuid, first=0, rows=20, ms=250):
    return [f"2026/11/21 01:00:{n:02d}.{ms}, 0, {uuid}, {n} %\n" for n in range(first, first + rows)]


def gpustat(node, **gpu):
    return [json.dumps({**document(n, **gpu), "hostname": node}) + "\n" for n in range(10)]


def turns(*logs):
    return "".join(each for together in zip(*logs, strict=True) for each in together)


def test_two_files_of_the_same_time(imported, written):
    logs = [written(HEADER + "".join(smi(f"GPU-{name}")), f"{name}.csv") for name in "ab"]
    with pytest.raises(InputError, match=r"two machines: GPU 0 is GPU-a and GPU-b at the same time.*render job\.html"):
        imported(*logs)


def test_two_machines_that_wrote_into_one_file(imported, written):
    with pytest.raises(InputError, match="two machines: GPU 0 is GPU-a and GPU-b"):
        imported(written(HEADER + turns(smi("GPU-a"), smi("GPU-b", ms=750))))


def test_a_card_that_was_renumbered_is_no_other_machine(imported, written):
    text = HEADER + "".join([*smi("GPU-a"), *smi("GPU-b", first=20), *smi("GPU-a", first=40)])
    assert len(imported(written(text)).rows) == 60


def test_without_uuids_it_is_said_in_the_report(imported, written):
    header = HEADER.replace("uuid, ", "")
    logs = [written(header + "".join(smi("", ms=ms)).replace(", ,", ","), f"{ms}.csv") for ms in (250, 750)]
    (note,) = imported(*logs).facts["notes"]
    assert note.startswith("Logs of the same time have rows of GPU 0 each")


def test_hosts_that_gpustat_names_are_chosen_from(imported, written):
    log = written(turns(gpustat("a"), gpustat("b", uuid="GPU-2", **{"utilization.gpu": 9})))
    with pytest.raises(InputError, match=r"2 nodes: choose one with --label node=NAME \(a, b\)"):
        imported(log)
    chosen = imported(log, selection=Selection(labels=(("node", "b"),)))
    assert (set(chosen.column("gpu_util_pct")), chosen.facts["host"]["name"]) == ({9}, "b")
    assert not [note for note in chosen.notes if "other readings" in note]


def test_two_runs_of_wandb_at_the_same_time_are_said_to_be_two(imported, written):
    def log(util, first_s):
        rows = [{"_timestamp": 100 + first_s + at, "system.gpu.0.gpu": util} for at in range(0, 300, 15)]
        return written("".join(json.dumps(row) + "\n" for row in rows), f"{util}.json")

    (note,) = imported(log(90, 0), log(5, 7)).facts["notes"]
    assert note.startswith("Logs of the same time have rows of GPU 0 each")
    assert "notes" not in imported(log(90, 0), log(5, 400)).facts


@pytest.mark.parametrize(("uuid", "refused"), [("GPU-a", False), ("GPU-b", True)])
def test_logs_of_two_tools_are_of_one_machine(imported, written, uuid, refused):
    query = written(HEADER + "".join(smi("GPU-a")), "smi.csv")
    other = written("".join(gpustat("node", uuid=uuid)), "gpustat.json")
    if not refused:
        assert imported(query, other).facts["host"]["name"] == "node"
        return
    with pytest.raises(InputError, match="two machines: GPU 0 is GPU-a and GPU-b at the same time"):
        imported(query, other)
