"""NCCL's own log and torch's flight recorder in a run folder: real ones, and such as were made to hurt."""

import json
import shutil
from pathlib import Path

import pytest

from gpu_report.errors import InputError
from gpu_report.load.nccl import PICKLED, load_nccl
from gpu_report.load.run_clock import Boot, RunClock

DATA = Path(__file__).parents[2] / "data" / "nccl"
START_WALL_S = 1_795_685_500.0  # 2026-11-26 09:31:40 UTC
CLOCK = RunClock((Boot(START_WALL_S, 0.0, 0.0),))
ZONE = "# kept by gpu-report; times are UTC+00:00\n"


@pytest.fixture
def load(tmp_path):
    (tmp_path / "nccl").mkdir()

    def read(**files):
        for name, content in files.items():
            path = tmp_path / "nccl" / name.replace("_dot_", ".")
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return load_nccl(tmp_path, CLOCK, 300.0)

    return read


def test_a_folder_without_any_has_nothing(tmp_path):
    assert load_nccl(tmp_path, CLOCK, 300.0)[0].processes == ()


def test_a_real_log_says_version_rank_and_how_ranks_are_connected(load):
    nccl, problems = load(
        a_dot_log=(DATA / "sockets_rank_0.log").read_text(), b_dot_log=(DATA / "shm_rank_1.log").read_text()
    )
    first, second = nccl.processes
    assert (first.rank, first.ranks, first.nodes, first.pid) == (0, 2, 2, 1214)
    assert (first.version, first.network, first.adapters) == ("2.28.9+cuda13.0", "Socket", ("lo",))
    assert dict(first.settings) == {"NCCL_IB_DISABLE": "1", "NCCL_SOCKET_IFNAME": "lo"}
    assert (second.rank, second.nodes) == (1, 1)
    assert nccl.transports == ("SHM/direct/direct", "NET/Socket")
    assert nccl.versions == ("2.28.9+cuda13.0",)
    assert not problems


def test_a_warning_has_a_time_only_where_the_zone_of_its_clock_is_known(load):
    log = (DATA / "sockets_rank_0.log").read_text()
    west = ZONE.replace("+00:00", "-01:30")
    times = [[w.t_s for w in load(a_dot_log=head + log)[0].processes[0].warnings] for head in (ZONE, "", west)]
    assert times == [[136.0, 136.0], [None, None], [None, None]]  # 11:03:56 UTC was after the recording
    warning = load()[0].processes[0].warnings[0]
    assert warning.source == "misc/socket.cc:72"
    assert warning.text == "socketProgress: Connection closed by remote peer localhost<52188>"


@pytest.mark.parametrize(
    ("line", "transport"),
    [
        ("Channel 00/0 : 1[1] -> 8[0] [receive] via NET/IB/0/GDRDMA", "NET/IB/GDRDMA"),
        ("Channel 04/0 : 13[5] -> 4[4] [send] via NET/IB/5(4)/GDRDMA/Shared", "NET/IB/GDRDMA/Shared"),
        ("Channel 00/1 : 0[0] -> 1[1] [send] via NET/AWS Libfabric/0 comm 0x1f nRanks 02", "NET/AWS Libfabric"),
        ("Ring 00 : 0[0] -> 1[1] via P2P/IPC", "P2P/IPC"),
        ("Channel 00 : 0 1 2 3", None),
        ("Channel 00 : 0[0] -> 1[1] via <script>", None),
    ],
)
def test_transports_of_other_machines(load, line, transport):
    (process,) = load(a_dot_log=f"gpu-7:12:34 [0] NCCL INFO {line}\n")[0].processes
    assert process.transports == ((transport,) if transport else ())


def test_what_is_no_line_of_nccl_says_nothing(load):
    for text in ("", "NCCL version 2.28.9\n", "\0" * 5000, "x:1:2 [0] NCCL WARN" + "y" * 10_000, "[" * 100_000):
        assert load(a_dot_log=text)[0].processes == ()


def test_a_flood_is_cut(load):
    warned = "".join(f"h:{n}:1 [0] NCCL WARN {'x' * 900}\n" * 60 for n in range(90))
    nccl, problems = load(a_dot_log=warned)
    assert max(len(each.warnings) for each in nccl.processes) == 50
    assert max(len(w.text) for each in nccl.processes for w in each.warnings) == 300
    assert "a.log is larger" in problems[0]


@pytest.mark.parametrize("kind", ["dumped", "pickled"])
def test_real_traces_say_what_each_rank_called_last(load, kind):
    names = {f"fr_{rank}_dot_json": (DATA / f"{kind}_rank_{rank}.json").read_text() for rank in (0, 1)}
    nccl, problems = load(**names)
    first, second = nccl.traces
    assert (first.rank, second.rank) == (0, 1)
    assert first.groups[0].ranks == (0, 1)
    assert (first.groups[0].called, second.groups[0].called) == (13, 12)
    assert [call.completed for call in first.groups[0].last] == [True, True, False]
    assert first.groups[0].last[-1].name == "all_reduce"
    assert 40 < first.groups[0].last[-1].t_s < 50
    assert bool(first.groups[0].last[-1].stack) == (kind == "pickled")
    assert not problems


def test_traces_that_are_none_are_said_and_left_out(load):
    deep = "[" * 100_000
    odd = {
        "version": "2.10",
        "pg_config": {"0": {"ranks": [0, True, "x"]}},
        "entries": [None, {}, {"process_group": 3}],
    }
    entry = {"process_group": ["0", "g"], "collective_seq_id": 1, "profiling_name": "x", "time_created_ns": 10**400}
    odd["entries"].append(entry)
    nccl, problems = load(
        a1_dot_json=deep, b2_dot_json="{}", c_dot_json='{"version": "2.10"}', d4_dot_json=json.dumps(odd)
    )
    assert [trace.rank for trace in nccl.traces] == [4]
    assert nccl.traces[0].groups == ()
    assert len(problems) == 3


@pytest.mark.parametrize(("status", "called"), [({"0": {"last_enqueued_collective": -1}}, [0]), (None, [])])
def test_a_group_without_entries_counts_where_the_trace_says_how_many_were_called(load, status, called):
    trace = {"version": "2.10", "pg_config": {"0": {"ranks": "[0, 1]"}}, "pg_status": status, "entries": []}
    nccl, _ = load(a1_dot_json=json.dumps(trace))
    assert [group.called for group in nccl.traces[0].groups] == called


def test_pickles_are_never_read(load, tmp_path):
    nccl, problems = load(fr_0=b"\x80\x02cos\nsystem\n(S'touch pwned'\ntR.", pickles_dot_txt="2\n")
    assert nccl.traces == ()
    assert problems == (PICKLED,)


def test_a_link_out_of_the_run_folder_is_refused(load, tmp_path):
    shutil.copy(DATA / "sockets_rank_0.log", tmp_path.parent / "elsewhere.log")
    (tmp_path / "nccl" / "a.log").symlink_to(tmp_path.parent / "elsewhere.log")
    with pytest.raises(InputError, match="leads out of"):
        load()
