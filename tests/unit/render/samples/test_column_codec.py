"""Whatever is packed is read back at its precision, and takes little room."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.packed import unpack

from gpu_report.render.samples.column_codec import Scale, pack_column, pack_frame, relative_of

values = st.one_of(
    st.just(float("nan")), st.floats(-1e14, 1e14), st.floats(-300, 300), st.integers(0, 2**40).map(float)
)
columns = st.lists(values, min_size=1, max_size=60)
BITS = 6.8  # that a character of a text holds (test_dense.py)


def at(decimals: int, array: np.ndarray, dtype: str) -> np.ndarray:
    scaled = np.round(array * 10**decimals) / 10**decimals
    return np.round(array, decimals) if dtype == "f8" else scaled


@given(columns, st.integers(0, 3))
def test_what_was_packed_is_read_back_exactly_at_its_precision(numbers: list[float], decimals: int) -> None:
    array = np.array(numbers)
    column = pack_column("x", array, Scale(decimals))
    np.testing.assert_array_equal(unpack(column), at(decimals, array, column.dtype))


@given(st.lists(st.tuples(values, values), min_size=1, max_size=60), st.integers(0, 1))
def test_what_lies_over_another_column_is_read_back_exactly(pairs: list[tuple[float, float]], decimals: int) -> None:
    one, other = np.array(pairs).T
    relative = relative_of(pack_column("one", one, Scale(1)), one)
    column = pack_column("other", other, Scale(decimals), relative)
    np.testing.assert_array_equal(unpack(column), at(decimals, other, column.dtype))


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=60), st.integers(1, 4))
def test_significant_digits_are_kept_and_no_others(numbers: list[int], digits: int) -> None:
    read = unpack(pack_column("x", np.array(numbers, float), Scale(0, digits)))
    expected = [number if number < 10**digits else float(f"{number:.{digits - 1}e}") for number in numbers]
    assert read == pytest.approx(expected, rel=10.0**-digits)
    assert all(len(f"{int(value)}".rstrip("0")) <= digits for value in read)


@pytest.mark.parametrize(
    ("value", "kept"), [(0.04, 0.0), (3.1, 3.1), (99.9, 99.9), (410.3, 410), (1234.5, 1230), (9995, 10000)]
)
def test_a_byte_rate_keeps_three_digits(value: float, kept: float) -> None:
    assert unpack(pack_column("x", np.array([value, 0.0]), Scale(1, 3)))[0] == kept


@pytest.mark.parametrize(
    ("numbers", "decimals", "dtype"),
    [
        ([0.0, 254.0], 0, "u1"),
        ([0.0, 255.0], 0, "u2"),  # there is no number left for missing
        ([3201.0, 3201.0], 0, "u1"),  # from the least up
        ([-3.0, 126.0], 0, "u1"),
        ([77.3, 693.5], 1, "u2"),
        ([0.0, 2.0**33], 0, "f8"),
        ([0.0, 2.0**60], 0, "f8"),
        ([float("nan")], 0, "u1"),
    ],
)
def test_the_smallest_type_is_chosen(numbers: list[float], decimals: int, dtype: str) -> None:
    assert pack_column("x", np.array(numbers), Scale(decimals)).dtype == dtype


def test_missing_and_infinite_readings_stay_missing_and_zero_stays_zero() -> None:
    read = unpack(pack_column("x", np.array([0.0, np.nan, np.inf, -np.inf, 5.0]), Scale(0)))
    np.testing.assert_array_equal(read, [0.0, np.nan, np.nan, np.nan, 5.0])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("most", [1e300, -1e300, 1.7e308])
def test_a_finite_value_however_large_is_kept_and_an_infinite_one_is_missing(most: float) -> None:
    read = unpack(pack_column("loss", np.array([0.5, most, np.inf, -np.inf, np.nan]), Scale(12, 5)))
    np.testing.assert_array_equal(read, [0.5, most, np.nan, np.nan, np.nan])


@pytest.mark.filterwarnings("error")
def test_a_line_that_would_leave_what_both_sides_reckon_with_is_none() -> None:
    one = np.array([2.0**50, 2.0**50 + 1] * 50)
    other = np.array([0.0, 2.0**31] * 50)  # a slope of about 2^47 parts: the product wraps in int64, with a warning
    column = pack_column("other", other, Scale(0), relative_of(pack_column("one", one, Scale(0)), one))
    assert column.line is None
    np.testing.assert_array_equal(unpack(column), other)


def test_a_rising_column_is_stored_as_differences_and_stays_small() -> None:
    column = pack_column("t_s", np.arange(86_400) + 0.001, Scale(3))
    assert column.delta
    assert len(column.text) < 2_000


def test_of_a_column_that_is_seldom_read_only_what_was_read_is_stored() -> None:
    rng = np.random.default_rng(0)
    values = np.where(np.arange(50_000) % 10 == 3, rng.integers(0, 256, 50_000), np.nan)
    column = pack_column("energy_j", values, Scale(0))
    assert column.rows is not None
    assert len(column.text) + len(column.rows.text) < 5_000 * 8 / BITS * 1.1
    np.testing.assert_array_equal(unpack(column), values)


def test_a_column_that_moves_with_another_one_takes_less_room() -> None:
    rng = np.random.default_rng(0)
    active = rng.integers(0, 800, 20_000) / 10
    occupancy = np.round(active * 0.55 + rng.normal(0, 0.3, 20_000), 1)
    alone = pack_column("occupancy", occupancy, Scale(1))
    beside = pack_column("occupancy", occupancy, Scale(1), relative_of(pack_column("active", active, Scale(1)), active))
    assert beside.line is not None
    assert len(beside.text) < 0.7 * len(alone.text)
    np.testing.assert_array_equal(unpack(beside), occupancy)


@pytest.mark.parametrize(("step_s", "gap_s"), [(0.2, 0.0), (0.20003, 0.0), (1.0, 3600.0)])
def test_the_times_of_ticks_take_no_more_than_the_bits_of_what_they_are_off(step_s: float, gap_s: float) -> None:
    late_ms = np.random.default_rng(0).choice(
        [-1, 0, 0, 1], 50_000
    )  # 1.75 bits each in whole ones, and 2.25 as differences
    times = np.round(np.arange(50_000) * step_s + late_ms / 1000, 3) + 1.0
    times[40_000:] += gap_s
    (column,) = pack_frame(pd.DataFrame({"t_s": times}), {})
    assert len(column.text) * BITS < (2.4 if gap_s else 1.9) * 50_000
    np.testing.assert_allclose(unpack(column), times, atol=1e-9)


def test_noise_takes_no_more_than_its_bits() -> None:
    power = np.random.default_rng(0).integers(0, 5000, 50_000) / 10  # 12.3 bits each
    assert len(pack_column("power_w", power, Scale(1)).text) * BITS < 12.6 * 50_000


def test_a_frame_gives_its_times_and_only_the_columns_in_which_anything_was_recorded() -> None:
    frame = pd.DataFrame({"t_s": [0.0, 1.0], "power_w": [77.3, np.nan], "energy_j": [np.nan, np.nan]})
    packed = pack_frame(frame, {"power_w": Scale(1), "energy_j": Scale(1), "temperature_c": Scale(0)})
    assert [column.name for column in packed] == ["t_s", "power_w"]


def test_a_relative_that_was_not_recorded_is_none() -> None:
    frame = pd.DataFrame({"t_s": [0.0, 1.0], "a": [np.nan, np.nan], "b": [1.0, 2.0]})
    _, packed = pack_frame(frame, {"a": Scale(0), "b": Scale(0)}, {"b": "a"})
    assert packed.line is None


def test_an_empty_frame_can_be_packed() -> None:
    packed = pack_frame(
        pd.DataFrame({"t_s": pd.Series(dtype=float), "power_w": pd.Series(dtype=float)}), {"power_w": Scale(1)}
    )
    assert [(column.name, column.count) for column in packed] == [("t_s", 0)]


def test_a_column_packed_in_parts_is_that_packed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = np.random.default_rng(1)
    watts = np.where(drawn.random(500) < 0.1, np.nan, drawn.integers(2000, 4000, 500) / 10)
    frame = pd.DataFrame({"t_s": np.arange(500) / 5 + drawn.integers(0, 9, 500) / 1000, "power_w": watts})
    scales = {"power_w": Scale(1), "twice": Scale(1)}
    frame["twice"] = 2 * watts + drawn.integers(0, 3, 500)
    whole = pack_frame(frame, scales, {"twice": "power_w"})
    monkeypatch.setattr("gpu_report.render.samples.column_codec.PART_ROWS", 64)
    parts = pack_frame(frame, scales, {"twice": "power_w"})
    assert [column.line is not None for column in parts] == [True, False, True]
    for part, column in zip(parts, whole, strict=True):
        np.testing.assert_array_equal(unpack(part), unpack(column))
        assert part.text == column.text
