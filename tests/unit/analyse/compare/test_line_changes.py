"""Which lines of code got slower: what is reported, what is noise, and what is said where lines are unknown."""

from dataclasses import replace

import pytest
from support.compared import analysed, on_gpu, slower, with_notes, with_settings
from support.stacks import LOG, READS, TRAINER, WAITS, process

from gpu_report.analyse.compare import compare
from gpu_report.analyse.compare.line_changes import compare_lines
from gpu_report.analyse.compare.samples import run_sample
from gpu_report.analyse.compare.significance import values_of
from gpu_report.analyse.compare.slower_host import HostSlowdown

MOVED = (LOG._replace(line=57), TRAINER)
OTHER = (LOG._replace(function="log_loss"), TRAINER)
UNKNOWN = "Which lines of code got slower is unknown: "
RECORD = "To record them, leave out `--no-stacks`: `gpu-report record -- COMMAND`."


def run(spent_s, *stack, **how):
    return with_notes(analysed("s-healthy"), spent_s, *stack, **how)


def changed(before, after):
    return compare([before], after).code_lines


def notes(before, after):
    return [note for note in compare([before], after).notes if note.startswith(UNKNOWN)]


def test_a_line_that_got_slower_has_its_seconds_an_epoch_and_its_number_in_each_run():
    (line,) = changed(run(0.4), run(1.6, MOVED))
    assert (line.status, line.function, line.baseline_line, line.run_line) == ("slower", "log_images", 41, 57)
    assert line.baseline_idle_gpu_s == pytest.approx(0.4, abs=0.15)
    assert line.run_idle_gpu_s == pytest.approx(1.6, abs=0.15)
    assert (line.process, line.waits_for) == ("main", None)


def test_one_that_got_faster_comes_after_it_and_one_that_was_nowhere_is_new():
    found = changed(run(1.2), run(1.2, OTHER))
    assert [(line.status, line.function) for line in found] == [("new", "log_loss"), ("gone", "log_images")]
    assert (found[0].baseline_line, found[1].run_line) == (None, None)
    assert [line.status for line in changed(run(1.6), run(0.4))] == ["faster"]


@pytest.mark.parametrize("after", [0.6, 0.55, 0.65], ids=["the same", "1 % of an epoch less", "1 % of an epoch more"])
def test_what_is_no_more_than_readings_leave_open_is_not_reported(after):
    assert changed(run(0.6), run(after)) == ()


def test_idle_time_that_moved_to_a_line_which_takes_as_long_as_before_does_not_make_it_slower():
    assert changed(run(1.2, idle=False), run(1.2, idle=True)) == ()


def test_runs_of_other_numbers_of_epochs_are_compared_by_the_epoch():
    short = run(1.2)
    short = replace(short, epochs=short.epochs[:7])
    assert changed(run(1.2), short) == changed(short, run(1.2)) == ()


def test_epochs_of_which_notes_are_missing_are_not_taken_for_fast_ones():
    whole = run(1.2)
    (process,) = whole.run.stacks
    until = process.start_s < whole.epochs[4].start_t_s
    torn = replace(process, start_s=process.start_s[until], end_s=process.end_s[until], number=process.number[until])
    cut = replace(whole, run=replace(whole.run, stacks=(torn,)))
    assert changed(whole, cut) is None
    assert notes(whole, cut) == [f"{UNKNOWN}stack samples cover fewer than 5 epochs."]


@pytest.mark.parametrize(
    ("cores", "after", "statuses"),
    [
        (HostSlowdown(0.30, 0.33), 1.5, []),
        (HostSlowdown(0.30, 0.33), 2.2, ["slower"]),
        (HostSlowdown(-0.30, -0.28), 1.5, ["slower"]),
        (HostSlowdown(-0.30, -0.28), 0.9, []),
        (None, 1.5, ["slower"]),
    ],
)
def test_what_a_slower_machine_makes_of_a_line_is_not_reported(cores, after, statuses):
    before, now = (values_of(run_sample(each)) for each in (run(1.2), run(after)))
    found = compare_lines([before], now, cores, is_slower=True)
    assert [line.status for line in found.lines] == statuses


def test_of_several_baselines_the_median_counts_and_what_they_differ_by_is_noise():
    before = [run(0.8), run(1.0), run(1.2)]
    (line,) = compare(before, run(3.2)).code_lines
    assert line.baseline_idle_gpu_s == pytest.approx(1.0, abs=0.2)
    assert compare(before, run(1.8)).code_lines == ()
    assert compare([run(0.4), run(1.2)], run(0.9)).code_lines == ()


def test_a_baseline_without_notes_has_no_say():
    (line,) = compare([analysed("s-healthy"), run(0.4)], run(1.6)).code_lines
    assert line.baseline_idle_gpu_s == pytest.approx(0.4, abs=0.15)


def test_where_one_side_has_no_notes_it_says_which_and_how_they_are_recorded():
    bare = analysed("s-healthy")
    assert notes(bare, run(1.2)) == [f"{UNKNOWN}the baseline has no stack samples. {RECORD}"]
    assert notes(run(1.2), bare) == [f"{UNKNOWN}the run has no stack samples. {RECORD}"]
    assert changed(run(1.2), bare) is None


def test_without_a_gpu_it_says_that_lines_are_compared_by_its_idle_time():
    bare = without_gpus(run(1.2))
    assert notes(bare, slower(bare, 1.3)) == [f"{UNKNOWN}they are compared by idle GPU time, and no GPU was read."]


def without_gpus(analysis):
    return replace(analysis, gpus=(), run=replace(analysis.run, samples=analysis.run.samples.iloc[:0], gpus=()))


def test_where_neither_has_notes_it_says_so_only_of_a_slower_run():
    bare = analysed("s-healthy")
    assert notes(bare, slower(bare, 1.3)) == [f"{UNKNOWN}the runs have no stack samples. {RECORD}"]
    assert notes(bare, bare) == notes(bare, slower(bare, 0.7)) == []


def test_epochs_that_may_be_of_another_size_are_not_compared():
    unsized = with_settings(run(1.6), images=None)
    assert changed(run(0.4), unsized) is None
    assert notes(run(0.4), unsized) == [f"{UNKNOWN}the number of images of an epoch is unknown in the run."]


@pytest.mark.parametrize(
    "after",
    [
        on_gpu(run(1.6), "NVIDIA L4"),
        with_settings(run(1.6), images=64),
    ],
)
def test_of_runs_that_cannot_be_compared_nothing_is_said(after):
    found = compare([run(0.4)], after)
    assert found.obstacles
    assert found.code_lines is None
    assert not any(note.startswith(UNKNOWN) for note in found.notes)


def test_without_a_baseline_there_is_nothing_to_compare():
    assert compare((), run(1.6)).code_lines is None


def loading(spent_s):
    """Return a run whose main process waited for a worker at the beginning of each epoch, which read meanwhile."""
    waits = run(spent_s, WAITS)
    spans = [(epoch.start_t_s, epoch.start_t_s + spent_s) for epoch in waits.epochs]
    worker = process(*((*span, READS) for span in spans), role="worker 0", pid=2)
    return replace(waits, run=replace(waits.run, stacks=(*waits.run.stacks, worker)))


def test_a_wait_for_data_is_named_as_one_beside_what_the_workers_did():
    found = changed(loading(0.2), loading(1.4))
    assert {(line.process, line.function, line.waits_for) for line in found} == {
        ("main", "_do_train", "data"),
        ("workers", "read_slowly", None),
    }
    assert [line.change_gpu_s for line in found] == pytest.approx([1.2, 1.2], abs=0.2)


def test_a_slower_machine_may_make_a_wait_for_data_as_long_as_its_epochs_are_longer():
    before, now = (values_of(run_sample(each)) for each in (run(0.2, WAITS), run(1.2, WAITS)))
    assert compare_lines([before], now, HostSlowdown(0.30, 0.33), is_slower=True).lines == ()
    assert len(compare_lines([before], now, HostSlowdown(0.10, 0.10), is_slower=True).lines) == 1


def test_gpu_seconds_of_two_gpus_count_twice():
    before, now = (with_notes(analysed("m-ddp"), spent_s) for spent_s in (0.4, 1.4))
    (line,) = changed(before, now)
    assert line.change_gpu_s == pytest.approx(2.0, abs=0.3)
