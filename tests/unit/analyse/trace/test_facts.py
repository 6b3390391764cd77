"""Synchronisations, copies, allocator, optimizer, tensor cores, sizes of kernels and compiled code."""

import pytest
from support.traces import TraceMaker, loaded

from gpu_report.analyse.trace import analyse_trace
from gpu_report.model import AllocatorCalls, CopyKind


def one_step():
    made = TraceMaker()
    made.step(1, 0, 10_000)
    return made


def approx_us(value):
    return pytest.approx(value / 1e6)


def test_waits_by_operator():
    made = one_step()
    for at in (100, 300):
        made.op("aten::item", at, 100)
        inner = made.op("aten::_local_scalar_dense", at + 5, 80)
        made.copy("Memcpy DtoH (Device -> Pageable)", at + 30, 5, 4, launched=at + 10, took=20, op=inner)
        made.call("cudaStreamSynchronize", at + 40, 30, op=inner)  # the same wait
    made.call("cudaEventSynchronize", 600, 40)
    made.mark("enumerate(DataLoader)#x", 700, 100)
    made.call("cudaStreamSynchronize", 750, 40)  # the data loader's
    made.call("cudaDeviceSynchronize", 900, 40)  # the profiler's
    made.call("cudaStreamSynchronize", 20_000, 40)  # in no step
    made.kernel("gemm", 50, 5, launched=40)
    found = analyse_trace(loaded(made)).syncs
    assert [(point.operator, point.call, point.count) for point in found] == [
        ("aten::item", "cudaMemcpyAsync", 2),
        ("", "cudaEventSynchronize", 1),
    ]
    assert [point.wait_s for point in found] == [approx_us(100), approx_us(40)]
    assert [point.operator_s for point in found] == [approx_us(200), approx_us(40)]


def test_a_device_wide_wait_of_an_operator_counts():
    made = one_step()
    op = made.op("aten::my_op", 100, 100)
    made.call("cudaDeviceSynchronize", 110, 50, op=op)
    assert [point.call for point in analyse_trace(loaded(made)).syncs] == ["cudaDeviceSynchronize"]


def test_copies_by_kind():
    made = one_step()
    made.copy("Memcpy HtoD (Pageable -> Device)", 100, 100, 600_000, launched=50, took=90)
    made.copy("Memcpy HtoD (Pageable -> Device)", 300, 100, 600_000, launched=250, took=110)
    made.copy("Memcpy HtoD (Pinned -> Device)", 500, 10, 500_000, launched=450)
    made.copy("Memcpy of a kind to come", 600, 1, -5, launched=590)
    first, second, third = analyse_trace(loaded(made)).copies
    assert (first.kind, first.count, first.bytes) == (CopyKind("HtoD", "pageable"), 2, 1_200_000)
    assert (first.gpu_s, first.cpu_s, first.gb_per_s) == (approx_us(200), approx_us(200), pytest.approx(6.0))
    assert (second.kind, second.gb_per_s) == (CopyKind("HtoD", "pinned"), pytest.approx(50.0))
    assert (third.kind, third.bytes) == (CopyKind("", ""), 0)


def test_memory_that_was_not_cached():
    made = one_step()
    made.call("cudaMalloc", 100, 300)
    made.call("cudaFree", 500, 100)
    made.call("cudaMalloc", 700, 100)
    made.call("cudaFuncGetAttributes", 900, 5)
    assert analyse_trace(loaded(made)).allocator == (
        AllocatorCalls("cudaMalloc", 2, approx_us(400)),
        AllocatorCalls("cudaFree", 1, approx_us(100)),
    )


@pytest.mark.parametrize(
    ("operator", "kernels", "style"),
    [
        ("aten::_fused_adamw_", 20, "fused"),
        ("aten::_foreach_mul_", 60, "foreach"),
        ("aten::mul_", 300, "per parameter"),
        ("aten::mul_", 5, "unknown"),
    ],
)
def test_optimizers(operator, kernels, style):
    made = one_step()
    made.mark("Optimizer.step#SGD.step", 100, 5000)
    for at in range(kernels):
        op = made.op(operator, 110 + at * 10, 5)
        made.kernel("multi_tensor_apply", 120 + at * 10, 2, launched=111 + at * 10, op=op)
    found = analyse_trace(loaded(made)).optimizer
    assert (found.style, found.calls, found.gpu_pieces) == (style, 1, kernels)
    assert (found.gpu_s, found.cpu_s) == (approx_us(2 * kernels), approx_us(5000))


def test_no_optimizer_is_said_where_none_was_marked():
    assert analyse_trace(loaded(one_step())).optimizer is None


@pytest.mark.parametrize(
    ("kernels", "used", "half"),
    [
        ({"sm90_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwc": 80, "conv2d_c1_k1_nhwc": 20}, True, 0.8),
        ({"sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n": 100}, True, 0.0),
        ({"cutlass_80_tensorop_s1688gemm_128x128": 100}, True, 0.0),
        ({"nvjet_sm90_hsh_128x160_64x5": 60, "reduce_kernel": 40}, True, 0.6),
        ({"volta_sgemm_128x64_nn": 90, "reduce_kernel": 10}, False, 0.0),
        ({"sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nhwc_simt": 100}, False, 0.0),
        ({"sm90_xmma_depthwise_convolution_wgrad_f16f16_f32f32": 100}, False, 1.0),
        ({"somebodys_kernel": 100}, None, 0.0),
    ],
)
def test_tensor_cores_by_the_names_of_kernels(kernels, used, half):
    made = one_step()
    op = made.op("aten::cudnn_convolution", 10, 900)
    for at, (name, length) in enumerate(kernels.items()):
        made.kernel(name, 1000 + at * 200, length, launched=20 + at * 20, op=op)
    found = analyse_trace(loaded(made)).tensor_cores
    assert (found.used, found.half_share, found.gpu_s) == (used, pytest.approx(half), approx_us(100))


def test_kernels_a_step():
    made = one_step()
    for at, length in enumerate((2, 4, 6, 88)):
        made.kernel("gemm", 100 + at * 100, length, launched=50 + at * 100)
    assert analyse_trace(loaded(made)).kernels_per_step == 4


def test_compiled_code():
    made = one_step()
    for at in (100, 300, 500):
        made.mark(f"Torch-Compiled Region: {at // 300}/0", at, 100)
    made.kernel("triton_poi_fused_silu_0", 150, 30, launched=110)
    made.kernel("gemm", 350, 10, launched=310)
    assert analyse_trace(loaded(made)).compiled_per_step == 3
    assert analyse_trace(loaded(one_step())).compiled_per_step == 0
