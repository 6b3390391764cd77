import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_report.imports.kernel_log.lines import LogLine, parse_kernel_log

DATA = Path(__file__).parents[2] / "data" / "kernel"
NOW = datetime(2026, 11, 21, 1, 0, tzinfo=UTC).timestamp()
BOOT = NOW - 1000.0
XID = "NVRM: Xid (PCI:0000:00:07): 31, pid=2090, name=python3, channel 0x0000000a"
WALL = datetime(2026, 11, 21, 0, 54, 24, tzinfo=UTC).timestamp()

JOURNAL = {"__REALTIME_TIMESTAMP": f"{WALL:.0f}000000"}
NAMED = {"fac": "kern", "pri": "warn", "time": 968.5}


def parse(text, boot=BOOT, zone=UTC, at=NOW):
    return parse_kernel_log(text, boot_time_s=boot, timezone=zone, recorded_at_s=at)


@pytest.mark.parametrize(
    ("line", "wall_s", "level", "stamp_s"),
    [
        (f"[  968.496792] {XID}", BOOT + 968.496792, None, 968.496792),
        (f"[    0.000000][    T0] {XID}", BOOT, None, 0.0),
        (f"kern  :warn  : [  968.496792] {XID}", BOOT + 968.496792, 4, 968.496792),
        (f"<3>[  968.496792] {XID}", BOOT + 968.496792, 3, 968.496792),
        (f"[Sat Nov 21 00:54:24 2026] {XID}", WALL, None, None),
        (f"kern  :err   : [Sat Nov 21 00:54:24 2026] {XID}", WALL, 3, None),
        (f"2026-11-21T00:54:24,316854+00:00 {XID}", WALL + 0.316854, None, None),
        (f"2026-11-21T01:54:24,316854+01:00 {XID}", WALL + 0.316854, None, None),
        (f"4,373,968496792,c;{XID}", BOOT + 968.496792, 4, 968.496792),
        (f"6,373,968496792,-,caller=T77;{XID}", BOOT + 968.496792, 6, 968.496792),
        (f"2026-11-21T00:54:24+0000 host kernel: {XID}", WALL, None, None),
        (f"2026-11-21T00:54:24.316854+0000 host kernel: {XID}", WALL + 0.316854, None, None),
        (f"2026-11-21T00:54:24.316854Z host kernel: [  968.4] {XID}", WALL + 0.316854, None, None),
        (f"Nov 21 00:54:24 host kernel: [  968.496792] {XID}", WALL, None, None),
        (f"Nov 21 00:54:24 host kernel: {XID}", WALL, None, None),
        (json.dumps({"MESSAGE": XID, "PRIORITY": "4", "_TRANSPORT": "kernel", **JOURNAL}), WALL, 4, None),
        (json.dumps({"MESSAGE": list(XID.encode()), **JOURNAL}), WALL, None, None),
        (json.dumps({"dmesg": [{"pri": 4, "time": 968.496792, "msg": XID}]}), BOOT + 968.496792, 4, 968.496792),
        (json.dumps({"dmesg": [{**NAMED, "caller": "T1", "msg": XID}]}), BOOT + 968.5, 4, 968.5),
    ],
)
def test_every_format_gives_time_level_and_message(line, wall_s, level, stamp_s):
    for text in (line, line + "\n", "\ufeff" + line + "\r\n"):
        (read,), problems = parse(text)
        assert read.wall_s == pytest.approx(wall_s, abs=1e-5)
        assert (read.text, read.level, read.stamp_s) == (XID, level, stamp_s)
        assert problems == ()


@pytest.mark.parametrize(
    "line",
    [
        f"12,373,968496792,-;{XID}",
        f"user  :warn  : [  968.496792] {XID}",
        f"<12>[  968.496792] {XID}",
        f"Nov 21 00:54:24 host python3[7]: {XID}",
        f"Nov 21 00:54:24 host logger: kernel: {XID}",
        f"2026-11-21T00:54:24+0000 host python3[7]: {XID}",
        json.dumps(
            {"MESSAGE": XID, "_TRANSPORT": "stdout", "SYSLOG_IDENTIFIER": "kernel", "__REALTIME_TIMESTAMP": "1"}
        ),
        json.dumps({"MESSAGE": XID, "SYSLOG_IDENTIFIER": "app", "__REALTIME_TIMESTAMP": "1"}),
        json.dumps({"MESSAGE": None, "_TRANSPORT": "kernel", "__REALTIME_TIMESTAMP": "1"}),
        json.dumps({"dmesg": [{"fac": "user", "pri": "warn", "time": 968.5, "msg": XID}]}),
        json.dumps({"dmesg": [{"pri": 12, "time": 968.5, "msg": XID}]}),
        "-- Boot 0123456789abcdef --",
    ],
)
def test_what_the_kernel_did_not_write_is_left_out(line):
    lines, problems = parse(line)
    assert lines == []
    assert problems == ("The kernel log holds no line of the kernel.",)


def test_a_line_break_in_a_name_forges_nothing():
    lines, _ = parse(f"[  1.5] evil\n{XID}: segfault at 0\n[  2.5] next\n")
    assert [line.text for line in lines] == [f"evil\n{XID}: segfault at 0", "next"]


def test_a_break_in_a_users_line_forges_nothing():
    lines, _ = parse(f"Nov 21 00:54:24 host app[1]: text\n{XID}\nNov 21 00:54:25 host kernel: real\n")
    assert [line.text for line in lines] == ["real"]


def test_json_inside_a_message_is_data():
    inner = '{"pri": 4, "time": 1.0, "msg": "NVRM: Xid (PCI:0000:00:07): 79"}'
    outer = json.dumps({"dmesg": [{"pri": 6, "time": 2.0, "msg": inner}]}, indent=3)
    lines, _ = parse(outer)
    assert [line.text for line in lines] == [inner]


def test_kmsg_escapes_and_dictionary_lines():
    lines, _ = parse("3,1,1000000,-;NVRM: a\\x0aNVRM: caf\\xc3\\xa9\n SUBSYSTEM=pci\n DEVICE=+pci:0000:00:07.0\n")
    assert [line.text for line in lines] == ["NVRM: a\nNVRM: café"]


def test_kernel_clock_without_boot_time_says_what_to_give():
    lines, (problem,) = parse(f"[  968.4] {XID}\n[  969.4] {XID}\n", boot=None)
    assert lines == []
    assert problem.startswith("2 lines")
    assert "--boot-time" in problem


def test_formats_may_be_mixed():
    text = f"[  968.4] {XID}\n2026-11-21T00:54:24,316854+00:00 b\n4,1,1000000,c;c\nNov 21 00:54:24 host kernel: d\n"
    assert [line.text for line in parse(text)[0]] == [XID, "b", "c", "d"]


def test_local_stamps_are_in_the_zone_that_is_given():
    (line,), _ = parse("[Sat Nov 21 01:54:24 2026] a", zone=ZoneInfo("Europe/Berlin"))
    assert line.wall_s == WALL


@pytest.mark.parametrize(
    ("stamp", "recorded_at", "expected"),
    [
        ("Dec 31 23:59:58", datetime(2027, 1, 1, tzinfo=UTC), datetime(2026, 12, 31, 23, 59, 58, tzinfo=UTC)),
        ("Jan  1 00:00:03", datetime(2026, 12, 31, 23, tzinfo=UTC), datetime(2027, 1, 1, 0, 0, 3, tzinfo=UTC)),
        ("Feb 29 12:00:00", datetime(2028, 3, 1, tzinfo=UTC), datetime(2028, 2, 29, 12, tzinfo=UTC)),
    ],
)
def test_a_stamp_without_a_year_is_of_the_year_nearest_to_the_recording(stamp, recorded_at, expected):
    (read,), _ = parse(f"{stamp} host kernel: a", at=recorded_at.timestamp())
    assert read.wall_s == expected.timestamp()


def test_29_february_in_years_that_have_none_cannot_be_read():
    assert parse("Feb 29 12:00:00 host kernel: a")[1] == (
        "1 lines of the kernel log are in no known format and were left out.",
    )


def test_the_hour_that_autumn_repeats_is_told_by_the_order_of_lines():
    clocks = ["01:59:00", "02:30:00", "02:59:00", "02:01:00", "02:59:30", "03:00:00"]
    text = "\n".join(f"[Sun Oct 25 {clock} 2026] a" for clock in clocks)
    lines, _ = parse(text, zone=ZoneInfo("Europe/Berlin"))
    start = datetime(2026, 10, 24, 23, 59, tzinfo=UTC)
    minutes = [(line.wall_s - start.timestamp()) / 60 for line in lines]
    assert minutes == [0, 31, 60, 62, 120.5, 121]


@pytest.mark.parametrize(
    ("name", "count"),
    [("kmsg.txt", 12), ("xid-dmesg-T.txt", 3), ("xid-dmesg.json", 3), ("xid-dmesg.txt", 5), ("dmesg-iso-tail.txt", 30)],
)
def test_real_logs(name, count):
    lines, problems = parse((DATA / name).read_text())
    assert len(lines) == count
    assert problems == ()
    if name != "dmesg-iso-tail.txt":
        assert lines[-1].text.startswith("NVRM: Xid (PCI:0000:00:07): 31, pid=2090")


def test_the_real_xid_lies_at_the_same_moment_in_every_form():
    boot = datetime(2026, 11, 21, 1, 23, 1, 350000, tzinfo=UTC).timestamp() - 438.285308
    moments = [
        parse((DATA / name).read_text(), boot=boot)[0][-1].wall_s
        for name in ("kmsg.txt", "xid-dmesg.txt", "xid-dmesg.json", "xid-dmesg-T.txt")
    ]
    assert max(moments) - min(moments) < 1.0  # -T has whole seconds


def test_json_cut_at_both_ends_gives_the_whole_records():
    text = (DATA / "xid-dmesg.json").read_text()
    lines, _ = parse(text[: text.rindex('"msg"')])
    assert [line.stamp_s for line in lines] == [438.285296, 438.285307]


@pytest.mark.parametrize("text", ["", "\n\n", "hello\nworld", "\0\0\0", "{" * 5000, '{"msg":' * 3000, "[" * 100000])
def test_garbage_is_said(text):
    lines, problems = parse(text)
    assert lines == []
    assert len(problems) == 1


@given(st.text())
def test_no_text_raises(text):
    for whole in (text, f"[  1.0] {text}", f"4,1,1,c;{text}", f'{{"dmesg":[{{"pri":4,"time":1,"msg":"{text}'):
        lines, _ = parse(whole)
        assert all(isinstance(line, LogLine) for line in lines)


ALPHABET = '0123456789,:;-+TZ[]{}" .<>kernelovJ\n\\x'


@given(st.text(ALPHABET, max_size=200))
def test_no_text_of_the_formats_own_characters_raises(text):
    parse(text)


MESSAGES = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1).filter(
    lambda text: text == text.strip() and not re.match(r"\[ *[TC\d]", text)
)


@given(MESSAGES, st.integers(0, 10**12), st.integers(0, 7))
def test_what_is_written_as_kmsg_dmesg_or_json_is_read_back(message, microseconds, level):
    kmsg = "".join(
        f"\\x{byte:02x}" if byte < 32 or byte > 126 or byte == 92 else chr(byte) for byte in message.encode()
    )
    seconds = microseconds / 1e6
    forms = [
        f"{level},1,{microseconds},c;{kmsg}",
        f"<{level}>[{seconds:12.6f}] {message}",
        json.dumps({"dmesg": [{"pri": level, "time": seconds, "msg": message}]}, ensure_ascii=False),
    ]
    for form in forms:
        (line,), _ = parse(form + "\n")
        assert (line.text, line.level) == (message, level)
        assert line.wall_s == pytest.approx(BOOT + seconds, abs=1e-5)


@given(MESSAGES, st.integers(0, 10**9), st.integers(-14 * 4, 14 * 4))
def test_what_is_written_with_an_iso_time_is_read_back(message, seconds, quarters):
    moment = datetime(2000, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds, microseconds=seconds % 1000000)
    sign, minutes = "-" if quarters < 0 else "+", abs(quarters) * 15
    local = moment + timedelta(minutes=quarters * 15)
    stamp = f"{local:%Y-%m-%dT%H:%M:%S},{local.microsecond:06d}{sign}{minutes // 60:02d}:{minutes % 60:02d}"
    (line,), _ = parse(f"{stamp} {message}\n")
    assert line.text == message
    assert line.wall_s == pytest.approx(moment.timestamp(), abs=1e-5)
