"""What the kernel says of waits for files, as a cause and as evidence of others."""

import dataclasses

import numpy as np
import pytest

from gpu_report.analyse.causes import explain
from gpu_report.analyse.causes.file_waits import wait_words
from gpu_report.analyse.signals.code.stack_profile import IdleLocation
from gpu_report.analyse.signals.host.process_waits import longest_file_wait, longest_gil_hold, seen_waits
from gpu_report.analyse.signals.interval_signals import IntervalSignals
from gpu_report.analyse.signals.signal_table import NO_SIGNALS
from gpu_report.model import LockHeld, ProcessWait

NFS = ProcessWait(2.0, 10.0, 7, "main", "D", "rpc_wait_bit_killable", "read", "/mnt/nfs/a.npy", "nfs4")


def of(*waits, span=(0.0, 12.0), **more):
    waited = {f"{role}_file_wait": longest_file_wait(waits, role, span) for role in ("main", "worker")}
    return IntervalSignals(0, *span, NO_SIGNALS, NO_SIGNALS, **waited, **more)


def changed(**fields):
    return dataclasses.replace(NFS, **fields)


def test_a_main_process_that_waits_for_a_file_most_of_the_time_is_the_cause():
    found = explain(of(NFS))
    assert (found.cause.name, found.cause.confidence) == ("trainer-blocked", 0.95)
    assert "read of /mnt/nfs/a.npy (nfs4)" in found.cause.explanation
    (number,) = found.evidence
    assert (number.text, number.value, number.unit) == (
        "the main process waited in read of /mnt/nfs/a.npy (nfs4) (of 12.0 s)",
        8.0,
        "s",
    )


@pytest.mark.parametrize(
    "wait",
    [
        changed(end_t_s=4.0),  # a part of it
        changed(file="pipe", filesystem=""),  # whoever writes into it has the cause
        changed(file="", call="", filesystem=""),  # nobody knows which
        changed(start_t_s=20.0, end_t_s=30.0),
    ],
)
def test_other_waits_are_no_cause_by_themselves(wait):
    assert explain(of(wait)).cause.name == "unexplained"


def test_a_worker_that_waits_for_the_network_is_input():
    worker = changed(role="worker", pid=8)
    assert explain(of(worker)).cause.name == "input-storage"
    assert explain(of(worker, idle_location=IdleLocation(0.9, None, 0.0, None))).cause.name == "input-storage"
    assert (
        explain(of(worker, idle_location=IdleLocation(0.1, None, 0.0, None))).cause.name == "unexplained"
    )  # the trainer did not wait for it
    assert explain(of(changed(role="worker", filesystem="fuse"))).cause.name == "input-storage"
    assert explain(of(changed(role="worker", filesystem="ext4"))).cause.name == "unexplained"  # the pressures say


def test_waits_of_one_process_for_one_filesystem_count_together():
    parts = [changed(start_t_s=start, end_t_s=start + 2.0, file=f"/mnt/nfs/{start}") for start in (0.0, 4.0, 8.0)]
    wait = longest_file_wait([*parts, changed(pid=9, end_t_s=7.0)], "main", (1.0, 12.0))
    assert wait.seconds == 5.0
    assert wait_words(wait) == "read of files under /mnt/nfs (nfs4)"
    assert longest_file_wait([changed(state="S", file="", call="")], "main", (0.0, 9.0)) is None


def test_a_wait_over_a_gap_of_the_recorder_was_not_seen():
    looks_s = np.array([0.0, 1, 2, 3, 63, 64, 65, 66, 67, 68])
    over, within = changed(start_t_s=2.0, end_t_s=64.0), changed(start_t_s=63.0, end_t_s=68.0)
    assert seen_waits([over, within], looks_s) == [within]
    assert seen_waits([over, within], looks_s[:0]) == [over, within]  # nobody knows when it looked


@pytest.mark.parametrize(
    ("wait", "words"),
    [
        (changed(file="socket", filesystem="", call="recvfrom"), "recvfrom of a socket"),
        (changed(file="", filesystem="", call=""), "a wait that cannot be interrupted (rpc_wait_bit_killable)"),
        (changed(file="", filesystem="", call="fsync", channel=""), "fsync that cannot be interrupted"),
    ],
)
def test_what_was_waited_for_in_words(wait, words):
    assert wait_words(longest_file_wait([wait], "main", (0.0, 12.0))) == words


def kept(*held, span=(0.0, 10.0)):
    return longest_gil_hold([[each for each in held if each.end_t_s > span[0] and each.start_t_s < span[1]]], span)


def test_how_long_c_code_kept_pythons_lock():
    found = kept(LockHeld(3.0, 6.0, 3.0), LockHeld(8.0, 20.0, 0.0))
    assert (found.seconds, found.cpu_share) == (5.0, 0.2)
    assert kept(LockHeld(3.0, 6.0, 0.1), span=(0.0, 2.0)) is None


@pytest.mark.parametrize(
    ("seconds", "cpu_s", "cause"),
    [(9.0, 0.0, "trainer-blocked"), (9.0, 8.9, "main-process"), (4.0, 0.0, "unexplained")],
)
def test_c_code_that_keeps_pythons_lock_most_of_the_time_is_the_cause(seconds, cpu_s, cause):
    found = explain(of(span=(0.0, 10.0), gil_held=kept(LockHeld(0.5, 0.5 + seconds, cpu_s))))
    assert found.cause.name == cause
    assert [number.value for number in found.evidence] == ([] if cause == "unexplained" else [seconds])
