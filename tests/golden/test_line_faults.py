"""Faults at a known line of code (benchmarks/line_faults), on H100 and H200 and on a GPU that was played."""

import tarfile

import pytest
from conftest import REPOSITORY
from support.archives import unpacked
from support.line_faults import analysed, names_line, said

from gpu_report.catalogue import CAUSES, RULES
from gpu_report.render.run.terminal import render_text

PLAYED, H200, H100, PAIR = "line_faults", "line_faults_h200", "line_faults_h100", "line_faults_h100_pair"
ARCHIVES = (PLAYED, H200, H100, PAIR)
HEALTHY = "healthy"
# Threads that keep the interpreter's lock make the main one late in all its lines; of one that waits for them, a sixth
# of the idle time says little beside the training's own launching. The rank's end is of before an exception's line was
# recorded; a crash in C was last seen 50 ms before.
LINE_NOT_FOUND = {"busy-thread", "thread-join", "rank-raises", "segfault"}
# The main thread waits for threads that compute, and launches for the rest: it is named, as a function that waits.
THREADS_COMPUTE = {"thread-join"}
NOT_FOUND = {"rank-link"}  # gradients over sockets look like work without a profiler
NOTES = {"slow-import"}  # a note beside what lasts: what comes before YOLO is paid once
# Workers that wait for good count as slow ones: the recording ends 8 s later, and a drop takes 10 s.
# Of a training whose batch was halved, the rest is judged by itself (below).
NO_MEMORY = {"gpu-memory-taken", "gpu-memory-gone"}
CAUSE_NOT_FOUND = {"fork-deadlock", *NO_MEMORY, *THREADS_COMPUTE}
NAMED_SINCE = {"renew-loader": "input-start"}  # a cause that had no name of its own when the truth was written
# A note: nothing is wrong. Only the first has saved weights from which it could be resumed instead.
LONG_ENDS = {
    "tiny-epochs": "Restart with longer epochs",
    "val-files": "Validate less often, in epochs 10 times as long",
}


def names_in(archive):
    with tarfile.open(REPOSITORY / "tests" / "data" / f"{archive}.tar.xz") as packed:
        files = [name for name in packed.getnames() if "/" not in name]
    return sorted(name.removesuffix(".json") for name in files if name.endswith(".json"))


LEFT_OUT = {*LONG_ENDS, *NOT_FOUND, *NOTES, HEALTHY, "healthy-pair"}
FAULTS = [(of, name) for of in ARCHIVES for name in names_in(of) if name not in LEFT_OUT]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    into = tmp_path_factory.mktemp("line-faults")
    for of in ARCHIVES:
        unpacked(into / of, of)
    return into


@pytest.mark.parametrize(("of", "name"), FAULTS)
def test_a_fault_has_its_cause_and_its_line(folders, of, name):
    truth, finding = said(folders / of, name)
    assert (finding.cause.name == NAMED_SINCE.get(name, truth["cause"])) is (name not in CAUSE_NOT_FOUND)
    if truth["line"] is not None:
        assert names_line(finding, *truth["line"]) is (name not in LINE_NOT_FOUND)


@pytest.mark.parametrize("name", sorted(LONG_ENDS))
def test_what_the_ends_of_epochs_take_is_said_first(folders, name):
    truth, _ = said(folders / H200, name)
    analysis = analysed(folders / H200 / name)
    (finding,) = [f for f in analysis.findings if f.rule == "long-epoch-ends"]
    assert finding.cause.name == truth["cause"]
    assert analysis.verdict.sentences[0].text.startswith(LONG_ENDS[name])


def test_a_gpu_that_a_training_held_and_hardly_used_is_its_own(folders):
    """It crashed in its first batch, and was started anew twice: nothing of that is unmeasured, or another process."""
    found = analysed(folders / PAIR / "crash-loop")
    assert {gpu.gpu.index for gpu in found.gpus if not gpu.of_others} == {0}
    rows = {row.name: row.share for row in found.ledger}
    assert rows["startup"] > 0.5
    assert rows["unmeasured"] < 0.05
    assert "The GPU hardly worked: it was 14 % busy at most." in found.verdict.text
    assert "another process" not in found.verdict.text
    text = " ".join(render_text(found).split())
    assert "The last of 3 trainings still ran when the recording ended, in epoch 1 of 100." in text
    assert text.count("yolo/results.csv has no complete row") == 1


@pytest.mark.parametrize("name", ["slow-sampler", "manager-dict"])
def test_no_argument_is_advised_that_would_not_help(folders, name):
    findings = analysed(folders / H200 / name).findings
    assert [advice.argument for f in findings for advice in f.advice if advice.argument] == []


def test_a_line_of_the_users_leads_before_where_to_look_in_general(folders):
    said = analysed(folders / H200 / "slow-sampler").verdict.sentences
    assert said[0].text.startswith("Look at `__iter__` (unseen.py:159)")
    assert said[1].kind != "speed-up"  # which is of all that the cause took


@pytest.mark.parametrize(
    ("of", "name", "unsaid"),
    [
        (H100, "list-folder", "1.0\u00d7"),  # an argument that wins nothing
        (PAIR, "rank-broadcast", "idle for only"),  # a rank that waits in NCCL looks busy
        (H200, "cb-compute", "In the best case"),  # what the first sentence says: 1.7 times
    ],
)
def test_a_verdict_has_no_figure_that_says_nothing_or_twice(folders, of, name, unsaid):
    sentences = [each.text for each in analysed(folders / of / name).verdict.sentences]
    assert not any(unsaid in text for text in sentences)
    named = [text for text in sentences if text.startswith("Look at ")]
    assert len(named) == len({text.partition("` (")[0] for text in named})  # each function once


@pytest.mark.parametrize("of", [PLAYED, H200])
def test_a_healthy_training_has_none(folders, of):
    analysis = analysed(folders / of / HEALTHY)
    assert [f.rule for f in analysis.findings if f.severity != "info"] == []
    assert analysis.verdict.text.startswith("Nothing to fix: ")


def test_a_callback_that_took_much_of_the_time_leads_and_can_give_back_its_own(folders):
    analysis = analysed(folders / H200 / "file-lock")
    (limit,) = [limit for limit in analysis.speedup_limits if limit.cause == "trainer-blocked"]
    assert limit.epoch_s_at_best / limit.epoch_s_now == pytest.approx(0.62, abs=0.05)
    assert analysis.verdict.sentences[0].text.startswith("Look at `write` (unseen_again.py:167): it took 49 %")


@pytest.mark.parametrize(("name", "pid", "batch"), [("gpu-memory-taken", 7995, 16), ("gpu-memory-gone", 842, 8)])
def test_a_training_that_another_program_left_no_memory_says_so_first(folders, name, pid, batch):
    analysis = analysed(folders / H100 / name)
    assert analysis.verdict.sentences[0].text == (
        f"Keep python3 (pid {pid}) off GPU 0: YOLO lowered `batch` from 32 to {batch}, "
        "probably because GPU memory ran out."
    )


def test_a_main_thread_that_sleeps_while_autograd_launches_is_not_blocked(folders):
    findings = analysed(folders / H100 / "shm-full").findings
    assert [f.cause.name for f in findings if f.rule == "starved"] == ["launch-bound"]


@pytest.mark.parametrize("name", sorted(NOT_FOUND))
def test_what_is_not_found_is_still_not(folders, name):
    assert said(folders / PAIR, name)[1] is None


def test_what_comes_before_yolo_is_a_note_with_its_line(folders):
    findings = analysed(folders / PAIR / "slow-import").findings
    (start,) = [f for f in findings if f.rule == "slow-start"]
    assert (start.severity, start.where[0].file.rpartition("/")[2]) == ("info", "slow_tables.py")


def test_a_training_beside_that_of_another_gpu_has_no_warning(folders):
    findings = analysed(folders / PAIR / "healthy-pair").findings
    assert {f.rule for f in findings} == {"unused-gpu", "run-ended"}
    assert {f.severity for f in findings} == {"info"}


def test_ranks_that_wait_for_each_other_name_the_one_in_the_users_code(folders):
    analysis = analysed(folders / PAIR / "rank-hang")
    assert analysis.verdict.sentences[0].text.startswith("Look at `meet` (unseen_fifth.py:124)")
    assert "All GPUs of the training waited 13 s for each other" in analysis.verdict.text
    titles = {RULES["waiting-for-peer"].title, CAUSES["waiting-for-peer"].name}
    assert not any("slower" in title for title in titles)  # none is


def test_ranks_that_outlive_their_launcher_are_said(folders):
    (left,) = [f for f in analysed(folders / PAIR / "ranks-cb-disk").findings if f.rule == "left-behind"]
    assert (left.severity, "held GPUs 0 and 1" in left.summary) == ("warning", True)


def test_the_work_of_a_process_that_was_left_over_is_none_of_the_trainings(folders):
    analysis = analysed(folders / PAIR / "left-over")
    spent = {row.name: row.gpu_seconds for row in analysis.ledger}
    assert spent["other-process"] > 4 * spent["work"]
    assert "but 83 % of that was another process's work" in analysis.verdict.text


def test_a_function_that_all_ranks_call_is_one_finding_with_the_most_that_it_took(folders):
    found = [each for each in analysed(folders / PAIR / "rank-gather").findings if each.rule == "user-code"]
    said = "Up to 19 % of training time on GPUs 0 and 1 went into gather (unseen_again.py:35)"
    assert [each.summary for each in found] == [said]
