"""The trainer's control group, as made-up folders show it: v2 beneath the root, the root itself, and v1."""

import pytest

from gpu_report.record.host.cgroup import (
    LOOK_EVERY_S,
    MEMORY_EVERY_S,
    CgroupSampler,
    cpu_limit,
    group_of,
    memory_limit_mib,
)

PSI = "some avg10=0.00 avg60=0.00 avg300=0.00 total={some}\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=1\n"


class Host:
    def __init__(self, folder):
        self.proc, self.root = folder / "proc", folder / "cgroup"
        self.root.mkdir()

    def process(self, pid, group, line="0::{group}\n"):
        (self.proc / str(pid)).mkdir(parents=True, exist_ok=True)
        (self.proc / str(pid) / "cgroup").write_text("1:name=systemd:/old\n" + line.format(group=group))

    def group(self, name, waited_us=0, used_mib=0, limit="max"):
        folder = self.root / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cgroup.type").write_text("domain\n")
        for resource in ("cpu", "io", "memory"):
            (folder / f"{resource}.pressure").write_text(PSI.format(some=waited_us))
        (folder / "memory.current").write_text(f"{used_mib * 2**20}\n")
        (folder / "memory.max").write_text(f"{limit}\n")

    def sampler(self):
        return CgroupSampler(self.proc, self.root)


@pytest.fixture
def host(tmp_path):
    return Host(tmp_path)


def test_totals_of_the_trainers_group_become_rates(host):
    host.process(7, "/job")
    host.group("job", used_mib=512)
    sampler = host.sampler()
    first = sampler.sample(10.0, 7)
    assert (first["cgroup_cpu_pressure_pct"], first["cgroup_memory_used_mib"]) == (None, 512)
    host.group("job", waited_us=500_000, used_mib=600)
    assert sampler.sample(12.0, 7) == {
        "cgroup_cpu_pressure_pct": 25,
        "cgroup_io_pressure_pct": 25,
        "cgroup_memory_pressure_pct": 25,
        "cgroup_memory_used_mib": None,
    }
    assert sampler.sample(12.0 + MEMORY_EVERY_S, 7)["cgroup_memory_used_mib"] == 600


def test_another_group_begins_anew(host):
    host.process(7, "/job")
    host.group("job")
    host.group("other", waited_us=9_000_000)
    sampler = host.sampler()
    sampler.sample(10.0, 7)
    host.process(7, "/other")
    assert sampler.sample(10.0 + LOOK_EVERY_S, 7)["cgroup_cpu_pressure_pct"] is None
    host.group("other", waited_us=9_100_000)
    assert sampler.sample(11.0 + LOOK_EVERY_S, 7)["cgroup_cpu_pressure_pct"] == 10


def test_the_root_group_and_v1_tell_nothing(host):
    host.process(7, "/")
    host.process(8, "", line="2:cpu:/v1\n")
    host.process(9, "/../elsewhere")
    assert [group_of(pid, host.proc, host.root) for pid in (7, 8, 9, 10)] == [None] * 4
    assert host.sampler().sample(1.0, 7) == {}
    assert host.sampler().sample(1.0, None) == {}


def test_a_container_that_sees_its_own_group_as_the_root_is_no_root(host):
    host.process(7, "/")
    host.group("")
    assert group_of(7, host.proc, host.root) == host.root


def test_without_pressure_files_only_memory_is_told(host):
    host.process(7, "/job")
    host.group("job", used_mib=3)
    for resource in ("cpu", "io", "memory"):
        (host.root / "job" / f"{resource}.pressure").unlink()
    assert host.sampler().sample(1.0, 7) == {"cgroup_memory_used_mib": 3}


def test_the_least_limit_on_the_way_up_holds(host):
    host.process("self", "/slice/job")
    host.group("slice", limit=8 * 2**30)
    host.group("slice/job")
    assert memory_limit_mib(host.proc, host.root) == 8192
    host.group("slice/job", limit=2 * 2**30)
    assert memory_limit_mib(host.proc, host.root) == 2048
    host.group("slice")
    host.group("slice/job")
    assert memory_limit_mib(host.proc, host.root) is None


def test_the_cores_that_a_quota_comes_to(host):
    host.process("self", "/slice/job")
    host.group("slice")
    host.group("slice/job")
    assert cpu_limit(host.proc, host.root) is None  # no file
    for quota, cores in (("max 100000", None), ("400000 100000", 4.0), ("50000 100000", 0.5), ("garbled", None)):
        (host.root / "slice/job/cpu.max").write_text(f"{quota}\n")
        assert cpu_limit(host.proc, host.root) == cores
    (host.root / "slice/job/cpu.max").write_text("400000 100000\n")
    (host.root / "slice/cpu.max").write_text("150000 100000\n")
    assert cpu_limit(host.proc, host.root) == 1.5


@pytest.mark.parametrize(
    ("folder", "quota", "cores"),
    [
        ("docker/1a2b", "410000", 4.1),
        ("docker", "150000", 1.5),  # the group above
        ("", "200000", 2.0),  # a container's mount begins at its group
        ("docker/1a2b", "-1", None),  # no limit
        ("docker/1a2b", "garbled", None),
    ],
)
def test_the_quota_of_cgroup_v1_is_a_limit_too(tmp_path, folder, quota, cores):
    host = Host(tmp_path)
    host.process("self", "", line="4:memory:/docker/1a2b\n3:cpu,cpuacct:/docker/1a2b\n")
    group = host.root / "cpu,cpuacct" / folder
    group.mkdir(parents=True)
    (group / "cpu.cfs_quota_us").write_text(f"{quota}\n")
    (group / "cpu.cfs_period_us").write_text("100000\n")
    assert cpu_limit(host.proc, host.root) == cores
