import json
import time
from dataclasses import fields, is_dataclass, replace

import pandas as pd
import pytest
from support.compared import analysed

from gpu_report import model
from gpu_report.analyse.compare import compare
from gpu_report.analyse.compare.gate_syntax import default_gates
from gpu_report.render import render_html
from gpu_report.render.comparison.comparison_json import build_comparison
from gpu_report.render.comparison.junit import render_junit
from gpu_report.render.comparison.markdown import render_comparison_markdown
from gpu_report.render.comparison.page import render_comparison_html
from gpu_report.render.comparison.terminal import render_comparison_text
from gpu_report.render.redaction.placeholders import LONGEST_TEXT, Hider
from gpu_report.render.redaction.redact import _OURS, STATEMENT, redact, redact_comparison
from gpu_report.render.run.summary_json import build_summary
from gpu_report.render.run.terminal import render_text
from gpu_report.wording import exception_words

HOST, USER, FOLDER, RUN = "zebra-17", "quagga", "okapi_project", "lemur-run-9"
UUID, SERIAL, MAC, IPV6 = (
    "GPU-5a1e0000-aaaa-4bbb-8ccc-00000000beef",
    "1650999000111",
    "52:54:00:ab:cd:ef",
    "fe80::1ff:fe23:4567:890a",
)
PROGRAM = "narwhal_detector"
MOUNTS = (
    model.Mount("/data/okapi_set", "nfs4", "gnu-filer:/export/okapi_set"),
    model.Mount("/srv/my okapi_set", "fuse.sshfs", "quagga@gnu-filer:okapi_home"),
    model.Mount("/fast/okapi_set", "zfs", "civetpool/okapi_set"),
    model.Mount("/bucket", "fuse.mountpoint-s3", "serval"),
    model.Mount("/", "ext4", "/dev/mapper/vg_caracal-root", "dm-0", False, 9000.0),
    model.Mount("/dev/shm", "tmpfs", "tmpfs", free_mib=9000.0),
    model.Mount("/tmp", "ext4", "/dev/nvme0n1", "nvme0n1", False, 9000.0),
)
SECRETS = (
    "okapi_set",
    "okapi_home",
    "civetpool",
    "serval",
    "caracal",
    HOST,
    USER,
    FOLDER,
    RUN,
    UUID,
    SERIAL,
    MAC,
    IPV6,
    PROGRAM,
    "tapir",
    "10.11.12.13",
    "ibex.example.com",
    "gnu-filer",
)
COMMAND = ("/opt/okapi_project/bin/python3", "tapir.py", f"--name={RUN}", f"--host={HOST}")
# Everything at once, in a sentence, between characters that mean something to a page.
SAID = (
    f'</script>{USER}@{HOST} "{HOST}.ibex.example.com" 10.11.12.13 [{IPV6}] {MAC} {UUID} Serial Number: {SERIAL} '
    f"https://{HOST}/tapir?x=1 /home/{USER}/{FOLDER}/tapir.yaml, ~{USER}/{FOLDER} C:\\Users\\{USER}\\tapir.txt "
    f"gnu-filer:/export/{FOLDER} nfs: server gnu-filer not responding, runs/{FOLDER}/{RUN}/best.pt {PROGRAM}[77] "
    f"{'; '.join(f'{mount.point} ({mount.type}, {mount.source})' for mount in MOUNTS)} /data/okapi_set/images & <b>"
)


def everywhere(value: object) -> object:
    """Return a part of an analysis with SAID in every text that comes from outside, added where there was none."""
    evidence = model.Evidence(SAID)
    event = model.KernelEvent(5.0, "xid", "critical", SAID, SAID, SAID, process=PROGRAM, source=f"/home/{USER}/k.log")
    finding = model.Finding(
        *("kernel-1", "kernel", "critical", 0, 4.0, 9.0, SAID),
        evidence=(evidence,),
        cause=model.Cause("other-process", 0.9, SAID),
        kernel_events=(model.NearbyKernelEvent(event, 0.0),),
        advice=(model.Advice(SAID, "project", f"/home/{USER}", f"/mnt/{FOLDER}/fast"),),
    )
    processes = pd.DataFrame(
        [
            (1.0, 0, 77, f"{PROGRAM} --user {USER}", 10.0, "appeared", "other", 1.0),
            (2.0, 0, 78, None, 1.0, "appeared", "not visible", 1.0),
        ],
        columns=["t_s", "gpu", "pid", "name", "memory_used_mib", "change", "owner", "gpu_util_pct"],
    )
    args = {
        "model": f"/home/{USER}/tapir.pt",
        "name": RUN,
        "project": FOLDER,
        "batch": 16,
        "optimizer": "AdamW",
        "data": "tapir.yaml",
        "data_folder": "/srv/my okapi_set/images/train",
    }
    yolo = model.YoloRun(1, f"/home/{USER}/{FOLDER}/{RUN}", args, "recorded", None, SAID)
    inside = model.InsideRun(
        1, 0, 77, "train", {**args, "torch": "2.11.0+cu130", "gpu_uuid": UUID}, (), (), "exception", SAID
    )
    fields = {"reason": SAID, "command": list(COMMAND), "path": f"runs/{FOLDER}"}
    run = replace(
        value.run,
        path=f"/home/{USER}/{FOLDER}/{RUN}",
        recording=replace(value.run.recording, host=HOST, command=COMMAND, mounts=MOUNTS),
        gpus=tuple(replace(gpu, uuid=UUID) for gpu in value.run.gpus),
        processes=processes,
        yolo_runs=(yolo,),
        inside=(inside,),
        kernel=model.KernelLog("restricted", f"/home/{USER}/k.log", SAID, SAID, (event,)),
        events=(
            model.RecordedEvent(3.0, "nvml_error", 0, fields),
            model.RecordedEvent(4.0, "marker", None, {"text": SAID}),
        ),
        problems=(SAID,),
    )
    return replace(
        value,
        run=run,
        findings=(finding,),
        verdict=model.Verdict((model.Sentence("work", SAID),)),
        gaps=(model.Gap(0, 1.0, 2.0, SAID),),
    )


@pytest.fixture(scope="module")
def shared(analysis: model.Analysis) -> model.Analysis:
    return redact(everywhere(analysis))


def test_no_secret_is_left_in_the_page_or_the_summary(analysis: model.Analysis, shared: model.Analysis) -> None:
    open_html = render_html(everywhere(analysis))
    assert [secret for secret in SECRETS if secret not in open_html] == []  # else this test would prove nothing
    html, summary = render_html(shared), json.dumps(build_summary(shared))
    for secret in SECRETS:
        assert secret.lower() not in html.lower(), secret
        assert secret.lower() not in summary.lower(), secret


@pytest.mark.parametrize("error", ["ValueError", None])
@pytest.mark.parametrize(
    "message", ["row `17`: Quokka of ward 3", f"no Quokka in {'a column, ' * 40}", "[host 1] (Quokka)"]
)
def test_of_an_exception_its_type_stays_and_none_of_its_words(analysis: model.Analysis, error, message) -> None:
    said = f"The training crashed{exception_words(error, message)} on rank 1"
    inside = model.InsideRun(1, 1, 7, "train", {}, (), (), "exception", error, raised=model.Raised(message))
    crashed = replace(
        analysis,
        run=replace(analysis.run, inside=(inside,)),
        findings=(model.Finding("failed-1", "run-ended", "critical", None, 4.0, 9.0, said),),
        verdict=model.Verdict((model.Sentence("ended", f"{said}."),)),
        ending=model.Ending("failed", 9.0, failure=said, type=error, message=message),
    )
    assert "Quokka" in json.dumps(build_summary(crashed))
    shared = redact(crashed)
    written = json.dumps(build_summary(shared)) + render_html(shared) + render_text(shared) + repr(shared.run.inside)
    assert "Quokka" not in written
    kept = exception_words(error, "")
    assert shared.findings[0].summary == f"The training crashed{kept} on rank 1"
    assert shared.verdict.text == f"The training crashed{kept} on rank 1."
    assert (shared.ending.type, shared.ending.message) == (error, None)


def test_what_does_not_tell_whose_it_is_stays(analysis: model.Analysis, shared: model.Analysis) -> None:
    summary = build_summary(shared)
    assert summary["environment"]["args"]["optimizer"] == "AdamW"
    assert summary["environment"]["args"]["batch"] == 16
    assert summary["environment"]["effective"]["torch"] == "2.11.0+cu130"
    assert summary["findings"][0] | {"id": "kernel-1", "rule": "kernel", "gpus": [0]} == summary["findings"][0]
    assert summary["gpus"][0]["name"] == "NVIDIA H200"
    assert summary["run"]["command"] == ["python3", "[arguments 1]"]
    assert shared.run.samples is analysis.run.samples
    assert shared.verdict.text.endswith(" & <b>")  # redaction hides; escaping is the page's


def test_of_filesystems_those_stay_that_every_machine_has(shared: model.Analysis) -> None:
    mounts = shared.run.recording.mounts
    assert mounts[-2:] == MOUNTS[-2:]
    assert [mount.type for mount in mounts] == [mount.type for mount in MOUNTS]
    told = str([(mount.point, mount.source) for mount in mounts]) + str(shared.run.inside[0].settings["data_folder"])
    assert [secret for secret in SECRETS if secret in told] == []
    assert mounts[0].point in shared.verdict.text  # the same placeholder in a sentence


def test_the_same_thing_has_the_same_placeholder_everywhere(shared: model.Analysis) -> None:
    host, uuid = shared.run.recording.host, shared.run.gpus[0].uuid
    folder = shared.run.path
    assert host in shared.verdict.text
    assert host in shared.run.events[1].fields["text"]
    assert uuid in shared.run.kernel.events[0].text
    assert shared.run.yolo_runs[0].path == folder
    assert shared.run.processes["name"][0].split()[0] in shared.findings[0].summary
    assert pd.isna(shared.run.processes["name"][1])


def test_the_page_says_that_it_was_redacted(shared: model.Analysis) -> None:
    assert STATEMENT in shared.run.problems
    assert STATEMENT in render_html(shared)


@pytest.mark.parametrize(("name", "user"), [("stress-ng", "bob"), ("R", "al"), ("test", "1002"), ("`x`", "data")])
def test_who_took_the_cpu_is_hidden_in_sentences_too(analysis: model.Analysis, name: str, user: str) -> None:
    program = model.OtherProgram(1.0, 7.0, name, user, 4711, 40, 3800.0)
    cause = model.Cause("input-cpu", 0.9, f"{program.who} (40 processes) used 38 of the 64 CPU cores")
    finding = model.Finding("drop-1", "drop", "warning", 0, 4.0, 9.0, f"Idle: {program.who} ran", cause=cause)
    run = replace(analysis.run, other_programs=(program,))
    hidden = redact(replace(analysis, run=run, findings=(finding,)))
    (other,) = hidden.run.other_programs
    assert (other.name, other.user) == ("[program 2]", "[user 1]")
    assert hidden.findings[0].cause.explanation == f"{other.who} (40 processes) used 38 of the 64 CPU cores"
    assert hidden.findings[0].summary == f"Idle: {other.who} ran"


def test_two_things_can_still_be_told_apart() -> None:
    hider = Hider()
    assert hider.path("/home/quagga/a/x.yaml") == "[folder 1]/[file 1].yaml"
    assert hider.path("/home/quagga/a/y.yaml") == "[folder 1]/[file 2].yaml"
    assert hider.path("/home/quagga/b") == "[folder 2]"
    assert hider.text("from /home/quagga/a/x.yaml.") == "from [folder 1]/[file 1].yaml."
    assert hider.text("quagga logged in") == "[user 1] logged in"


@pytest.mark.parametrize(
    "text",
    [
        "2 of 14 images/s, I/O, N/A and/or 580.159.04 at 10:56:55, 1/2",
        "NVRM: Xid (PCI:0000:00:06): 31, pid=2884, name=python3, channel 0x0000001e @ 0xbf18_37e00000",
        "c10::Error in std::vector, /dev/shm is small, see /proc/sys/kernel/dmesg_restrict and /dev/kmsg",
        "`sudo sysctl kernel.dmesg_restrict=0`, torch 2.11.0+cu130, yolo26n.pt: results.csv and args.yaml",
    ],
)
def test_what_is_no_secret_reads_as_before(text: str) -> None:
    assert Hider().text(text) == text


def test_a_machine_that_is_called_like_a_word_does_not_blank_the_word() -> None:
    hider = Hider()
    assert hider.host("train") == "[host 1]"
    assert hider.text("it would train on") == "it would train on"


@pytest.mark.parametrize(
    "text", ["-" * LONGEST_TEXT, "a." * (LONGEST_TEXT // 2), "/a" * (LONGEST_TEXT // 2), "a@" * 4000, "::" * 4000]
)
def test_no_text_takes_long(text: str) -> None:
    began = time.monotonic()
    Hider().text(text)
    assert time.monotonic() - began < 2


def test_a_text_that_is_no_sentence_is_hidden_as_a_whole() -> None:
    assert Hider().text("quagga " * LONGEST_TEXT) == "[text 1]"


def test_a_comparison_hides_the_same_things_in_all_of_its_runs():
    before, after = (renamed(analysed("s-healthy"), f"/home/{USER}/{FOLDER}/{name}", HOST) for name in ("a", "b"))
    found = compare([before], after, default_gates(baseline=True))
    assert HOST in str(found)
    hidden = redact_comparison(found)
    outputs = [
        render_comparison_html(hidden),
        render_comparison_markdown(hidden),
        render_comparison_text(hidden, width=200),
        render_junit(hidden),
        json.dumps(build_comparison(hidden)),
    ]
    assert [secret for secret in (HOST, USER, FOLDER) for output in outputs if secret in output] == []
    assert all(STATEMENT in output for output in (outputs[2], json.loads(outputs[4])["notes"][-1]))
    assert [result.gate for result in hidden.gates] == [result.gate for result in found.gates]
    assert hidden.metrics == found.metrics
    hosts = [d for d in hidden.differences if d.name == "host"]
    assert [d.baseline != d.run for d in hosts] == [True]


def test_the_lines_of_a_comparison_are_hidden_and_those_of_libraries_are_not():
    library = "/opt/okapi_project/lib/python3.11/site-packages/ultralytics/engine/trainer.py"
    lines = (
        model.LineChange("main", "quagga_log", f"/home/{USER}/{FOLDER}/tapir.py", 41, 57, 0.2, 3.2),
        model.LineChange("main", "_do_train", library, 400, 400, 0.1, 1.1, "data"),
    )
    found = replace(compare([analysed("s-healthy")], analysed("s-healthy")), code_lines=lines)
    hidden = redact_comparison(found)
    own, yolo = hidden.code_lines
    assert (own.function, own.baseline_line, own.run_line) == ("[function 1]", 41, 57)
    assert (yolo.function, yolo.file, yolo.waits_for) == ("_do_train", "/ultralytics/engine/trainer.py", "data")
    outputs = [render_comparison_html(hidden), render_junit(hidden), json.dumps(build_comparison(hidden))]
    outputs += [render_comparison_markdown(hidden), render_comparison_text(hidden, width=200)]
    assert [secret for secret in ("quagga", FOLDER, "tapir") for output in outputs if secret in output] == []


def renamed(analysis, folder, host):
    """Return an analysis of a run of a user in a folder of its own; each folder's host has another name."""
    recording = replace(analysis.run.recording, host=f"{host}-{folder[-1]}")
    yolo = tuple(replace(y, args={**y.args, "data": f"{folder}/data.yaml"}) for y in analysis.run.yolo_runs)
    return replace(analysis, run=replace(analysis.run, path=folder, recording=recording, yolo_runs=yolo))


def test_what_is_named_as_our_own_words_are_fields_that_exist():
    known = {(name, each.name) for name, of in vars(model).items() if is_dataclass(of) for each in fields(of)}
    anywhere = {field for _, field in known}
    assert {(of, field) for of, field in _OURS if of and (of, field) not in known} == set()
    assert {field for of, field in _OURS if of is None} <= anywhere


def test_a_function_that_is_called_as_a_part_of_a_call_takes_no_word_from_the_verdict():
    hider = Hider()
    for name in ("inference", "preprocess", "my_secret_step"):
        hider.function(name)
    assert hider.text("because inference takes longer") == "because inference takes longer"
    assert "my_secret_step" not in hider.text("because my_secret_step takes longer")


def test_the_file_of_a_line_that_sets_something_is_hidden_wherever_it_is_named(analysis: model.Analysis) -> None:
    place = model.SettingLocation("tf32", "/home/okapi/ward/tapir_train.py", 8)
    inside = model.InsideRun(1, 0, 7, "train", {}, (), (), "finished", setting_locations=(place,))
    said = "Unset it (tapir_train.py:8)."
    told = replace(
        analysis,
        run=replace(analysis.run, inside=(inside,)),
        verdict=model.Verdict((model.Sentence("fix", said),)),
    )
    shared = redact(told)
    (hidden,) = shared.run.inside[0].setting_locations
    assert (hidden.name, hidden.line) == ("tf32", 8)
    assert "tapir" not in hidden.file + shared.verdict.text + render_html(shared)


@pytest.mark.parametrize("command", [0, 1e308, 2**63, True, None, {"a": "zebra-17"}])
def test_a_command_of_an_event_that_is_none_stays_what_it_is(command):
    analysis = analysed("healthy")
    event = model.RecordedEvent(1.0, "suspend", None, {"command": command})
    (hidden, *_) = redact(replace(analysis, run=replace(analysis.run, events=(event,)))).run.events
    assert type(hidden.fields["command"]) is type(command)
