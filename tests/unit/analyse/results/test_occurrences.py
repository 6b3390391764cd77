"""One event is one finding, what recurs is one, and how bad it is goes by what all of it took."""

import pytest
from support.runs import make_run, readings

from gpu_report.analyse import analyse

BUSY, LOW = 92.0, 2.0


def run_with(stalls, duration_s=1200.0, interval_s=1.0):
    """Return a training of so many seconds, after 10 s of startup, with stalls at (start, seconds)."""
    parts, at = [], 0.0
    for start, seconds in stalls:
        parts += [(BUSY, start - at), (LOW, seconds)]
        at = start + seconds
    return make_run(readings((0, 10), *parts, (BUSY, duration_s - at), interval_s=interval_s), interval_s=interval_s)


def unexpected(run):
    return [finding for finding in analyse(run).findings if not finding.expected and finding.rule == "drop"]


def test_what_happens_three_times_is_one_finding_with_its_times():
    stalls = [(100.0, 20.0), (300.0, 22.0), (500.0, 30.0)]
    (finding,) = unexpected(run_with(stalls))
    assert [round(one.start_t_s) for one in finding.occurrences] == [110, 310, 510]
    assert finding.span == (finding.occurrences[0].start_t_s, finding.occurrences[-1].end_t_s)
    assert finding.took_s == pytest.approx(72, abs=3)
    assert finding.lost_gpu_s == pytest.approx(72 * (1 - LOW / BUSY), abs=3)
    assert [round(one.start_t_s) for one in finding.each] == [110, 310, 510]
    assert "3 times" in finding.summary


def test_twice_is_no_habit_and_three_of_unlike_lengths_are_none():
    assert len(unexpected(run_with([(100.0, 20.0), (300.0, 20.0)]))) == 2
    assert len(unexpected(run_with([(100.0, 12.0), (300.0, 30.0), (500.0, 80.0)]))) == 3


@pytest.mark.parametrize(
    ("duration_s", "stall_s", "severity"),
    [
        (600, 11, "warning"),  # a short run: somebody looks at it
        (20_000, 40, "info"),  # 0.2 % of it
        (20_000, 130, "warning"),
        (3_000, 40, "warning"),  # 1.3 %
        (9_000, 590, "warning"),
        (9_000, 650, "critical"),  # 7 %, and over 10 minutes
        (86_400, 700, "warning"),  # 0.8 %
    ],
)
def test_severity_is_of_the_share_of_training_that_it_took(duration_s, stall_s, severity):
    run = run_with([(duration_s / 2, stall_s)], duration_s, interval_s=2.0 if duration_s > 3000 else 1.0)
    found = [f for f in analyse(run).findings if f.rule in {"drop", "sustained-low"} and not f.expected]
    assert [f.severity for f in found] == [severity]


def test_many_that_are_little_each_are_bad_together():
    stalls = [(start, 39.0) for start in range(500, 17_000, 600)]
    (finding,) = unexpected(run_with(stalls, 18_000.0, interval_s=2.0))
    assert finding.severity == "critical"
    assert len(finding.occurrences) == len(stalls)


def test_what_two_gpus_felt_at_once_is_one_finding_and_one_of_another_time_is_another():
    one = readings((0, 10), (BUSY, 100), (LOW, 20), (BUSY, 480))
    both = make_run([one, one])
    (finding,) = unexpected(both)
    assert (finding.gpu, finding.gpus, finding.occurrences) == (None, (0, 1), ())
    assert finding.summary.startswith("Utilisation of GPUs 0 and 1 fell")
    assert finding.lost_gpu_s == pytest.approx(2 * 20 * (1 - LOW / BUSY), abs=4)


def test_the_verdict_names_the_ids_that_are_reported():
    analysis = analyse(run_with([(100.0, 20.0), (300.0, 22.0), (500.0, 30.0)]))
    ids = {finding.id for finding in analysis.findings}
    assert analysis.verdict.findings <= ids


def test_what_holds_several_gpus_back_all_the_time_is_one_finding():
    rows = [(1, 110), (2, 210)]
    run = make_run([readings((0, 10), (low, 200)) for low in (20, 24, 20)], rows=rows)
    (finding,) = [each for each in analyse(run).findings if each.rule == "starved"]
    assert (finding.gpu, finding.gpus) == (None, (0, 1, 2))
    assert finding.summary.startswith("GPUs 0 to 2 were busy 20 to 24 % in steady state: ")
    other = make_run([readings((0, 10), (20, 200)), readings((0, 10), (50, 200))], rows=rows)
    assert len([each for each in analyse(other).findings if each.rule == "starved"]) == 2  # one is but a note
