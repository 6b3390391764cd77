import pytest
from support.traces import TraceMaker, loaded

from gpu_report.analyse.trace import analyse_trace


def launches(gap, every, length, count=50):
    made = TraceMaker()
    made.step(1, 0, every * count)
    for at in range(count):
        made.kernel("gemm", at * every + gap, length, launched=at * every)
    return analyse_trace(loaded(made)).launches


def test_a_gpu_that_waits_for_each_launch_is_launch_bound():
    found = launches(gap=8, every=50, length=5)
    assert found.gap_s == pytest.approx(8e-6)
    assert found.bound == "launch"


def test_launches_far_ahead_are_gpu_bound():
    assert launches(gap=5000, every=10, length=9, count=1000).bound == "gpu"


def test_a_busy_gpu_with_a_short_queue_is_neither():
    assert launches(gap=8, every=50, length=45).bound == "neither"
    assert launches(gap=200, every=50, length=20).bound == "neither"


def bound_after_a_wait_for_data(waited, count, length):
    made = TraceMaker()
    made.step(1, 0, 10_000)
    made.mark("enumerate(DataLoader)#x", 0, waited)
    for at in range(count):
        made.kernel("gemm", waited + at * 50 + 8, length, launched=waited + at * 50)
    return analyse_trace(loaded(made)).launches.bound


def test_a_wait_for_data_does_not_make_a_gpu_launch_bound():
    assert bound_after_a_wait_for_data(4_000, count=120, length=45) == "neither"


def test_what_waits_for_data_most_of_the_time_is_bound_by_that():
    assert bound_after_a_wait_for_data(8_000, count=40, length=5) == "data"


def test_of_a_cuda_graph_the_first_kernel_counts():
    made = TraceMaker()
    made.step(1, 0, 10_000)
    for at in range(10):
        number = made.call("cudaGraphLaunch", at * 1000, 5)
        for kernel in range(20):
            start = at * 1000 + 10 + kernel * 30
            made.event("kernel", "gemm", start, 25, pid=0, tid=7, device=0, stream=7, correlation=number)
    found = analyse_trace(loaded(made))
    assert found.launches.gap_s == pytest.approx(10e-6)
    assert found.quality.unpaired_launches == 0


def test_a_step_whose_cpu_takes_no_time():
    made = TraceMaker()
    made.step(1, 0, 10_000)
    for at in range(100):  # launched in time: each begins 2 µs after the one before
        made.kernel("gemm", 1000 + at * 12, 10, launched=at * 5)
    item = made.op("aten::item", 5000, 50)
    made.copy("Memcpy DtoH (Device -> Pinned)", 5010, 10, 4, launched=5002, op=item)
    made.call("cudaStreamSynchronize", 5015, 20, op=item)
    found = analyse_trace(loaded(made)).cpu_free
    assert found.limit_s == pytest.approx(1010e-6)
    # 200 µs between kernels, and a round trip at the gap of an empty queue: the median is far longer
    assert found.expected_s == pytest.approx((1010 + 200 + 30) * 1e-6)
