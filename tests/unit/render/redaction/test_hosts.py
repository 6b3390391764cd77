"""Machines that a sentence or a command names, and arguments whose name somebody gave."""

import json
import shutil
import time
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from support.samples import SAMPLES

from gpu_report.analyse import analyse
from gpu_report.analyse.compare import compare
from gpu_report.analyse.compare.gate_syntax import default_gates
from gpu_report.inside.on_path.gpu_report_inside import facts
from gpu_report.load import load_run
from gpu_report.render import render_html
from gpu_report.render.comparison.comparison_json import build_comparison
from gpu_report.render.comparison.page import render_comparison_html
from gpu_report.render.redaction.placeholders import LONGEST_TEXT, Hider
from gpu_report.render.redaction.redact import redact, redact_comparison
from gpu_report.render.redaction.yolo_arguments import YOLO_ARGUMENTS
from gpu_report.render.run.summary_json import build_summary

HOSTS = ("civet", "civet-07", "civet7", "civet.lab", "10.20.30.40", "[2001:db8::17]", "[::ffff:10.20.30.40]")
TOLD = (
    "[c10d] The client socket has failed to connect to [civet]:29500 (errno: 111 - Connection refused).",
    "rdzv_endpoint={}:29500 rdzv_backend=c10d",
    "tcp://{}:29500 is not reachable, connect to {}:29500",
    "The connection to the C10d store has failed: {}:29400",
    "MASTER_ADDR={} MASTER_PORT=29500",
    "HTTPConnectionPool(host='{}', port=8080): Max retries",
    "('{}', 29500)",
    "{}:4711:4720 [0] NCCL INFO Bootstrap : Using eth0",
    "Call to recv from {}<43567> failed",
    "could not resolve host: {}",
    'connection to server at "{}" (10.1.1.1), port 5432 failed',
    "ssh: connect to host {} port 22: Connection refused",
    "me@{}:29500 is down",
)
ARGUMENTS = {
    "alice_aug": 1,
    "quagga": 2,
    "augment_of": {"okapi_key": 3},
    "rdzv": "civet9:29500",
    "peer": "10.20.30.41:1",
}
SECRETS = ("alice_aug", "quagga", "augment_of", "okapi_key", "civet", "10.20.30.4", "2001:db8::17", "29511")


@pytest.mark.parametrize("told", TOLD)
@pytest.mark.parametrize("host", HOSTS)
def test_a_machine_is_hidden_wherever_it_is_named(told, host):
    hidden = Hider().text(told.format(host, host))
    assert "civet" not in hidden
    assert host.strip("[]") not in hidden


@pytest.mark.parametrize(
    "text",
    [
        "Xid (PCI:0000:41:00): 79, pid=4711, pid:4711 inode:12345 sector:88888",
        "train.py:1234: error, tasks.cc:8021 and model.py:31:5",
        "epoch:1200 batch:1024 imgsz:1280 lr:0.01 iter:5000 at 2026-11-22T21:00:00 and 12:30:45",
        "cuda:0 cuda:12 sda1:8192 localhost:29500 python3.11:12 16:9 1920:1080 [rank0]:12",
    ],
)
def test_what_is_no_machine_reads_as_before(text):
    assert Hider().text(text) == text


def test_a_machine_of_the_command_is_looked_for_in_sentences():
    hider = Hider()
    hider.command(("torchrun", "--rdzv-endpoint=civet:29500", "--master_addr", "okapi", "train.py"))
    assert hider.text("civet is down, okapi too, train on") == "[host 1] is down, [host 2] too, train on"


def test_the_same_machine_is_the_same_placeholder_at_each_port():
    assert Hider().text("civet:29500, [civet]:29501") == "[host 1]:[port 1], [[host 1]]:[port 2]"


@pytest.mark.parametrize(
    ("value", "hidden"),
    [
        ("10.20.30.40:29500", "[address 1]:[port 1]"),
        ("10.20.30.40,10.20.30.41", "[address 1],[address 2]"),
        ("[2001:db8::17]:29500", "[[address 1]]:[port 1]"),
        ("0,1", "0,1"),
    ],
)
def test_the_address_in_an_argument_is_no_number(value, hidden):
    assert Hider().value(value) == hidden


@pytest.mark.parametrize("piece", ["a1:2222 ", "lookup a ", "a:", "host=", "a-", "1.", "::", "('a',", "[a"])
def test_a_long_sentence_takes_no_long_time(piece):
    began = time.process_time()
    Hider().text((piece * LONGEST_TEXT)[:LONGEST_TEXT])
    Hider().value((piece * LONGEST_TEXT)[:LONGEST_TEXT])
    assert time.process_time() - began < 2


def test_yolos_own_arguments_are_known():
    assert set(facts.TRAINING) | set(facts.VALIDATION) | set(facts.PREDICTION) | set(facts.EXPORT) <= YOLO_ARGUMENTS
    recorded = [yaml.safe_load(path.read_text()) for path in SAMPLES.glob("*/yolo/args.yaml")]
    assert set().union(*recorded) <= YOLO_ARGUMENTS
    assert {"batch_tensors", "batch_tensors_mib", "batch_tensors_key"} <= YOLO_ARGUMENTS  # of few recordings
    spec = find_spec("ultralytics")
    if spec is not None and spec.origin is not None:
        installed = yaml.safe_load((Path(spec.origin).parent / "cfg" / "default.yaml").read_text())
        assert set(installed) <= YOLO_ARGUMENTS


@pytest.fixture
def folder(tmp_path):
    """Return a run folder that names machines in its command, its events and its arguments, which have own names."""
    folder = tmp_path / "run"
    shutil.copytree(SAMPLES / "s-healthy", folder)
    info = json.loads((folder / "run.json").read_text())
    info["command"] = ["torchrun", "--rdzv_endpoint=civet:29511", "--master_addr", "civet8", "train.py", "--peer", "x"]
    (folder / "run.json").write_text(json.dumps(info))
    args = yaml.safe_load((folder / "yolo" / "args.yaml").read_text())
    (folder / "yolo" / "args.yaml").write_text(yaml.safe_dump({**args, **ARGUMENTS}))
    said = "civet8 and [2001:db8::17]:29511 and civet:29511 and 10.20.30.40:29511; quagga=2 of okapi_key"
    stamps = {name: info["end"][name] - 1 for name in ("wall_s", "mono_s")}
    with (folder / "events.jsonl").open("a") as events:
        events.write(json.dumps({**stamps, "kind": "marker", "text": said}) + "\n")
    return folder


def outputs(analysis):
    return render_html(analysis), json.dumps(build_summary(analysis))


def test_machines_and_names_of_arguments_reach_neither_page_nor_summary(folder):
    analysis = analyse(load_run(folder))
    page, summary = outputs(analysis)
    assert [secret for secret in SECRETS if secret not in page] == []  # else this test would prove nothing
    assert [secret for secret in SECRETS[:4] if secret not in summary] == []
    for written in outputs(redact(analysis)):
        assert [secret for secret in SECRETS if secret in written] == []
    args = build_summary(redact(analysis))["environment"]["args"]
    assert args["epochs"] == analysis.run.yolo_runs[0].args["epochs"]
    own = {name: value for name, value in args.items() if name.startswith("[argument ")}
    assert len(own) == len(ARGUMENTS)
    assert {1, 2} < set(own.values())


def test_the_name_of_a_changed_argument_is_hidden_in_a_comparison(folder):
    after = analyse(load_run(folder))
    yolo = after.run.yolo_runs[0]
    args = {**yolo.args, "quagga": "tapir", "alice_aug": 5}
    before = replace(after, run=replace(after.run, yolo_runs=(replace(yolo, args=args),)))
    found = compare([before], after, default_gates(baseline=True))
    assert {"quagga", "alice_aug"} <= {difference.name for difference in found.differences}
    hidden = redact_comparison(found)
    for written in (render_comparison_html(hidden), json.dumps(build_comparison(hidden))):
        assert [secret for secret in (*SECRETS, "tapir") if secret in written] == []
