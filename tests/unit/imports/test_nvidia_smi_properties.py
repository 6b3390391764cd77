"""What holds for any nvidia-smi log: nothing raises but InputError, and what was written is read back."""

import csv
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gpu_report import run_folder, schema
from gpu_report.errors import InputError
from gpu_report.imports.formats.nvidia_smi.columns import QUANTITY_COLUMNS, read_cell
from gpu_report.imports.import_logs import import_logs
from gpu_report.imports.run_writer import write_samples

START = datetime(2026, 11, 21, 1, 0, tzinfo=UTC)
HEADER = "timestamp, index, utilization.gpu [%], memory.used [MiB], power.draw [W], pstate, clocks_event_reasons.active"
CHARACTERS = "0123456789 ,/:.%[]NAxP\n\r\"'é\0" + HEADER


def imported(text):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.csv"
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        problems = import_logs([path], Path(folder) / "run", timezone="UTC")
        return list(csv.DictReader((Path(folder) / "run" / schema.SAMPLES_CSV).open())), problems


CELLS = st.sampled_from(["[N/A]", "ERR!", "5 %", "2026/11/21 01:00:00.000", "1", "99999999999999999999", "0xff", "P0"])


@settings(max_examples=50, deadline=None)
@given(st.text(CHARACTERS) | st.text() | st.lists(st.lists(CELLS, max_size=8).map(", ".join)).map("\n".join))
@example("2026/11/21 01:00:00.000, 99999999999999999999, 5 %, 1 MiB, 1 W, P0, 0x1\n")
@example("0001/01/01 00:00:00.000, 0, 5 %, 1 MiB, 1 W, P0, 0x1\n9999/12/31 23:59:59.999, 0, 5 %, 1 MiB, 1 W, P0, 0x1\n")
@example('2026/11/21 01:00:00.000, 0, "5 %, 1 MiB, 1 W, P0, 0x1\n')
def test_any_rows_are_read_or_refused_in_one_line(rows):
    for text in (f"{HEADER}\n{rows}", rows):
        try:
            imported(text)
        except InputError as error:
            assert "\n" not in str(error)  # noqa: PT017 (both ways out are right)


@given(st.sampled_from([*QUANTITY_COLUMNS, ""]), st.text() | CELLS)
def test_a_cell_is_a_plain_number_or_nothing(quantity, cell):
    value = read_cell(quantity, cell)
    assert value is None or 0 <= value <= 2.0**64


READINGS = st.tuples(
    st.integers(0, 100),
    st.integers(0, 143771),
    st.integers(0, 70000).map(lambda hundredths: hundredths / 100),
    st.integers(0, 15),
    st.integers(0, 0x1FF),
)


@settings(max_examples=50, deadline=None)
@given(st.lists(READINGS, min_size=1, max_size=20), st.integers(1, 4), st.booleans())
def test_what_was_logged_is_read_back(readings, gpus, units):
    percent, mib, watt = (" %", " MiB", " W") if units else ("", "", "")
    lines, expected = [HEADER], []
    for second, (utilization, memory, power, state, reasons) in enumerate(readings):
        moment = START + timedelta(seconds=second)
        for gpu in range(gpus):
            stamp = f"{moment:%Y/%m/%d %H:%M:%S}.{gpu:03d}"
            numbers = f"{utilization}{percent}, {memory}{mib}, {power:.2f}{watt}, P{state}, 0x{reasons:016x}"
            lines.append(f"{stamp}, {gpu}, {numbers}")
            wall_s = START.timestamp() + second + gpu / 1000
            expected.append(
                (
                    f"{wall_s:.3f}",
                    str(gpu),
                    str(utilization),
                    str(memory),
                    f"{power:.1f}".removesuffix(".0"),
                    str(state),
                    str(reasons),
                )
            )
    rows, problems = imported("\n".join([*lines, ""]))
    names = ("wall_s", "gpu", "gpu_util_pct", "memory_used_mib", "power_w", "performance_state", "clock_event_reasons")
    assert [tuple(row[name] for name in names) for row in rows] == expected
    assert problems == ()


FLOATS = st.floats(0, 1e7) | st.just(float("nan"))


@given(st.lists(st.tuples(st.floats(1e9, 2e9), st.floats(0, 1e6), st.integers(0, 99), FLOATS, FLOATS), min_size=1))
def test_samples_are_written_as_the_recorder_writes_them(rows):
    frame = pd.DataFrame(rows, columns=["wall_s", "mono_s", "gpu", "gpu_util_pct", "power_w"])
    for column in schema.SAMPLES_COLUMNS:
        frame[column.name] = frame.get(column.name, np.nan)
    with tempfile.TemporaryDirectory() as folder:
        write_samples(Path(folder), frame)
        written = (Path(folder) / schema.SAMPLES_CSV).read_bytes().split(b"\n", 1)[1]
    records = frame.astype(object).where(frame.notna(), None).to_dict("records")
    assert written == b"".join(run_folder.format_row(schema.SAMPLES_COLUMNS, record) for record in records)


@pytest.mark.timeout(120)
def test_a_long_log_is_read_in_seconds(tmp_path):
    seconds, gpus = 10_000, 8  # a ninth of 24 h x 8 GPUs, which is to take well under 10 s
    lines = [
        f"2026/11/21 {second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}.{gpu:03d}, {gpu}, "
        f"{second % 101} %, {second} MiB, {second / 30:.2f} W, P0, 0x0000000000000001"
        for second in range(seconds)
        for gpu in range(gpus)
    ]
    path = tmp_path / "log.csv"
    path.write_text("\n".join([HEADER, *lines, ""]))
    began = time.perf_counter()
    import_logs([path], tmp_path / "run", timezone="Europe/Berlin")
    assert time.perf_counter() - began < 10.0  # about 0.6 s on two free cores; room for busy ones
