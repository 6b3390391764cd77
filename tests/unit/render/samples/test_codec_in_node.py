"""What Python packs, the page's own script reads: on Node.js, whatever the numbers."""

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from support.packed import Reader

from gpu_report.render.samples.column_codec import PackedColumn, Relative, Scale, pack_column, relative_of, row_numbers
from gpu_report.render.samples.columns import Blob

SCRIPT = Path(__file__).parents[2] / "js" / "read_columns.mjs"


def read_by_script(columns: Sequence[PackedColumn], folder: Path) -> tuple[list[list[float | None]], list[np.ndarray]]:
    """Return the values of columns as the page reads them, and as the tests' own reader does."""
    node = shutil.which("node")
    if node is None:
        pytest.fail("Node.js is missing: apt-get install nodejs", pytrace=False)
    blob = Blob()
    described, text = blob.put(columns), blob.take()
    file = folder / "columns.json"
    file.write_text(json.dumps({"text": text, "columns": described}))
    done = subprocess.run([node, SCRIPT, file], capture_output=True, text=True, check=True, timeout=60)
    reader = Reader(text)
    return json.loads(done.stdout), [reader.values(about) for about in described]


def made_up(rng: np.random.Generator, kind: int, count: int) -> np.ndarray:
    span = float(rng.choice([1, 200, 300, 60_000, 70_000, 2**31, 2.0**40]))
    if kind == 0:
        return rng.random(count) * span - rng.choice([0, span / 2])
    if kind == 1:
        return np.cumsum(rng.integers(0, 3, count)).astype(float)
    return np.where(rng.random(count) < 0.05, rng.integers(0, int(span) + 1, count).astype(float), np.nan)


@pytest.mark.parametrize("seed", range(4))
def test_the_page_reads_what_was_packed(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    columns: list[PackedColumn] = []
    relatives: list[Relative] = [row_numbers(400)]
    for number in range(60):
        count = 400
        values = made_up(rng, int(rng.integers(0, 3)), count)
        values[rng.random(count) < rng.choice([0, 0.1])] = np.nan
        relative = relatives[int(rng.integers(0, len(relatives)))] if relatives and rng.random() < 0.5 else None
        if relative is not None:
            values = np.round(relative.known.whole * rng.normal(0, 2) + rng.normal(0, 3, count), 1)
        scale = Scale(int(rng.integers(0, 4)), int(rng.choice([0, 0, 3])))
        columns.append(pack_column(f"c{number}", values, scale, relative))
        relatives = [*relatives, *filter(None, [relative_of(columns[-1], values)])]
    assert (
        {bool(c.line) for c in columns}
        == {bool(c.rows) for c in columns}
        == {c.delta for c in columns}
        == {False, True}
    )
    assert {column.dtype for column in columns} == {"u1", "u2", "u4", "f8"}
    by_script, by_tests = read_by_script(columns, tmp_path)
    for mine, theirs in zip(by_script, by_tests, strict=True):
        np.testing.assert_array_equal(np.array(mine, dtype=float), theirs)
