import math

import pytest

from gpu_report.model import KernelEvent
from gpu_report.render import formatting


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (12.04, "12 s"),
        (14.66, "14.7 s"),
        (60, "1 min"),
        (598.4, "9 min 58 s"),
        (3600, "1 h"),
        (7500, "2 h 5 min"),
        (4199.6, "1 h 10 min"),
        (90_061, "25 h 1 min"),
        (360_060, "4 d 4 h"),
        (432_001, "5 d"),
        (None, "n/a"),
        (math.nan, "n/a"),
    ],
)
def test_a_duration_reads_in_its_two_largest_units(seconds: float | None, text: str) -> None:
    assert formatting.duration(seconds).replace("\u00a0", " ") == text


@pytest.mark.parametrize(
    "format_value", [formatting.number, formatting.gibibytes, formatting.share, formatting.energy, formatting.duration]
)
def test_what_is_missing_reads_not_available_and_never_zero(format_value) -> None:
    assert [format_value(value) for value in (None, math.nan, math.inf)] == ["n/a"] * 3


@pytest.mark.parametrize(("fraction", "text"), [(0, "0 %"), (0.001, "< 1 %"), (0.5, "50 %"), (1, "100 %")])
def test_a_small_share_is_not_called_nothing(fraction: float, text: str) -> None:
    assert formatting.share(fraction).replace("\u00a0", " ") == text


@pytest.mark.parametrize(("joules", "text"), [(3600, "1.0 Wh"), (7.2e6, "2.00 kWh")])
def test_an_energy_reads_in_watt_hours(joules: float, text: str) -> None:
    assert formatting.energy(joules).replace("\u00a0", " ") == text


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00:00"), (3723, "1:02:03"), (-61, "-0:01:01"), (-0.2, "0:00:00")])
def test_time_since_the_start_reads_as_a_clock(seconds: float, text: str) -> None:
    assert formatting.elapsed(seconds) == text


def test_a_wall_time_that_no_calendar_has_is_not_available() -> None:
    assert formatting.utc(1_795_223_424.3) == "2026-11-21 01:10:24 UTC"
    assert formatting.utc(1e18) == "n/a"


def test_text_is_freed_of_what_no_file_or_page_can_hold() -> None:
    assert formatting.clean("a\ud800b\x00c\x1b[31m\td\ne") == "a\ufffdb\ufffdc\ufffd[31m\td\ne"


def test_a_number_stays_with_its_unit() -> None:
    assert (
        formatting.with_amounts_unbroken("51 s of 10 min, 71 % in 3 drops")
        == "51\u00a0s of 10\u00a0min, 71\u00a0% in 3\u00a0drops"
    )


@pytest.mark.parametrize(("text", "said"), [("no batch was ready", "No batch was ready."), ("Why?", "Why?"), ("", "")])
def test_a_sentence_has_a_capital_and_a_full_stop(text: str, said: str) -> None:
    assert formatting.sentence(text) == said


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Übung\t训练\n👩🏽‍🔬 שלום", "Übung\t训练\n👩🏽‍🔬 שלום"),
        ("\x1b[31m\x00", "\ufffd[31m\ufffd"),
        ("\u202eexe.gpj\u2066", "\ufffdexe.gpj\ufffd"),
        ("\ud800", "\ufffd"),
        ("e" + "\u0301" * 50, "e" + "\u0301" * 4),
        ("a" * (formatting.LONGEST_TEXT + 1_500), "a" * formatting.LONGEST_TEXT + "\u2026 (1,500 more characters)"),
    ],
)
def test_text_is_shown_without_what_harms_a_page(text: str, shown: str) -> None:
    assert formatting.clean(text) == shown


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (
            "It was busy 1.5 % of 2 min. 2 drops took 3 s. All.",
            ("It was busy 1.5 % of 2 min.", "2 drops took 3 s. All."),
        ),
        ("No GPU worked.", ("No GPU worked.", "")),
        ("", ("", "")),
    ],
)
def test_the_first_sentence_is_told_from_the_rest(text, parts):
    assert formatting.first_sentence(text) == parts


def test_a_message_that_came_again_and_again_is_counted_as_often():
    once, often = (KernelEvent(1.0, "other", "info", "x", "y", count=count) for count in (1, 52))
    assert formatting.kernel_log_counts([once]) == "1 event"
    assert formatting.kernel_log_counts([once, often]) == "2 events of 53 messages"
