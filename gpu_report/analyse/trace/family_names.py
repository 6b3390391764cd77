"""Families of operators and kernels, by name: what belongs to which.

Names of operators are ATen's and autograd's, in the spelling of torch 1.8 to 2.13; names of kernels those of cuDNN,
cuBLAS, CUTLASS, NCCL and Triton. A kernel is named only where its operator is not known, for a name does not tell a
convolution from a matrix product: `implicit_gemm`, `xmma`, `cutlass` and `nvjet` are in both.
"""

import re
from collections.abc import Sequence
from typing import Final

from gpu_report.model import FamilyName

Patterns = Sequence[tuple[FamilyName, str]]  # `re` keeps those that it compiled: few reports have a trace

# The first one that is found counts. An operator of such a name lends its family to what it calls.
OPERATORS: Final[Patterns] = (
    ("communication", r"nccl|c10d::|_c10d_functional|record_param_comms"),
    ("compiled", r"Torch-Compiled Region|CompiledFunction|CompiledFxGraph|TorchDynamo Cache Lookup"),
    ("NMS", r"::(?:batched_)?nms\b|::_batched_nms"),
    ("loss", r"cross_entropy|CrossEntropy|nll_loss|NllLoss|log_softmax|LogSoftmax|(?:mse|l1|huber|kl_div|focal)_loss"),
    ("loss", r"(?:Mse|L1|Huber|KlDiv|SmoothL1)Loss"),
    ("optimizer", r"::_foreach_|::_fused_(?:adam|adamw|sgd|adagrad)_?|::_amp_(?:foreach|update)|^Optimizer\."),
    ("layout changes", r"^aten::contiguous$"),
    ("copies", r"^aten::(?:to|_to_copy|type_as|pin_memory|item|_local_scalar_dense)$|ToCopyBackward|CopyBackwards"),
    ("convolution", r"conv(?:olution|[123]d|_transpose|_depthwise)|Convolution|Conv[123]D"),
    ("normalisation", r"(?:batch|layer|group|instance|rms)_norm|(?:Batch|Layer|Group|Instance|RMS)Norm"),
    ("attention", r"scaled_dot_product|ScaledDotProduct|attention|softmax|Softmax"),
    ("activation", r"::(?:silu|sigmoid|relu|relu6|leaky_relu|gelu|hardswish|hardsigmoid|mish|tanh|elu|selu|prelu)_?\b"),
    ("activation", r"::(?:silu|sigmoid|gelu|hardswish|threshold|tanh|leaky_relu|elu|mish)_backward"),
    ("activation", r"(?:Silu|Sigmoid|Relu|Gelu|Hardswish|Hardsigmoid|Mish|Tanh|Elu)Backward"),
    ("matrix products", r"::(?:mm|bmm|addmm|addbmm|baddbmm|matmul|linear|einsum|_scaled_mm|addmv|mv|dot)$"),
    ("matrix products", r"(?:^|[^a-z])(?:Mm|Bmm|Addmm|Baddbmm|Matmul|Linear)Backward"),
    ("upsampling", r"upsample|Upsample|interpolate|grid_sampl|GridSampl"),
    ("pooling", r"pool[123]?d?|Pool[123]D"),
    ("concatenation", r"^aten::(?:cat|concat|concatenate|stack|hstack|vstack)$|(?:Cat|Stack)Backward"),
    (
        "indexing",
        r"^aten::(?:_?index|gather|scatter|topk|sort|argsort|msort|nonzero|_?unique|masked|searchsorted|take)",
    ),
    ("indexing", r"(?:Index|Gather|Scatter|Topk|Sort|Masked\w+|Take)Backward"),
    ("indexing", r"^torchvision::|^aten::(?:one_hot|bucketize|histc|bincount|embedding)"),
)
# Building blocks: they take the family of the operator that calls them, and have this one only where none does.
BLOCKS: Final[Patterns] = (
    ("copies", r"^aten::(?:copy_|clone|reshape|_reshape_alias|_copy_from|lift_fresh)$|CloneBackward"),
    ("elementwise", r"^aten::|AccumulateGrad"),
)
KERNELS: Final[Patterns] = (
    ("communication", r"nccl"),
    ("layout changes", r"nchwToNhwc|nhwcToNchw|genericTranspose|convertTensor_kernel"),
    ("compiled", r"^triton_"),
    ("optimizer", r"multi_tensor_apply"),
    ("attention", r"flash|fmha|softmax"),
    ("convolution", r"fprop|dgrad|wgrad|convolve|conv2d|conv_depthwise|implicit_gemm|winograd"),
    (
        "normalisation",
        r"batch_?norm|layer_?norm|group_?norm|bn_[fb]w|bnorm",
    ),
    ("matrix products", r"gemm|nvjet|cutlass|cublas|gemv"),
    ("upsampling", r"upsample"),
    ("pooling", r"pool"),
    ("concatenation", r"CatArray"),
    ("copies", r"^Memcpy|direct_copy"),
    ("activation", r"silu|sigmoid|relu|gelu"),
    ("indexing", r"index|gather|scatter|[Ss]ort|topk|unique|nms"),
    ("elementwise", r"elementwise|reduce_kernel|^Memset"),
)
# These a kernel is whatever launched it.
KERNELS_BY_NATURE: Final[tuple[FamilyName, ...]] = ("communication", "layout changes", "compiled")


def family_of(name: str, patterns: Patterns) -> FamilyName | None:
    """Return the family of a name, None where no pattern is found in it."""
    return next((family for family, pattern in patterns if re.search(pattern, name)), None)
