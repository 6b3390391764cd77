import json

from hypothesis import given
from hypothesis import strategies as st

from gpu_report.record.kernel_log.lines import KernelLine, parse_dmesg, parse_journal, parse_kmsg, parse_plain

# As an H200 driver wrote it: flag c, and continuation lines that name the device.
XID = (
    b"3,1234,968496792,c;NVRM: Xid (PCI:0000:00:06): 31, pid=499, name=python\n"
    b" SUBSYSTEM=pci\n DEVICE=+pci:0000:00:06.0\n"
)


def test_a_kernel_record_gives_text_level_and_stamp():
    assert parse_kmsg(XID) == KernelLine("NVRM: Xid (PCI:0000:00:06): 31, pid=499, name=python", 3, 968.496792)


def test_a_record_that_a_user_program_wrote_is_no_kernel_message():
    assert parse_kmsg(b"12,7,5,-;NVRM: Xid (PCI:0000:00:06): 79, forged\n") is None


def test_escaped_bytes_become_what_they_were():
    assert parse_kmsg(b"6,1,5,-;disk \\xc3\\xbc\\x0a\n") == KernelLine("disk ü\n", 6, 5e-6)


def test_dmesg_lines_of_the_kernel_only():
    line = b"kern  :err   : [  968.496792] NVRM: Xid (PCI:0000:00:06): 31"
    assert parse_dmesg(line) == KernelLine("NVRM: Xid (PCI:0000:00:06): 31", 3, 968.496792)
    assert parse_dmesg(b"user  :warn  : [ 2432.1] NVRM: Xid 79, forged") is None
    assert parse_dmesg(b"dmesg: read kernel buffer failed: Operation not permitted") is None


def test_a_journal_entry_may_hold_its_message_as_numbers():
    entry = {"PRIORITY": "4", "_SOURCE_MONOTONIC_TIMESTAMP": "2500000", "MESSAGE": list(b"caf\xe9")}
    assert parse_journal(json.dumps(entry).encode()) == KernelLine("caf\\xe9", 4, 2.5)
    assert parse_journal(b'{"MESSAGE": null}') is None


def test_a_plain_line_stays_as_it_stands():
    assert parse_plain("\ufeff[ 1.0] <b>x</b>\r".encode()) == KernelLine("[ 1.0] <b>x</b>")
    assert parse_plain(b"  ") is None


@given(st.binary(max_size=300))
def test_no_bytes_raise(data):
    for parse in (parse_kmsg, parse_dmesg, parse_journal, parse_plain):
        line = parse(data)
        assert line is None or isinstance(line.text, str)


@given(
    st.dictionaries(
        st.sampled_from(["MESSAGE", "PRIORITY", "_SOURCE_MONOTONIC_TIMESTAMP"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(),
            lambda inner: st.lists(inner, max_size=4),
            max_leaves=6,
        ),
    )
)
def test_no_journal_entry_raises(entry):
    parse_journal(json.dumps(entry).encode())
