"""What calls share: CPU cores, the GPU with another process, Python with calls beside them."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from support.calls import make_calls, make_served
from support.runs import PROCESSES

from gpu_report import schema
from gpu_report.analyse import analyse
from gpu_report.model import RecordedEvent, SettingLocation

NAN = float("nan")


def found_in(run):
    return {finding.rule: finding for finding in analyse(run).findings}


def on_cores(cores=1.0, cpu_pct=100.0, pressure_pct=50.0, util_pct=5.0, *, there=32, places=()):
    """Return calls of a program that may use so many cores, and so much of them."""
    run = make_served(make_calls(1500, parts_ms=(12.0, 10.0, 1.0)), util_pct=util_pct)
    t_s = np.arange(int(run.duration_s) + 1, dtype=float)
    host = pd.DataFrame({"t_s": t_s, **{c.name: np.nan for c in schema.HOST_QUANTITIES}})
    host = host.assign(main_cores=cores, main_cpu_pct=cpu_pct, cgroup_cpu_pressure_pct=pressure_pct)
    inside = tuple(dataclasses.replace(each, setting_locations=places) for each in run.inside)
    recording = dataclasses.replace(run.recording, cores=16, cores_online=there)
    return dataclasses.replace(run, host=host, inside=inside, recording=recording)


def test_a_program_that_fills_the_few_cores_that_it_may_use_is_told_so_before_all_else():
    analysis = analyse(on_cores(places=(SettingLocation("affinity", "/srv/host.py", 6),)))
    assert analysis.verdict.text.startswith("Let the program use more than 1 of the 32 CPU cores (host.py:6).")
    found = {finding.rule: finding for finding in analysis.findings}
    assert found["few-cores"].cause.name == "cpu-limit"
    assert "sets its affinity" in found["few-cores"].advice[0].text
    assert not {"slow-preprocessing", "small-calls"} & set(found)  # they are long for want of cores


@pytest.mark.parametrize(
    "run",
    [
        on_cores(cpu_pct=60.0),
        on_cores(pressure_pct=5.0),  # one thread needs no second core
        on_cores(util_pct=95.0),  # a thread that waits for the GPU fills a core, too
        on_cores(cores=16.0, cpu_pct=1600.0, there=16),
        on_cores(cores=NAN),
        on_cores(pressure_pct=NAN),
    ],
)
def test_cores_that_suffice_or_are_not_known_are_no_finding(run):
    assert "few-cores" not in found_in(run)


def beside(util_pct, mine_pct=20.0, owner="other"):
    """Return calls on a GPU on which another process works for a share of the time."""
    run = make_served(make_calls(1500, parts_ms=(1.0, 6.0, 8.0), conf=0.01), util_pct=99.0)
    rows = [
        (3.0, 0, 7, "python3 serve.py", 2000.0, "appeared", "trainer", NAN),
        (3.0, 0, 41, "python3 other.py", 900.0, "appeared", owner, NAN),
        (9.0, 0, 7, "python3 serve.py", 2000.0, "changed", "trainer", mine_pct),
        (9.0, 0, 41, "python3 other.py", 900.0, "changed", owner, util_pct),
    ]
    table = pd.DataFrame([dict(zip(PROCESSES, row, strict=True)) for row in rows], columns=PROCESSES)
    return dataclasses.replace(run, processes=table)


def test_another_process_on_the_gpu_is_what_makes_parts_of_calls_long():
    analysis = analyse(beside(80.0))
    assert analysis.verdict.text.startswith("Keep python3 other.py (pid 41) off GPU 0: at most 7")
    found = {finding.rule: finding for finding in analysis.findings}
    assert found["other-process-in-calls"].cause.name == "other-process"
    assert "slow-postprocessing" not in found


def test_preprocessing_is_the_cpus_work_whoever_is_on_the_gpu():
    run = beside(60.0, 40.0)
    calls = make_calls(1500, parts_ms=(12.0, 6.0, 8.0))
    found = found_in(dataclasses.replace(make_served(calls, util_pct=55.0), processes=run.processes))
    assert "slow-preprocessing" in found
    both = [calls, dataclasses.replace(calls, pid=8)]  # another process has a Python of its own
    found = found_in(make_served(both, util_pct=55.0))
    assert "slow-preprocessing" in found
    assert "slow-postprocessing" not in found


def test_a_process_that_hardly_works_is_no_finding():
    found = found_in(beside(6.0, 90.0))
    assert "other-process-in-calls" not in found
    assert "slow-postprocessing" in found


def test_a_gpu_that_is_busy_while_no_call_can_use_it_works_for_somebody_unseen():
    calls = make_calls(1500, parts_ms=(6.0, 6.0, 8.0), conf=0.01)
    analysis = analyse(make_served(calls, util_pct=99.0))
    assert analysis.verdict.text.startswith("Find what else uses GPU 0 (`nvidia-smi` on the host), and keep it off.")
    found = {finding.rule: finding for finding in analysis.findings}
    assert "busy 9" in found["other-process-in-calls"].summary
    assert not {"slow-postprocessing", "full-precision-calls"} & set(found)


@pytest.mark.parametrize(("parts_ms", "util_pct"), [((6.0, 6.0, 8.0), 65.0), ((0.1, 12.0, 8.0), 99.0)])
def test_a_gpu_that_is_busy_in_calls_alone_works_for_them(parts_ms, util_pct):
    assert "other-process-in-calls" not in found_in(make_served(make_calls(1500, parts_ms=parts_ms), util_pct=util_pct))


def test_calls_whose_parts_are_not_known_may_use_the_gpu_all_the_time():
    calls = make_calls(1500, parts_ms=(6.0, 6.0, 8.0))
    blank = dataclasses.replace(calls, preprocess_ms=np.full(1500, NAN))
    assert "other-process-in-calls" not in found_in(make_served(blank, util_pct=99.0))


def test_threads_whose_calls_overlap_are_a_note_and_calls_one_after_the_other_are_none():
    one = make_calls(600)
    found = found_in(make_served([one, dataclasses.replace(one, number=2)], util_pct=75.0))["shared-gpu"]
    assert found.severity == "info"
    assert found.summary.startswith("Threads of your program have 2.0 calls of 2 models at once on GPU 0")
    assert "shared-gpu" not in found_in(make_served(one, util_pct=75.0))


def ended(run, fields, *, how="finished"):
    inside = tuple(dataclasses.replace(each, ended=how) for each in run.inside)
    events = (RecordedEvent(run.duration_s, "command_ended", None, fields),)
    return analyse(dataclasses.replace(run, inside=inside, events=events))


def test_a_crash_at_exit_cost_no_call_and_comes_after_what_made_them_slow():
    analysis = ended(on_cores(), {"signal": "SIGABRT"})
    assert analysis.verdict.text.startswith("Let the program use more")
    assert "SIGABRT ended the command as it exited, after its last call." in analysis.verdict.text
    (found,) = (each for each in analysis.findings if each.rule == "command-ended")
    assert found.severity == "warning"


@pytest.mark.parametrize(
    ("fields", "how"), [({"signal": "SIGABRT"}, None), ({"exit_code": 1}, "finished"), ({"signal": "SIGKILL"}, None)]
)
def test_what_ended_a_program_within_its_work_comes_first(fields, how):
    analysis = ended(on_cores(), fields, how=how)
    assert "run-ended" in {each.rule for each in analysis.findings}
    assert "ended" in analysis.verdict.text.partition(".")[0]
