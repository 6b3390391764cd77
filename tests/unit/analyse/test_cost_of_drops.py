"""What a drop costs depends on its own length, not on that of the run: a month has thousands."""

import numpy as np
import pytest
from support.counted import counted_readings
from support.runs import make_run

from gpu_report.analyse import analyse

ROWS, FEW, MANY = 200_000, 60, 240
FALL_S = 60
EPOCHS = tuple((epoch + 1, (epoch + 1) * ROWS / 200) for epoch in range(200))


@pytest.mark.parametrize("epochs", [(), EPOCHS], ids=["no-epochs", "epochs"])
def test_a_drop_takes_no_look_at_the_whole_run(monkeypatch, epochs):
    few, many = (_elements(monkeypatch, falls, epochs) for falls in (FEW, MANY))
    assert many - few < (MANY - FEW) * ROWS / 2  # a look at all before each takes two columns


def _elements(monkeypatch, falls, epochs):
    """Return how many elements of columns an analysis works on where utilisation falls so often, in turn by half."""
    random = np.random.default_rng(0)
    util_pct = random.integers(88, 93, ROWS).astype(float)
    for number in range(falls):
        start = (number + 1) * ROWS // (falls + 1)
        util_pct[start : start + FALL_S] = random.integers(0, 5, FALL_S) + (45 if number % 2 else 0)
    quantities = {"power_w": random.integers(100, 600, ROWS), "sm_clock_mhz": random.integers(1800, 1900, ROWS)}
    run = make_run(util_pct.tolist(), quantities=quantities, rows=epochs)
    with counted_readings(monkeypatch) as elements:
        assert len(analyse(run).findings) > 0
        return elements.seen
