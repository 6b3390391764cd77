"""Gates: what each way of writing one means, and that nothing measured is neither a pass nor a failure."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.compared import analysed, on_gpu, slower, with_findings, with_times
from support.runs import make_run, readings

from gpu_report.analyse import analyse
from gpu_report.analyse.compare import compare
from gpu_report.analyse.compare.gate_syntax import (
    CHECK_WARNS_ON,
    COMPARE_FAILS_ON,
    chosen_gates,
    default_gates,
    parse_gate,
    parse_gates,
)
from gpu_report.errors import UsageError
from gpu_report.model import Cause, Ending, Finding, KernelEvent, KernelLog

HEALTHY = "s-healthy"


def result(comparison, text):
    return next(each for each in comparison.gates if each.gate.text == text)


def outcome(baseline, run, *gates):
    return compare([baseline], run, parse_gates(gates, ())).outcome


# --- grammar ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "metric", "statistic", "kind", "limit"),
    [
        ("epoch_time:+5%", "epoch_time", "usual", "share", 0.05),
        ("epoch_time.p50:+5%", "epoch_time", "p50", "share", 0.05),
        ("epoch_time.median:+5%", "epoch_time", "p50", "share", 0.05),
        ("epoch_time:+0.5s", "epoch_time", "usual", "amount", 0.5),
        ("epoch_time:+500ms", "epoch_time", "usual", "amount", 0.5),
        ("epoch_time.p95:12s", "epoch_time", "p95", "most", 12),
        ("images_per_s:-5%", "images_per_s", "usual", "share", -0.05),
        ("images_per_s:500images/s", "images_per_s", "usual", "least", 500),
        ("util.mean:-10%", "util", "mean", "share", -0.1),
        ("util.mean:-10pp", "util", "mean", "amount", -10),
        ("util.mean:\u221210pp", "util", "mean", "amount", -10),
        ("util:60%", "util", "usual", "least", 60),
        ("util: <= 60 %", "util", "usual", "most", 60),
        ("data_wait_share:+5pp", "data_wait_share", "usual", "amount", 5),
        ("data_wait_share:5%", "data_wait_share", "usual", "most", 5),
        ("energy:+10%", "energy", "usual", "share", 0.1),
        ("energy:1.5kJ", "energy", "usual", "most", 1500),
        ("memory_peak:40GiB", "memory_peak", "max", "most", 40960),
        ("memory_peak.max:+512MiB", "memory_peak", "max", "amount", 512),
        ("xid.fatal:0", "xid", "fatal", "most", 0),
        ("xid:0", "xid", "fatal", "most", 0),
        ("findings.new:2", "findings", "new", "most", 2),
        ("coverage:95%", "coverage", "share", "least", 95),
        (" epoch_time : +5% ", "epoch_time", "usual", "share", 0.05),
    ],
)
def test_what_a_gate_means(text, metric, statistic, kind, limit):
    gate = parse_gate(text)
    assert (gate.metric, gate.statistic, gate.kind) == (metric, statistic, kind)
    assert gate.limit == pytest.approx(limit)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("epoch_time", "write METRIC:LIMIT"),
        ("epoch_time:", "write METRIC:LIMIT"),
        ("epoch_time:fast", "write METRIC:LIMIT"),
        ("epoch_tiem:+5%", "did you mean epoch_time?"),
        ("zzz:+5%", "known are epoch_time"),
        ("epoch_time.p42:+5%", "it has usual, mean"),
        ("epoch_time:-5%", "would fail on an improvement"),
        ("images_per_s:+5%", "would fail on an improvement"),
        ("epoch_time:+5", "say %, s, ms, min or h after the number"),
        ("epoch_time:+5pp", "say %, s, ms, min or h after the number"),
        ("epoch_time:5%", "for a change from the baseline write +5%"),
        ("images_per_s:5%", "for a change from the baseline write -5%"),
        ("util:5pp", "for a change from the baseline write -5pp"),
        # every limit has a unit, but what is counted has none
        ("epoch_time:12", "say s, ms, min or h after the number"),
        ("images_per_s:500", "say images/s after the number"),
        ("util:60", "say % after the number"),
        ("memory_peak:40", "say MiB or GiB after the number"),
        ("coverage:95", "such as coverage:95%"),
        # nothing could fail it, or nothing pass it
        ("util:160%", "can never pass: there is no more than 100 %"),
        ("util:<=100%", "can never fail: there is no more than 100 %"),
        ("util:0%", "can never fail: nothing is less than none"),
        ("epoch_time:0s", "can never pass: there is always some"),
        ("util:-100%", "can never fail: nothing changes by that much"),
        ("util:-100pp", "can never fail: nothing changes by that much"),
        ("data_wait_share:+100pp", "can never fail: nothing changes by that much"),
        ("coverage:101%", "can never pass"),
        ("coverage:<=95%", "coverage is wanted high"),
        ("findings.new:-1", "has no sign; write findings.new:0"),
        ("findings.new:>=1", "would fail on an improvement"),
        ("findings.new:0.5", "counted in whole numbers"),
        ("util:-10", "% (of the baseline) or pp"),
        ("util:-10s", "% (of the baseline) or pp"),
        ("epoch_time:+5parsec", "is no unit of it"),
        ("memory_peak.mean:+5%", "it has max"),
        ("xid.deadly:0", "xid has fatal, any"),
        ("xid:+1", "write xid.fatal:1"),
        ("xid:0%", "is counted and has no unit; write xid.fatal:0"),
    ],
)
def test_what_is_no_gate_is_wrong_use_and_says_why(text, said):
    with pytest.raises(UsageError) as error:
        parse_gate(text)
    assert said in str(error.value)


@given(st.text(alphabet="epoch_timutl.:+-<=%p5 xd0s\u2212\n", max_size=30))
def test_no_text_does_anything_but_mean_a_gate_or_be_refused(text):
    try:
        gate = parse_gate(text)
    except UsageError:
        return
    assert gate.text == text.strip()


# --- results ------------------------------------------------------------------------------------------------------


def test_a_slower_run_fails_and_says_by_how_much():
    found = compare([analysed(HEALTHY)], slower(analysed(HEALTHY), 1.1), parse_gates(["epoch_time:+5%"], ()))
    assert found.outcome == "failed"
    assert "+10 %" in found.gates[0].summary
    assert "limit: +5.0 %" in found.gates[0].summary


def test_a_gate_wider_than_the_change_passes():
    assert outcome(analysed(HEALTHY), slower(analysed(HEALTHY), 1.1), "epoch_time:+20%") == "passed"


@pytest.mark.parametrize(
    ("gate", "expected"),
    [("epoch_time.p50:+5%", "failed"), ("epoch_time:+0.2s", "failed"), ("epoch_time:+1s", "passed")],
)
def test_statistics_and_amounts(gate, expected):
    assert outcome(analysed(HEALTHY), slower(analysed(HEALTHY), 1.1), gate) == expected


def test_a_change_that_may_be_chance_passes_and_says_that_it_is_unsure():
    uneven = [5.0, 10.0, 6.0, 9.0, 5.5, 9.5, 6.5, 8.5]
    pair = [with_times(analysed(HEALTHY), [factor * t for t in uneven]) for factor in (1.0, 1.08)]
    found = compare(pair[:1], pair[1], parse_gates(["epoch_time:+5%"], ()))
    assert (found.outcome, found.gates[0].unsure) == ("passed", True)
    assert "too much to be sure" in found.gates[0].summary


def waiting(waits_ms):
    """Return a run whose epochs of about 4 s wait so many milliseconds each for the loader."""
    times = [4.0 + 0.001 * at for at in range(len(waits_ms))]
    return with_times(analysed(HEALTHY), times, [each / 1000 for each in waits_ms])


@pytest.mark.parametrize(
    ("after_ms", "gate", "expected"),
    [
        (22, "data_wait:+5%", "passed"),  # a fifth more of next to nothing
        (22, "data_wait_share:+5%", "passed"),
        (22, "data_wait:+2ms", "failed"),  # who asks for milliseconds gets them
        (60, "data_wait:+5%", "failed"),
        (60, "data_wait_share:+5%", "failed"),
    ],
)
def test_a_share_of_a_wait_of_milliseconds_is_no_wait(after_ms, gate, expected):
    pair = [waiting([base, base + 0.1] * 5) for base in (18, after_ms)]
    found = compare(pair[:1], pair[1], parse_gates([gate], ()))
    assert found.outcome == expected
    assert "18 ms" in found.gates[0].summary or "0.5 %" in found.gates[0].summary
    assert ("too short to matter" in found.gates[0].summary) == (expected == "passed")


def validating(seconds):
    """Return a run whose epochs validate for so long each."""
    run = with_times(analysed(HEALTHY), [4.0 + 0.001 * at for at in range(len(seconds))])
    pairs = zip(run.epochs, (seconds[0], *seconds), strict=True)
    return replace(run, epochs=tuple(replace(epoch, validation_s=each) for epoch, each in pairs))


@pytest.mark.parametrize(
    ("after_s", "gate", "expected"),
    [
        (0.06, "validation_time:+25%", "passed"),  # as the table has it: the same
        (0.06, "validation_time:+10ms", "failed"),  # who asks for milliseconds gets them
        (0.40, "validation_time:+25%", "failed"),
    ],
)
def test_a_share_of_a_validation_of_milliseconds_is_no_change(after_s, gate, expected):
    pair = [validating([base, base + 0.0001] * 5) for base in (0.04, after_s)]
    found = compare(pair[:1], pair[1], parse_gates([gate], ()))
    assert found.outcome == expected
    assert ("less than 0.20 s is too short to matter" in found.gates[0].summary) == (expected == "passed")


@pytest.mark.parametrize("level", ["fail", "warn"])
def test_a_certain_change_that_baselines_differ_by_as_well_is_undecided(level):
    several = [slower(analysed(HEALTHY), factor) for factor in (0.9, 1.0, 1.1)]
    gates = {"fail": [], "warn": [], level: ["epoch_time:+5%"]}
    other = {"fail": "warn", "warn": "fail"}[level]
    gates[other] = ["findings.critical:0"]
    found = compare(several, slower(analysed(HEALTHY), 1.08), parse_gates(gates["fail"], gates["warn"]))
    time = result(found, "epoch_time:+5%")
    assert (time.outcome, time.undecided, time.why) == ("not measured", True, "the baselines differ by as much")
    assert time.value == pytest.approx(0.08, abs=0.01)
    assert "3 baselines took 3.53 to 4.32 s" in time.summary
    assert found.outcome == ("not measured" if level == "fail" else "passed")
    far = compare(several, slower(analysed(HEALTHY), 1.9), parse_gates(["epoch_time:+5%"], ()))
    assert far.outcome == "failed"


def test_a_default_that_could_not_decide_keeps_the_rest_from_passing():
    """Defaults may go unmeasured where the runs do not know them; this one was measured."""
    several = [waiting([base, base + 1] * 5) for base in (18, 18, 1500)]
    found = compare(several, waiting([900, 901] * 5), default_gates(baseline=True))
    assert result(found, "data_wait_share:+5pp").undecided
    assert result(found, "epoch_time:+5%").outcome == "passed"
    assert found.outcome == "not measured"


def idler(time_factor):
    run = analysed(HEALTHY).run
    ring = run.ring.assign(gpu_util_pct=run.ring["gpu_util_pct"] * 0.86)
    samples = run.samples.assign(gpu_util_pct=run.samples["gpu_util_pct"] * 0.86)
    return replace(slower(analysed(HEALTHY), time_factor), run=replace(run, ring=ring, samples=samples))


def test_utilisation_that_fell_fails_unless_epochs_are_faster():
    assert outcome(analysed(HEALTHY), idler(1.0), "util:-10%") == "failed"
    found = compare([analysed(HEALTHY)], idler(0.78), parse_gates(["util:-10%"], ()))
    assert found.outcome == "passed"
    assert "an improvement" in found.gates[0].summary


def test_percent_and_percentage_points_are_told_apart():
    # of about 87 %, 14 % are 12 percentage points
    assert outcome(analysed(HEALTHY), idler(1.0), "util:-13%") == "failed"
    assert outcome(analysed(HEALTHY), idler(1.0), "util:-13pp") == "passed"


def test_a_warning_never_fails():
    found = compare([analysed(HEALTHY)], slower(analysed(HEALTHY), 1.5), parse_gates(["xid.any:0"], ["epoch_time:+5%"]))
    assert result(found, "epoch_time:+5%").outcome == "failed"
    assert found.outcome == "passed"


def test_gates_that_only_warn_pass_where_any_was_measured():
    found = compare([analysed(HEALTHY)], analysed(HEALTHY), parse_gates((), ["epoch_time:+5%"]))
    assert found.outcome == "passed"
    alone = compare([], analysed(HEALTHY), parse_gates((), ["epoch_time:+5%"]))
    assert alone.outcome == "not measured"


def test_bounds_are_held_against_the_run_alone():
    assert outcome(analysed(HEALTHY), analysed(HEALTHY), "epoch_time:3.8s") == "failed"
    assert outcome(analysed(HEALTHY), analysed(HEALTHY), "epoch_time:4s") == "passed"
    assert outcome(analysed(HEALTHY), analysed(HEALTHY), "util:60%", "images_per_s:>=900images/s") == "passed"


# --- counts ----------------------------------------------------------------------------------------------------------


def xid(code, severity, t_s=5.0, kind="xid"):
    return KernelEvent(t_s, kind, severity, "", "", code=code)


def with_kernel(log):
    return replace(analysed(HEALTHY), run=replace(analysed(HEALTHY).run, kernel=log))


@pytest.mark.parametrize(
    ("log", "gate", "expected"),
    [
        (KernelLog("read", events=(xid(31, "warning"),)), "xid.fatal:0", "passed"),
        (KernelLog("read", events=(xid(31, "warning"),)), "xid.any:0", "failed"),
        (KernelLog("read", events=(xid(79, "critical"),)), "xid.fatal:0", "failed"),
        (KernelLog("read", events=(xid(None, "critical", kind="gpu-lost"),)), "xid.fatal:0", "failed"),
        (KernelLog("read", events=(xid(79, "critical", t_s=-60.0),)), "xid.fatal:0", "passed"),  # before the run
        (KernelLog("restricted", xid_events="listening"), "xid.fatal:0", "passed"),
        (KernelLog("restricted", reason="only root may"), "xid.fatal:0", "not measured"),
        (KernelLog("restricted", events=(xid(79, "critical"),)), "xid.fatal:0", "failed"),
    ],
)
def test_no_xid_counts_as_none_only_where_somebody_listened(log, gate, expected):
    assert compare((), with_kernel(log), parse_gates([gate], ())).outcome == expected


def finding(rule, severity, cause=None, expected=False):
    return Finding(f"{rule}-1", rule, severity, 0, 0.0, 20.0, "", expected=expected, cause=cause)


def test_findings_are_counted_by_severity_without_the_expected():
    found = [finding("drop", "warning"), finding("gpu-lost", "critical"), finding("drop", "warning", expected=True)]
    run = with_findings(analysed(HEALTHY), *found)
    gates = parse_gates(["findings.critical:0", "findings.warning:2", "findings.warning:1"], ())
    assert [each.outcome for each in compare((), run, gates).gates] == ["failed", "passed", "failed"]


def test_new_findings_are_those_that_no_baseline_has():
    before = with_findings(analysed(HEALTHY), finding("drop", "warning", Cause("input-cpu", 0.9, "")))
    after = with_findings(analysed(HEALTHY), *before.findings, finding("drop", "warning", Cause("thermal", 0.9, "")))
    assert outcome(before, after, "findings.new:0") == "failed"
    assert outcome(after, before, "findings.new:0") == "passed"
    assert compare((), after, parse_gates(["findings.new:0"], ())).outcome == "not measured"


def test_coverage_is_wanted_high():
    run = replace(analysed(HEALTHY), coverage=0.9)
    assert compare((), run, parse_gates(["coverage:95%"], ())).outcome == "failed"
    assert compare((), run, parse_gates(["coverage:85%"], ())).outcome == "passed"


# --- nothing measured ------------------------------------------------------------------------------------------------


def test_what_cannot_be_compared_neither_passes_nor_fails():
    found = compare(
        [on_gpu(analysed(HEALTHY), "NVIDIA L4")], slower(analysed(HEALTHY), 2), default_gates(baseline=True)
    )
    assert {each.outcome for each in found.gates} == {"not measured"}
    assert found.outcome == "not measured"
    assert all("GPU model" in each.summary for each in found.gates)


def test_a_gate_that_was_asked_for_and_measured_nothing_does_not_pass():
    found = compare([analysed("yolo26m-detail")], analysed("yolo26m-detail"), parse_gates(["data_wait_share:+5pp"], ()))
    assert found.outcome == "not measured"
    both = parse_gates(["data_wait_share:+5pp", "epoch_time:+5%"], ())
    assert compare([analysed("yolo26m-detail")], analysed("yolo26m-detail"), both).outcome == "not measured"


def test_a_default_gate_that_cannot_be_measured_is_left_out():
    found = compare([analysed("yolo26m-detail")], analysed("yolo26m-detail"), default_gates(baseline=True))
    assert result(found, "data_wait_share:+5pp").outcome == "not measured"
    assert found.outcome == "passed"


def test_a_failure_decides_even_beside_a_gate_that_measured_nothing():
    gates = parse_gates(["data_wait_share:+5pp", "epoch_time:4s"], ())
    assert compare([analysed("yolo26m-detail")], analysed("yolo26m-detail"), gates).outcome == "failed"


def test_no_gates_decide_nothing():
    assert compare([analysed(HEALTHY)], analysed(HEALTHY), ()).outcome == "not measured"


def test_of_a_run_cut_short_what_failed_has_failed_and_the_rest_is_not_known():
    ending = Ending("failed", 10.0, failure="SIGKILL ended the command")
    cut = replace(with_findings(analysed(HEALTHY), finding("run-ended", "critical")), ending=ending)
    gates = parse_gates(["findings.critical:0", "util:40%"], ())
    found = compare((), cut, gates)
    assert [each.outcome for each in found.gates] == ["failed", "not measured"]
    assert found.outcome == "failed"
    assert compare((), cut, gates[1:]).outcome == "not measured"


# --- defaults ---------------------------------------------------------------------------------------------------


def texts(gates, level):
    return [gate.text for gate in gates if gate.level == level]


def test_a_level_for_which_nothing_is_named_keeps_its_defaults():
    found = chosen_gates((), ["images_per_s:-5%"], baseline=True)
    assert (texts(found, "fail"), texts(found, "warn")) == (list(COMPARE_FAILS_ON), ["images_per_s:-5%"])
    found = chosen_gates(["images_per_s:-5%"], (), baseline=False)
    assert texts(found, "fail") == ["images_per_s:-5%", "findings.critical:0", "xid.fatal:0"]
    assert texts(found, "warn") == list(CHECK_WARNS_ON)
    assert chosen_gates((), (), baseline=True) == default_gates(baseline=True)


@pytest.mark.parametrize(
    ("warning", "gone"),
    [
        ("epoch_time:+10%", {"epoch_time:+5%"}),
        ("epoch_time:+1s", {"epoch_time:+5%"}),
        ("epoch_time.p95:+10%", set()),  # of the longest epochs, and not of the usual one
        ("epoch_time:12s", set()),  # of the value, and not of its change
        ("xid.any:0", set()),
        ("xid:2", {"xid.fatal:0"}),
    ],
)
def test_a_default_failure_gives_way_to_a_warning_on_the_same_quantity(warning, gone):
    found = chosen_gates((), [warning], baseline=True)
    assert set(COMPARE_FAILS_ON) - set(texts(found, "fail")) == gone
    assert texts(found, "warn") == [warning]


def test_a_default_warning_gives_way_to_a_failure_on_the_same_quantity():
    found = chosen_gates(["util:50%"], (), baseline=False)
    assert texts(found, "fail") == ["util:50%", "findings.critical:0", "xid.fatal:0"]
    assert texts(found, "warn") == ["coverage:95%", "findings.warning:0"]


@pytest.mark.parametrize("baseline", [True, False])
@pytest.mark.parametrize(
    ("fails", "warns", "left"),
    [
        (["memory_peak:40GiB"], [], {"findings.critical:0", "xid.fatal:0"}),
        (["xid.fatal:2"], [], {"findings.critical:0"}),  # a limit of one's own on the same
        ([], ["xid.fatal:0"], {"findings.critical:0"}),
        (["memory_peak:40GiB"], ["findings.critical:0", "xid.fatal:0"], set()),
    ],
)
def test_crashes_fail_beside_whatever_else_is_named_unless_they_are_named(fails, warns, left, baseline):
    found = texts(chosen_gates(fails, warns, baseline=baseline), "fail")
    assert {"findings.critical:0", "xid.fatal:0"} & set(found) == left


def test_a_killed_job_fails_also_where_another_gate_is_named():
    gates = chosen_gates(["epoch_time:100s"], (), baseline=False)
    found = compare((), analysed("n-oom-killed"), gates)
    assert result(found, "epoch_time:100s").outcome == "not measured"
    assert (found.outcome, found.exit_code) == ("failed", 1)


@pytest.mark.parametrize("name", ["m-healthy", "s-healthy", "n-fed", "m-ddp", "n-xid", "yolo26n-cli"])
def test_a_run_passes_the_default_gates_against_itself(name):
    assert compare([analysed(name)], analysed(name), default_gates(baseline=True)).outcome == "passed"


@pytest.mark.parametrize(
    ("name", "expected"),
    [("m-healthy", "passed"), ("n-xid", "passed"), ("s-killed", "failed"), ("s-oom", "failed"), ("m-ddp", "passed")],
)
def test_the_default_gates_of_check(name, expected):
    assert compare((), analysed(name), default_gates(baseline=False)).outcome == expected


def test_a_stall_in_every_epoch_fails_on_epoch_time_and_data_wait():
    times = [epoch.train_s for epoch in analysed(HEALTHY).epochs[1:]]
    stalled = with_times(analysed(HEALTHY), [t + 1.5 for t in times], [1.5 + 0.01 * n for n in range(len(times))])
    found = compare([analysed(HEALTHY)], stalled, default_gates(baseline=True))
    failed = [each.gate.metric for each in found.gates if each.outcome == "failed" and each.gate.level == "fail"]
    assert failed == ["epoch_time", "data_wait_share"]


class TestARunWithoutEpochs:
    """An nvidia-smi log that was imported alone."""

    def gates(self, run, *texts):
        return compare((), analyse(run), parse_gates(texts, [])).gates

    def log(self, *parts):
        run = make_run(readings(*parts))
        return replace(run, recording=replace(run.recording, source="nvidia-smi"))

    def test_its_mean_utilisation_is_measured_outside_startup(self):
        passed, failed = self.gates(self.log((0, 30), (72, 100)), "util.mean:50%", "util:80%")
        assert (passed.outcome, passed.value) == ("passed", pytest.approx(72))
        assert (failed.outcome, failed.value) == ("failed", pytest.approx(72))

    @pytest.mark.parametrize("gate", ["epoch_time:50s", "util.p95:50%"])
    def test_what_needs_epochs_says_so_and_how_to_get_them(self, gate):
        (result,) = self.gates(self.log((72, 100)), gate)
        assert result.outcome == "not measured"
        assert result.why.endswith("it needs epochs, so import the log with --yolo RUN_DIR")

    def test_a_few_readings_measure_nothing(self):
        (result,) = self.gates(self.log((72, 3)), "util:50%")
        assert result.why == "steady-state GPU utilisation is not known: too little was recorded"
