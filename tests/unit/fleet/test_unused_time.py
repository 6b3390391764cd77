"""GPU time that a run held and did not use."""

from dataclasses import replace

import pandas as pd
import pytest
from support.samples import analysis_of

from gpu_report.fleet.unused_time import held_gpus, unused_time
from gpu_report.model import RecordedEvent

HALF = "m-two-gpus-one-used"


def with_run(name, **changes):
    analysis = analysis_of(name)
    return replace(analysis, run=replace(analysis.run, **changes))


@pytest.mark.parametrize(
    ("visible", "held"),
    [(None, {0, 1}), ("0", {0}), ("", {0}), ("1", {0, 1}), ("0,1", {0, 1}), ("GPU-0", {0, 1}), ("nonsense", {0})],
)
def test_a_run_held_what_its_command_may_see_and_what_it_used(visible, held):
    recording = replace(analysis_of(HALF).run.recording, cuda_visible_devices=visible)
    assert held_gpus(with_run(HALF, recording=recording)) == held


def test_processes_that_come_and_go_overlap():
    rows = [(2.0, 7, "appeared"), (3.0, 8, "appeared"), (4.0, 7, "gone"), (6.0, 8, "gone"), (9.0, 9, "appeared")]
    table = analysis_of(HALF).run.processes.head(0)
    shown = pd.DataFrame([{"t_s": t_s, "gpu": 0, "pid": pid, "change": change} for t_s, pid, change in rows])
    processes = pd.concat([table, shown.reindex(columns=table.columns)])
    assert unused_time(with_run(HALF, processes=processes, duration_s=10.0))[0].no_process_s == pytest.approx(5.0)


def test_where_nobody_could_see_processes_it_is_not_known():
    run = analysis_of(HALF).run
    failed = RecordedEvent(1.0, "nvml_error", 0, {"quantity": "processes"})
    imported = replace(run.recording, source="nvidia-smi")
    none_seen = run.processes.head(0)  # with GPUs at work: a container hides them
    for changes in ({"events": (failed,)}, {"recording": imported}, {"processes": none_seen}):
        assert unused_time(with_run(HALF, **changes))[0].no_process_s is None


def test_without_a_training_nothing_is_after_its_end():
    analysis = analysis_of(HALF)
    start_up = tuple(phase for phase in analysis.phases if phase.name == "startup")
    assert unused_time(replace(analysis, phases=start_up))[0].after_end_s is None
    assert unused_time(analysis)[0].after_end_s >= 0
