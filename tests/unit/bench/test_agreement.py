"""Whether two variants find the same boxes."""

import pytest
from support.bench import BOX

from gpu_report.bench.agreement import SAME_IOU, agreement


def moved(box, x=0.0, score=0.0, kind=0.0):
    return [box[0] + x, box[1], box[2] + x, box[3], box[4] + score, box[5] + kind]


def test_boxes_that_moved_by_less_than_a_pixel_are_the_same():
    found = agreement([[BOX]], [[moved(BOX, 0.5, -0.002)]])
    assert (found.share, found.boxes, found.images) == (1.0, 2, 1)
    assert found.score_difference == pytest.approx(0.002)


@pytest.mark.parametrize("other", [moved(BOX, 10), moved(BOX, kind=1)])
def test_another_place_or_class_is_another_box(other):
    found = agreement([[BOX]], [[other]])
    assert (found.share, found.score_difference) == (0.0, None)


@pytest.mark.parametrize("place", [0, 4])
def test_a_box_that_is_no_number_matches_nothing(place):
    broken = [*BOX[:place], float("nan"), *BOX[place + 1 :]]
    found = agreement([[BOX, moved(BOX, 100)]], [[broken, moved(BOX, 100)]])
    assert (found.share, found.score_difference) == (0.5, 0.0)


def test_each_box_is_matched_once_the_best_pair_first():
    near, nearer = moved(BOX, 1.0), moved(BOX, 0.2)
    found = agreement([[BOX]], [[near, nearer]])
    assert found.share == pytest.approx(2 / 3)
    assert SAME_IOU < 1


def test_a_box_too_many_and_one_too_few_count_alike():
    far = moved(BOX, 100)
    assert agreement([[BOX, far]], [[BOX]]).share == agreement([[BOX]], [[BOX, far]]).share == pytest.approx(2 / 3)


def test_without_boxes_nobody_knows():
    assert agreement([[], []], [[], []]).share is None
    assert agreement([[BOX]], [[]]).share == 0.0


def test_boxes_without_an_area_match_nothing():
    point = [5.0, 5.0, 5.0, 5.0, 0.5, 1.0]
    assert agreement([[point]], [[point]]).share == 0.0
