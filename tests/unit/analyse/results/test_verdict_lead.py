"""What the verdict leads with: the fix that saves most, a bad end before it, and a limit never as if it were likely."""

import dataclasses

import pytest
from support.runs import make_run, readings
from support.samples import SAMPLES, analysis_of, run_of

from gpu_report.analyse import analyse
from gpu_report.analyse.advice.resume_or_restart import NEXT_TIME
from gpu_report.analyse.build_context import build_context
from gpu_report.analyse.results.verdict.lead_details import also_worth_changing, projected
from gpu_report.analyse.results.verdict.leads import _in_order, leads
from gpu_report.analyse.results.verdict.leads.from_drops import drop_leads
from gpu_report.analyse.results.verdict.leads.from_settings import set_up
from gpu_report.analyse.results.verdict.leads.from_starts import slow_starts
from gpu_report.analyse.results.verdict.leads.from_steady_state import steady_leads
from gpu_report.analyse.results.verdict.leads.lead import FIX, LOOK, Lead, affected_epochs
from gpu_report.catalogue import ENDS_SHARE_KEY, SLOW_IMAGES_KEY
from gpu_report.load import load_run
from gpu_report.model import Advice, Cause, CodeLocation, Evidence, Finding, Options, Sentence, SpeedupLimit
from gpu_report.render.what_to_change import listed_changes


def finding_of(rule, cause, span, lost_gpu_s):
    context = build_context(make_run(readings((0, 10), (90, 4000)), rows=[(1, 2000), (2, 4000)]), Options())
    return context.finding(rule, "warning", span, "It was slowed", gpu=0, cause=cause, lost_gpu_s=lost_gpu_s)


def lead(name):
    return analysis_of(name).verdict.sentences[0]


def kinds(name):
    return [sentence.kind for sentence in analysis_of(name).verdict.sentences]


@pytest.mark.parametrize(
    ("name", "about", "setting", "reached"),
    [
        ("ab-workers-2", "input-cpu", "workers", "ab-workers-14"),
        ("n-starved", "input-cpu", "workers", "n-fed"),
        ("ab-s-workers-3", "input-cpu", "workers", "ab-s-workers-10"),
    ],
)
def test_the_setting_leads_with_a_whole_epoch_that_the_repaired_run_did_reach(name, about, setting, reached):
    said, projection = lead(name), analysis_of(name).projection
    assert (said.kind, said.about, said.advice.argument) == ("fix", about, setting)
    assert said.text.startswith(f"Set `{projection.fix}` (now {said.advice.from_value}): epochs drop from ")
    whole = sorted(epoch.duration_s for epoch in analysis_of(reached).epochs if not epoch.first)
    assert projection.epoch_s_expected == pytest.approx(whole[len(whole) // 2], rel=0.1)


@pytest.mark.parametrize(
    ("argument", "own_s", "first"),
    [
        ("batch", 9.0, "own"),
        ("batch", 7.0, "other"),
        ("batch", 4.0, "set"),
        ("batch", 20.0, "own"),
        ("workers", 7.0, "set"),
    ],
)
def test_a_function_of_the_users_comes_before_a_larger_batch_that_saves_little_more(argument, own_s, first):
    own = finding_of("user-code", Cause("main-process", 0.7, ""), (10.0, 4000.0), None)
    advice = Advice("larger", argument, from_value="32", to_value="64", gain_estimate=0.2)
    found = [
        Lead(Sentence(LOOK, "own", (own.id,), "main-process", names_own=True), own_s),
        Lead(Sentence(FIX, "set", ("starved-1",), "launch-bound", advice), 10.0),
        Lead(Sentence(LOOK, "other", ("drop-1",)), 8.0),
    ]
    assert _in_order(found, [own])[0].sentence.text == first


def test_files_of_predictions_come_before_a_larger_batch_too():
    found = [
        Lead(Sentence(FIX, name, (name,), "", Advice("", name, to_value="1", gain_at_most=0.2)), saves_s)
        for name, saves_s in (("save_txt", 7.0), ("batch", 10.0), ("conf", 6.0))
    ]
    assert [each.sentence.text for each in _in_order(found, [])] == ["save_txt", "batch", "conf"]


def test_what_a_setting_comes_to_for_all_epochs_follows_it():
    said = analysis_of("n-starved").verdict.sentences
    assert [each.kind for each in said[:3]] == ["fix", "work", "projection"]
    assert "because 2 data-loader workers could not keep up" in said[1].text
    assert said[2].text == "All 3 epochs, at 13.2 s each: 39 s \u2192 about 12 s."
    assert "speed-up" not in kinds("n-starved")  # no limit beside an estimate


def test_money_is_told_where_a_price_is_known():
    said = {
        s.kind: s.text for s in analyse(load_run(SAMPLES / "n-starved"), Options(price_per_hour=36.0)).verdict.sentences
    }
    assert said["projection"] == "All 3 epochs, at 13.2 s each: 39 s \u2192 about 12 s, cost 0.39 \u2192 0.12."
    total = analysis_of("n-starved").run.duration_s / 100
    assert said["cost"].startswith(f"The run cost {total:.2f}, of which 0.3")
    assert "cost" not in kinds("n-starved")


@pytest.mark.parametrize("name", ["s-oom", "s-leak-oom", "s-killed", "n-oom-killed"])
def test_a_bad_end_leads_with_what_prevents_it_then_how_to_resume(name):
    """Who reads that memory ran out has its traceback: what kept the memory is the news."""
    said = [kind for kind in kinds(name) if kind in {"grew", "ended", "prevent", "resume"}]
    first = ["prevent", "grew", "ended"] if name == "s-leak-oom" else ["ended", "prevent"]
    assert list(dict.fromkeys(said)) == [*first, "resume"]
    assert kinds(name)[: len(said)] == said


def test_a_leak_is_not_answered_with_a_smaller_batch():
    said = [each for each in analysis_of("s-leak-oom").verdict.sentences if each.kind == "prevent"]
    assert [each.about for each in said] == ["memory-growth"]
    assert "batch" not in said[0].text.replace("batch to batch", "")


def test_who_pressed_ctrl_c_knows_it():
    assert kinds("s-latency").index("ended") > 0
    assert "resume" in kinds("s-latency")


@pytest.mark.parametrize("name", ["m-healthy", "n-fed", "yolo26n-cli"])
def test_where_nothing_is_wrong_one_sentence_says_so(name):
    assert lead(name).text.startswith("Nothing to fix: the GPU was busy ")


def test_a_gpu_that_was_never_used_leads_where_it_is_half_of_the_bill():
    assert (
        lead("m-two-gpus-one-used").text == "Set `device=0,1`: GPU 1 was never used, so half of all GPU time was lost."
    )
    assert kinds("m-two-gpus-one-used").count("unused GPU") == 0
    assert lead("fed").kind == "work"  # an imported log: nobody knows whether it could have been had


def test_a_doubt_is_told():
    assert "probably" in lead("s-loader-stall").text  # 0.7
    assert "probably" not in lead("s-cpu-taken").text  # 0.9


def test_a_drop_of_a_long_training_does_not_lead():
    run = make_run(readings((0, 10), (90, 1400), (0, 12), (90, 1400)), rows=[(1, 1400), (2, 2820)])
    said = analyse(run).verdict.sentences
    assert said[0].text == "Nothing to fix: the GPU was busy 90 % of training time."
    assert "1 unexpected drop lasted 12 s: unknown cause." in [each.text for each in said]


def test_what_somebody_else_wrote_becomes_no_code():
    run = load_run(SAMPLES / "n-starved")
    (yolo,) = run.yolo_runs
    asked = dataclasses.replace(yolo, args={**yolo.args, "workers": "`sudo x`"})
    inside = tuple(dataclasses.replace(i, settings={**i.settings, "workers": 2}) for i in run.inside)
    said = analyse(dataclasses.replace(run, yolo_runs=(asked,), inside=inside)).verdict.text
    assert "`sudo" not in said


LOCKED = CodeLocation("main", "locked", "/home/me/train.py", 16, 0.9)
YOLOS = CodeLocation("main", "forward", "/site-packages/ultralytics/nn/modules/conv.py", 87, 0.9)
STARTED = Finding("", "slow-start", "info", None, 10.0, 42.0, "The training prepared its data set for 32 s")
STARVED = Finding("", "starved", "warning", 0, 50.0, 60.0, "GPU 0 was busy only 9 % of the time")


def test_a_start_up_in_a_function_of_the_users_leads_unless_something_lasts():
    (lead,) = slow_starts([dataclasses.replace(STARTED, where=(LOCKED,))], 60.0, 1)
    assert lead.sentence.text == "Look at `locked` (train.py:16): 29 s of the start-up went there."
    assert lead.saves_s == pytest.approx(28.8)
    assert not list(slow_starts([dataclasses.replace(STARTED, where=(YOLOS,))], 60.0, 1))
    assert not list(slow_starts([dataclasses.replace(STARTED, where=(LOCKED,)), STARVED], 60.0, 1))


@pytest.mark.parametrize(("batches", "is_offered"), [(32, True), (12, False)])
def test_a_larger_batch_is_not_the_way_for_a_few_batches_an_epoch(batches, is_offered):
    run = run_of("n-healthy-disk")
    inside = tuple(dataclasses.replace(each, settings={**each.settings, "batches": batches}) for each in run.inside)
    text = analyse(dataclasses.replace(run, inside=inside)).verdict.text
    assert ("Try a larger `batch`" in text) is is_offered


def test_a_training_that_only_warmed_up_for_long_is_healthy():
    first, second = analysis_of("ab-workers-14").verdict.sentences[:2]
    assert first.text == "Nothing to fix: the GPU was busy 49 % of training time, 69 % in steady state."
    assert second.text == "60 % or more is good for YOLO."
    assert not any(each.text.startswith("Largest") for each in analysis_of("s-early-stop").verdict.sentences)


@pytest.mark.parametrize(
    ("name", "then"),
    [
        ("n-xid", "Training hardly waited for data."),
        ("n-fed", "7 % of training time was waiting for data."),
        ("yolo26n-cli", "GPU utilisation never dropped unexpectedly."),  # without callbacks
        ("s-healthy", None),  # 82 %: nobody asks
        ("n-starved", None),  # which says why
    ],
)
def test_what_a_healthy_gpu_did_in_the_rest_of_training_is_said(name, then):
    said = [each.text for each in analysis_of(name).verdict.sentences]
    rest = "The rest of training time went into gaps between training steps (launching, Python, logging)."
    assert (said[said.index(rest) + 1] if rest in said else None) == then


def test_nobody_says_that_there_is_nothing_to_fix_where_much_of_the_rest_is_unknown():
    said = analysis_of("s-early-stop").verdict.text
    assert said.startswith("No fault found: the GPU was busy 47 % of training time, 67 % in steady state.")
    assert "29 % idle (cause unknown), 24 % gaps between training steps" in said


def test_a_training_of_which_nothing_but_warming_up_was_read_is_too_short_to_judge():
    run = run_of("s-early-stop")
    verdict = analyse(dataclasses.replace(run, ring=run.ring.iloc[:0])).verdict
    assert (
        verdict.sentences[0].text == "Too short to judge: the GPU was busy 42 % of training time, warming up included."
    )
    assert verdict.is_healthy is False


def test_a_model_with_small_steps_is_no_fault_and_why_its_batch_stays_is_said():
    run = run_of("l-healthy")
    inside = tuple(dataclasses.replace(each, settings={**each.settings, "batch": 64}) for each in run.inside)
    nominal = analyse(dataclasses.replace(run, inside=inside))  # beyond `nbs` the optimiser would see a difference
    assert [each.text for each in nominal.verdict.sentences[:3]] == [
        "No fault found: the GPU was busy 55 % of training time.",
        "The CPU launches kernels more slowly than this GPU runs them (launch-bound).",
        "Try a batch twice as large: it would keep the GPU busier.",
    ]
    assert [each.text for each in listed_changes(nominal)] == [nominal.verdict.sentences[2].text]
    run = run_of("n-healthy-disk")
    inside = tuple(dataclasses.replace(each, settings={**each.settings, "batches": 12}) for each in run.inside)
    few = analyse(dataclasses.replace(run, inside=inside))
    assert few.verdict.text.startswith("Nothing found to fix: ")
    assert "A larger batch would keep it busier, but an epoch has only 12 batches." in few.verdict.text
    assert "only 4" not in few.verdict.text
    assert {each.severity for each in few.findings if each.rule == "starved"} == {"info"}


def test_memory_that_grows_leads_where_nothing_else_does_also_if_the_training_ends_before_it_is_full():
    first, second = analysis_of("s-memory-steps").verdict.sentences[:2]
    assert first.text.startswith("Find what keeps GPU memory from batch to batch")
    assert second.text.endswith("grew 2.0 GiB an epoch: full after about 52 more epochs.")
    assert not any("Little found" in each.text for each in analysis_of("s-memory-steps").verdict.sentences)


def test_longer_epochs_of_the_next_training_lead_where_nothing_else_does():
    found = Finding(
        *("long-epoch-ends-1", "long-epoch-ends", "info", 0, 10.0, 90.0, "Validation takes 62 % of each epoch"),
        evidence=(Evidence("", 62.0, "%", key=ENDS_SHARE_KEY),),
        advice=(Advice("List the images 8 times", short=NEXT_TIME, for_next=True),),
    )
    (lead,) = leads(build_context(run_of("l-healthy"), Options()), [found], (), None)
    assert lead.sentence.text == f"{NEXT_TIME}: validation takes 62 % of each epoch."


def test_enlarged_images_are_named_once_beside_what_leads():
    run = load_run(SAMPLES / "m-long-stall")
    inside = tuple(dataclasses.replace(each, settings={**each.settings, "image_px": 320}) for each in run.inside)
    first, *others = [each.text for each in analyse(dataclasses.replace(run, inside=inside)).verdict.sentences]
    assert first.startswith("Restart with longer epochs")
    assert [each[:29] for each in others if "mages of 320 px" in each] == ["Try `imgsz=320` (now 640): im"]


def test_a_clock_that_is_lower_for_hours_leads_by_what_it_costs():
    power = Cause("thermal", 0.9, "heat slowed the clock")
    taken = Cause("input-cpu", 0.9, "other processes used the cores")
    run = make_run(readings((0, 10), (90, 4000)), rows=[(1, 2000), (2, 4000)])
    hot = finding_of("thermal", power, (100.0, 3900.0), 200.0)
    slowed = finding_of("slowdown", taken, (3000.0, 3900.0), 400.0)
    found = leads(build_context(run, Options()), [hot, slowed], [], None)
    assert [(one.sentence.about, one.saves_s) for one in found] == [("input-cpu", 400.0), ("thermal", 200.0)]


def test_what_costs_nobody_knows_what_comes_after_what_is_known():
    """A process that stayed for most of a training may have cost next to nothing; a fall cost a share of its time."""
    run = make_run(readings((0, 10), (90, 4000)), rows=[(1, 2000), (2, 4000)])
    stayed = finding_of("other-process", Cause("other-process", 0.9, "it was there"), (100.0, 3000.0), None)
    fell = finding_of("slowdown", Cause("input-cpu", 0.9, "cores were taken"), (3000.0, 3900.0), None)
    fell = dataclasses.replace(fell, level_pct=90.0, low_pct=60.0)
    found = leads(build_context(run, Options()), [stayed, fell], [], None)
    assert [one.sentence.about for one in found] == ["input-cpu", "other-process"]
    assert found[0].saves_s == pytest.approx(900 / 3)


def test_of_the_only_epoch_counts_what_was_recorded_and_fell_for_nothing():
    """Of an epoch of minutes, a third of which was recorded, an argument saves a third: less than a fall may take."""
    context = build_context(make_run(readings((0, 10), (40, 60), (5, 40)), rows=[(1, 110)]), Options())
    fell = finding_of("drop", Cause("input-cpu", 0.9, "Images came late"), (70, 110), 30)
    assert affected_epochs(context, [], 400.0) == pytest.approx(100 / 400)
    assert affected_epochs(context, [fell], 400.0) == pytest.approx(60 / 400)
    assert affected_epochs(context, [fell], 10.0) == 1  # never more than there were


@pytest.mark.parametrize(("ends_s", "words"), [(110, "for the last 40 s there"), (100, "for 30 s there")])
def test_a_drop_that_lasts_to_the_end_of_what_was_seen_is_said_to_go_on(ends_s, words):
    context = build_context(make_run(readings((0, 10), (80, 60), (8, 40)), rows=[]), Options())
    assert context.trainings[0].train_spans[-1][1] == pytest.approx(110, abs=1)
    fell = finding_of("drop", Cause("input-cpu", 0.9, "Images came late"), (70, ends_s), 30)
    where = CodeLocation("workers", "bend", "/work/own.py", 10, 0.9)
    (said,) = drop_leads(context, [dataclasses.replace(fell, where=(where,))], (), 1)
    assert said.sentence.text == f"Look at `bend` (own.py:10): the GPU was idle {words}."


@pytest.mark.parametrize(
    ("process", "file", "says"),
    [
        ("main", "/site-packages/ultralytics/data/build.py", ""),
        ("main", "/site-packages/torch/utils/data/dataloader.py", ""),
        (
            "workers",
            "/site-packages/ultralytics/utils/patches.py",
            "Data-loader workers were in `read` (patches.py:87).",
        ),
    ],
)
def test_a_line_of_the_loader_that_the_training_waits_in_is_not_said(process, file, says):
    context = build_context(make_run(readings((0, 10), (80, 60), (8, 40), (80, 60)), rows=[]), Options())
    fell = finding_of("drop", Cause("input-storage", 0.9, "Images came late"), (70, 110), 30)
    where = CodeLocation(process, "read", file, 87, 0.9)
    (said,) = drop_leads(context, [dataclasses.replace(fell, where=(where,))], (), 1)
    assert said.then == says


def test_what_all_epochs_come_to_stands_behind_the_setting_that_it_is_of():
    """A function of the user's that leads would win far more than the setting beside it."""
    found = analysis_of("n-starved")
    fix = found.verdict.sentences[0]
    led = Lead(Sentence(LOOK, "Look at `note`.", fix.findings, fix.about, names_own=True), 90.0)
    assert list(projected(found.projection, led, [led.sentence])) == []
    assert [each.kind for each in projected(found.projection, led, [fix])] == ["projection"]
    elsewhere = Lead(dataclasses.replace(led.sentence, about="main-process"), 90.0)
    assert list(projected(found.projection, elsewhere, [fix])) == []


def test_what_holds_back_several_ranks_alike_is_said_once():
    same = [Lead(Sentence(LOOK, "Look at `exchange`.", (name,), "main-process", names_own=True), 9.0) for name in "abc"]
    assert list(also_worth_changing(same, [])) == []


def test_code_of_ones_own_whose_line_is_not_known_is_none_that_a_lead_names():
    """As of the garbage collector, which may come in any line."""
    found = analysis_of("n-starved")
    (starved,) = [f for f in found.findings if f.rule == "starved"]
    unknown = dataclasses.replace(starved, rule="user-code", where=())
    assert list(steady_leads(build_context(found.run, Options()), [unknown], (), None)) == []


def test_the_storage_of_a_slow_start_is_said_once_with_what_training_waited_for():
    context = build_context(make_run(readings((0, 10), (90, 400)), rows=[(1, 200)]), Options())
    copy, move = Advice("Copy", short="Copy", of_slow_scan=True), Advice("Move", short="Move")
    start = context.finding("slow-start", "info", (0, 60), "It checked the images", advice=(Advice("Check"), copy))
    waited = Evidence("waited for images", 50.0, "s", key=SLOW_IMAGES_KEY)
    slow = context.finding("environment", "warning", (60, 400), "Slow disk", advice=(move,), evidence=(waited,))
    (said,) = set_up(context, [start, slow], None)
    assert (said.sentence.advice, said.sentence.replaces) == (move, copy)
    (said,) = set_up(context, [start, dataclasses.replace(slow, evidence=())], None)
    assert said.sentence.replaces is None


def test_an_advice_that_two_findings_have_is_said_once():
    advice = Advice("Remove `enabled = False` (environment.py:7)", short="Remove `enabled = False` (environment.py:7)")
    both = [
        Lead(Sentence(LOOK, "Remove `enabled = False`: cuDNN was off.", ("a",), "", advice), 9.0),
        Lead(Sentence(FIX, "Remove `enabled = False`.", ("b",), "main-process", advice), 8.0),
    ]
    assert list(also_worth_changing(both, [])) == []
    other = dataclasses.replace(both[1].sentence, advice=Advice("Something else"))
    assert list(also_worth_changing([both[0], Lead(other, 8.0)], [])) == [other]


def test_what_costs_nobody_knows_what_saves_no_more_than_it_took():
    """Where a limit is known of the cause: that of all epochs may be far more than a stay of minutes."""
    run = make_run(readings((0, 10), (90, 4000)), rows=[(1, 2000), (2, 4000)])
    stayed = finding_of("other-process", Cause("other-process", 0.9, "it was there"), (100.0, 160.0), None)
    limit = SpeedupLimit("other-process", 2000.0, 1000.0, "")
    (found,) = drop_leads(build_context(run, Options()), [stayed], [limit], 2)
    assert found.saves_s == pytest.approx(60.0)
