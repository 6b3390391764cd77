from dataclasses import replace

from gpu_report.analyse.evidence import compared_with, usually
from gpu_report.catalogue import GROWN_FROM_KEY, GROWN_TO_KEY
from gpu_report.model import Evidence, Finding, Occurrence
from gpu_report.render.page.sections.evidence import evidence


def shown(*numbers: tuple[str, float | None, str] | Evidence) -> list[tuple[str, str, str]]:
    evidence_of_it = tuple(each if isinstance(each, Evidence) else Evidence(*each) for each in numbers)
    finding = Finding("drop-1", "drop", "warning", 0, 10.0, 25.0, "fell", evidence=evidence_of_it)
    return [tuple(part.replace("\u00a0", " ") for part in (f.label, f.value, f.note)) for f in evidence(finding)]


def test_what_is_usual_stands_beside_what_it_is_usual_for():
    assert shown(
        ("its memory", 762.0, "MiB"),
        ("training speed meanwhile", 156.27, "images/s"),
        usually(362.5, "images/s"),
        ("CPU of all workers", 0.07, "% of a core"),
    ) == [
        ("Its memory", "762 MiB", ""),
        ("Training speed meanwhile", "156 images/s", "typical 362 images/s"),
        ("CPU of all workers", "0.1 % of a core", ""),
    ]


def test_what_was_usual_first_stands_second():
    assert shown(
        ("training took", 19.58, "s"),
        Evidence("typical (median of the other epochs)", 7.8, "s", reference="typical"),
        Evidence("SM clock usually", 1980.0, "MHz", "SM clock", "typical of next"),
        Evidence("SM clock then", 1725.0, "MHz", "SM clock"),
        Evidence("CPU of others usually", 0.35, "% of all cores", "CPU of others", "typical of next"),
    ) == [
        ("Training took", "19.6 s", "typical 7.8 s"),
        ("SM clock", "1,725 MHz", "typical 1,980 MHz"),
        ("CPU of others usually", "0.3 % of all cores", ""),
    ]


def test_what_a_function_took_at_first_and_in_the_end_is_one_line_in_one_unit():
    first = Evidence("in the function, a batch at first", 0.0344, "s", key=GROWN_FROM_KEY)
    last = Evidence("in the function, a batch in the end", 0.28, "s", key=GROWN_TO_KEY)
    assert shown(first, last) == [("In that function, per batch", "34 ms \u2192 280 ms", "")]


def test_the_same_in_two_units_is_one_line_with_its_limit_and_a_step_says_when_it_was():
    assert shown(
        ("memory in use just before", 98.41, "%"),
        ("memory in use just before", 137.58, "GiB"),
        compared_with("capacity", 139.8, "GiB"),
        ("its last step", 7.0, "GiB"),
        compared_with("before the end", 3.667, "s"),
    ) == [
        ("Memory in use just before", "98.4 %, 138 GiB", "of 140 GiB"),
        ("Its last step", "7 GiB", "3.7 s before the end"),
    ]


def test_a_comparison_with_nothing_before_it_stands_by_itself_and_a_missing_number_is_left_open():
    assert shown(usually(5.0, "W"), ("seen beside it", None, "")) == [
        ("Typical", "5 W", ""),
        ("Seen beside it", "", ""),
    ]


def test_of_falls_that_are_one_finding_no_single_one_contradicts_their_sums():
    times = (Occurrence(10.0, 430.0, (0,), 270.0), Occurrence(3610.0, 4025.0, (0,), 260.0))
    numbers = (
        Evidence("length (median)", 417.5, "s"),
        Evidence("length", 420.0, "s"),
        Evidence("GPU time lost, compared with before", 270.0, "s"),
        Evidence("GPU time lost in all, compared with before", 530.0, "s"),
    )
    finding = Finding("slowdown-1", "slowdown", "warning", 0, 10.0, 4025.0, "fell", evidence=numbers)
    several = replace(finding, occurrences=times, lost_gpu_s=530.0)
    assert [fact.label for fact in evidence(several)] == ["Length (median)"]
    assert len(evidence(finding)) == 4
