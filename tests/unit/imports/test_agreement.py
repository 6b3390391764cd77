"""Imported figures agree with those of the run that was logged, within what their interval allows.

The readings of a real run were played to NVML, which nvitop, wandb and MLflow asked every 5 s, and to an exporter that
Prometheus scraped every 5 s.
"""

import numpy as np
import pytest
from support.compared_logs import mean_over, span_of

# What a mean over two minutes may be off by: a third of an interval at each edge of a busy stretch, of which there are
# ten; power and utilisation are between 0 and 600 W, 0 and 100 %.
POWER_OFF, UTIL_OFF = 40.0, 8.0


def test_three_tools_agree_on_the_same_two_minutes(imported):
    runs = {
        name: imported(f"imports/{log}")
        for name, log in (("nvitop", "nvitop.csv"), ("wandb", "run-wandb.wandb"), ("mlflow", "mlflow"))
    }
    spans = [span_of(run) for run in runs.values()]
    shared = max(start for start, _ in spans), min(end for _, end in spans)
    assert shared[1] - shared[0] > 100
    for name, off in (("power_w", POWER_OFF), ("gpu_util_pct", UTIL_OFF)):
        means = [mean_over(run, name, shared) for run in runs.values()]
        assert np.ptp(means) < off, (name, means)


PLAYED_LATER_S = 402_435.8  # the exporter began so long after the run that it played


def test_prometheus_agrees_with_nvidia_smi_of_the_run_that_was_played(imported):
    log, answer = imported("nvidia_smi/ddp-60s.csv"), imported("imports/dcgm-answer.json")
    start, end = span_of(log)
    played = start + PLAYED_LATER_S, end + PLAYED_LATER_S
    for gpu in (0, 1):
        for name, off in (("power_w", POWER_OFF), ("gpu_util_pct", UTIL_OFF)):
            theirs, ours = mean_over(answer, name, played, gpu), mean_over(log, name, (start, end), gpu)
            assert theirs == pytest.approx(ours, abs=off), (name, gpu)
