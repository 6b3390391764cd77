"""What the live page shows beside GPUs: the host, and the calls of models in the last minute."""

import pytest
from support.growing import START_S

from gpu_report.live.reading import last_minute
from gpu_report.live.reading.last_minute import calls_now, host_now, host_recent

HEADER = "mono_s,model,images,height,width,preprocess_ms,inference_ms,postprocess_ms,total_ms,gap_ms\n"


def calls(folder, rows, pid=7):
    lines = "".join(f"{at_s},1,1,640,640,1,2,1,{took_ms},\n" for at_s, took_ms in rows)
    (folder / "inside" / f"{pid}.calls.csv").write_text(HEADER + lines + "999.0,1,1,64")  # a row that is being written


def test_the_calls_of_the_last_minute_are_counted_over_all_processes(growing):
    calls(growing.folder, [(10.0, 900.0), *((100.0 + n, 20.0) for n in range(11))])
    calls(growing.folder, [(100.5 + n, 40.0) for n in range(10)], pid=8)
    found = calls_now(growing.folder, 120.0)
    assert found == {"calls": 21, "per_s": 2.0, "median_ms": 20.0, "p95_ms": 40.0}
    assert calls_now(growing.folder, 400.0) is None  # nobody calls any more


def test_of_a_large_file_the_end_counts_from_its_first_whole_row_on(growing, monkeypatch):
    calls(growing.folder, [(100.0 + n, 20.0) for n in range(11)])
    rest = "1,1,640,640,1,2,1,20.0,\n"
    monkeypatch.setattr(last_minute, "END_BYTES", len(f"0.0,{rest}110.0,{rest}109.0,{rest}999.0,1,1,64"))
    assert calls_now(growing.folder, 120.0)["calls"] == 2


def test_the_host_is_that_of_its_newest_row_while_that_is_new(growing, looked_at):
    rows = [f"{START_S + n},{100.0 + n},{n},2048,6144,150\n" for n in range(30)]
    (growing.folder / "host.csv").write_text(
        "wall_s,mono_s,cpu_pct,memory_used_mib,memory_available_mib,main_cpu_pct\n" + "".join(rows)
    )
    host = host_now(growing.folder, START_S + 30, 15.0)
    assert host == {
        "mono_s": 129.0,
        "cpu_pct": 29.0,
        "main_cpu_pct": 150.0,
        "memory_used_mib": 2048.0,
        "memory_total_mib": 8192.0,
    }
    assert host_now(growing.folder, START_S + 60, 15.0) is None


def test_the_page_draws_the_rows_of_the_host_and_leaves_out_what_was_not_read(growing):
    rows = ("1,,2048\n", "2,50,2048\n", "3,60,\n", "4,7")  # a row that is being written
    (growing.folder / "host.csv").write_text("wall_s,cpu_pct,memory_used_mib\n" + "".join(rows))
    assert host_recent(growing.folder, 1.5) == [
        (2.0, {"cpu_pct": 50.0, "host_memory_mib": 2048.0}),
        (3.0, {"cpu_pct": 60.0}),
    ]
    assert host_recent(growing.folder, 0.0)[0] == (1.0, {"host_memory_mib": 2048.0})


def test_of_a_folder_without_them_nothing_is_known(growing):
    assert host_recent(growing.folder, 0.0) == []
    assert host_now(growing.folder, START_S, 15.0) is None
    assert calls_now(growing.folder, 120.0) is None


def test_a_machine_without_a_gpu_has_news_with_each_row_of_its_host(growing, looked_at):
    run, _ = looked_at(growing, 1)
    (growing.folder / "host.csv").write_text("wall_s,mono_s,cpu_pct\n")
    run._looked_s = float("-inf")
    assert run.look()
    run._looked_s = float("-inf")
    assert not run.look()


@pytest.mark.parametrize("rows", [[], [(100.0, 20.0)]])
def test_of_one_call_nobody_knows_how_many_there_are_a_second(growing, rows):
    calls(growing.folder, rows)
    assert calls_now(growing.folder, 120.0) is None
