import pytest
from support.traces import TraceMaker, loaded

from gpu_report.analyse.trace import analyse_trace
from gpu_report.analyse.trace.family_names import BLOCKS, KERNELS, OPERATORS, family_of

NODE = "autograd::engine::evaluate_function: "


def gpu_families(made):
    return {
        family.name: round(family.gpu_s * 1e6, 3) for family in analyse_trace(loaded(made)).families if family.gpu_s
    }


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("aten::conv2d", "convolution"),
        ("aten::cudnn_convolution", "convolution"),
        ("aten::_conv_depthwise2d", "convolution"),
        ("ConvolutionBackward0", "convolution"),
        ("aten::cudnn_batch_norm_backward", "normalisation"),
        ("NativeLayerNormBackward0", "normalisation"),
        ("aten::silu_", "activation"),
        ("SiluBackward0", "activation"),
        ("aten::_scaled_dot_product_flash_attention", "attention"),
        ("aten::bmm", "matrix products"),
        ("AddmmBackward0", "matrix products"),
        ("aten::upsample_nearest2d_backward", "upsampling"),
        ("MaxPool2DWithIndicesBackward0", "pooling"),
        ("aten::cat", "concatenation"),
        ("aten::index_put_", "indexing"),
        ("aten::binary_cross_entropy_with_logits", "loss"),
        ("aten::_log_softmax", "loss"),
        ("aten::_fused_adamw_", "optimizer"),
        ("aten::contiguous", "layout changes"),
        ("aten::_to_copy", "copies"),
        ("torchvision::nms", "NMS"),
        ("c10d::allreduce_", "communication"),
        ("aten::convert_indices", None),
        ("aten::mul", None),
    ],
)
def test_operators_by_name(name, family):
    assert family_of(name, OPERATORS) == family


def test_building_blocks_and_kernels_by_name():
    assert family_of("aten::add_", BLOCKS) == "elementwise"
    assert family_of("aten::copy_", BLOCKS) == "copies"
    assert family_of("my_op", BLOCKS) is None
    assert family_of("void cudnn::engines_precompiled::nchwToNhwcKernel<float>", KERNELS) == "layout changes"
    assert family_of("sm90_xmma_fprop_implicit_gemm_f16f16", KERNELS) == "convolution"
    assert family_of("nvjet_sm90_hsh_128x160", KERNELS) == "matrix products"
    assert family_of("triton_poi_fused_silu_3", KERNELS) == "compiled"


def test_a_kernel_belongs_to_the_operator_that_launched_it_not_to_its_name():
    made = TraceMaker()
    made.step(1, 0, 1000)
    made.op("aten::conv2d", 10, 100)
    inner = made.op("aten::cudnn_convolution", 20, 50)
    made.kernel("ampere_h16816gemm", 40, 30, launched=25, op=inner)
    bias = made.op("aten::add_", 80, 20)  # a building block of the convolution
    made.kernel("elementwise", 90, 5, launched=82, op=bias)
    assert gpu_families(made) == {"convolution": 35}


def test_a_kernel_without_a_number_is_found_by_time_and_one_without_an_operator_by_name():
    made = TraceMaker()
    made.step(1, 0, 1000)
    made.op("aten::bmm", 10, 100)
    made.kernel("elementwise", 40, 30, launched=25)
    made.kernel("cudnn::bn_fw_tr", 300, 7, launched=250)
    made.kernel("mystery", 400, 1, launched=350)
    found = gpu_families(made)
    assert found == {"matrix products": 30, "normalisation": 7, "other": 1}
    assert {each.name: each.gpu_share for each in analyse_trace(loaded(made)).families}["other"] == pytest.approx(
        1 / 38
    )


def test_layout_changes_inside_a_convolution_are_that():
    made = TraceMaker()
    made.step(1, 0, 1000)
    conv = made.op("aten::cudnn_convolution", 10, 100)
    made.kernel("nchwToNhwcKernel", 40, 30, launched=25, op=conv)
    made.kernel("xmma_fprop_f16f16", 80, 90, launched=35, op=conv)
    assert gpu_families(made) == {"convolution": 90, "layout changes": 30}
    assert analyse_trace(loaded(made)).layout_share == pytest.approx(0.25)


def test_casts_inside_a_convolution_are_copies():
    made = TraceMaker()
    made.step(1, 0, 1000)
    made.op("aten::conv2d", 10, 100)
    made.op("aten::_to_copy", 20, 50)
    cast = made.op("aten::copy_", 30, 20)
    made.kernel("direct_copy", 40, 3, launched=35, op=cast)
    assert gpu_families(made) == {"copies": 3}


def test_work_between_the_passes_is_loss_and_sums_of_gradients_are_elementwise():
    made = TraceMaker()
    made.step(1, 0, 1000)
    for name, at, tid in (
        ("aten::conv2d", 10, 100),
        ("aten::mul", 100, 100),  # between the passes
        (NODE + "MulBackward0", 200, 101),  # its backward, likewise
        (NODE + "ConvolutionBackward0", 300, 101),
    ):
        op = made.op(name, at, 50, tid=tid)
        made.kernel("kernel", at + 60, 10, launched=at + 5, op=op)
    added = made.op("aten::add_", 320, 10, tid=101)  # of two gradients, by the node
    made.kernel("kernel", 400, 3, launched=322, op=added)
    updated = made.op("aten::mul_", 500, 10)
    made.kernel("kernel", 520, 2, launched=505, op=updated)
    assert gpu_families(made) == {"convolution": 20, "loss": 20, "elementwise": 5}


def test_what_the_optimizer_does_is_the_optimizers():
    made = TraceMaker()
    made.step(1, 0, 1000)
    made.mark("Optimizer.step#SGD.step", 100, 200)
    op = made.op("aten::mul_", 150, 20)
    made.kernel("kernel", 180, 10, launched=155, op=op)
    assert gpu_families(made) == {"optimizer": 10}


def test_self_time_leaves_out_what_was_called():
    made = TraceMaker()
    made.step(1, 0, 1000)
    made.op("aten::conv2d", 10, 100)
    made.op("aten::cudnn_convolution", 20, 60)
    made.op("aten::conv2d", 200, 30)
    found = analyse_trace(loaded(made))
    assert [(row.name, row.calls, round(row.cpu_s * 1e6)) for row in found.operators] == [
        ("aten::conv2d", 2, 70),
        ("aten::cudnn_convolution", 1, 60),
    ]
    assert [(row.name, round(row.cpu_s * 1e6), row.cpu_share) for row in found.families] == [("convolution", 130, 1.0)]


def test_kernels_by_name():
    made = TraceMaker()
    made.step(1, 0, 1000)
    op = made.op("aten::mm", 0, 500)
    for at, length in ((100, 30), (200, 50)):
        made.kernel("gemm", at, length, launched=at - 10, op=op)
    made.copy("Memcpy DtoD (Device -> Device)", 300, 20, 64, launched=290, op=op)
    (kernel,) = analyse_trace(loaded(made)).kernels
    assert (kernel.name, kernel.family, kernel.calls) == ("gemm", "matrix products", 2)
    assert (kernel.gpu_s, kernel.mean_s, kernel.share) == (
        pytest.approx(80e-6),
        pytest.approx(40e-6),
        pytest.approx(0.8),
    )


def test_layers_with_their_backward_pass():
    made = TraceMaker()
    made.step(1, 0, 2000)
    for index, at in ((0, 100), (1, 300)):
        made.op(f"layer {index} Conv", at, 150)
        made.op("aten::to", at + 5, 5, sequence=10 + index)  # has the number of what follows
        op = made.op("aten::conv2d", at + 20, 50, sequence=10 + index)
        made.kernel("fprop", at + 80, 10 + index, launched=at + 25, op=op)
    for index, at in ((1, 800), (0, 1000)):
        made.op(NODE + "ConvolutionBackward0", at, 100, tid=101, sequence=10 + index)
        op = made.op("ConvolutionBackward0", at + 10, 80, tid=101, sequence=10 + index)
        made.kernel("dgrad", at + 110, 20 + index, launched=at + 25, op=op)
    layers = analyse_trace(loaded(made)).layers
    assert [(row.index, row.module) for row in layers] == [(0, "Conv"), (1, "Conv")]
    assert [(round(row.forward_gpu_s * 1e6), round(row.backward_gpu_s * 1e6)) for row in layers] == [(10, 20), (11, 21)]
