"""What numbers stand for, each thing once."""

import numpy as np

from gpu_report.analyse.timeseries.distinct import distinct


def test_things_come_in_order_of_the_numbers_and_each_number_has_the_place_of_its_thing():
    things, place_of = distinct(np.array([7, 2, 5, 2], dtype=np.int32), lambda number: "odd" if number % 2 else "even")
    assert things == ["even", "odd"]
    assert place_of[:].tolist() == [1, 0, 1, 0]
    assert place_of[np.array([2, 3])].tolist() == [1, 0]


def test_no_numbers_stand_for_nothing():
    things, place_of = distinct(np.array([], dtype=np.int32), str)
    assert things == []
    assert place_of[:].tolist() == []
