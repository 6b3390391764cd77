"""Rules beside drops: another process on the GPU, waiting for a peer, a bad end, a GPU that always waits."""

import dataclasses
import itertools

import numpy as np
import pandas as pd
import pytest
from support.runs import PROCESSES, make_run, readings

from gpu_report import schema
from gpu_report.analyse import analyse
from gpu_report.analyse.build_context import build_context
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.drops.slowdowns import slowdowns, without_slow_loading
from gpu_report.analyse.timeseries.intervals import intersect, length_s
from gpu_report.model import InsideEpoch, InsideRun, JobPart, KernelEvent, Options, Phase, RecordedEvent, YoloRun

NAN = float("nan")
SECONDS = 120


def findings(run, rule):
    return [finding for finding in analyse(run).findings if finding.rule == rule]


def with_processes(run, *rows):
    table = pd.DataFrame([dict(zip(PROCESSES, row, strict=True)) for row in rows], columns=PROCESSES)
    return dataclasses.replace(run, processes=table)


def guest_run(owner="other", util=86.0):
    memory = [44_000.0] * 50 + [44_900.0] * 20 + [44_000.0] * 50
    run = make_run(readings((0, 10), (90, 110)), rows=[(1, 60), (2, 115)], quantities={"memory_used_mib": memory})
    return with_processes(
        run,
        (12.0, 0, 41, "python train.py", 44_000.0, "appeared", "trainer", NAN),
        (53.0, 0, 77, "python3", 900.0, "appeared", owner, min(util, 10.0)),
        (58.0, 0, 77, "python3", 900.0, "changed", owner, util),
        (73.0, 0, 77, "python3", NAN, "gone", owner, NAN),
    )


def test_a_guest_is_told_with_the_moments_at_which_memory_stepped():
    (finding,) = findings(guest_run(), "other-process")
    assert (finding.start_t_s, finding.end_t_s) == (50.0, pytest.approx(69.0))
    assert "python3 (pid 77)" in finding.summary
    assert finding.cause.name == "other-process"
    assert ("its share of the GPU time meanwhile, at most", 86.0) in {(e.text, e.value) for e in finding.evidence}
    assert finding.summary.startswith("python3 (pid 77) shared GPU 0 for 19 s")
    assert analyse(guest_run()).verdict.text.count("python3 (pid 77)") == 1  # the lead says all that is known


def back_again():
    run = guest_run()
    run.samples.loc[90:105, "memory_used_mib"] = 44_900.0
    again = [
        (93.0, 0, 77, "python3", 900.0, "appeared", "other", 86.0),
        (108.0, 0, 77, "python3", NAN, "gone", "other", NAN),
    ]
    return with_processes(run, *run.processes.itertuples(index=False), *again)


def test_a_guest_that_leaves_and_comes_back_is_told_by_stay():
    run = back_again()
    (finding,) = findings(run, "other-process")
    assert finding.summary == "python3 (pid 77) shared GPU 0 for 34 s (2 times): it took 25 % of training time"
    text = analyse(run).verdict.text
    assert "it cost about 13 s of training" in text
    assert [each.span for each in finding.occurrences] == [(50.0, pytest.approx(69.0)), (90.0, pytest.approx(105.0))]


def test_the_memory_of_a_guest_that_comes_back_is_its_own_in_each_stay():
    context = build_context(back_again(), Options())
    held = context.gpu_memory(context.series[0]).others_mib
    assert [held[t_s] > 0 for t_s in (40, 60, 80, 100, 115)] == [False, True, False, True, False]


def test_a_guest_of_minutes_is_told_in_minutes():
    memory = [44_000.0] * 50 + [44_900.0] * 100 + [44_000.0] * 50
    run = make_run(readings((0, 10), (90, 190)), rows=[(1, 195)], quantities={"memory_used_mib": memory})
    looks = [
        (53.0, 0, 77, "python3", 900.0, "appeared", "other", 86.0),
        (153.0, 0, 77, "python3", NAN, "gone", "other", NAN),
    ]
    (finding,) = findings(with_processes(run, *looks), "other-process")
    assert "shared GPU 0 for 1 min 39 s" in finding.summary


@pytest.mark.parametrize(
    ("pids", "who"),
    [((77, 77), "python3 (pid 77)"), ((77, 78), "python3 (pids 77 and 78)"), ((77, 78, 79), "python3 (3 processes)")],
)
def test_a_program_on_several_gpus_is_to_be_kept_off_all_of_them(pids, who):
    run = make_run([readings((0, 10), (90, 110))] * len(pids), rows=[(1, 60), (2, 115)])
    looks = [
        look
        for gpu, pid in enumerate(pids)
        for look in (
            (23.0, gpu, pid, "python3", 900.0, "appeared", "other", 86.0),
            (73.0, gpu, pid, "python3", NAN, "gone", "other", NAN),
        )
    ]
    analysis = analyse(with_processes(run, *looks))
    gpus = "GPUs 0 and 1" if len(pids) == 2 else "GPUs 0 to 2"
    assert analysis.verdict.sentences[0].text.startswith(f"Keep {who} off {gpus}: ")
    assert {each.short for f in analysis.findings for each in f.advice} == {f"Keep {who} off {gpus}"}


def test_a_guest_that_the_training_started_itself_is_one_too():
    assert len(findings(guest_run(owner="trainer"), "other-process")) == 1


@pytest.mark.parametrize(
    ("ours", "lost_s"),
    [
        (20.0, 11.4),  # both at once: 86 of 106, of 90 % of the time
        (NAN, 13.1),  # what the training used was not read: 86 of the 90 %
    ],
)
def test_what_a_guest_used_is_no_work_of_the_training(ours, lost_s):
    run = guest_run()
    run.processes.loc[0, "gpu_util_pct"] = ours
    analysis = analyse(run)
    ledger = {row.name: row.gpu_seconds for row in analysis.ledger}
    assert ledger["other-process"] == pytest.approx(lost_s, rel=0.15)
    assert sum(ledger.values()) == pytest.approx(run.duration_s)
    assert "of that was another process's work" in analysis.verdict.text


def test_a_guest_of_which_the_driver_says_nothing_takes_no_work():
    run = guest_run()
    run = dataclasses.replace(run, processes=run.processes.assign(gpu_util_pct=NAN))
    assert findings(run, "other-process")
    assert "other-process" not in {row.name for row in analyse(run).ledger}


@pytest.mark.parametrize("run", [guest_run(util=2.0), guest_run(owner="unknown")])
def test_who_only_holds_memory_or_is_not_known_is_no_guest(run):
    run = dataclasses.replace(
        run, processes=run.processes.assign(gpu_util_pct=run.processes["gpu_util_pct"].clip(upper=4))
    )
    assert findings(run, "other-process") == []


def test_ranks_of_the_training_are_no_guests_of_each_other():
    rank = InsideRun(1, 1, 77, "train", {}, (Phase("train", 1, 10.0, 115.0, "inside"),), ())
    run = dataclasses.replace(guest_run(owner="trainer"), inside=(rank,))
    assert findings(run, "other-process") == []


def with_speed_halved(run):
    """Return a run in which callbacks counted half of the images a second while the first guest was there."""
    (other, *_) = findings(guest_run(), "other-process")
    ends = (10.0, other.start_t_s, other.end_t_s, 115.0)
    epochs = tuple(
        InsideEpoch(n, 1, a, b, 1000, round((b - a) * (50 if n == 2 else 100)), 0.0, 0.0, 0.0)
        for n, (a, b) in enumerate(itertools.pairwise(ends), 1)
    )
    phases = tuple(Phase("train", epoch.epoch, epoch.start_t_s, epoch.end_t_s, "inside") for epoch in epochs)
    return dataclasses.replace(run, inside=(InsideRun(1, 0, 41, "train", {}, phases, epochs),))


def test_what_a_guest_left_of_the_trainings_pace_is_told_where_callbacks_told_the_pace():
    (other,) = findings(guest_run(), "other-process")
    assert other.summary.endswith(" 19 s: it took 13 % of training time")  # nothing told the throughput
    assert other.lost_gpu_s is None
    told = with_speed_halved(guest_run())
    (finding,) = findings(told, "other-process")
    assert finding.summary.endswith(": training speed was 50 % of typical")
    assert finding.lost_gpu_s == pytest.approx(finding.duration_s / 2)
    assert analyse(told).verdict.text.startswith("Keep python3 (pid 77) off GPU 0: it cost about 9.5 s of training.")


def test_two_guests_at_once_cost_the_training_its_pace_once():
    rows = list(guest_run().processes.itertuples(index=False))
    rows += [row._replace(pid=78) for row in rows if row.pid == 77]
    told = with_speed_halved(with_processes(guest_run(), *rows))
    assert len(findings(told, "other-process")) == 2
    assert "it cost about 9.5 s of training" in analyse(told).verdict.text


def test_a_rank_that_spins_waits_for_the_gpu_that_does_nothing():
    late = readings((0, 10), (80, 50), (0, 15), (80, 45))
    busy_waits = readings((0, 10), (80, 50), (100, 15), (80, 45))
    power = [90.0] * 10 + [500.0] * 50 + [121.0] * 15 + [500.0] * 45
    run = make_run([busy_waits, late], rows=[(1, 40), (2, 115)], quantities={"power_w": power})
    (finding,) = findings(run, "waiting-for-peer")
    assert (finding.gpu, finding.start_t_s, finding.end_t_s) == (0, 60.0, 75.0)
    assert finding.summary == "GPU 0 waited 15 s for GPU 1 (100 % busy in nvidia-smi)"
    assert finding.cause.name == "waiting-for-peer"
    ledger = {row.name: row.gpu_seconds for row in analyse(run).ledger}
    assert ledger["waiting-for-peer"] == pytest.approx(15)  # full utilisation, and no work
    alone = make_run(busy_waits, rows=[(1, 40), (2, 115)], quantities={"power_w": power})
    assert findings(alone, "waiting-for-peer") == []
    of_a_job = dataclasses.replace(alone, job=JobPart(nodes=2, node_rank=0))
    (finding,) = findings(of_a_job, "waiting-for-peer")
    assert finding.summary == "GPU 0 waited 15 s for a rank on another node (100 % busy in nvidia-smi)"
    without_power = make_run([busy_waits, late], rows=[(1, 40), (2, 115)])
    assert findings(without_power, "waiting-for-peer") == []


def test_ranks_that_wait_for_data_between_bursts_of_batches_wait_for_no_rank():
    util = readings((80, 70), *[(100, 1), (0, 1)] * 20, (80, 10))
    power = [500.0] * 70 + [200.0] * 40 + [500.0] * 10  # a mean over a second
    run = make_run([util, util], rows=[(1, 60), (2, 118)], quantities={"power_w": power})
    assert findings(run, "waiting-for-peer") == []


def test_a_rank_whose_clock_heat_lowers_draws_less_for_the_same_work_and_waits_for_nobody():
    util = readings((0, 10), (95, 110))
    power, clock = (np.full(SECONDS, v) for v in (500.0, 1980.0))
    power[60:90], clock[60:90] = 190.0, 1120.0
    quantities = {"power_w": power.tolist(), "sm_clock_mhz": clock.tolist()}
    run = make_run([util, util], rows=[(1, 40), (2, 115)], quantities=quantities)
    assert findings(run, "waiting-for-peer") == []
    spins = make_run([util, util], rows=[(1, 40), (2, 115)], quantities={"power_w": power.tolist()})
    assert findings(spins, "waiting-for-peer") != []


def test_a_lone_node_that_hardly_works_in_each_short_epoch_waits_for_a_rank_elsewhere():
    """SMs and power as measured on two-nodes-0: a short step between two waits, in epochs under ten seconds."""
    epochs = 6
    util = readings((0, 10), *[(100, 7), (0, 2)] * epochs, (0, 6))
    waits = {"power_w": [121.0] * 10 + ([145.0] * 7 + [123.0] * 2) * epochs + [121.0] * 6}
    waits |= {
        "sm_active_pct": [value and 6.0 for value in util],
        "tensor_active_pct": [value and 0.4 for value in util],
    }
    lone = make_run(util, rows=[(n, 10 + 9 * n) for n in range(1, epochs + 1)], quantities=waits)
    elsewhere = {"job": JobPart(nodes=2, world_size=2, node_rank=0)}
    of_a_job = dataclasses.replace(lone, **elsewhere)
    assert sum(f.duration_s for f in findings(of_a_job, "waiting-for-peer")) >= 0.9 * 7 * epochs
    assert analyse(of_a_job).verdict.text.startswith("GPU 0 waited ")
    assert "gpu-report render job.html" in analyse(of_a_job).verdict.text
    works = {**waits, "sm_active_pct": [value and 30.0 for value in util]}
    unseen = {"power_w": waits["power_w"]}
    for other in (lone, *(dataclasses.replace(make_run(util, quantities=q), **elsewhere) for q in (works, unseen))):
        assert findings(other, "waiting-for-peer") == []


def test_a_step_within_a_wait_for_another_node_is_work_by_the_sms_beyond_the_exchange():
    """NCCL alone keeps 1.5 % of SMs busy; a step within a reading is seen by what there is more of them."""
    util = readings((0, 10), (100, 60), (0, 6))
    sms = [0.0] * 10 + [1.5, 1.5, 1.5, 6.5] * 15 + [0.0] * 6
    quantities = {"power_w": [121.0] * 10 + [140.0] * 60 + [121.0] * 6, "sm_active_pct": sms}
    run = make_run(util, rows=[(1, 40), (2, 70)], quantities={**quantities, "tensor_active_pct": [0.2] * 76})
    analysis = analyse(dataclasses.replace(run, job=JobPart(nodes=2, world_size=2, node_rank=0)))
    ledger = {row.name: row.gpu_seconds for row in analysis.ledger}
    assert ledger["work"] == pytest.approx(0.05 * 15, abs=0.06)
    assert ledger["waiting-for-peer"] == pytest.approx(60 - 0.75, abs=2.1)
    assert analysis.verdict.busy_pct == pytest.approx(100 * 0.75 / 60, abs=0.3)


def test_ranks_that_wait_for_each_other_from_early_on_are_found_by_idle_power():
    util, power = readings((0, 10), (80, 6), (100, 104)), [120.0] * 10 + [400.0] * 6 + [125.0] * 104
    quantities = {"power_w": power}
    found = findings(make_run([util, util], rows=[(1, 118)], quantities=quantities), "waiting-for-peer")
    assert [f.summary.partition(" waited ")[0] for f in found] == ["All GPUs of the training"]
    assert found[0].advice[0].short.startswith("Find the call that not all training processes (ranks) make")
    then = {"power_w": [120.0] * 10 + [400.0] * 6 + [125.0] * 40 + [400.0] * 64}
    (went_on,) = findings(make_run([util, util], rows=[(1, 118)], quantities=then), "waiting-for-peer")
    assert went_on.advice[0].short.startswith("Find which training process (rank) was late")
    assert found[0].duration_s == pytest.approx(104, abs=2)
    steady = {"power_w": [120.0] * 10 + [400.0] * 110}
    assert findings(make_run([util, util], rows=[(1, 118)], quantities=steady), "waiting-for-peer") == []
    tensors = {**quantities, "tensor_active_pct": [0.0] * 10 + [3.0] * 110}  # small kernels at little power are work
    assert findings(make_run([util, util], rows=[(1, 118)], quantities=tensors), "waiting-for-peer") == []
    unvarying = {"power_w": [125.0] * 120}  # a driver that tells of no difference tells nothing of work
    assert findings(make_run([util, util], rows=[(1, 118)], quantities=unvarying), "waiting-for-peer") == []


def test_a_gpu_that_always_waits_is_told_once_and_names_its_gaps():
    run = make_run(readings((0, 10), (28, 110)), rows=[(1, 60), (2, 115)])
    host = pd.DataFrame({"t_s": np.arange(float(SECONDS))})
    host = host.assign(
        main_cpu_pct=26.0, busiest_worker_cpu_pct=105.0, workers_cpu_pct=210.0, workers=2.0, cpu_pct=16.0
    )
    starved = dataclasses.replace(run, host=host)
    (finding,) = findings(starved, "starved")
    assert finding.cause.name == "input-cpu"
    assert "2 data-loader workers could not keep up" in finding.summary
    assert "2 data-loader workers could not keep up" in analyse(starved).verdict.text
    names = {row.name for row in analyse(starved).ledger}
    assert "input-cpu" in names
    assert "short gaps" not in names
    (unknown,) = findings(run, "starved")
    assert unknown.cause.name == "unexplained"
    assert "short gaps" in {row.name for row in analyse(run).ledger}


def test_a_busy_gpu_is_not_starved():
    assert findings(make_run(readings((0, 10), (75, 110)), rows=[(1, 60), (2, 115)]), "starved") == []


def ended(**fields):
    run = make_run(readings((0, 10), (90, 110)), rows=[(1, 60)])
    return dataclasses.replace(run, events=(RecordedEvent(110.0, "command_ended", None, fields),))


@pytest.mark.parametrize(
    ("fields", "words"),
    [({"signal": "SIGTERM"}, "SIGTERM ended the command"), ({"exit_code": 1}, "The command ended with exit code 1")],
)
def test_a_bad_end_is_told_first(fields, words):
    run = ended(**fields)
    (finding,) = findings(run, "run-ended")
    assert (finding.summary, finding.severity, finding.end_t_s) == (words, "critical", 110.0)
    assert analyse(run).verdict.text.startswith(words)


def test_a_good_end_is_no_finding():
    assert findings(ended(exit_code=0), "run-ended") == []


def test_out_of_memory_is_named_with_how_full_the_gpu_was():
    phases = (Phase("train", 1, 10.0, 110.0, "inside"),)
    oom = InsideRun(1, 0, 41, "train", {}, phases, (), "exception", "OutOfMemoryError")
    run = make_run(readings((0, 10), (90, 110)), quantities={"memory_used_mib": [143_000.0] * SECONDS})
    (finding,) = findings(dataclasses.replace(run, inside=(oom,)), "run-ended")
    assert finding.summary == "The training ran out of GPU memory"
    assert [round(e.value) for e in finding.evidence] == [99, 140, 140]  # %, GiB in use, GiB that it can hold


CROWDED = {"cpu_pct": 99.0, "main_cpu_pct": 60.0, "workers_cpu_pct": 240.0, "cpu_pressure_pct": 90.0}
USUAL = {"cpu_pct": 30.0, "main_cpu_pct": 110.0, "workers_cpu_pct": 300.0, "cpu_pressure_pct": 1.0}


def slowed_run(percent=50, seconds=20, host=True, before=60):
    levels = (0, 10), (90, before), (percent, seconds), (90, 110 - before - seconds)
    run = make_run(readings(*levels), rows=[(1, 55), (2, 115)])
    columns = {c.name: np.full(SECONDS, NAN) for c in schema.HOST_QUANTITIES}
    for name in CROWDED if host else ():
        columns[name] = np.full(SECONDS, USUAL[name])
        columns[name][10 + before : 10 + before + seconds] = CROWDED[name]
    table = pd.DataFrame({"t_s": np.arange(SECONDS, dtype=float), **columns})
    return dataclasses.replace(run, host=table, recording=dataclasses.replace(run.recording, cores=16))


def test_utilisation_that_falls_by_a_third_beside_a_cause_is_a_slowdown():
    (finding,) = findings(slowed_run(), "slowdown")
    assert (finding.id, finding.start_t_s, finding.end_t_s) == (
        "slowdown-1",
        *(pytest.approx(t, abs=2) for t in (70, 90)),
    )
    assert finding.cause.name == "input-cpu"
    assert finding.summary == "Utilisation of GPU 0 fell from 90 % to 50 % for 20 s"
    assert "Utilisation of GPU 0 fell from 90 % to 50 %" in analyse(slowed_run()).verdict.text
    ledger = {row.name: row.gpu_seconds for row in analyse(slowed_run()).ledger}
    assert ledger["input-cpu"] == pytest.approx(10.0, rel=0.05)


def test_what_slows_the_loader_for_a_while_is_no_part_of_the_steady_state():
    """Else a training of one epoch waits for data all the time, for a network drive that was slow for 28 s of 96."""
    context = build_context(slowed_run(), Options())
    fall = [(72.0, 88.0)]
    assert length_s(intersect(context.signals.steady, fall)) == 16
    beside = without_slow_loading(context)
    assert length_s(intersect(beside.signals.steady, fall)) == 0
    assert length_s(beside.signals.steady) > 30
    without_cause = build_context(slowed_run(host=False), Options())
    assert without_slow_loading(without_cause) is without_cause


@pytest.mark.parametrize(("before", "seconds", "is_beside"), [(45, 65, True), (45, 57, False), (25, 85, False)])
def test_a_fall_for_the_loader_that_lasts_to_the_end_is_beside_what_the_training_could_do_before(
    before, seconds, is_beside
):
    """Not where it came and went, nor where so little was before it that the loader's first batches may be it."""
    context = build_context(slowed_run(seconds=seconds, before=before), Options())
    assert context.cached(slowdowns)
    assert (without_slow_loading(context) is not context) == is_beside


@pytest.mark.parametrize("run", [slowed_run(host=False), slowed_run(percent=65), slowed_run(seconds=9)])
def test_a_fall_without_a_cause_or_too_small_or_short_is_none(run):
    assert findings(run, "slowdown") == []


def test_a_gpu_that_waits_between_batches_for_a_while_is_slowed_though_it_is_busy_off_and_on():
    """Seven of ten readings are 0 while it waits, three 90: no line under which they stay for long."""
    run = slowed_run(seconds=40)
    util = run.samples["gpu_util_pct"].to_numpy(copy=True)
    util[70:110] = np.tile([90.0, 0.0, 0.0, 90.0, 0.0, 90.0, 0.0, 0.0, 0.0, 90.0], 4)
    (finding,) = findings(dataclasses.replace(run, samples=run.samples.assign(gpu_util_pct=util)), "slowdown")
    assert (finding.start_t_s, finding.end_t_s) == (pytest.approx(70.0, abs=4.0), pytest.approx(110.0, abs=4.0))
    assert finding.low_pct == pytest.approx(36.0, abs=4.0)


def test_means_that_scatter_as_much_before_are_no_fall():
    run = slowed_run(percent=50, seconds=20)
    util = run.samples["gpu_util_pct"].to_numpy(copy=True)
    util[10:70] = np.resize([100.0, 100.0, 100.0, 100.0, 55.0, 55.0, 55.0, 55.0], 60)
    assert findings(dataclasses.replace(run, samples=run.samples.assign(gpu_util_pct=util)), "slowdown") == []


def scattered(low, high, seconds):
    """Return utilisation that takes one of two values for 3 to 9 s each."""
    lengths = np.random.default_rng(3).integers(3, 10, 2 * seconds)
    return np.repeat(np.resize([low, high], len(lengths)), lengths)[:seconds].astype(float).tolist()


def test_what_scatters_is_slowed_for_as_long_as_its_means_over_a_while_are_low():
    util = [*readings((0, 10), (92, 900)), *scattered(25, 75, 600), *readings((92, 600))]
    then = slice(910, 1510)
    run = make_run(util)
    columns = {c.name: np.full(len(util), NAN) for c in schema.HOST_QUANTITIES}
    for name, value in CROWDED.items():
        columns[name] = np.full(len(util), USUAL[name])
        columns[name][then] = value
    table = pd.DataFrame({"t_s": np.arange(len(util), dtype=float), **columns})
    run = dataclasses.replace(run, host=table, recording=dataclasses.replace(run.recording, cores=16))
    (finding,) = findings(run, "slowdown")
    assert (finding.start_t_s, finding.end_t_s) == tuple(pytest.approx(t_s, abs=5) for t_s in (910, 1510))


def test_the_verdict_says_all_times_of_what_came_again_as_its_finding_does():
    util = readings((0, 10), *[(90, 300), (50, 300)] * 3, (90, 300))
    run = make_run(util)
    columns = {c.name: np.full(len(util), NAN) for c in schema.HOST_QUANTITIES}
    for name, value in CROWDED.items():
        columns[name] = np.full(len(util), USUAL[name])
        for start in (310, 910, 1510):
            columns[name][start : start + 300] = value
    table = pd.DataFrame({"t_s": np.arange(len(util), dtype=float), **columns})
    run = dataclasses.replace(run, host=table, recording=dataclasses.replace(run.recording, cores=16))
    (finding,) = findings(run, "slowdown")
    assert len(finding.occurrences) == 3
    (said,) = [each for each in analyse(run).verdict.sentences if each.kind == "slowdown"]
    assert said.text.startswith(finding.summary)


def test_drops_between_which_utilisation_is_low_as_well_are_one_slowdown_though_its_cause_is_unknown():
    """One reading each 5 s of a GPU that waits for seconds is 0 or 100 %: some low ones follow each other."""
    waits = [70.0, 50.0] * 94
    waits[130:130] = waits[90:90] = [5.0] * 12
    steady = readings((92, 3600), interval_s=5.0)
    rows = [(number, 20 + 700 * number) for number in range(1, 12)]
    run = make_run([*readings((0, 20), interval_s=5.0), *steady, *waits, *steady], interval_s=5.0, rows=rows)
    (finding,) = findings(run, "slowdown")
    assert (finding.start_t_s, finding.end_t_s) == tuple(pytest.approx(t_s, abs=60) for t_s in (3620, 4620))
    assert (finding.cause.name, findings(run, "drop")) == ("unexplained", [])


def test_a_batch_that_is_as_small_as_before_explains_no_fall():
    run = slowed_run(seconds=40)
    launches = {"cpu_pct": 12.0, "main_cpu_pct": 100.0, "workers_cpu_pct": 60.0, "cpu_pressure_pct": 0.0}
    run = dataclasses.replace(run, host=run.host.assign(**launches))
    assert findings(run, "slowdown") == []


def test_a_drop_then_lies_in_the_main_process():
    run = slowed_run(percent=20)
    launches = {
        "cpu_pct": 12.0,
        "main_cpu_pct": 100.0,
        "workers_cpu_pct": np.where(run.host["t_s"].between(70, 90), 5.0, 60.0),
        "cpu_pressure_pct": 0.0,
    }
    samples = run.samples.assign(sm_active_pct=2.0)
    run = dataclasses.replace(run, host=run.host.assign(**launches), samples=samples)
    assert [finding.cause.name for finding in findings(run, "drop")] == ["main-process"]


def test_low_readings_far_apart_that_chance_puts_beside_each_other_are_no_slowdown(monkeypatch):
    """Two thirds of all readings are 100 %: these are their median, and the rest scatters nothing by that."""
    monkeypatch.setattr(th, "SLOWED_CONFIDENCE", 0.0)
    waits = np.random.default_rng(7).random(2000) < 0.32

    def found(util):
        rows = [(number, 10 + 4990 * number) for number in range(1, 5)]
        run = make_run([0.0, *util.tolist()], interval_s=10.0, rows=rows, duration_s=20_010.0)
        yolo = YoloRun(1, None, {"val": False}, "recorded", None)
        return slowdowns(build_context(dataclasses.replace(run, yolo_runs=(yolo,)), Options()))

    util = np.where(waits, 20.0, 100.0)
    assert found(util) == []
    util[800:1100] = 55.0
    assert [fall.duration_s for fall in found(util)] == [pytest.approx(3000, rel=0.1)]


def waited(percent, seconds, validation=0):
    """Return three epochs of 50 min without callbacks, in the second of which the GPU was less busy for a while."""
    epoch = (95, 3000 - validation), (60, validation)
    second = (95, 900), (percent, seconds), (95, 2100 - seconds - validation), (60, validation)
    rows = [(number, 10 + 3000 * number) for number in (1, 2, 3)]
    run = make_run(readings((0, 10), *epoch, *second, *epoch), rows=rows)
    return dataclasses.replace(run, yolo_runs=(YoloRun(1, None, {"val": validation > 0}, "recorded", None),))


def test_a_fall_of_minutes_that_came_and_went_is_told_though_its_cause_is_unknown():
    (found,) = findings(waited(70, 1200), "slowdown")
    assert (found.start_t_s, found.duration_s) == (pytest.approx(3910, abs=20), pytest.approx(1200, abs=30))
    assert found.cause.name == "unexplained"


@pytest.mark.parametrize(
    "run",
    [waited(70, 2100), waited(70, 200), waited(80, 1200), waited(95, 10, validation=400), waited(0, 1200)],
    ids=["to the end of its epoch", "short", "small", "a validation", "a drop"],
)
def test_what_may_be_a_validation_is_short_small_or_a_drop_is_none(run):
    assert findings(run, "slowdown") == []


def stayed(epoch_s, percent=70, host=False):
    """Return six epochs without callbacks, in which the GPU is less busy from within the third on, to the end.

    The first ones take 30 min; so long do those that are all within.
    """
    lengths = [1800, 1800, (1800 + epoch_s) // 2, epoch_s, epoch_s, epoch_s]
    run = make_run(
        readings((0, 10), (95, 4500), (percent, sum(lengths) - 4500)),
        rows=[(number, 10 + end) for number, end in enumerate(np.cumsum(lengths).tolist(), start=1)],
    )
    seconds = np.arange(len(run.samples), dtype=float)
    columns = {c.name: np.full(len(seconds), NAN) for c in schema.HOST_QUANTITIES}
    for name in CROWDED if host else ():
        columns[name] = np.where(seconds >= 4510, CROWDED[name], USUAL[name])
    recording = dataclasses.replace(run.recording, cores=16)
    yolo = YoloRun(1, None, {"val": False}, "recorded", None)
    return dataclasses.replace(
        run, yolo_runs=(yolo,), host=pd.DataFrame({"t_s": seconds, **columns}), recording=recording
    )


def test_a_fall_that_stays_is_told_where_whole_epochs_took_longer_by_it():
    run = stayed(2400)
    (found,) = findings(run, "slowdown")
    assert (found.start_t_s, found.end_t_s) == (pytest.approx(4510, abs=50), pytest.approx(run.duration_s, abs=50))
    assert found.low_pct == pytest.approx(70, abs=1)


def test_a_slight_fall_that_stays_is_told_where_a_cause_began_with_it():
    """What it took is what utilisation fell by, not as long as it lasted."""
    run = stayed(2100, percent=81, host=True)
    (found,) = findings(run, "slowdown")
    assert found.cause.name == "input-cpu"
    assert found.duration_s == pytest.approx(7350, rel=0.02)
    assert "the GPU waited 18 min for data" in analyse(run).verdict.text
    assert findings(stayed(2100, percent=81), "slowdown") == []


def test_two_epochs_tell_of_a_fall_that_began_near_the_end_of_the_first():
    run = make_run(readings((0, 10), (95, 6000), (70, 8400)), rows=[(1, 7000), (2, 14_410)])
    run = dataclasses.replace(run, yolo_runs=(YoloRun(1, None, {"val": False}, "recorded", None),))
    assert len(findings(run, "slowdown")) == 0  # the second took as long
    run = make_run(readings((0, 10), (95, 6000), (70, 9800)), rows=[(1, 6900), (2, 15_810)])
    run = dataclasses.replace(run, yolo_runs=(YoloRun(1, None, {"val": False}, "recorded", None),))
    (found,) = findings(run, "slowdown")
    assert found.end_t_s == pytest.approx(15_810, abs=50)


def test_a_fall_of_coarse_readings_may_begin_within_a_mean_of_them():
    util = np.array(readings((0, 10), (95, 4500), (70, 7920), interval_s=10.0), dtype=float)
    util[1:] += 2 * np.random.default_rng(0).standard_normal(len(util) - 1)
    rows = [(1, 1810), (2, 3610), (3, 5710), (4, 8110), (5, 10_510), (6, 12_430)]
    run = make_run(util.tolist(), interval_s=10.0, rows=rows)
    run = dataclasses.replace(run, yolo_runs=(YoloRun(1, None, {"val": False}, "recorded", None),))
    (found,) = findings(run, "slowdown")
    assert found.start_t_s == pytest.approx(4510, abs=60)


def test_a_change_of_work_that_stays_is_no_fall():
    assert findings(stayed(1800), "slowdown") == []


def test_a_drop_is_no_slowdown_as_well():
    run = slowed_run(percent=30)
    assert (len(findings(run, "drop")), findings(run, "slowdown")) == (1, [])


def test_a_fault_of_another_program_is_not_put_on_the_training():
    xid = KernelEvent(60.0, "xid", "warning", "NVRM: Xid 31", "a bad address", "Restart it.", 0, 31, 99, "python3")
    epochs = tuple(InsideEpoch(n, 1, start, start + 50.0, 10, 1, 0.1, 0.1, 0.1) for n, start in ((1, 10.0), (2, 65.0)))
    phases = tuple(Phase("train", epoch.epoch, epoch.start_t_s, epoch.end_t_s, "inside") for epoch in epochs)
    run = make_run(readings((0, 10), (90, 110)), rows=[(1, 60), (2, 115)], kernel=[xid])
    told = dataclasses.replace(run, inside=(InsideRun(1, 0, 41, "train", {}, phases, epochs),))
    (finding,) = findings(told, "kernel")
    assert finding.summary == "GPU 0: a bad address; it was python3 (pid 99), not the training, which continued"
    assert finding.advice == ()
    for own in (run, dataclasses.replace(told, inside=(InsideRun(1, 0, 99, "train", {}, phases, epochs),))):
        (finding,) = findings(own, "kernel")
        assert finding.summary == "GPU 0: a bad address"
        assert finding.advice[0].text == "Restart it."


@pytest.mark.parametrize(("at_s", "severity"), [(60.0, "warning"), (118.0, "critical")])
def test_a_kill_that_the_training_outlived_was_not_its_own(at_s, severity):
    said = "the kernel killed python3 (pid 99)"
    kill = KernelEvent(at_s, "oom", "critical", "Killed process 99", said, "Free memory.", None, None, 99, "python3")
    epochs = tuple(InsideEpoch(n, 1, start, start + 50.0, 10, 1, 0.1, 0.1, 0.1) for n, start in ((1, 10.0), (2, 65.0)))
    phases = tuple(Phase("train", epoch.epoch, epoch.start_t_s, epoch.end_t_s, "inside") for epoch in epochs)
    run = make_run(readings((0, 10), (90, 110)), rows=[(1, 60), (2, 115)], kernel=[kill])
    run = dataclasses.replace(run, inside=(InsideRun(1, 0, 41, "train", {}, phases, epochs),))
    (finding,) = findings(run, "kernel")
    outlived = severity == "warning"
    assert finding.summary == said + ("; it was not the training, which continued" if outlived else "")
    assert (finding.severity, bool(finding.advice)) == (severity, not outlived)


def waited_for(begins_s):
    """Return three ranks, two of which wait 15 s from a moment on for the third, which a signal has stopped."""
    after_s = SECONDS - begins_s - 15
    busy, late = (readings((0, 10), (80, begins_s - 10), (low, 15), (80, after_s)) for low in (100, 0))
    power = [120.0] * 10 + [400.0] * (begins_s - 10) + [121.0] * 15 + [400.0] * after_s
    run = make_run([busy, busy, late], rows=[(1, 80), (2, 115)], quantities={"power_w": power})
    host = run.host.reindex(range(SECONDS)).assign(t_s=np.arange(1.0, SECONDS + 1), main_cpu_pct=0.0)
    stopped = np.zeros(SECONDS)
    stopped[begins_s : begins_s + 15] = 1.0
    return dataclasses.replace(run, host=host.assign(trainer_stopped=stopped))


def test_a_rank_that_several_wait_for_has_its_cause_once():
    (slow,) = findings(waited_for(14), "slow-rank")  # so early that no level is known from which it could fall
    assert (slow.gpu, slow.occurrences, slow.cause.name) == (2, (), "trainer-blocked")
    assert slow.summary == "The training process of GPU 2 (its rank) was late: GPUs 0 and 1 waited 15 s for it"


def test_a_rank_whose_gpu_fell_has_it_in_its_drop():
    run = waited_for(60)
    assert findings(run, "slow-rank") == []
    (drop,) = [f for f in findings(run, "drop") if not f.expected]
    assert (drop.gpu, drop.cause.name) == (2, "trainer-blocked")


@pytest.mark.parametrize(("ours", "is_found"), [(95.0, False), (NAN, True)])
def test_a_desktop_that_the_driver_never_saw_at_work_is_no_guest(ours, is_found):
    """It names only processes that used the GPU: one that is there all the time, and never named, used none of it."""
    run = make_run(readings((0, 10), (90, 110)), rows=[(1, 60), (2, 115)])
    run = with_processes(
        run,
        (12.0, 0, 41, "python train.py", 44_000.0, "appeared", "trainer", ours),
        (1.0, 0, 77, "gnome-shell", 180.0, "appeared", "other", NAN),
    )
    assert bool(findings(run, "other-process")) == is_found
