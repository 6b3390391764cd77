"""A long series in few buckets that hide no fall."""

from hypothesis import given
from hypothesis import strategies as st

from gpu_report.live.reading.envelope import MOST_BUCKETS, Envelope


def test_a_fall_of_one_reading_in_three_days_is_in_it():
    envelope = Envelope(0.0)
    for second in range(3 * 86_400):
        envelope.add(float(second), 3.0 if second == 123_456 else 90.0)
    rows = envelope.rows()
    assert len(rows) <= MOST_BUCKETS
    (low,) = [row for row in rows if row[1] < 90]
    assert low[0] <= 123_456 < low[0] + envelope.width_s
    assert low[3] == 90.0


@given(st.lists(st.tuples(st.floats(0, 1e7), st.floats(0, 1e3)), min_size=1, max_size=60), st.randoms())
def test_order_does_not_matter_and_nothing_is_lost(readings, random):
    given, shuffled = Envelope(0.0), Envelope(0.0)
    for at_s, value in readings:
        given.add(at_s, value)
    mixed = list(readings)
    random.shuffle(mixed)
    for at_s, value in mixed:
        shuffled.add(at_s, value)
    assert given.width_s == shuffled.width_s
    assert [(a, low, high) for a, low, _, high in given.rows()] == [
        (a, low, high) for a, low, _, high in shuffled.rows()
    ]
    values = [value for _, value in readings]
    rows = given.rows()
    assert min(row[1] for row in rows) == min(values)
    assert max(row[3] for row in rows) == max(values)
    assert all(low <= mean + 1e-6 and mean <= high + 1e-6 for _, low, mean, high in rows)


def test_what_was_not_read_is_a_gap():
    envelope = Envelope(0.0)
    envelope.add(0.0, 1.0)
    envelope.add(9.0, 2.0)
    assert [row[0] for row in envelope.rows()] == [0.0, 9.0]
    envelope.add(-5.0, 3.0)
    assert len(envelope.rows()) == 2
