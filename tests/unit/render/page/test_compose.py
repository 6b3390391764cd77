import math
from dataclasses import replace
from types import ModuleType

import pandas as pd
import pytest

from gpu_report import model
from gpu_report.analyse.evidence import stopped_processes
from gpu_report.catalogue import CAUSES, SINCE_EPOCH_KEY
from gpu_report.render.formatting import finding_title, ledger_words
from gpu_report.render.page.compose import compose
from gpu_report.render.page.script_data import chart_data
from gpu_report.render.page.sections.findings import finding_view, first_advice, unexpected_and_expected
from gpu_report.render.page.sections.findings_section import FINDINGS_IN_FULL
from gpu_report.render.page.sections.gpu_tables import processes
from gpu_report.render.page.sections.recording import HAPPENINGS_SHOWN
from gpu_report.render.page.views.report import ReportView
from gpu_report.render.page.views.tables import Fact
from gpu_report.render.run_clock import WallClock
from gpu_report.wording import ending_words

CLOCK = WallClock(1_795_223_424.286)
DROP = model.Finding("drop-1", "drop", "warning", 0, 10.0, 25.0, "fell", level_pct=80.0, low_pct=20.0)


@pytest.fixture(scope="module")
def view(analysis: model.Analysis) -> ReportView:
    return compose(analysis)


def tile(view: ReportView, label: str) -> Fact:
    return next(fact for fact in (*view.tiles, *view.more_tiles) if fact.label.startswith(label))


def plain(text: str) -> str:
    return text.replace("\u00a0", " ")


def with_recording(analysis: model.Analysis, **changes: object) -> model.Analysis:
    recording = replace(analysis.run.recording, **changes)
    return replace(analysis, run=replace(analysis.run, recording=recording))


def test_tiles_give_means_over_gpus_and_peaks_of_the_highest(analysis: model.Analysis, view: ReportView) -> None:
    means = [summary.quantities["gpu_util_pct"].mean for summary in analysis.gpus]
    peaks = [summary.quantities["gpu_util_pct"].max for summary in analysis.gpus]
    assert plain(tile(view, "GPU utilisation").value) == f"{sum(means) / 2:.0f} %"
    assert plain(tile(view, "GPU utilisation").note) == f"whole recording, mean of 2 GPUs, peak {max(peaks):.0f} %"
    assert plain(tile(view, "Energy").value) == "136.8 Wh"
    assert tile(view, "Epochs").value == "13"
    assert plain(tile(view, "Readings").note) == "one a second, longest gap 16 s"


def test_how_busy_training_was_is_what_the_verdict_says(analysis: model.Analysis) -> None:
    first, second = analysis.gpus
    busy = replace(
        analysis, verdict=replace(analysis.verdict, busy_pct=71.4), gpus=(first, replace(second, used=False))
    )
    view = compose(busy)
    assert plain(tile(view, "GPU busy in training").value) == "71 %"
    assert "of the whole recording, GPU 0, peak" in plain(tile(view, "GPU busy").note)
    assert plain(tile(view, "Power").note).startswith("GPU 0, peak")
    assert plain(tile(view, "Energy").note).startswith("2 GPUs, ")
    assert plain(view.ledger.note).endswith("In training alone the GPU was busy 71 %.")
    assert tile(compose(replace(busy, phases=(), epochs=())), "GPU utilisation").label == "GPU utilisation, mean"


def test_idle_gpus_that_a_training_left_unused_are_named(analysis: model.Analysis) -> None:
    first, second = analysis.gpus
    row = model.LedgerRow("idle", True, 9.0, None, None, 0.1)
    assert ledger_words(row, analysis) == "Idle, outside training"
    one = replace(analysis, gpus=(first, replace(second, used=False)))
    assert ledger_words(row, one) == f"Idle: GPU {second.gpu.index} not used, or outside training"
    assert ledger_words(replace(row, name="work"), one) == "Work"
    assert ledger_words(row, replace(one, phases=(), epochs=())) == "Idle"


def test_a_failed_training_whose_command_says_all_is_well_is_told(analysis: model.Analysis) -> None:
    failed = replace(with_recording(analysis, ended_by="command", exit_code=0), ending=model.Ending("failed", 9.0))
    assert tile(compose(failed), "Duration").note == "exit code 0, though the training failed"


def test_the_length_of_epochs_says_of_which_it_is(analysis: model.Analysis) -> None:
    now = model.EpochNow(18.0, "median of all epochs")
    assert plain(tile(compose(replace(analysis, epoch_now=now)), "Epochs").note) == "18.0 s each (median of all epochs)"
    one = replace(analysis, epochs=(replace(analysis.epochs[0], end_t_s=analysis.epochs[0].start_t_s + 24),))
    assert plain(tile(compose(one), "Epochs").note) == "24.0 s, start-up included"
    short = replace(one.epochs[0], epoch=2, end_t_s=one.epochs[0].start_t_s + 3, partial=True)
    cut = plain(tile(compose(replace(one, epochs=(*one.epochs, short))), "Epochs").note)
    assert cut == "24.0 s, start-up included; epoch 2 was cut short after 3.0 s"
    note = plain(tile(compose(replace(one, epoch_now=now)), "Epochs").note)
    assert note == "24.0 s, start-up included; 18.0 s for a later one (median of all epochs)"


def test_energy_of_gpus_that_have_none_is_not_available(analysis: model.Analysis) -> None:
    gpus = tuple(replace(summary, energy_j=None, energy_source="none") for summary in analysis.gpus)
    assert tile(compose(replace(analysis, gpus=gpus)), "Energy") == Fact("Energy", "n/a", "")


def test_memory_of_unknown_total_is_given_without_a_share(analysis: model.Analysis) -> None:
    gpus = tuple(replace(s, gpu=replace(s.gpu, memory_total_mib=None)) for s in analysis.gpus)
    assert tile(compose(replace(analysis, gpus=gpus)), "Memory").note == ""


@pytest.mark.parametrize(("ended_by", "code", "said"), [("duration", 0, "after the time"), ("command", 137, "137")])
def test_an_interrupted_training_is_not_how_its_recording_ended(analysis, ended_by, code, said) -> None:
    stopped = with_recording(analysis, ended_by=ended_by, exit_code=code)
    assert said in tile(compose(replace(stopped, ending=model.Ending("interrupted", 9.0))), "Duration").note


def test_ctrl_c_is_no_failure_of_the_command(analysis: model.Analysis) -> None:
    stopped = replace(
        with_recording(analysis, ended_by="command", exit_code=1), ending=model.Ending("interrupted", 9.0)
    )
    assert tile(compose(stopped), "Duration").note == "the command was stopped by Ctrl-C"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"ended_by": None}, "no end marker"),
        ({"ended_by": "command", "exit_code": 1}, "the command failed with exit code 1"),
        ({"ended_by": "command", "exit_code": 0}, "the command ended with exit code 0"),
        ({"ended_by": "command", "exit_code": None, "exit_signal": "SIGKILL"}, "the command was ended by SIGKILL"),
        ({"ended_by": "duration", "exit_code": None}, "stopped after the time asked for"),
        ({"ended_by": "signal", "exit_code": None}, "stopped by hand"),
    ],
)
def test_how_the_run_ended_is_said(analysis: model.Analysis, changes: dict[str, object], said: str) -> None:
    assert said in tile(compose(with_recording(analysis, **changes)), "Duration").note


@pytest.mark.parametrize(
    ("name", "said"), [("finished", "stopped after the training"), ("going on", "stopped by hand")]
)
def test_a_recorder_that_is_ended_with_its_training_was_not_stopped_by_hand(
    analysis: model.Analysis, name: str, said: str
) -> None:
    ended = replace(with_recording(analysis, ended_by="signal", exit_code=None), ending=model.Ending(name, 9.0))
    assert tile(compose(ended), "Duration").note == said


@pytest.mark.parametrize(("lost", "status"), [(800.0, "good"), (1_000.0, "room")])
def test_a_verdict_of_a_training_that_mostly_waited_is_not_coloured_as_good(
    analysis: model.Analysis, lost: float, status: str
) -> None:
    work, gaps, *rest = analysis.ledger
    ledger = (replace(work, gpu_seconds=1_200.0), replace(gaps, gpu_seconds=lost), *rest)
    phases = tuple(replace(row, expected=row.name in {"work", "validation", "startup"}) for row in ledger)
    waits = tuple(replace(row, gpu_seconds=0.0) if row.name == "input-cpu" else row for row in phases)
    assert compose(replace(analysis, findings=(), ledger=waits)).status == status


def test_nor_is_one_of_which_nobody_saw_what_it_waited_for(analysis: model.Analysis) -> None:
    asks = model.Sentence("record", "To see what it waited for, record it.", (), "unexplained")
    verdict = replace(analysis.verdict, sentences=(asks,), is_healthy=True)
    assert compose(replace(analysis, findings=(), verdict=verdict)).status == "room"


def test_a_verdict_of_a_recording_in_which_nothing_trained_has_no_colour(analysis: model.Analysis) -> None:
    idle = tuple(replace(row, name="idle", expected=True) for row in analysis.ledger if row.name == "work")
    lost = tuple(replace(row, expected=False) for row in analysis.ledger if row.name == "short gaps")
    nothing = replace(analysis, findings=(), epochs=())
    statuses = [compose(replace(nothing, ledger=ledger)).status for ledger in ((), idle, lost)]
    assert statuses == ["unknown"] * 3
    assert compose(replace(analysis, findings=(), ledger=lost)).status == "room"  # its epochs did train


@pytest.mark.parametrize(("severity", "status"), [("critical", "critical"), ("warning", "warning"), ("info", "good")])
def test_the_mood_is_that_of_the_worst_unexpected_finding(
    analysis: model.Analysis, severity: model.Severity, status: str
) -> None:
    expected = replace(DROP, id="drop-2", severity="critical", expected=True)
    findings = (replace(DROP, severity=severity), expected)
    assert compose(replace(analysis, findings=findings)).status == status


def test_a_training_that_is_healthy_once_it_is_warm_is_green(analysis: model.Analysis) -> None:
    lost = tuple(replace(row, gpu_seconds=0.1) if row.name == "work" else row for row in analysis.ledger)
    idle = replace(analysis, findings=(), ledger=lost)
    assert compose(idle).status == "room"
    assert compose(replace(idle, verdict=replace(idle.verdict, is_healthy=True))).status == "good"


def test_findings_keep_the_order_of_the_analysis_and_expected_ones_stand_apart() -> None:
    worst, expected = replace(DROP, id="worst", severity="critical"), replace(DROP, id="expected", expected=True)
    assert unexpected_and_expected((DROP, expected, worst)) == ((DROP, worst), (expected,))


def test_a_finding_of_no_moment_has_no_length(analysis: model.Analysis) -> None:
    shown = finding_view(replace(DROP, rule="environment", level_pct=None, low_pct=None), CLOCK, analysis)
    assert "Length" not in {fact.label for fact in shown.facts}


def test_a_drop_gives_its_size_length_levels_and_place(analysis: model.Analysis) -> None:
    finding = replace(DROP, epoch=3, phase="train", at_boundary=True)
    facts = {fact.label: (plain(fact.value), plain(fact.note)) for fact in finding_view(finding, CLOCK, analysis).facts}
    assert facts["Length"] == ("15 s", "")
    assert facts["Utilisation before"] == ("80 %", "")
    assert facts["During it"] == ("20 %", "")
    assert facts["Epoch"] == ("3", "train, at the end of the epoch")
    assert facts["GPU"] == ("0", "")


@pytest.mark.parametrize(("unused", "said"), [(None, "all"), (0, "1")])
def test_what_concerns_the_run_as_a_whole_names_the_gpus_that_it_used(
    analysis: model.Analysis, unused: int | None, said: str
) -> None:
    gpus = tuple(replace(each, used=each.gpu.index != unused) for each in analysis.gpus)
    shown = finding_view(replace(DROP, gpu=None), CLOCK, replace(analysis, gpus=gpus))
    assert [plain(fact.value) for fact in shown.facts if fact.label == "GPU"] == [said]


@pytest.mark.parametrize(("at_boundary", "label", "value"), [(False, "Epochs", "2 to 3"), (True, "Epoch", "2")])
def test_what_lasts_into_the_next_epoch_has_both_unless_it_is_the_end_of_the_first(
    analysis: model.Analysis, at_boundary: bool, label: str, value: str
) -> None:
    begins_s = next(epoch.start_t_s for epoch in analysis.epochs if epoch.epoch == 3)
    span = {"start_t_s": begins_s - 20.0, "end_t_s": begins_s + 1.0}
    finding = replace(DROP, epoch=2, phase="validation", at_boundary=at_boundary, **span)
    facts = {fact.label: plain(fact.value) for fact in finding_view(finding, CLOCK, analysis).facts}
    assert facts[label] == value


@pytest.mark.parametrize(("offset", "said"), [(-1.6, "1.6 s before"), (0.0, "during it"), (75.0, "1 min 15 s after")])
def test_a_kernel_line_says_how_far_it_lies_from_the_finding(
    analysis: model.Analysis, offset: float, said: str
) -> None:
    event = model.KernelEvent(8.4, "xid", "critical", "NVRM: Xid", "A fault.", code=31, count=3, last_t_s=9.1)
    finding = replace(DROP, kernel_events=(model.NearbyKernelEvent(event, offset),))
    line = finding_view(finding, CLOCK, analysis).kernel[0]
    assert (line.title, plain(line.count), plain(line.distance)) == ("Xid 31", "3 times within 0.7 s", said)


def test_lines_of_one_moment_are_counted_without_a_span(analysis: model.Analysis) -> None:
    event = model.KernelEvent(8.4, "ata", "warning", "ata5", "A fault.", count=2, last_t_s=8.4)
    finding = replace(DROP, kernel_events=(model.NearbyKernelEvent(event, 0.0),))
    assert plain(finding_view(finding, CLOCK, analysis).kernel[0].count) == "2 times"


def test_what_is_slower_since_an_epoch_did_not_last_all_through_training(analysis: model.Analysis) -> None:
    since = model.Evidence("slower since epoch", 5, key=SINCE_EPOCH_KEY)
    starved = replace(DROP, rule="starved", evidence=(since,))
    assert "Since epoch 5" in plain(finding_view(starved, CLOCK, analysis).cause_and_length)


@pytest.mark.parametrize(
    ("name", "confidence", "said"),
    [
        ("input-cpu", 0.9, "confidence: high (0.9)"),
        ("input-cpu", 0.6, "confidence: medium (0.6)"),
        ("input-cpu", 0.2, "confidence: low (0.2)"),
        ("unexplained", 0.0, ""),
    ],
)
def test_confidence_is_in_words(analysis: model.Analysis, name: str, confidence: float, said: str) -> None:
    finding = replace(DROP, cause=model.Cause(name, confidence, "because"))
    assert plain(finding_view(finding, CLOCK, analysis).confidence) == said


def test_a_cause_that_the_title_names_has_no_colour_without_a_word(analysis: model.Analysis) -> None:
    """Its name is not said twice, and a colour alone says nothing."""
    late = replace(DROP, rule="waiting-for-peer", cause=model.Cause("waiting-for-peer", 0.9, "it spun"))
    shown = finding_view(late, CLOCK, analysis)
    assert (shown.cause, shown.cause_kind) == (shown.title, "")
    assert finding_view(replace(late, rule="drop"), CLOCK, analysis).cause_kind == "waiting-for-peer"


def test_advice_gives_the_argument_as_it_is_typed(analysis: model.Analysis) -> None:
    advice = model.Advice("Give the loader more workers.", "workers", "2", "14", 0.25)
    shown = finding_view(replace(DROP, advice=(advice,)), CLOCK, analysis).advice[0]
    gain = "saves at most 25 % of the time in training steps"
    assert (shown.change, shown.now, plain(shown.gain)) == ("workers=14", "(now 2)", gain)
    likely = replace(DROP, advice=(replace(advice, gain_estimate=0.2),))
    gain = "expected to save 56 % of each epoch"  # as the table of possible speed-up has it
    assert plain(finding_view(likely, CLOCK, analysis).advice[0].gain) == gain
    likely = replace(DROP, advice=(replace(advice, to_value="13", gain_estimate=0.2),))
    gain = "expected to save 20 % of the time in training steps"
    assert plain(finding_view(likely, CLOCK, analysis).advice[0].gain) == gain


def test_what_wins_most_stands_first(analysis: model.Analysis) -> None:
    unsure = model.Advice("c", "cache", "False", "ram", 0.7)
    sure, little = model.Advice("w", "workers", "2", "14", 0.7, 0.6), model.Advice("b", "batch", "4", "8", 0.7, 0.1)
    first = first_advice((replace(DROP, advice=(little, unsure, sure)), replace(DROP, advice=(sure, little))), analysis)
    assert [each.change for each in first] == ["workers=14", "cache=ram", "batch=8"]


def test_less_than_a_cent_is_not_nothing(analysis: model.Analysis) -> None:
    amounts = (0.0, 0.004, 0.005, 1_234.5, None)
    row = analysis.ledger[0]
    ledger = tuple(replace(row, name=name, money=amount) for name, amount in zip(CAUSES, amounts, strict=False))
    shown = [item.money for item in compose(replace(analysis, ledger=ledger)).ledger.items]
    assert shown == ["0.00", "< 0.01", "0.01", "1,234.50", ""]


def test_the_ledger_fills_its_bar(view: ReportView) -> None:
    assert view.ledger.items[0].start_pct == 0
    ends = [item.start_pct + item.width_pct for item in view.ledger.items]
    assert [item.start_pct for item in view.ledger.items[1:]] == pytest.approx(ends[:-1], abs=1e-3)
    assert ends[-1] == pytest.approx(100, abs=1e-3)


def test_the_ledger_begins_with_work_and_its_losses_the_largest_first(analysis: model.Analysis) -> None:
    rows = tuple(replace(row, expected=row.name in {"work", "validation", "startup"}) for row in analysis.ledger)
    kinds = [item.kind for item in compose(replace(analysis, ledger=rows)).ledger.items]
    assert kinds == ["work", "short-gaps", "input-cpu", "validation", "startup", "unmeasured"]


def test_epochs_of_several_runs_and_attempts_are_told_apart(analysis: model.Analysis) -> None:
    first = analysis.epochs[0]
    epochs = (first, replace(first, attempt=2), replace(first, run=2))
    rows = compose(replace(analysis, epochs=epochs)).epochs.rows
    assert [row.cells[0] for row in rows] == ["1: 1", "1: 1 (attempt 2)", "2: 1"]
    assert len({row.anchor for row in rows}) == 3


def test_a_process_is_listed_once_with_its_span_and_its_peak(builder: ModuleType) -> None:
    table = processes(builder.build_run().processes, CLOCK)
    rows = {row[1]: row for row in table.rows}
    assert len(table.rows) == 4
    assert rows["2090"][3:5] == ("0:00:09", "0:09:45")
    assert plain(rows["2090"][5]) == "40.1 GiB"
    assert rows["2091"][3:5] == ("0:00:09", "still there")
    assert rows["4242"][2] == "(not visible here)"
    assert rows["4242"][5] == "n/a"


def test_a_process_is_told_whose_it_is_and_what_it_used(builder: ModuleType) -> None:
    rows = {row[1]: row for row in processes(builder.build_run().processes, CLOCK).rows}
    assert [plain(cell) for cell in rows["2090"][6:]] == ["71 %", "this run"]
    assert rows["3177"][6:] == ("n/a", "another's")
    assert rows["4242"][7] == "not visible from here: another container"


def test_a_process_without_a_number_is_not_lost() -> None:
    frame = pd.DataFrame(
        {
            "t_s": [1.0],
            "gpu": [0],
            "pid": [math.nan],
            "name": [None],
            "memory_used_mib": [512.0],
            "change": ["appeared"],
            "owner": ["unknown"],
            "gpu_util_pct": [math.nan],
        }
    )
    assert [row[1] for row in processes(frame, CLOCK).rows] == ["n/a"]


def test_trainings_of_one_epoch_have_no_length_each(analysis: model.Analysis) -> None:
    first = replace(analysis.epochs[0], end_t_s=analysis.epochs[0].start_t_s + 24)
    alike = replace(analysis, epochs=(first, replace(first, run=first.run + 1)))
    assert plain(tile(compose(alike), "Epochs").note) == "in 2 trainings; training 1: 24.0 s; training 2: 24.0 s"
    ended = model.Ending("finished", 9.0, epoch=1, epochs=1)
    assert ending_words(ended) == "It finished its only epoch"
    assert ending_words(replace(ended, epoch=3, epochs=3)) == "It finished all 3 epochs"
    assert ending_words(replace(ended, epoch=None, epochs=None)) == "It finished"


@pytest.mark.parametrize(
    ("driver", "said"),
    [("580.1", Fact("Driver", "580.1, CUDA 13.0")), (None, Fact("CUDA", "13.0"))],  # of no driver: PyTorch's, it may be
)
def test_cuda_is_the_drivers_only_where_there_is_one(analysis: model.Analysis, driver: str | None, said: Fact) -> None:
    facts = compose(with_recording(analysis, driver=driver, cuda="13.0")).recording.facts
    assert [fact for fact in facts if fact.label in {"Driver", "CUDA"}] == [said]


def test_what_happened_is_counted_where_it_is_too_much_to_show(analysis: model.Analysis) -> None:
    events = tuple(model.RecordedEvent(float(t), "marker", None, {"text": str(t)}) for t in range(HAPPENINGS_SHOWN + 7))
    shown = compose(replace(analysis, gaps=(), run=replace(analysis.run, events=events))).recording
    assert len(shown.happenings) == HAPPENINGS_SHOWN
    assert shown.happenings_left_out == "7 more not shown."


def test_arguments_read_as_they_are_written_in_yaml(view: ReportView) -> None:
    arguments = {fact.label: fact.value for fact in view.yolo[0].arguments}
    assert (arguments["amp"], arguments["resume"], arguments["time"]) == ("true", "false", "null")
    assert arguments["lr0"] == "0.01"


def test_a_read_log_without_events_says_what_was_read(analysis: model.Analysis) -> None:
    log = model.KernelLog("read", source="/dev/kmsg")
    kernel = compose(replace(analysis, run=replace(analysis.run, kernel=log))).kernel
    assert kernel.statement == "No event about GPUs, memory or storage (read from /dev/kmsg)."


def test_the_first_advice_stands_once_and_says_how_to_read_the_kernel_log(analysis: model.Analysis) -> None:
    log = model.KernelLog("unavailable", advice="import again, where FILE is from `dmesg`")
    advice = (model.Advice(log.advice, reads_kernel_log=True), model.Advice("more workers", "workers", "2", "14"))
    findings = tuple(replace(DROP, id=f"drop-{n}", advice=advice) for n in (1, 2))
    shown = compose(replace(analysis, findings=findings, run=replace(analysis.run, kernel=log)))
    assert [each.text for each in shown.advice] == [f"To see what the kernel log said: {log.advice}", "More workers."]
    assert [[each.text for each in finding.advice] for finding in shown.findings.cards] == [["More workers."]] * 2


def test_evidence_that_repeats_a_fact_is_left_out(analysis: model.Analysis) -> None:
    evidence = (
        model.Evidence("level", 80.0, "%"),
        model.Evidence("length", 15.0, "s"),
        model.Evidence("work lost", 75.0, "s"),
    )
    shown = finding_view(replace(DROP, evidence=evidence), CLOCK, analysis).evidence
    assert [(fact.label, plain(fact.value)) for fact in shown] == [("Work lost", "1 min 15 s")]


def test_a_kernel_finding_does_not_say_the_same_twice(analysis: model.Analysis) -> None:
    event = model.KernelEvent(10.0, "xid", "critical", "NVRM: Xid", "a fault", "restart", code=31)
    finding = replace(DROP, summary="GPU 0: a fault", kernel_events=(model.NearbyKernelEvent(event, 0.0),))
    line = finding_view(replace(finding, advice=(model.Advice("restart"),)), CLOCK, analysis).kernel[0]
    assert (line.meaning, line.action) == ("", "")
    assert finding_view(replace(finding, summary="fell"), CLOCK, analysis).kernel[0].meaning == "A fault."


@pytest.mark.parametrize(
    ("finding", "offset_s", "said"),
    [
        (DROP, 0.0, "during it"),
        (DROP, -7.0, "7 s before"),
        (replace(DROP, end_t_s=DROP.start_t_s), 0.003, "at that moment"),
        (replace(DROP, end_t_s=DROP.start_t_s), 7.0, "7 s after"),
    ],
)
def test_a_kernel_line_says_how_far_it_is_from_its_finding(
    analysis: model.Analysis, finding: model.Finding, offset_s: float, said: str
) -> None:
    event = model.KernelEvent(10.0, "oom", "critical", "Killed process 41", "a kill")
    beside = replace(finding, kernel_events=(model.NearbyKernelEvent(event, offset_s),))
    assert plain(finding_view(beside, CLOCK, analysis).kernel[0].distance) == said


def test_of_very_many_findings_the_first_stand_in_full(analysis: model.Analysis) -> None:
    findings = tuple(replace(DROP, id=f"drop-{n}", end_t_s=25.0 + n) for n in range(FINDINGS_IN_FULL + 7))
    shown = compose(replace(analysis, findings=findings))
    assert (len(shown.findings.cards), len(shown.findings.more), shown.findings.count) == (FINDINGS_IN_FULL, 7, "107")
    assert shown.findings.cards[0].chart is not None
    assert shown.findings.more[-1].id == findings[-1].id


def test_throttling_is_what_its_counters_grew_by_and_nothing_without_them(builder: ModuleType) -> None:
    view = compose(builder.build_detailed_analysis())
    assert plain(view.gpus[0].throttled) == "Throttled during the run: power cap 1 min 27 s (not: power brake)."
    assert view.gpus[0].has_ring
    assert (view.gpus[1].throttled, view.gpus[1].has_ring) == ("", False)
    assert not [row for row in view.statistics.rows if "power cap" in row]


def test_throttle_counters_that_begin_again_lose_nothing_that_was_seen(analysis: model.Analysis) -> None:
    samples = analysis.run.samples.copy()
    samples.loc[samples.index[:4], "power_cap_s"] = [900.0, 910.0, 1.0, 3.5]
    shown = compose(replace(analysis, run=replace(analysis.run, samples=samples))).gpus[0].throttled
    assert plain(shown) == "Throttled during the run: power cap 12.5 s."


def test_the_legend_names_the_lines_that_are_there(builder: ModuleType, view: ReportView) -> None:
    lines = [item.label for item in compose(builder.build_detailed_analysis()).legend if item.sign.startswith("line")]
    of_gpus = ["utilisation: anything runs", "SM activity: how much of the GPU works"]
    assert lines[:4] == [*of_gpus, "for a CPU core", "for I/O"]
    assert {item.sign for item in view.legend if item.sign.startswith("line")} == {"line low", "line floor"}
    assert {item.lane for item in view.legend} == {"phases", "events", "GPU utilisation"}


def test_slow_ends_of_epochs_are_shaded_and_in_the_legend(analysis: model.Analysis) -> None:
    times = tuple(model.Occurrence(start, start + 9.0, (0,), 9.0) for start in (60.0, 160.0))
    held = replace(DROP, id="epoch-end-1", rule="held-epoch-end", level_pct=None, low_pct=None, occurrences=times)
    slow = replace(analysis, findings=(held,))
    assert [item.label for item in compose(slow).legend if item.sign == "swatch drop"] == ["slow end of an epoch"]
    shaded = chart_data(slow)[0]["findings"]
    assert [(each["start"], each["drop"]) for each in shaded] == [(60.0, True), (160.0, True)]


def test_a_length_that_is_what_was_lost_is_said_once(analysis: model.Analysis) -> None:
    """With its share: of the time of epochs, where it is their ends that were held up."""
    times = tuple(model.Occurrence(start, start + 9.0, (0,), 9.0) for start in (60.0, 160.0))
    held = replace(DROP, rule="held-epoch-end", level_pct=None, low_pct=None, occurrences=times)
    all_of_it = replace(held, lost_gpu_s=18.0, share_of_training=0.2)
    (view,) = compose(replace(analysis, findings=(all_of_it,))).findings.cards
    said = [(each.label, each.value, each.note) for each in view.facts[:2]]
    assert said == [("GPU time lost", "18\u00a0s", "20\u00a0% of the epochs' time"), ("Times", "2", "")]
    (view,) = compose(replace(analysis, findings=(replace(held, lost_gpu_s=12.0),))).findings.cards
    assert [each.value for each in view.facts if each.label == "Total"] == ["18\u00a0s"]


def test_advice_stands_in_the_order_of_the_findings(analysis: model.Analysis) -> None:
    faster = replace(DROP, advice=(model.Advice("w", "workers", "2", "14", 0.9, 0.8),))
    ended = replace(DROP, rule="run-ended", severity="critical", advice=(model.Advice("Use less memory"),))
    first = first_advice((ended, faster), analysis)
    assert [each.text for each in first] == ["Use less memory.", "W."]


def test_a_finding_without_advice_says_where_to_look_and_the_top_says_it_once(analysis: model.Analysis) -> None:
    blocked = replace(DROP, cause=model.Cause("trainer-blocked", 0.9, "it did nothing"))
    findings = (blocked, replace(blocked, id="drop-2"))
    shown = compose(replace(analysis, findings=findings))
    assert [finding.step[:9] for finding in shown.findings.cards] == ["Find what"] * 2
    assert [each.text.partition(":")[0] for each in shown.advice] == [
        "Drop in GPU utilisation (1), Drop in GPU utilisation (2)"
    ]
    expected = compose(replace(analysis, findings=tuple(replace(f, expected=True) for f in findings)))
    assert expected.advice == ()
    assert [finding.step for finding in expected.findings.expected] == ["", ""]


def test_a_training_that_was_stopped_asks_who_did_it(analysis: model.Analysis) -> None:
    sign = (stopped_processes(1.0),)
    stopped = replace(DROP, cause=model.Cause("trainer-blocked", 0.9, "a signal had stopped it"), evidence=sign)
    assert "who paused the training" in finding_view(stopped, CLOCK, analysis).step
    waiting = replace(stopped, cause=model.Cause("waiting-for-peer", 0.9, "it spun"))
    assert finding_view(waiting, CLOCK, analysis).step == ""


def test_own_advice_stands_before_and_instead_of_where_to_look(analysis: model.Analysis) -> None:
    hog = replace(
        DROP, id="other-process-1", rule="other-process", cause=model.Cause("other-process", 0.9, "it shared the GPU")
    )
    advised = replace(DROP, cause=hog.cause, advice=(model.Advice("more workers", "workers", "2", "14"),))
    shown = compose(replace(analysis, findings=(hog, advised)))
    assert [each.text.split()[0] for each in shown.advice] == ["More", "Another"]
    assert [finding.step == "" for finding in shown.findings.cards] == [
        finding.id == "drop-1" for finding in shown.findings.cards
    ]


@pytest.mark.parametrize("told", [("drop-1",), ()])
def test_what_the_verdict_says_is_known(analysis: model.Analysis, told: tuple[str, ...]) -> None:
    verdict = model.Verdict((model.Sentence("work", "The GPU was busy 18 %."), model.Sentence("starved", "x", told)))
    assert finding_view(DROP, CLOCK, replace(analysis, verdict=verdict)).is_told is bool(told)


def test_a_gpu_that_waits_now_and_then_is_not_called_starved() -> None:
    assert finding_title(replace(DROP, rule="starved")) == "Under-utilised GPU"
    assert finding_title(replace(DROP, rule="starved", severity="info")) == "Partly idle GPU"
