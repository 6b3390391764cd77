"""Drops of a log without a run folder that come round as validations do."""

import dataclasses

import pytest
from support.runs import make_run, readings

from gpu_report.analyse import analyse


def drops(low_pct, lengths, rows=()):
    """Return the drops of a training that fell to `low_pct` for 60 s after each of so many seconds."""
    parts = [part for length_s in lengths for part in ((92, length_s), (low_pct, 60))]
    run = make_run(readings((0, 20), *parts, (92, 300)), rows=rows)
    return [f for f in analyse(run).findings if f.rule == "drop" and not f.expected]


def test_what_comes_round_and_works_may_be_validation_and_is_no_warning():
    assert drops(30, [600, 604, 598, 601, 599]) == []


@pytest.mark.parametrize(
    ("low_pct", "lengths"), [(1, [600] * 5), (30, [600, 200, 900, 350, 1200])], ids=["an idle GPU", "at any time"]
)
def test_what_is_idle_or_comes_at_any_time_is_a_warning(low_pct, lengths):
    (found,) = drops(low_pct, lengths)
    assert (found.severity != "info", len(found.occurrences)) == (True, 5)


@pytest.mark.parametrize(("stall_pct", "stall_s"), [(1, 150), (30, 150), (1, 40)])
def test_one_stall_takes_nothing_from_what_comes_round(stall_pct, stall_s):
    """It holds up the epoch that it falls into: all later validations come that much later."""
    validated = [part for _ in range(7) for part in ((92, 600), (30, 60))]
    util = readings(
        (0, 20), *validated[:6], (92, 250), (stall_pct, stall_s), (92, 350), (30, 60), *validated[8:], (92, 300)
    )
    found = [f for f in analyse(make_run(util)).findings if f.rule == "drop" and not f.expected]
    assert [(f.severity, round(f.duration_s)) for f in found] == [("warning", stall_s)]


def test_the_ledger_has_what_comes_round_as_validation():
    parts = [part for _ in range(6) for part in ((92, 600), (30, 60))]
    rows = {row.name: row.gpu_seconds for row in analyse(make_run(readings((0, 20), *parts, (92, 300)))).ledger}
    assert rows["validation"] == pytest.approx(6 * 60, abs=6)
    assert "unexplained" not in rows


@pytest.mark.parametrize(
    ("low_pct", "seconds", "trained_s", "warned"),
    [(30, 14, 300, 0), (1, 14, 300, 1), (30, 60, 300, 1), (30, 60, 15_000, 0), (1, 60, 15_000, 1)],
)
def test_a_final_evaluation_is_no_drop(low_pct, seconds, trained_s, warned):
    """It works, is short, and the process leaves the GPU after it: as at the end of each training."""
    util = readings((0, 20), (92, trained_s), (low_pct, seconds), (0, 60))
    run = make_run(util, quantities={"memory_used_mib": [9000.0] * (20 + trained_s + seconds) + [8.0] * 60})
    found = [f for f in analyse(run).findings if f.rule == "drop" and not f.expected]
    assert len(found) == warned


STRADDLING = [8, 9, 11, 9, 10, 8, 10, 9, 11, 9, 8, 10]  # s; a drop takes 10


@pytest.mark.parametrize("count", [5, 12])
def test_what_comes_round_and_is_a_drop_only_at_times_is_no_warning(count):
    parts = [part for seconds in STRADDLING[:count] for part in ((92, 120), (25, seconds))]
    found = [f for f in analyse(make_run(readings((0, 20), *parts, (92, 120)))).findings if f.rule == "drop"]
    assert len(found) == sum(seconds >= 10 for seconds in STRADDLING[:count])
    assert all(each.expected for each in found)


@pytest.mark.parametrize(("stall_pct", "stall_s"), [(1, 15), (25, 25)])
def test_a_stall_beside_what_comes_round_and_is_mostly_too_short_is_a_warning(stall_pct, stall_s):
    parts = [part for seconds in STRADDLING for part in ((92, 120), (25, seconds))]
    stalled = [*parts[:12], (92, 50), (stall_pct, stall_s), (92, 70), *parts[13:]]
    found = [f for f in analyse(make_run(readings((0, 20), *stalled, (92, 120)))).findings if f.rule == "drop"]
    assert [round(each.duration_s) for each in found if not each.expected] == [stall_s]


def _log(parts, hole=None, interval_s=10.0):
    """Return a log with a reading each ten seconds, without those in a hole (s)."""
    util = [pct for pct, seconds in parts for _ in range(round(seconds / interval_s))]
    run = make_run(util, interval_s)
    first, end = hole or (0.0, 0.0)
    kept = run.samples[(run.samples["t_s"] < first) | (run.samples["t_s"] >= end)]
    return dataclasses.replace(run, samples=kept.reset_index(drop=True))


@pytest.mark.parametrize("stall_s", [0, 250])
def test_validations_of_which_only_some_are_drops_come_round_all_the_same(stall_s):
    """They work at half of the level, so that some stay over its line, and the log has a hole in which one lay."""
    parts = [(0, 20)]
    for low_pct in (30, 65, 65, 30, 30, 65, 65, 30):
        parts += [(98, 600), (low_pct, 80)]
    parts = [*parts[:9], (98, 300), (0, stall_s), (98, 300), *parts[10:], (98, 600)]
    found = [f for f in analyse(_log(parts, hole=(1900, 2300))).findings if f.rule == "drop" and not f.expected]
    assert [round(each.duration_s) for each in found] == [stall_s] * bool(stall_s)


def test_drops_at_any_time_of_which_others_dip_are_none_that_come_round():
    parts = [(0, 20)]
    for low_pct, seconds in zip(
        (30, 65, 65, 30, 30, 65, 65, 30), (600, 230, 900, 420, 1300, 300, 750, 510), strict=True
    ):
        parts += [(98, seconds), (low_pct, 80)]
    assert [f for f in analyse(_log([*parts, (98, 600)])).findings if f.rule == "drop" and not f.expected]


@pytest.mark.parametrize(("low_pct", "warned"), [(30, False), (0, True)])
def test_a_log_that_ends_with_a_validation_and_the_final_one_has_no_drop_there(low_pct, warned):
    parts = [(0, 20), *[part for _ in range(5) for part in ((98, 600), (30, 80))], (98, 600), (low_pct, 160)]
    found = [f for f in analyse(_log(parts)).findings if f.rule == "drop" and not f.expected]
    assert bool(found) == warned


@pytest.mark.parametrize(("then", "seconds", "warned"), [(60, 200, False), (98, 200, True), (60, 3000, True)])
def test_a_drop_near_the_end_after_which_no_training_comes_is_part_of_the_evaluation(then, seconds, warned):
    parts = [(0, 20), (98, 7000), (39, 100), (then, seconds)]
    found = [f for f in analyse(_log(parts)).findings if f.rule == "drop" and not f.expected]
    assert bool(found) == warned


@pytest.mark.parametrize(("seconds", "warned"), [(40, False), (200, True)])
def test_what_ends_a_log_is_no_evaluation_where_it_takes_far_longer_than_the_validations_that_were_seen(
    seconds, warned
):
    validated = [part for _ in range(9) for part in ((98, 600), (30, 80))]
    parts = [(0, 20), *validated, (98, 350), (39, 170), (60, seconds)]
    found = [f for f in analyse(_log(parts)).findings if f.rule == "drop" and not f.expected]
    assert bool(found) == warned


@pytest.mark.parametrize(("seconds", "warned"), [(900, False), (2400, True)])
def test_a_tenth_of_a_long_log_is_no_evaluation(seconds, warned):
    run = make_run(readings((0, 20), (98, 36_000), (39, 600), (60, seconds), interval_s=5.0), interval_s=5.0)
    found = [f for f in analyse(run).findings if f.rule in {"drop", "sustained-low"} and not f.expected]
    assert bool(found) == warned


def test_of_a_log_that_ends_in_it_nobody_says_that_the_process_left_the_gpu():
    """A fall at the very end may be one as well: what speaks for an evaluation is said, and no more."""
    run = make_run(readings((0, 20), (98, 3000), (39, 100)))
    (found,) = (f for f in analyse(run).findings if f.rule == "drop")
    assert (found.expected, found.cause.name) == (True, "validation")
    assert found.cause.explanation.startswith("no training came after it")
