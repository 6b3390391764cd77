import itertools
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.plain_drops import find_drops_plainly
from support.runs import make_run, readings

from gpu_report.analyse import analyse
from gpu_report.analyse.signals.gpu.utilisation_drops import find_drops, find_low_intervals
from gpu_report.analyse.signals.thresholds import SUSTAINED_AFTER_S
from gpu_report.analyse.timeseries.gpu_series import gpu_series
from gpu_report.model import Options

NAN = float("nan")


def drops(*parts, interval_s=1.0, **options):
    """Return (start, end) of the drops of a GPU that worked from its first reading on."""
    (series,) = gpu_series(make_run(readings(*parts, interval_s=interval_s), interval_s))
    found = find_drops(series, *[np.ones(len(series.t_s), dtype=bool)] * 2, Options(**options))
    return [(drop.start_t_s, drop.end_t_s) for drop in found]


def test_a_drop_of_12_s_is_found_at_its_second_and_one_of_8_s_is_not():
    assert drops((90, 60), (5, 12), (90, 30), (5, 8), (90, 30)) == [(60, 72)]


@pytest.mark.parametrize("interval_s", [0.1, 0.5, 1.0, 2.0])
def test_the_sampling_interval_does_not_matter(interval_s):
    ((start, end),) = drops((90, 60), (5, 12), (90, 30), interval_s=interval_s)
    assert (start, end) == (pytest.approx(60, abs=interval_s), pytest.approx(72, abs=interval_s))


def test_a_drop_to_just_over_half_of_the_level_is_none():
    assert drops((80, 60), (41, 20), (80, 30)) == []
    assert drops((80, 60), (39, 20), (80, 30)) == [(60, 80)]


def test_drop_percent_moves_the_line():
    assert drops((80, 60), (30, 20), (80, 30), drop_percent=70) == []  # 80 to 30 is a fall by 62 %
    assert drops((80, 60), (30, 20), (80, 30), drop_percent=60) == [(60, 80)]


def test_drop_seconds_moves_the_length():
    assert drops((90, 60), (5, 8), (90, 30), drop_seconds=5) == [(60, 68)]


def test_strays_of_up_to_3_s_do_not_end_a_drop_and_trailing_ones_do_not_lengthen_it():
    assert drops((90, 60), (0, 6), (95, 2), (0, 6), (90, 30)) == [(60, 74)]
    assert drops((90, 60), (0, 6), (95, 3), (0, 6), (90, 30)) == []


def test_mostly_busy_time_is_no_drop_however_often_it_dips():
    assert drops((90, 60), *([(90, 2), (10, 1)] * 20), (90, 30)) == []


def test_no_drop_is_judged_against_a_level_under_20_percent():
    assert drops((19, 120), (0, 30), (19, 30)) == []


def test_no_drop_is_judged_against_fewer_than_10_s():
    assert drops((90, 8), (0, 9), (90, 60)) == []


def test_a_drop_that_begins_before_the_level_is_known_reaches_back_to_its_start():
    assert drops((80, 6), (0, 20), (80, 40)) == [(6, 26)]


def test_first_batches_that_were_ready_are_no_level_before_all_that_follows():
    waiting = [part for _ in range(12) for part in ((40, 1), (0, 2))]
    assert drops((90, 3), *waiting) == []
    assert drops((90, 7), *waiting) == [(7, 43)]


def test_after_5_minutes_a_drop_is_sustained_and_the_level_starts_anew():
    (series,) = gpu_series(make_run(readings((90, 60), (30, 400), (90, 60))))
    found = find_drops(series, *[np.ones(len(series.t_s), dtype=bool)] * 2, Options())
    assert [(d.start_t_s, d.end_t_s, d.sustained) for d in found] == [(60, 460, True)]


def test_the_level_does_not_sink_with_the_drops_before_it():
    assert drops((90, 60), (5, 40), (90, 12), (40, 30), (90, 20)) == [(60, 100), (112, 142)]


def test_a_gap_in_the_readings_is_no_drop():
    assert drops((90, 60), (NAN, 60), (90, 30)) == []
    assert drops((90, 60), (5, 6), (NAN, 60), (5, 6), (90, 30)) == []


def test_readings_outside_the_usable_time_neither_drop_nor_count():
    (series,) = gpu_series(make_run(readings((0, 100), (90, 60), (0, 20), (90, 20))))
    usable = series.t_s >= 100
    assert [(d.start_t_s, d.level_pct) for d in find_drops(series, usable, usable, Options())] == [(160, 90)]


def test_low_intervals_are_under_20_percent_for_10_s_with_strays():
    (series,) = gpu_series(make_run(readings((90, 30), (10, 6), (50, 2), (10, 6), (90, 30), (10, 9), (90, 10))))
    found = find_low_intervals(series, np.ones(len(series.t_s), dtype=bool))
    assert [(i.start_t_s, i.end_t_s) for i in found] == [(30, 44)]
    assert found[0].mean_pct == pytest.approx((12 * 10 + 2 * 50) / 14)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from([0, 5, 30, 60, 90, 100, NAN]), st.integers(1, 90)), max_size=12))
def test_drops_overlap_in_a_new_state_only_and_always_keep_the_definition(parts):
    values = readings((90, 5), *parts)
    (series,) = gpu_series(make_run(values))
    found = find_drops(series, *[np.ones(len(series.t_s), dtype=bool)] * 2, Options())
    for drop in found:
        assert drop.duration_s >= 9.5
        assert drop.level_pct >= 20
        assert drop.mean_pct < drop.level_pct / 2
        assert series.util_pct[series.t_s == drop.start_t_s] < drop.level_pct / 2
    for one, other in itertools.pairwise(found):  # within a sustained one there may be another, from its new level
        is_new_state = one.sustained and other.start_t_s >= one.start_t_s + SUSTAINED_AFTER_S
        assert is_new_state or one.end_t_s <= other.start_t_s


def test_shifting_the_clock_changes_nothing():
    parts = readings((0, 20), (90, 60), (5, 12), (90, 30))
    run = make_run(parts)
    later = type(run)(**{**vars(run), "start_wall_s": run.start_wall_s + 3600})
    assert analyse(run).findings == analyse(later).findings


def test_two_days_of_starved_readings_are_searched_in_seconds():
    rng = np.random.default_rng(1)
    values = np.where(rng.random(172_800) < 0.1, 80, rng.integers(0, 40, 172_800))
    (series,) = gpu_series(make_run(values.tolist()))
    before = time.process_time()
    find_drops(series, *[np.ones(len(series.t_s), dtype=bool)] * 2, Options())
    assert time.process_time() - before < 7  # 1.2 s on an idle core; a quadratic search takes minutes


def test_a_new_low_within_a_sustained_one_is_judged_against_the_new_level():
    assert drops((90, 60), (40, 900), (0, 400), (40, 500), (90, 60)) == [(60, 1860), (960, 1360)]


def test_a_single_stray_reading_does_not_split_a_drop_however_far_apart_readings_are():
    assert drops((90, 120), (0, 15), (95, 5), (0, 15), (90, 60), interval_s=5.0) == [(120, 155)]
    assert drops((90, 120), (0, 10), (90, 60), interval_s=5.0) == []  # two readings are no evidence


def test_low_runs_hidden_among_strays_are_found_on_their_own():
    mixed = [part for _ in range(30) for part in ((90, 2), (0, 1))]
    assert drops((90, 60), *mixed, (0, 15), *mixed, (90, 30)) != []
    (series,) = gpu_series(make_run(readings(*mixed, (0, 15), *mixed)))
    found = find_low_intervals(series, np.ones(len(series.t_s), dtype=bool))
    assert [(i.start_t_s, i.end_t_s) for i in found] == [(89, 105)]


def seconds_of(rng, kind, count):
    """Return made-up readings: plateaus, jitter, noise around 40 %, a slow swing, or bursts."""
    if kind == "plateaus":
        return np.repeat(rng.choice([0, 5, 30, 49, 60, 90, 100, NAN], count), rng.integers(1, 40, count))[:count]
    if kind == "jitter":
        return rng.choice([0, 5, 30, 45, 60, 90, 100, NAN], count, p=[0.1, 0.1, 0.1, 0.1, 0.1, 0.3, 0.15, 0.05])
    if kind == "noise":
        values = np.clip(rng.normal(40, 30, count), 0, 100).round()
        return np.where(np.arange(count) % 400 < 25, np.minimum(values, 15), values)
    if kind == "swing":
        return np.clip(np.cumsum(rng.normal(0, 6, count)) % 200 - 50, 0, 100).round()
    return np.where(rng.random(count) < 0.2, 80, rng.integers(0, 60, count)).astype(float)


@pytest.mark.parametrize(("stray_s", "start_s"), [(0.4, 16.0), (2.8, 16.0), (3.2, None)])
def test_a_drop_before_there_is_a_level_begins_across_stray_readings(stray_s, start_s):
    """After 6 s of work it falls; a level is known 10 s into the work only, right behind the stray readings."""
    util = readings((0, 10), (80, 6), (5, 3.6 - stray_s / 2), (60, stray_s), (5, 16), (80, 30), interval_s=0.2)
    (series,) = gpu_series(make_run(util, 0.2))
    (drop,) = find_drops(series, *[series.t_s >= 10.0] * 2, Options())
    after_s = 19.6 + stray_s / 2
    assert (drop.start_t_s, drop.level_pct) == (pytest.approx(after_s if start_s is None else start_s), 80.0)


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    kind=st.sampled_from(["plateaus", "jitter", "noise", "swing", "bursts"]),
    count=st.integers(50, 1500),
    interval_s=st.sampled_from([0.1, 0.2, 1.0, 5.0]),
    drop_percent=st.sampled_from([30.0, 50.0, 80.0]),
    drop_seconds=st.sampled_from([5.0, 10.0]),
)
def test_the_search_finds_what_reading_by_reading_is_found(seed, kind, count, interval_s, drop_percent, drop_seconds):
    rng = np.random.default_rng(seed)
    (series,) = gpu_series(make_run([90, 90, *seconds_of(rng, kind, count)], interval_s))
    usable = np.ones(len(series.t_s), dtype=bool)
    for start in rng.integers(0, len(usable), rng.integers(0, 3)):
        usable[start : start + rng.integers(1, 100)] = False
    options = Options(drop_percent=drop_percent, drop_seconds=drop_seconds)
    assert find_drops(series, usable, usable, options) == find_drops_plainly(series, usable, options)
