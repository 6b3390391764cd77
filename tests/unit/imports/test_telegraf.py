"""Import of Telegraf's nvidia_smi: readings of a real nvidia-smi log, in its forms and InfluxDB's."""

import csv
import io
import json
from datetime import UTC, datetime

import pytest

from gpu_report.errors import InputError
from gpu_report.imports.formats import format_of
from gpu_report.imports.selection import Selection

from .conftest import DATA

LOG = "imports/telegraf.influx"
FIELDS = {"gpu_util_pct": "utilization_gpu", "memory_used_mib": "memory_used", "power_w": "power_draw"}


def metrics(run):
    """The readings of a run as Telegraf's metrics."""
    for row in run.rows:
        fields = {theirs: float(row[ours]) for ours, theirs in FIELDS.items()}
        tags = {"host": "node1", "index": row["gpu"], "pstate": "P0", "uuid": f"GPU-{row['gpu']}"}
        yield {"name": "nvidia_smi", "tags": tags, "fields": fields, "timestamp": int(float(row["wall_s"]))}


def lines(found):
    return "".join(json.dumps(each) + "\n" for each in found)


def batch(found):
    return json.dumps({"metrics": list(found)})


def annotated_csv(found):
    """A table a field, each with its annotations and header, as InfluxDB answers."""
    file = io.StringIO()
    writer = csv.writer(file)
    for field in FIELDS.values():
        writer.writerow(["#datatype", "string", "long", "dateTime:RFC3339", "double", *["string"] * 4])
        writer.writerow(["", "result", "table", "_time", "_value", "_field", "_measurement", "host", "index"])
        for each in found:
            at = datetime.fromtimestamp(each["timestamp"], UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            tags = each["tags"]
            writer.writerow(["", "", 0, at, each["fields"][field], field, "nvidia_smi", tags["host"], tags["index"]])
        writer.writerow([])
    return file.getvalue()


def pivoted_csv(found):
    names = ["", "result", "table", "_time", "_measurement", "host", "index", *FIELDS.values()]
    rows = []
    for each in found:
        at = datetime.fromtimestamp(each["timestamp"], UTC).isoformat()
        rows.append(["", "", "0", at, "nvidia_smi", "node1", each["tags"]["index"], *map(str, each["fields"].values())])
    return "\n".join(",".join(row) for row in [names, *rows]) + "\n"


def test_line_protocol(imported):
    run = imported(LOG)
    assert format_of(DATA / LOG) == "telegraf"
    assert (run.facts["source"], run.facts["host"]["name"], run.facts["interval_s"]) == ("Telegraf", "node1", 10)
    assert len(run.rows) == 36
    known = run.facts["gpus"][1]
    assert (known["name"], known["memory_total_mib"], known["power_limit_w"]) == ("NVIDIA H200", 143771, 700)
    first = run.rows[0]
    assert (first["wall_s"], first["power_w"], first["sm_clock_mhz"]) == ("1795223790.000", "78.8", "345")
    assert (first["temperature_c"], first["performance_state"]) == ("37", "0")


def test_readings_are_those_of_nvidia_smi(imported):
    run, smi = imported(LOG), imported("nvidia_smi/ddp-60s.csv")
    for column in ("gpu_util_pct", "memory_used_mib", "power_w"):
        theirs = {int(float(row["wall_s"])): row[column] for row in smi.rows if row["gpu"] == "1"}
        ours = {int(float(row["wall_s"])): row[column] for row in run.rows if row["gpu"] == "1"}
        both = theirs.keys() & ours.keys()
        assert len(both) >= 5
        assert [ours[at] for at in both] == [theirs[at] for at in both]


def test_the_host_is_that_of_all_processors(imported):
    host = imported(LOG).host
    assert {(row["cpu_pct"], row["memory_used_mib"], row["memory_available_mib"]) for row in host} == {
        ("24.5", "1024", "2048")
    }


def test_names_without_a_place_are_listed(imported):
    assert imported(LOG).notes == (
        "Not imported of Telegraf, for a run has no such column: clocks_current_graphics, memory_free.",
    )


@pytest.mark.parametrize("written_as", [lines, batch, annotated_csv, pivoted_csv])
def test_other_forms_say_the_same(imported, written, written_as):
    real = imported(LOG)
    log = written(written_as(list(metrics(real))), "telegraf.log")
    assert format_of(log) == "telegraf"
    run = imported(log)
    for gpu in (0, 1):
        for column in FIELDS:
            assert run.column(column, gpu) == real.column(column, gpu)


@pytest.mark.parametrize("digits", ["", "000", "000000", "000000000"])
def test_a_stamp_is_in_any_unit(imported, written, digits):
    text = f"nvidia_smi,host=a,index=0 utilization_gpu=5i 1795223790{digits}\n"
    assert imported(written(text)).rows[0]["wall_s"] == "1795223790.000"


def test_text_with_blanks_commas_and_quotes_is_no_field(imported, written):
    said = 'vbios_version="a, utilization_gpu=99i \\" b"'
    text = f"nvidia_smi,host=a\\ b,index=0,name=NVIDIA\\ H200\\,\\ x {said},utilization_gpu=5i 1795223790\n"
    run = imported(written(text))
    assert (run.column("gpu_util_pct"), run.facts["host"]["name"]) == ([5], "a b")


def test_hosts_are_chosen_from(imported, written):
    log = written(
        "".join(f"nvidia_smi,host={host},index=0 utilization_gpu={at}i 10\n" for at, host in enumerate("ab", 1))
    )
    with pytest.raises(InputError, match=r"2 nodes: choose one with --label node=NAME \(a, b\)"):
        imported(log)
    assert imported(log, selection=Selection((("node", "b"),))).column("gpu_util_pct") == [2]


def test_metrics_of_the_host_alone_are_refused(imported, written):
    with pytest.raises(InputError, match="no reading of a GPU was found: write Telegraf's nvidia_smi"):
        imported(written("cpu,cpu=cpu-total,host=a usage_idle=5 1795223790\n"), source="telegraf")
