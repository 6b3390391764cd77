"""When a GPU's utilisation has fallen, by its readings one after the other."""

import random
from itertools import pairwise

from gpu_report.record.py_spy import utilisation_fall as rule
from gpu_report.record.py_spy.utilisation_fall import DumpTimes, UtilisationFall


def falls(readings, step_s=1.0):
    """Return the seconds at which a fall was seen."""
    fall = UtilisationFall()
    return [at * step_s for at, util in enumerate(readings) if fall.take(at * step_s, util) is not None]


def dumps(readings, step_s=1.0):
    """Return the seconds at which a dump was due, and made."""
    times, found = DumpTimes(), []
    for at, util in enumerate(readings):
        if times.due_in(at * step_s, util) is not None:
            times.done(at * step_s)
            found.append(at * step_s)
    return found


def test_a_fall_is_seen_after_three_seconds():
    assert falls([90] * 20 + [2] * 8 + [90] * 9) == [23, 24, 25, 26, 27]


def test_where_there_was_no_level_nothing_falls():
    assert falls([90] * 3 + [2] * 30) == []
    assert falls([19] * 30 + [0] * 30) == []


def test_a_start_up_is_no_part_of_the_level():
    assert falls([0] * 300 + [90] * 12 + [2] * 8)[0] == 315
    assert falls([0, 40, 0, 0, 0] * 6 + [0] * 60 + [36] * 12 + [0] * 8)[0] == 105
    assert falls([30] * 20 + [16] * 15 + [2] * 5)[0] == 38  # where there is a level, little work is no start-up


def test_half_of_the_level_is_no_fall():
    assert falls([90] * 20 + [45] * 20) == []
    assert falls([90] * 20 + [44] * 5)


def test_gaps_between_epochs_and_a_starved_training_are_no_falls():
    assert falls(([90] * 20 + [0] * 2) * 20) == []
    assert falls(([97] * 7 + [3] * 3) * 40, step_s=0.2) == []


def test_a_drop_bears_stray_readings_and_ends_after_three_seconds_of_work():
    assert falls([90] * 20 + [2] * 5 + [90] * 2 + [2] * 3 + [90] * 9) == [23, 24, 27, 28, 29]
    assert falls([90] * 20 + [2] * 5 + [90] * 5 + [2] * 2) == [23, 24]


def test_readings_that_failed_say_nothing():
    assert falls([90] * 20 + [None] * 30) == []
    assert falls([90] * 20 + [2, None, 2, None, 2, None, 2]) == [24, 26]


def test_a_low_reading_is_none_however_long_it_stands_for():
    assert falls([90] * 20 + [2, 90] * 9, step_s=60) == []
    assert falls([90] * 20 + [2, 2, 90], step_s=60) == [21 * 60]


def test_a_new_state_is_a_level_of_its_own():
    low = [30] * 2000
    seen = falls([90] * 20 + low)
    assert max(seen) <= 20 + rule.SUSTAINED_S
    assert falls([90] * 20 + low + [1] * 5)[-1] > 2000


def test_dumps_are_made_at_growing_pauses_and_not_for_ever():
    assert dumps([90] * 20 + [2] * 10 + [90] * 9) == [23, 24, 26, 29]
    long = dumps([90] * 20 + [2] * 290)
    assert len(long) == rule.MOST_DUMPS
    pauses = [after - before for before, after in pairwise(long)]
    assert pauses == sorted(pauses)


def test_each_drop_has_dumps_of_its_own():
    one = [90] * 20 + [2] * 10
    assert len(dumps(one * 3)) == 3 * len(dumps(one))


def test_a_dump_that_could_not_be_made_stays_due():
    times = DumpTimes()
    due = [times.due_in(at, util) for at, util in enumerate([90] * 20 + [2] * 8)]
    assert due[23:] == [3, 4, 5, 6, 7]


def test_any_readings_make_few_dumps():
    for seed in range(50):
        chance = random.Random(seed)
        readings = [chance.choice([0, 1, 30, 60, 97, None]) for _ in range(3600)]
        assert len(dumps(readings)) <= 3600 / 10
