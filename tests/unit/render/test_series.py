import zlib

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_report.render.series import PackedColumn, pack_column, pack_frame

HIGHEST = {"u1": 255, "i1": 127, "u2": 65535, "i2": 32767, "u4": 2**32 - 1, "i4": 2**31 - 1}


def unpack(column: PackedColumn) -> np.ndarray:
    """Read a packed column as js/codec.js does."""
    dtype = np.dtype(f"<{column.dtype}")
    planes = np.frombuffer(zlib.decompress(column.data, wbits=-15), np.uint8)
    raw = planes.reshape(dtype.itemsize, -1).T.copy().view(dtype).ravel()
    if column.dtype == "f8":
        return raw
    if column.delta:
        raw = np.cumsum(raw, dtype=dtype)
    return np.where(raw == HIGHEST[column.dtype], np.nan, raw / 10**column.decimals)


values = st.one_of(
    st.just(float("nan")), st.floats(-1e14, 1e14), st.floats(-300, 300), st.integers(0, 2**40).map(float)
)


@given(st.lists(values, min_size=1, max_size=60), st.integers(0, 3))
def test_what_was_packed_is_read_back_exactly_at_its_precision(numbers: list[float], decimals: int) -> None:
    array = np.array(numbers)
    column = pack_column("x", array, decimals)
    scaled = np.round(array * 10**decimals) / 10**decimals
    expected = np.round(array, decimals) if column.dtype == "f8" else scaled
    np.testing.assert_array_equal(unpack(column), expected)


@pytest.mark.parametrize(
    ("numbers", "decimals", "dtype"),
    [
        ([0.0, 254.0], 0, "u1"),
        ([0.0, 255.0], 0, "u2"),  # 255 is what stands for missing
        ([-3.0, 126.0], 0, "i1"),
        ([-3.0, 127.0], 0, "i2"),
        ([77.3, 693.5], 1, "u2"),
        ([0.0, 2.0**33], 0, "f8"),
        ([float("nan")], 0, "u1"),
    ],
)
def test_the_smallest_type_is_chosen(numbers: list[float], decimals: int, dtype: str) -> None:
    assert pack_column("x", np.array(numbers), decimals).dtype == dtype


def test_missing_and_infinite_readings_stay_missing_and_zero_stays_zero() -> None:
    read = unpack(pack_column("x", np.array([0.0, np.nan, np.inf, -np.inf, 5.0]), 0))
    np.testing.assert_array_equal(read, [0.0, np.nan, np.nan, np.nan, 5.0])


def test_a_rising_column_is_stored_as_differences_and_stays_small() -> None:
    column = pack_column("t_s", np.arange(86_400) + 0.001, 3)
    assert column.delta
    assert len(column.data) < 2_000


def test_a_frame_gives_its_times_and_only_the_columns_in_which_anything_was_recorded() -> None:
    frame = pd.DataFrame({"t_s": [0.0, 1.0], "power_w": [77.3, np.nan], "energy_j": [np.nan, np.nan]})
    packed = pack_frame(frame, {"power_w": 1, "energy_j": 1, "temperature_c": 0})
    assert [column.name for column in packed] == ["t_s", "power_w"]


def test_an_empty_frame_can_be_packed() -> None:
    packed = pack_frame(
        pd.DataFrame({"t_s": pd.Series(dtype=float), "power_w": pd.Series(dtype=float)}), {"power_w": 1}
    )
    assert [(column.name, column.count) for column in packed] == [("t_s", 0)]
