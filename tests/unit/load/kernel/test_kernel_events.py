import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_report.load.kernel import RawLine, kernel_events
from gpu_report.load.run import no_alarm_before_start
from gpu_report.model import Gpu, OomReport

GPUS = (Gpu(0, pci_bus_id="00000000:03:00.0"), Gpu(1, pci_bus_id="00000000:04:00.0"))
XID_31 = "NVRM: Xid (PCI:0000:03:00): 31, pid=7, name=python, MMU Fault"


def events_of(*lines, xid_codes=(), pids=(), **options):
    raw = [RawLine(t, text, None, "kmsg") for t, text in lines]
    return kernel_events(raw, GPUS, frozenset(pids), xid_codes, **options)


def test_repeats_fold_until_three_minutes_of_silence():
    events = events_of((0, XID_31), (170, XID_31), (340, XID_31), (521, XID_31))
    assert [(event.t_s, event.count, event.last_t_s) for event in events] == [(0, 3, 340), (521, 1, None)]


@pytest.mark.parametrize(
    "other", [XID_31.replace("pid=7", "pid=8"), XID_31.replace("): 31", "): 13"), XID_31.replace("03:00", "04:00")]
)
def test_other_process_code_or_gpu_is_another_event(other):
    assert [event.count for event in events_of((0, XID_31), (1, other), (2, XID_31))] == [2, 1]


def test_a_worse_line_of_the_same_device_keeps_its_own_time():
    timeout = "nvme nvme0: I/O 321 QID 5 timeout, aborting"
    down = "nvme nvme0: controller is down; will reset: CSTS=0xffffffff"
    events = events_of((0, timeout), (30, timeout), (60, down))
    assert [(event.t_s, event.severity, event.count) for event in events] == [(0, "warning", 2), (60, "critical", 1)]


def test_unknown_lines_fold_when_only_numbers_differ():
    events = events_of((0, "usb 1-1: reset 1"), (1, "usb 1-1: reset 2"), (2, "sound: ready"))
    assert [(event.count, event.text) for event in events] == [(2, "usb 1-1: reset 1"), (1, "sound: ready")]


def test_lines_come_out_sorted_by_time():
    assert [event.t_s for event in events_of((5, "b"), (1, "a"), (3, XID_31))] == [1, 3, 5]


OOM = [
    (10.0, "python3 invoked oom-killer: gfp_mask=0x100cca, order=0, oom_score_adj=0"),
    (10.0, "CPU: 3 PID: 4242 Comm: python3 Not tainted 6.8.0"),
    (10.1, "Call Trace:"),
    (10.1, "Mem-Info:"),
    (10.2, "[   4242]  1000  4242  9999  8888 1234 0 0 python3"),
    (10.3, "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),task_memcg=/docker/x,task=python3,pid=4243,uid=0"),
    (10.3, "Memory cgroup out of memory: Killed process 4243 (python3) total-vm:9kB, anon-rss:8kB"),
    (10.9, "oom_reaper: reaped process 4243 (python3), now anon-rss:0kB"),
]


def test_a_kill_is_one_event_that_names_the_victim():
    (event,) = events_of(*OOM)
    assert (event.kind, event.severity, event.pid, event.process, event.count) == (
        "oom",
        "critical",
        4243,
        "python3",
        1,
    )
    assert event.text == OOM[6][1]
    assert "memory limit of a container" in event.meaning
    assert event.at_limit


# As Linux 6.18 printed it of a container at its limit of 24 GiB, what says nothing left out.
REPORT = [
    (10.0, "pt_autograd_0 invoked oom-killer: gfp_mask=0x100cca(GFP_HIGHUSER_MOVABLE), order=0, oom_score_adj=0"),
    (10.0, " mem_cgroup_out_of_memory+0xbf/0x110"),
    (10.0, "Code: Unable to access opcode bytes at 0x7f77350784f6."),
    (10.0, "memory: usage 25165824kB, limit 25165824kB, failcnt 1117"),
    (10.0, "swap: usage 0kB, limit 9007199254740988kB, failcnt 0"),
    (10.0, "anon 21711544320"),
    (10.0, "[    529]     0   529 12794981  5521504  4476832   105589    939083 48218112        0        0 python3"),
    (10.0, "oom-kill:constraint=CONSTRAINT_MEMCG,oom_memcg=/a,task_memcg=/a,task=python3,pid=529,uid=0"),
    (
        10.0,
        "Memory cgroup out of memory: Killed process 529 (python3) total-vm:51179924kB, anon-rss:17907328kB, "
        "file-rss:422356kB, shmem-rss:3756332kB, UID:0 pgtables:47088kB oom_score_adj:0",
    ),
]


def test_a_kill_has_what_the_kernel_reported_of_memory():
    (event,) = events_of(*REPORT)
    assert event.oom == OomReport(
        24576.0, 24576.0, pytest.approx(20705.74, abs=0.01), 17487.625, pytest.approx(3668.29, abs=0.01)
    )


def test_what_is_no_report_of_a_kill_is_not_read_as_one():
    reaped = "oom_reaper: reaped process 529 (python3), now anon-rss:0kB, file-rss:74144kB, shmem-rss:3756332kB"
    (event,) = events_of((1.0, reaped))
    assert event.oom is None
    assert events_of(*OOM[:1])[0].oom is None
    (stray,) = events_of((1.0, "memory: usage 25165824kB, limit 25165824kB, failcnt 1117"))
    assert (stray.kind, stray.oom) == ("other", None)


def test_a_cgroup_without_a_limit_did_not_reach_it():
    opened, unlimited = OOM[0], (10.1, "memory: usage 25165824kB, limit 9007199254740988kB, failcnt 0")
    (event,) = events_of(opened, unlimited)
    assert (event.oom, "memory limit" in event.meaning) == (None, False)


def test_an_old_kill_in_two_lines_has_what_the_second_says():
    (event,) = events_of(
        (1, "Memory cgroup out of memory: Kill process 42 (python) score 900 or sacrifice child"),
        (1, "Killed process 42 (python) total-vm:9kB, anon-rss:2048kB, file-rss:0kB"),
    )
    assert event.oom == OomReport(killed_own_mib=2.0)


def test_a_kill_whose_victim_is_not_named_says_which_memory_ran_out():
    (event,) = events_of(*REPORT[:6])
    assert (event.pid, event.at_limit, "memory limit of a container" in event.meaning) == (None, True, True)
    assert "host memory" not in event.meaning
    assert event.oom.limit_mib == 24576.0


CODE = "Code: Unable to access opcode bytes at 0x7f77350784f6."


def test_the_code_in_another_dump_is_no_crash():
    assert [event.kind for event in events_of(*REPORT)] == ["oom"]
    trace = (5.0, "WARNING: CPU: 0 PID: 4242 at net/sched/sch_generic.c:525 dev_watchdog+0x1f9/0x200")
    assert [event.kind for event in events_of(trace, (5.0, CODE))] == ["other", "other"]
    crash = "python3[12145]: segfault at 0 ip 00007f3b1f985ad8 sp 00007ffc9ae41d38 error 4"
    assert [event.kind for event in events_of((4.0, crash), (30.0, CODE))] == ["segfault", "other"]


def test_who_empties_the_page_cache_again_and_again_is_one_event():
    (event,) = events_of(*((t / 2, "python3 (778): drop_caches: 1") for t in range(40)))
    assert (event.kind, event.count, event.pid, event.process) == ("drop-caches", 40, 778, "python3")
    assert "python3 (pid 778) emptied the page cache" in event.meaning


def test_two_kills_are_two_events():
    later = [(t + 3, text.replace("4243", "5000")) for t, text in OOM]
    assert [event.pid for event in events_of(*OOM, *later)] == [4243, 5000]


def test_a_kill_in_the_old_words_is_one_event():
    events = events_of(
        (1, "Out of memory: Kill process 42 (python) score 900 or sacrifice child"),
        (1, "Killed process 42 (python) total-vm:9kB, anon-rss:8kB, file-rss:0kB"),
    )
    assert [(event.pid, event.count) for event in events] == [(42, 1)]


def test_an_oom_killer_without_a_victim_is_still_an_event_and_hides_nothing_later():
    oom, later = events_of(OOM[0], (30.0, "usb 1-1: new device"))
    assert (oom.kind, oom.pid, later.kind) == ("oom", None, "other")


def test_an_xid_amid_the_dump_of_a_kill_is_kept():
    assert [event.kind for event in events_of(*OOM[:4], (10.2, XID_31), *OOM[4:])] == ["xid", "oom"]


def test_the_process_behind_a_hung_ring_is_named_with_it():
    (event,) = events_of(
        (1, "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx timeout, signaled seq=1, emitted seq=2"),
        (1, "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* Process information: process yolo pid 42 thread yolo pid 43"),
    )
    assert (event.pid, event.process) == (42, "yolo")
    assert "ring gfx hung" in event.meaning


def test_details_of_a_pcie_error_are_not_events_of_their_own():
    (event,) = events_of(
        (1, "nvidia 0000:03:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)"),
        (1, "nvidia 0000:03:00.0:   device [10de:2335] error status/mask=00000001/0000e000"),
        (1, "nvidia 0000:03:00.0:    [ 0] RxErr"),
    )
    assert (event.gpu, event.count) == (0, 1)


@pytest.mark.parametrize(("count", "severity"), [(30, "info"), (200, "warning")])
def test_repaired_pcie_errors_are_a_warning_at_a_high_rate(count, severity):
    line = "nvidia 0000:03:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)"
    (event,) = events_of(*((100 * index / count, line) for index in range(count)))
    assert (event.severity, event.count, f"{count} in" in event.meaning) == (severity, count, severity == "warning")


EMPTY_SLOT = "pcieport 0000:00:1c.4: pciehp: Slot(0): Link Down"


@pytest.mark.parametrize(("lost_at", "severity"), [(10, "critical"), (60, "info"), (None, "info")])
def test_an_empty_slot_matters_where_a_gpu_is_lost_just_then(lost_at, severity):
    lost = [] if lost_at is None else [(lost_at, XID_31.replace("): 31", "): 79"))]
    events = events_of((9, EMPTY_SLOT), *lost)
    assert [event.severity for event in events if event.kind == "hotplug"] == [severity]


def test_an_empty_slot_matters_where_its_address_is_a_gpus():
    (event,) = events_of((9, EMPTY_SLOT.replace("0000:00:1c.4", "0000:03:00.0")))
    assert (event.gpu, event.severity) == (0, "critical")


@pytest.mark.parametrize(("at", "severity"), [((-9,), "info"), ((0,), "warning"), ((-9, 3), "warning")])
def test_what_had_ended_before_the_recording_is_told_but_no_alarm(at, severity):
    (event,) = no_alarm_before_start(events_of(*((t, XID_31) for t in at)))
    assert (event.t_s, event.severity) == (at[0], severity)


def test_a_crash_with_its_code_is_one_event():
    crash = "python3[12145]: segfault at 0 ip 00007f3b1f985ad8 sp 00007ffc9ae41d38 error 4 in libc.so.6[167ad8,7f3b1f8]"
    (event,) = events_of((1, crash), (1, "Code: e1 ff ff ff c3 66 2e 0f 1f 84 00 00 00 00 00 0f"), pids=[12145])
    assert (event.kind, event.pid, event.severity, event.count) == ("segfault", 12145, "critical", 1)


def test_an_nfs_outage_lasts_until_the_server_answers():
    waiting, other = events_of(
        (10, "nfs: server a not responding, still trying"),
        (11, "nfs: server b not responding, still trying"),
        (400, "nfs: server a not responding, still trying"),
        (610, "nfs: server a OK"),
    )
    assert (waiting.t_s, waiting.last_t_s, waiting.count) == (10, 610, 2)
    assert other.last_t_s is None


def test_an_outage_after_the_answer_is_a_new_one():
    line = "nfs: server a not responding, still trying"
    events = events_of((10, line), (20, "nfs: server a OK"), (30, line))
    assert [(event.t_s, event.last_t_s) for event in events] == [(10, 20), (30, None)]


def test_an_answer_without_an_outage_is_told():
    (event,) = events_of((5, "nfs: server a OK"))
    assert (event.kind, event.severity) == ("nfs", "info")


def test_sleep_lasts_until_the_machine_wakes():
    (event,) = events_of((10, "PM: suspend entry (deep)"), (5000, "PM: suspend exit"))
    assert (event.kind, event.t_s, event.last_t_s) == ("suspend", 10, 5000)


@pytest.mark.parametrize("offset", [-5.0, -0.2, 0.0, 0.2, 5.0])
def test_nvmls_event_joins_the_logs_line_of_the_same_fault(offset):
    (event,) = events_of((100, XID_31), xid_codes=[(100 + offset, 0, 31)])
    assert (event.t_s, event.text, event.count, event.source) == (100, XID_31, 1, "kmsg and NVML")


def test_nvmls_event_names_the_gpu_that_the_log_does_not():
    (event,) = events_of((100, XID_31.replace("03:00", "77:00")), xid_codes=[(100.1, 1, 31)])
    assert event.gpu == 1


@pytest.mark.parametrize("xid", [(106.0, 0, 31), (94.0, 0, 31), (100.0, 1, 31), (100.0, 0, 43)])
def test_nvmls_event_of_another_moment_gpu_or_code_stands_alone(xid):
    events = events_of((100, XID_31), xid_codes=[xid])
    (alone,) = [event for event in events if event.source == "NVML"]
    assert (alone.t_s, alone.gpu, alone.code) == xid
    assert (alone.kind, alone.count) == ("xid", 1)
    assert len(events) == 2


@pytest.mark.parametrize(("log_was_read", "is_said"), [(True, True), (False, False)])
def test_a_log_that_nobody_read_lacks_no_line(log_was_read, is_said):
    (event,) = events_of(xid_codes=[(1.0, 0, 43)], log_was_read=log_was_read)
    assert event.text.startswith("NVML reported Xid 43")
    assert ("no line of it" in event.text) is is_said


def test_nvmls_events_need_no_log_and_fold_too():
    (event,) = events_of(xid_codes=[(1.0, 0, 79), (2.0, 0, 79)])
    assert (event.severity, event.count, event.last_t_s) == ("critical", 2, 2.0)
    assert "kernel log has no line" in event.text


POOL = [XID_31, *(text for _, text in OOM), "nfs: server a OK", "nfs: server a not responding", "PM: suspend exit", "x"]


@given(
    st.lists(st.tuples(st.floats(0, 1e4), st.sampled_from(POOL) | st.text()), max_size=40),
    st.lists(st.tuples(st.floats(0, 1e4), st.sampled_from([None, 0, 1]), st.sampled_from([31, 79])), max_size=5),
)
def test_any_lines_give_sorted_events_that_end_after_they_begin(lines, xid_codes):
    events = events_of(*lines, xid_codes=xid_codes)
    assert [event.t_s for event in events] == sorted(event.t_s for event in events)
    assert all(event.last_t_s is None or event.last_t_s >= event.t_s for event in events)
    assert all(event.count >= 1 for event in events)


@given(st.lists(st.tuples(st.integers(0, 1000), st.sampled_from(POOL)), max_size=30))
def test_shifting_all_times_shifts_the_events_and_nothing_else(lines):
    events = events_of(*lines)
    shifted = events_of(*((t + 3600, text) for t, text in lines))
    assert [(e.t_s + 3600, e.kind, e.count, e.text) for e in events] == [
        (e.t_s, e.kind, e.count, e.text) for e in shifted
    ]


def test_a_flood_of_lines_is_read_in_seconds():
    began = time.perf_counter()
    lines = [(t * 1e-3, f"usb 1-{t}: device {'abcdefgh'[t % 8] * (t % 50)}") for t in range(50_000)]
    events_of(*lines, *((t, OOM[0][1]) for t, _ in lines[::100]))
    assert time.perf_counter() - began < 20.0  # about 2 s on two cores; a quadratic join would take minutes
