"""Numbers added up by what they are of."""

from gpu_report.analyse.timeseries.sums import sums_by_key


def test_numbers_are_added_up_by_key_and_stay_in_order():
    assert list(sums_by_key([("b", 1.0), ("a", 2.0), ("b", 3.0)]).items()) == [("b", 4.0), ("a", 2.0)]
    assert sums_by_key([]) == {}
