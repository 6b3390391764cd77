"""Calls from threads that have called nothing before: found where they are far slower, or the GPU idles in them."""

import dataclasses

import numpy as np
from support.calls import make_calls, make_served

from gpu_report.analyse import analyse


def threaded(new, new_ms=120.0, known_ms=10.0, **settings):
    """Return calls of which those marked in `new` are of a new thread and take `new_ms` of inference."""
    new = np.asarray(new, dtype=float)
    inference = np.where(new == 1, new_ms, known_ms)
    total = inference + 3.0
    starts = 5.0 + np.concatenate([[0.0], np.cumsum(total[:-1] + 1.0)]) / 1000.0
    calls = make_calls(len(new), noise=0.0, **settings)
    return dataclasses.replace(calls, new_thread=new, inference_ms=inference, total_ms=total, start_s=starts)


def found_in(calls, util_pct=2.0):
    return {finding.rule: finding for finding in analyse(make_served(calls, util_pct=util_pct)).findings}


def test_a_thread_for_each_request_is_the_cause_and_not_the_size_of_calls():
    found = found_in(threaded([1] * 300))
    assert "small-calls" not in found
    finding = found["new-threads"]
    assert (finding.severity, finding.cause.name) == ("warning", "new-threads")
    assert finding.summary.startswith("300 of 300 calls came from a new thread: inference takes 120 ms then (")
    assert 0.8 < finding.advice[0].gain_at_most <= 1.0


def test_other_threads_are_what_new_ones_are_compared_with():
    finding = found_in(threaded([1, 0, 0] * 100))["new-threads"]
    assert "then, 10 ms in one that called before" in finding.summary
    assert 0.6 < finding.advice[0].gain_at_most < 0.8  # 110 of each 159 ms
    assert "new-threads" not in found_in(threaded([1, 0, 0] * 100, new_ms=11.0))


def test_nothing_is_known_of_threads_that_work_on_other_ground():
    assert "new-threads" not in found_in(threaded([1] * 300, format="onnx"))
    assert "new-threads" not in found_in(threaded([1] * 300), util_pct=80.0)  # the GPU worked for that long
    assert "new-threads" not in found_in(threaded([np.nan] * 300))  # an older recording
    assert "new-threads" not in found_in(threaded([1] * 4 + [0] * 300))


def test_a_pool_of_threads_that_fills_is_no_thread_for_each_call():
    assert "new-threads" not in found_in(threaded([1] * 40 + [0] * 260))
    assert "new-threads" in found_in(threaded([1, 1, 0] * 100))
