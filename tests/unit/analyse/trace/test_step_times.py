import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.traces import TraceMaker, loaded

from gpu_report.analyse.trace import analyse_trace


def us(seconds):
    return pytest.approx(seconds / 1e6, abs=1e-9)


def test_each_part_of_a_step():
    made = TraceMaker()
    made.step(1, 1000, 1000)
    made.mark("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 1000, 100)
    made.kernel("gemm", 1050, 100, launched=1040)  # half of it beside the wait for data
    made.kernel("ncclDevKernel_AllReduce", 1130, 100, launched=1060, stream=20)  # 20 beside the kernel
    made.copy("Memcpy HtoD (Pinned -> Device)", 1200, 100, 8, launched=1190)  # 30 beside communication
    made.event("gpu_memset", "Memset (Device)", 1400, 10, pid=0, tid=7, device=0, stream=7)
    made.kernel("gemm", 1950, 100, launched=1900)  # 50 of it after the step
    (step,) = analyse_trace(loaded(made)).steps
    assert (step.number, step.length_s, step.kernels, step.used) == (1, us(1000), 3, True)
    assert step.compute_s == us(100 + 10 + 50)
    assert step.communication_s == us(80)
    assert step.copy_s == us(70)
    assert step.data_wait_s == us(50)
    assert step.busy_s == us(310)
    assert step.cpu_wait_s == us(1000 - 310 - 50)


def test_a_trace_without_steps_is_one():
    made = TraceMaker()
    made.op("aten::mm", 100, 50)
    made.kernel("gemm", 200, 100, launched=120)
    found = analyse_trace(loaded(made))
    assert [(step.number, step.length_s, step.compute_s) for step in found.steps] == [(None, us(200), us(100))]


def test_work_of_another_gpu_is_not_this_ones():
    made = TraceMaker()
    made.step(1, 0, 1000)
    made.kernel("gemm", 100, 500, launched=50)
    made.kernel("gemm", 700, 100, launched=60, device=1, stream=8)
    found = analyse_trace(loaded(made))
    assert found.device == 0
    assert found.steps[0].busy_s == us(500)


def test_a_first_step_that_lost_kernels_is_left_out_of_the_sums():
    made = TraceMaker()
    for step in range(5):
        made.step(step, step * 1000, 1000)
        for at in range(10):
            if step == 0 and at > 1:
                made.call("cudaLaunchKernel", step * 1000 + at * 50, 2)
            else:
                made.kernel("gemm", step * 1000 + at * 50 + 10, 20, launched=step * 1000 + at * 50)
    found = analyse_trace(loaded(made))
    assert [step.used for step in found.steps] == [False, True, True, True, True]
    assert (found.quality.steps, len(found.used_steps)) == (5, 4)
    assert found.quality.first_missing
    assert not found.quality.kernels_uneven
    assert found.kernels[0].calls == 40


def test_a_step_of_another_kind_is_used_and_one_in_which_the_trace_ends_is_not():
    made = TraceMaker()
    for step, count in enumerate((5, 10, 5, 10, 10, 2)):  # the first and third only add to gradients
        made.step(step, step * 1000, 1000)
        for at in range(count):
            made.kernel("gemm", step * 1000 + at * 50 + 10, 20, launched=step * 1000 + at * 50)
    found = analyse_trace(loaded(made))
    assert [step.used for step in found.steps] == [True, True, True, True, True, False]
    assert not found.quality.first_missing
    assert found.quality.kernels_uneven


def test_steps_that_disagree_are_said():
    made = TraceMaker()
    for step, count in enumerate((10, 10, 14)):
        made.step(step, step * 1000, 1000)
        for at in range(count):
            made.kernel("gemm", step * 1000 + at * 50 + 10, 20, launched=step * 1000 + at * 50)
    found = analyse_trace(loaded(made))
    assert len(found.used_steps) == 3
    assert (found.quality.first_missing, found.quality.kernels_uneven) == (False, True)


def test_without_gpu_work_nothing_is_said_of_the_gpu():
    made = TraceMaker()
    made.step(1, 0, 1000)
    made.op("aten::conv2d", 100, 500)
    found = analyse_trace(loaded(made))
    assert not found.quality.has_gpu_work
    assert (found.busy_share, found.device, found.launches.bound, found.launches.gap_s) == (None, None, "unknown", None)
    assert (found.layout_share, found.tensor_cores, found.kernels_per_step, found.cpu_free) == (None, None, 0, None)
    assert [(family.name, family.cpu_share) for family in found.families] == [("convolution", 1.0)]


def test_an_empty_trace_has_nothing():
    found = analyse_trace(loaded(TraceMaker()))
    assert (found.steps, found.families, found.operators, found.step_s) == ((), (), (), None)


def test_unpaired_work_and_launches_are_counted():
    made = TraceMaker()
    made.step(1, 0, 1000)
    made.kernel("gemm", 100, 100)
    made.kernel("gemm", 300, 100, launched=250)
    made.call("cudaLaunchKernel", 400, 5)
    quality = analyse_trace(loaded(made)).quality
    assert (quality.unpaired_work, quality.unpaired_launches) == (1, 1)


TIMES = st.integers(0, 3000)
LENGTHS = st.integers(0, 800)
WORK = st.tuples(st.sampled_from(["gemm", "ncclKernel", "copy", "loader", "op"]), TIMES, LENGTHS, st.integers(7, 9))


@given(st.lists(WORK, max_size=30), st.lists(st.integers(1, 700), max_size=5))
def test_the_parts_of_a_step_add_up_and_none_is_negative(drawn, lengths):
    made, at = TraceMaker(), 100
    for number, length in enumerate(lengths):
        made.step(number, at, length)
        at += length + 10
    for kind, start, length, stream in drawn:
        if kind == "loader":
            made.mark("enumerate(DataLoader)#x", start, length)
        elif kind == "op":
            made.op("aten::mm", start, length)
        elif kind == "copy":
            made.copy("Memcpy DtoH (Device -> Pageable)", start, length, 8, launched=max(start - 10, 0))
        else:
            made.kernel(kind, start, length, launched=max(start - 20, 0) if stream < 9 else None, stream=stream)
    found = analyse_trace(loaded(made))
    for step in found.steps:
        parts = [step.compute_s, step.communication_s, step.copy_s, step.data_wait_s, step.cpu_wait_s]
        assert min(parts) >= 0
        assert sum(parts) == pytest.approx(step.length_s, abs=1e-12)
    assert all(0 <= family.gpu_share <= 1 and 0 <= family.cpu_share <= 1 for family in found.families)
    assert found.cpu_free is None or found.step_s is None or found.cpu_free.limit_s <= found.step_s + 1e-12
