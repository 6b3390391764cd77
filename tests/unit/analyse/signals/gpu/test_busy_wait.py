import numpy as np
from support.runs import make_run

from gpu_report.analyse.signals.gpu.busy_wait import busy_waits
from gpu_report.analyse.timeseries.gpu_series import gpu_series
from gpu_report.median import ENOUGH


def test_a_long_run_is_searched_by_what_some_of_its_readings_show(monkeypatch):
    counted, interp = [], np.interp
    monkeypatch.setattr(np, "interp", lambda at, *given: counted.append(len(at)) or interp(at, *given))
    rows = 3 * ENOUGH
    random = np.random.default_rng(0)
    power_w = random.normal(400, 20, rows)
    power_w[200_000:200_060] = 120
    power_w[300_000:300_060] = 180
    (series,) = gpu_series(make_run([100.0] * rows, quantities={"power_w": power_w, "tensor_active_pct": power_w / 20}))
    found = busy_waits(series, np.ones(rows, dtype=bool))
    assert [round(wait.start_t_s) for wait in found] == [200_000, 300_000]
    assert max(counted) <= ENOUGH
