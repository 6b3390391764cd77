from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_report.load.kernel import RawLine, classify, kernel_events
from gpu_report.load.kernel.xid_catalogue import describe
from gpu_report.model import Gpu

DATA = Path(__file__).parents[3] / "data" / "kernel"
GPUS = (
    Gpu(0, uuid="GPU-aaaaaaaa-0000-4000-8000-000000000000", pci_bus_id="00000000:03:00.0"),
    Gpu(1, uuid="GPU-bbbbbbbb-0000-4000-8000-000000000001", pci_bus_id="00000000:9B:00.0"),
)


def said(text, gpus=GPUS, pids=()):
    return classify(RawLine(1.0, text), gpus, frozenset(pids))


@pytest.mark.parametrize(
    ("text", "gpu", "code", "pid", "process"),
    [
        (
            "NVRM: Xid (PCI:0000:03:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
            0,
            79,
            None,
            None,
        ),
        (
            "NVRM: Xid (PCI:0000:9b:00): 13, pid=4242, name=python3, Graphics SM Warp Exception on (GPC 3)",
            1,
            13,
            4242,
            "python3",
        ),
        ("NVRM: Xid (0000:03:00): 14, Channel 00000001", 0, 14, None, None),
        ("NVRM: Xid (PCI:0000:03:00.0): 31, pid=7, name=python, MMU Fault", 0, 31, 7, "python"),
        ("NVRM: Xid (PCI:00000000:03:00): 45, pid=1234, name=yolo, Ch 00000008", 0, 45, 1234, "yolo"),
        ("NVRM: Xid (PCI:0000:03:00): 63, pid=1896, Row Remapper: New row marked for remapping", 0, 63, 1896, None),
        ("NVRM: Xid (PCI:0000:03:00): 64, Row remapping failed", 0, 64, None, None),
        ("NVRM: Xid (PCI:0000:03:00 GPU-I:02): 43, pid=99, name=python, Ch 00000010", 0, 43, 99, "python"),
        ("NVRM: Xid (PCI:0000:03:00 GPU-I:02 GPU-CI:00): 43, pid=99, name=python, Ch 00000010", 0, 43, 99, "python"),
        (
            "NVRM: Xid (PCI:0000:03:00): 45, pid=<unknown>, name=<unknown>, Ch 1 caused by previous Xid 31",
            0,
            45,
            None,
            None,
        ),
        ("NVRM: Xid (PCI:0000:03:00): 48", 0, 48, None, None),
        ("NVRM: Xid (PCI:0000:77:00): 62, pid=1, name=x, halt", None, 62, 1, "x"),
    ],
)
def test_every_spelling_of_an_xid(text, gpu, code, pid, process):
    event = said(text)
    assert (event.kind, event.gpu, event.code, event.pid, event.process) == ("xid", gpu, code, pid, process)
    assert event.text == text
    assert event.severity == describe(code).severity
    assert event.meaning.startswith(describe(code).meaning)
    assert event.action == describe(code).action


PREFIXES = [
    "",
    "[  968.496792] ",
    "[  968.496792][ T1234] ",
    "kern  :warn  : [  968.496792] ",
    "<4>[  968.496792] ",
    "[Sat Nov 21 01:23:01 2026] ",
    "2026-11-21T00:54:24,316854+00:00 ",
    "4,373,438285308,c;",
    "4,373,438285308,-,caller=T12;",
    "2026-11-21T00:54:24+0000 host kernel: ",
    "2026-11-21T00:54:24.316854+00:00 host kernel: [  968.496792] ",
    "Nov 21 00:54:24 host kernel: ",
    "Nov  1 00:54:24 host kernel: [  968.496792] ",
]


@pytest.mark.parametrize("prefix", PREFIXES)
def test_an_xid_is_found_behind_the_prefix_of_every_log(prefix):
    event = said(prefix + "NVRM: Xid (PCI:0000:03:00): 31, pid=7, name=python, MMU Fault")
    assert (event.kind, event.code, event.gpu) == ("xid", 31, 0)
    assert event.text.startswith(prefix)


@pytest.mark.parametrize(
    "text",
    [
        "Nov 21 00:54:24 host python3[12]: NVRM: Xid (PCI:0000:03:00): 79, pid=1, name=x, y",
        "12,373,438285308,-;NVRM: Xid (PCI:0000:03:00): 79, pid=1, name=x, y",
        "user  :warn  : [  968.496792] NVRM: Xid (PCI:0000:03:00): 79, pid=1, name=x, y",
        "<12>[  968.496792] NVRM: Xid (PCI:0000:03:00): 79, pid=1, name=x, y",
        "python3[12]: segfault at 0 ip 1 sp 2 error 4 in NVRM: Xid (PCI:0000:03:00): 79",
        "NVRM: Xid (PCI:[77]: segfault at 0 ip 1 sp 2 error 4 in Xid (PCI:0000:03:00): 79",
        "oom-kill:constraint=CONSTRAINT_NONE,task_memcg=/NVRM: Xid (PCI:0000:03:00): 79,task=x,pid=1,uid=0",
        "INFO: task NVRM: Xid (PCI:0000:03:00): 79:12 blocked for more than 120 seconds.",
        " NVRM: Xid (PCI:0000:03:00): 79, pid=1, name=x, y",
        "NVRM: Xid (PCI:0000:03:00): 1234567, pid=1, name=x, y",
    ],
)
def test_an_xid_that_a_user_wrote_into_a_name_or_log_is_none(text):
    event = said(text)
    assert event.kind != "xid"
    assert event.code is None
    events = kernel_events([RawLine(0.0, text)], GPUS, frozenset(), ())
    assert all(each.kind != "xid" for each in events)


def test_a_process_name_inside_a_real_xid_changes_neither_code_nor_gpu():
    event = said("NVRM: Xid (PCI:0000:9b:00): 31, pid=7, name=Xid (PCI:0000:03:00): 79, MMU Fault")
    assert (event.code, event.gpu, event.severity) == (31, 1, "warning")


def test_level_plays_no_part():
    text = "NVRM: Xid (PCI:0000:03:00): 79, GPU has fallen off the bus."
    severities = {classify(RawLine(0.0, text, level), GPUS, frozenset()).severity for level in (None, 0, 4, 7)}
    assert severities == {"critical"}


@pytest.mark.parametrize(
    ("advised", "severity", "word"),
    [
        ("0x0 (None) to 0x1 (GPU Reset Required)", "critical", "reset"),
        ("0x1 (GPU Reset Required) to 0x2 (Node Reboot Required)", "critical", "Reboot"),
        ("0x0 (None) to 0x3 (Drain P2P)", "warning", "between GPUs"),
        ("0x0 (None) to 0x4 (Drain and Reset)", "critical", "reset"),
        ("0x1 (GPU Reset Required) to 0x0 (None)", "info", "Nothing"),
        ("0x0 (None) to 0x9 (Something new)", "warning", "raw line"),
    ],
)
def test_xid_154_says_what_its_text_names(advised, severity, word):
    event = said(f"NVRM: Xid (PCI:0000:03:00): 154, GPU recovery action changed from {advised}")
    assert (event.code, event.severity) == (154, severity)
    assert word in event.action
    assert advised.rsplit("(", 1)[1].rstrip(")") in event.meaning


def test_xid_119_names_the_call_and_the_wait():
    event = said(
        "NVRM: Xid (PCI:0000:03:00): 119, pid=877, name=dcgm, Timeout after 6s of waiting for RPC response from GPU0 "
        "GSP! Expected function 76 (GSP_RM_CONTROL) (0x2080808f 0x4)."
    )
    assert "GSP_RM_CONTROL was not answered within 6 s" in event.meaning
    assert event.severity == "critical"


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        ("149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 01 (0x1 0x2 0x3 0x4 0x5 0x6)", "critical"),
        ("149, NETIR_LINK_EVT  Nonfatal   XC0 i0 Link 01 (0x1 0x2 0x3 0x4 0x5 0x6)", "warning"),
        ("145, RLW_REMAP  Non-fatal   XC0 i0 Link 01 (0x1)", "warning"),
    ],
)
def test_nvlink_5_errors_are_as_bad_as_their_text_says(text, severity):
    assert said(f"NVRM: Xid (PCI:0000:03:00): {text}").severity == severity


def test_caused_by_an_earlier_xid_is_said():
    event = said("NVRM: Xid (PCI:0000:03:00): 45, pid=9, name=yolo, Ch 00000008 caused by previous Xid 31")
    assert event.meaning.endswith("Xid 31 caused it")


@pytest.mark.parametrize(
    "text",
    [
        "NVRM: GPU 0000:9b:00.0: GPU has fallen off the bus.",
        "NVRM: GPU at PCI:0000:9b:00: GPU has fallen off the bus.",
        "NVRM: The NVIDIA GPU 0000:9b:00.0\nNVRM: (PCI ID: 10de:2335) installed in this system has\n"
        "NVRM: fallen off the bus and is not responding to commands.",
        "NVRM: The NVIDIA GPU 0000:9b:00.0\\x0aNVRM: (PCI ID: 10de:2335) installed in this system has\\x0aNVRM: fallen "
        "off the bus and is not responding to commands.",
    ],
)
def test_a_lost_gpu_counts_as_79(text):
    event = said(text)
    assert (event.kind, event.code, event.gpu, event.severity) == ("gpu-lost", 79, 1, "critical")


@pytest.mark.parametrize("tag", ["NVRM: ", ""])
def test_a_lost_gpu_in_three_lines_is_one_event(tag):
    lines = [
        RawLine(5.0, "[ 10.000001] NVRM: The NVIDIA GPU 0000:03:00.0"),
        RawLine(5.0, f"[ 10.000002] {tag}(PCI ID: 10de:2335) installed in this system has"),
        RawLine(5.0, f"[ 10.000003] {tag}fallen off the bus and is not responding to commands."),
        RawLine(5.1, "[ 10.100000] usb 1-1: new device"),
    ]
    lost, other = kernel_events(lines, GPUS, frozenset(), ())
    assert (lost.kind, lost.gpu, lost.count) == ("gpu-lost", 0, 1)
    assert lost.text == "\n".join(line.text for line in lines[:3])
    assert other.text == lines[3].text


def test_a_gpu_that_the_driver_does_not_support_is_not_lost():
    text = "NVRM: The NVIDIA GPU 0000:03:00.0 (PCI ID: 10de:1111)\nNVRM: installed in this system is not supported by"
    assert said(text).kind == "driver"


@pytest.mark.parametrize(
    ("text", "severity", "gpu"),
    [
        (
            "NVRM: Rate limiting GSP RPC error prints for GPU at PCI:0000:03:00 (printing 1 of every 30).  The "
            "GPU likely needs to be reset.",
            "critical",
            0,
        ),
        ("NVRM: API mismatch: the client has the version 580.1, but", "warning", None),
        ("NVRM: GPU 0000:9b:00.0: RmInitAdapter failed! (0x26:0x56:1463)", "critical", 1),
        ("nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30 LTSSM Fault Up", "critical", None),
        ("nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32 egress", "warning", None),
        ("NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.159.04", "info", None),
        ("NVRM: Persistence mode is deprecated and will be removed in a future release.", "info", None),
        ("NVRM: gpuClearFbhubPoisonIntrForBug2924523_GA100: FBHUB Interrupt detected. Clearing it.", "info", None),
        ("NVRM: GPU at PCI:0000:03:00: GPU-aaaaaaaa-0000-4000-8000-000000000000", "info", 0),
    ],
)
def test_other_lines_of_the_driver(text, severity, gpu):
    event = said(text)
    assert (event.kind, event.severity, event.gpu, event.code) == ("driver", severity, gpu, None)


def test_the_driver_pairing_bus_and_uuid_names_the_gpu_and_is_no_event():
    gpus = (Gpu(5, uuid="GPU-00000000-0000-4000-8000-000000000003"),)
    lines = [RawLine(index * 1e-3, text) for index, text in enumerate((DATA / "kmsg.txt").read_text().splitlines())]
    events = kernel_events(lines, gpus, frozenset(), ())
    (xid,) = [event for event in events if event.kind == "xid"]
    assert (xid.gpu, xid.code, xid.pid, xid.process, xid.severity) == (5, 31, 2090, "python3", "warning")
    assert not [event for event in events if "GPU at PCI" in event.text or "Serial" in event.text]
    assert max(event.severity != "info" for event in events if event is not xid) == 0


@given(st.text(), st.lists(st.integers(0, 9), max_size=3))
def test_no_text_raises(text, pids):
    for line in (text, f"NVRM: {text}", f"NVRM: Xid (PCI:0000:03:00): 31{text}", f"Out of memory: {text}"):
        event = said(line, pids=pids)
        assert event.text == line


@given(
    st.tuples(st.integers(0, 0xFFFF), st.integers(0, 255), st.integers(0, 31)),
    st.integers(0, 999999),
    st.integers(1, 4194304),
    st.sampled_from(PREFIXES),
)
def test_what_is_written_into_an_xid_is_read_back(address, code, pid, prefix):
    domain, bus, device = address
    gpus = (Gpu(3, pci_bus_id=f"{domain:08X}:{bus:02X}:{device:02X}.0"),)
    text = f"NVRM: Xid (PCI:{domain:04x}:{bus:02x}:{device:02x}): {code}, pid={pid}, name=yolo, text"
    event = said(prefix + text, gpus)
    assert (event.kind, event.gpu, event.code, event.pid, event.process) == ("xid", 3, code, pid, "yolo")
