import pytest

from gpu_report.load.kernel import RawLine, classify
from gpu_report.model import Gpu

GPUS = (Gpu(0, pci_bus_id="00000000:03:00.0"),)


def said(text, pids=()):
    return classify(RawLine(0.0, text), GPUS, frozenset(pids))


# Lines as Linux 4.x to 6.x print them (numbers changed).
CASES = [
    (
        "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx timeout, signaled seq=12, emitted seq=14",
        "amdgpu",
        "critical",
    ),
    ("[drm:amdgpu_job_timedout] *ERROR* ring gfx timeout, signaled seq=12, emitted seq=14", "amdgpu", "critical"),
    (
        "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx_0.0.0 timeout, signaled seq=1, emitted seq=2",
        "amdgpu",
        "critical",
    ),
    (
        "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring sdma0 timeout, signaled seq=1, emitted seq=2",
        "amdgpu",
        "critical",
    ),
    (
        "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring comp_1.0.0 timeout, last signaled seq=1, last emitted seq=2",
        "amdgpu",
        "critical",
    ),
    ("amdgpu 0000:03:00.0: amdgpu: ring gfx_0.0.0 timeout, signaled seq=5, emitted seq=7", "amdgpu", "critical"),
    (
        "amdgpu 0000:03:00.0: [drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx timeout, signaled seq=5",
        "amdgpu",
        "critical",
    ),
    ("[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx timeout, but soft recovered", "amdgpu", "warning"),
    ("amdgpu 0000:03:00.0: amdgpu: ring sdma0 timeout, but soft recovered", "amdgpu", "warning"),
    (
        "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* Process information: process python3 pid 42 thread python3 pid 43",
        "amdgpu",
        "critical",
    ),
    ("amdgpu 0000:03:00.0: amdgpu:  Process python3 pid 42 thread python3 pid 43", "amdgpu", "critical"),
    ("amdgpu 0000:03:00.0: amdgpu: GPU reset begin!", "amdgpu", "critical"),
    ("amdgpu 0000:03:00.0: amdgpu: GPU reset(2) succeeded!", "amdgpu", "info"),
    ("amdgpu 0000:03:00.0: amdgpu: GPU reset end with ret = -22", "amdgpu", "critical"),
    (
        "python3 invoked oom-killer: gfp_mask=0x100cca(GFP_HIGHUSER_MOVABLE), order=0, oom_score_adj=0",
        "oom",
        "critical",
    ),
    (
        "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/user.slice,task=python3,pid=4242,uid=1000",
        "oom",
        "critical",
    ),
    (
        "Out of memory: Killed process 4242 (python3) total-vm:9kB, anon-rss:8kB, file-rss:0kB, shmem-rss:0kB",
        "oom",
        "critical",
    ),
    ("Out of memory: Kill process 4242 (python3) score 900 or sacrifice child", "oom", "critical"),
    ("Killed process 4242 (python3) total-vm:9kB, anon-rss:8kB, file-rss:0kB", "oom", "critical"),
    ("Memory cgroup out of memory: Killed process 4242 (python3) total-vm:9kB, anon-rss:8kB", "oom", "critical"),
    ("pcieport 0000:00:01.0: AER: Corrected error received: 0000:03:00.0", "aer", "info"),
    ("pcieport 0000:00:01.0: AER: Multiple Corrected error received: id=00e0", "aer", "info"),
    ("pcieport 0000:00:01.0: AER: Correctable error message received from 0000:03:00.0", "aer", "info"),
    ("pcieport 0000:00:01.0: AER: Uncorrected (Non-Fatal) error received: 0000:03:00.0", "aer", "warning"),
    ("pcieport 0000:00:01.0: AER: Uncorrectable (Fatal) error message received from 0000:03:00.0", "aer", "critical"),
    ("nvidia 0000:03:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)", "aer", "info"),
    (
        "nvidia 0000:03:00.0: PCIe Bus Error: severity=Correctable, type=Data Link Layer, (Transmitter ID)",
        "aer",
        "info",
    ),
    ("nvidia 0000:03:00.0: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Transaction Layer", "aer", "warning"),
    (
        "pcieport 0000:03:00.0: AER: PCIe Bus Error: severity=Uncorrectable (Fatal), type=Inaccessible",
        "aer",
        "critical",
    ),
    ("pcieport 0000:00:1c.4: pciehp: Slot(0): Link Down", "hotplug", "info"),
    ("pciehp 0000:00:1c.4:pcie004: Slot(4-1): Card not present", "hotplug", "info"),
    ("pciehp: Slot(8): Card not present", "hotplug", "info"),
    (
        "nvme nvme0: I/O tag 12 (100c) opcode 0x2 (I/O Cmd) QID 4 timeout, aborting req_op:READ(0) size:131072",
        "nvme",
        "warning",
    ),
    ("nvme nvme0: I/O tag 12 (100c) opcode 0x2 (I/O Cmd) QID 4 timeout, reset controller", "nvme", "warning"),
    ("nvme nvme1: I/O 321 QID 5 timeout, aborting", "nvme", "warning"),
    ("nvme nvme0: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0xffff", "nvme", "critical"),
    ("nvme nvme0: Disabling device after reset failure: -19", "nvme", "critical"),
    ("I/O error, dev sda, sector 1234 op 0x0:(READ) flags 0x80700 phys_seg 1 prio class 2", "block", "critical"),
    ("blk_update_request: I/O error, dev nvme0n1, sector 99", "block", "critical"),
    ("print_req_error: I/O error, dev sdb, sector 99", "block", "critical"),
    ("Buffer I/O error on dev dm-0, logical block 7, async page read", "block", "critical"),
    ("Buffer I/O error on dev fd0, logical block 0, async page read", "other", "info"),
    ("Buffer I/O error on dev sr0, logical block 0, async page read", "other", "info"),
    ("blk_update_request: I/O error, dev fd0, sector 0", "other", "info"),
    ("Buffer I/O error on dev srv0, logical block 0, async page read", "block", "critical"),
    ("ata1.00: exception Emask 0x0 SAct 0x40 SErr 0x0 action 0x6 frozen", "ata", "warning"),
    ("ata1.00: failed command: READ FPDMA QUEUED", "ata", "warning"),
    ("ata1: hard resetting link", "ata", "warning"),
    ("EXT4-fs (sda1): Remounting filesystem read-only", "filesystem", "critical"),
    ("EXT4-fs error (device sda1) ext4_journal_check_start: Remounting filesystem read-only", "filesystem", "critical"),
    ("FAT-fs (sdb1): Filesystem has been set read-only", "filesystem", "critical"),
    ("BTRFS info (device sda1): forced readonly", "filesystem", "critical"),
    (
        "EXT4-fs error (device sda1): ext4_find_entry:1612: inode #2: comm python3: reading directory lblock 0",
        "filesystem",
        "critical",
    ),
    ("XFS (nvme0n1p1): Corruption of in-memory data detected.  Shutting down filesystem", "filesystem", "critical"),
    ("nfs: server filer-1.example not responding, still trying", "nfs", "warning"),
    ("nfs: server filer-1.example not responding, timed out", "nfs", "warning"),
    ("nfs: server filer-1.example OK", "nfs", "info"),
    ("CPU7: Core temperature above threshold, cpu clock throttled (total events = 3)", "thermal", "warning"),
    (
        "mce: CPU7: Package temperature is above threshold, cpu clock is throttled (total events = 3)",
        "thermal",
        "warning",
    ),
    ("mce: CPU7: Core temperature/speed normal", "thermal", "info"),
    ("INFO: task python3:4242 blocked for more than 120 seconds.", "hung-task", "warning"),
    ("watchdog: BUG: soft lockup - CPU#18 stuck for 27s! [python3:4242]", "lockup", "warning"),
    ("NMI watchdog: Watchdog detected hard LOCKUP on cpu 3", "lockup", "critical"),
    ("rcu: INFO: rcu_sched self-detected stall on CPU", "lockup", "warning"),
    ("rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:", "lockup", "warning"),
    ("python3[4242]: segfault at 10 ip 00007f sp 00007f error 4 in libtorch_cpu.so[7f0+1000]", "segfault", "info"),
    ("traps: python3[4242] general protection fault ip:7f sp:7f error:0 in libcuda.so[7f0+1000]", "segfault", "info"),
    ("traps: python3[4242] general protection ip:7f sp:7f error:0", "segfault", "info"),
    ("mce: [Hardware Error]: CPU 2: Machine Check: 0 Bank 7: 8c00004000010090", "mce", "info"),
    ("mce: [Hardware Error]: CPU 2: Machine Check Exception: 5 Bank 7: be00000000800400", "mce", "critical"),
    ("mce: [Hardware Error]: Machine check events logged", "mce", "info"),
    ("[Hardware Error]: Corrected error, no action required.", "mce", "info"),
    ("[Hardware Error]: TSC 0 ADDR 1000", "mce", "warning"),
    ("mce: [Hardware Error]: Machine check events logged: Uncorrected error", "mce", "critical"),
    ("{1}[Hardware Error]: event severity: fatal", "mce", "critical"),
    ("EDAC MC0: 1 CE memory read error on CPU_SrcID#0_Ha#0_Chan#1_DIMM#0", "mce", "info"),
    ("EDAC MC0: 1 UE memory read error on CPU_SrcID#0_Ha#0_Chan#1_DIMM#0", "mce", "critical"),
    ("PM: suspend entry (deep)", "suspend", "info"),
    ("PM: suspend exit", "suspend", "info"),
    ("process_api (1): drop_caches: 3", "drop-caches", "info"),
    ("python3 (4242): drop_caches: 1", "drop-caches", "info"),
    ("python3 (4242): drop_caches: 2", "other", "info"),  # names and attributes, no data
    (
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=a,mems_allowed=0,oom_memcg=/a,task_memcg=/a,task=python3,pid=4242,uid=0",
        "oom",
        "critical",
    ),
    ("EXT4-fs (vda): mounted filesystem 0000 r/w without journal. Quota mode: none.", "other", "info"),
    ("EDAC MC: Ver: 3.0.0", "other", "info"),
    ("nfs4filelayout_init: NFSv4 File Layout Driver Registering...", "other", "info"),
    ("", "other", "info"),
]


@pytest.mark.parametrize(("text", "kind", "severity"), CASES)
def test_what_a_line_is_and_how_bad(text, kind, severity):
    event = said(f"[  968.496792] {text}")
    assert (event.kind, event.severity) == (kind, severity)
    assert event.text == f"[  968.496792] {text}"
    assert event.meaning
    assert "{" not in event.meaning


NAMING = ("oom", "segfault", "hung-task", "drop-caches")


@pytest.mark.parametrize("text", [text for text, kind, _ in CASES if kind in NAMING and "4242" in text])
def test_the_process_is_named(text):
    event = said(text)
    assert (event.pid, event.process) == (4242, "python3")
    assert "python3 (pid 4242)" in event.meaning


@pytest.mark.parametrize("text", [text for text, kind, _ in CASES if kind == "segfault"])
def test_a_crash_is_critical_where_the_process_belongs_to_the_run(text):
    assert said(text, pids=[4242]).severity == "critical"
    assert said(text, pids=[4243]).severity == "info"


@pytest.mark.parametrize("text", [text for text, kind, _ in CASES if kind == "aer" and "03:00.0" in text])
def test_a_pcie_error_of_a_gpu_is_that_gpus(text):
    assert said(text).gpu == 0


@pytest.mark.parametrize(
    "text",
    [
        "usb 1-1: Product: Out of memory: Killed process 1 (x)",
        "audit: nfs: server x not responding",
        "python3[1]: I/O error, dev sda, sector 1",
        "usb 1-1: Product: foo invoked oom-killer: gfp_mask=0x1",
        "usb 1-1: Product: python3[4242]: segfault at 0 ip 0",
        "usb 1-1: SerialNumber: (x): Remounting filesystem read-only",
        "usb (x): Remounting filesystem read-only",
        "my-driver: amdgpu 0000:03:00.0: amdgpu: GPU reset begin!",
    ],
)
def test_a_pattern_in_the_middle_of_a_line_is_data(text):
    assert said(text).kind == "other"


@pytest.mark.parametrize(
    ("end", "did"),
    [
        (" op 0x0:(READ) flags 0x80700", "read a sector"),
        (" op 0x1:(WRITE) flags 0x8800", "write a sector"),
        ("", "read or write a sector"),
    ],
)
def test_a_disk_that_failed_says_at_what(end, did):
    event = said(f"I/O error, dev sdd, sector 1234{end}")
    assert (event.meaning, event.subject) == (f"the disk sdd could not {did}", "sdd")
