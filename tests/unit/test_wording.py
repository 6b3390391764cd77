"""Amounts and changes as a person reads them."""

import pytest

from gpu_report.model import CodeLocation
from gpu_report.render.formatting import duration
from gpu_report.wording import (
    about_length,
    amount,
    between,
    brief_seconds,
    change,
    counted,
    every_words,
    interval,
    length,
    money_words,
    place_words,
    share_change,
    speed_change,
)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (2.894, "s", "2.89 s"),
        (12.198, "s", "12.2 s"),
        (125.0, "s", "2 min 5 s"),
        (7500.0, "s", "2 h 5 min"),
        (0.0, "s", "0 s"),
        (0.0178, "s", "18 ms"),  # not 0.02 s, as its neighbour
        (0.0216, "s", "22 ms"),
        (0.0041, "s", "4.1 ms"),
        (0.0998, "s", "0.10 s"),
        (512.0, "MiB", "512 MiB"),
        (43801.0, "MiB", "42.8 GiB"),
        (8.0, "J", "0.0022 Wh"),
        (812.0, "J", "0.23 Wh"),
        (2292.8, "J", "0.64 Wh"),
        (43_200.0, "J", "12 Wh"),
        (4_320_000.0, "J", "1.20 kWh"),
        (77.4, "%", "77 %"),
        (0.33, "%", "0.3 %"),
        (9.96, "%", "10 %"),
        (1384.1, "images/s", "1,384 images/s"),
        (3.0, "", "3"),
        (None, "s", "n/a"),
        (float("nan"), "%", "n/a"),
    ],
)
def test_an_amount_has_the_unit_that_suits_it(value, unit, text):
    assert amount(value, unit) == text


def test_changes_have_signs_and_percentages_change_by_points():
    assert change(-9.0, "%") == "\u22129.0 pp"
    assert change(0.5, "s") == "+0.50 s"
    assert change(-0.01, "%") == "0.0 pp"
    assert change(None, "s") == "n/a"
    assert share_change(-0.1) == "\u221210 %"
    assert share_change(0.0991) == "+9.9 %"
    assert share_change(0.00001) == "0.0 %"
    assert share_change(None) == "n/a"
    assert interval((-0.05, 0.123)) == "\u22125.0 to +12 %"
    assert interval(None) == ""


def test_the_ends_of_a_range_have_one_unit_and_are_one_where_they_read_the_same():
    assert between((5.88, 6.342), "s") == "5.88 to 6.34 s"
    assert between((0.05, 6.342), "s") == "50 ms to 6.34 s"
    assert between((23244.0, 23250.0), "MiB") == "22.7 GiB"
    assert between((632.0, 681.0), "images/s") == "632 to 681 images/s"


def test_one_is_one():
    assert [counted(n, "epoch") for n in (0, 1, 2)] == ["0 epochs", "1 epoch", "2 epochs"]
    assert counted(2, "training that went on", "trainings that went on") == "2 trainings that went on"


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (3.22, "4.2\u00d7 slower"),
        (-0.763, "4.2\u00d7 faster"),
        (0.5, "1.5\u00d7 slower"),
        (0.075, "7.5 % slower"),
        (-0.3, "30 % faster"),
        (-0.34, "1.5\u00d7 faster"),
        (11.0, "12\u00d7 slower"),
        (0.0001, "0.0 %"),
        (-1.0, "\u2212100 %"),  # it took no time at all
    ],
)
def test_a_change_of_speed_is_said_as_how_many_times_where_it_is_large(share, text):
    assert speed_change(share) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(2.894, "2.9 s"), (12.2, "12.2 s"), (0.018, "18 ms"), (125.0, "2 min 5 s"), (None, "n/a")]
)
def test_a_time_in_a_sentence_is_brief(seconds, text):
    assert brief_seconds(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-0.01, "0 s"),
        (0.4, "0.4 s"),
        (1.44, "1.4 s"),
        (3.0, "3 s"),
        (9.96, "10 s"),
        (44.4, "44 s"),
        (89.4, "89 s"),
        (90.0, "1 min 30 s"),
        (270.0, "4 min 30 s"),
        (299.0, "5 min"),
        (1202.0, "20 min"),
        (3594.0, "1 h"),
        (11_400.0, "3 h 10 min"),
        (86_400.0 * 2.2, "2 d 5 h"),
    ],
)
def test_a_length_has_the_digits_that_matter(seconds, words):
    assert about_length(seconds) == words


def test_money_has_cents_while_they_matter():
    assert [money_words(amount) for amount in (0.0, 0.001, 0.4, 12.345, 1234.5)] == [
        "0.00",
        "< 0.01",
        "0.40",
        "12.35",
        "1,234",
    ]


def test_a_place_in_code_cannot_end_its_own_marks():
    at = CodeLocation("main", "log`images", r"C:\a\call`backs.py", 41, 0.9)
    assert place_words(at) == "`log'images` (call'backs.py:41)"


def test_two_ways_to_say_hours_say_the_same_minute():
    for seconds in (7199.0, 7200.0, 12_989.0, 12_991.0):
        assert length(seconds) == about_length(seconds)


@pytest.mark.parametrize("seconds", [0.0, 0.04, 0.7, 1.44, 3.0, 9.94])
def test_a_few_seconds_read_the_same_in_a_sentence_and_in_a_table(seconds):
    said = duration(seconds).replace("\u00a0", " ")
    assert length(seconds) == about_length(seconds) == said


def test_a_length_has_no_part_that_is_nothing():
    assert [length(seconds) for seconds in (0.0, 60.0, 125.0, 420.4, 14_400.0)] == [
        "0 s",
        "1 min",
        "2 min 5 s",
        "7 min",
        "4 h",
    ]
    assert [amount(seconds, "s") for seconds in (420.4, 14_400.0)] == ["7 min", "4 h"]


def test_what_comes_again_says_after_how_many_epochs():
    assert (every_words(5), every_words(None)) == (" every 5 epochs", "")
