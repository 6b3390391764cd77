"""Thresholds of the analysis of a profiler's trace, each with its unit and its reason."""

# A kernel that finds the GPU idle starts this long after its launch: 7 to 12 µs (10th to 90th percentile of 24,000
# launches of a launch-bound yolo26n on an H100). Up to three times that, the queue held no more than a few short
# kernels: the median queue was empty.
EMPTY_QUEUE_GAP_S = 30e-6
# ... and the GPU was idle for at least a fifth of what was not a wait for data: else a short queue does no harm.
LAUNCH_BOUND_BUSY = 0.8
# A launch that waits this long had a hundred kernels of 10 µs before it in the queue: the CPU is far ahead, and nothing
# that it does holds the GPU back. A V100 that was 98 % busy had 76 ms.
FULL_QUEUE_GAP_S = 1e-3
# Of the steps spent in the exchange of gradients alone: below it another limit is worth more than this one.
EXCHANGE_SHARE = 0.1

# Between two kernels of a stream that were both launched in time: 1.0 to 1.2 µs, measured on an H100 and taken where a
# trace has too few such pairs.
KERNEL_GAP_S = 1e-6
PAIRS_FOR_GAP = 50

# Kernels a step agree within this share of their median. Steps with and without an optimizer step differ by 13 % in a
# yolo26n. A first step that has fewer lacks some if this share of its launches has no kernel: CUPTI loses the first
# ones of a session (pytorch#192021), while of 24,000 launches on an H100 each had its kernel.
KERNELS_AGREE = 0.2
KERNELS_LOST = 0.05

# Of convolution and matrix time: from this share on in kernels with tensor cores, they are used ...
TENSOR_CORES_USED = 0.5
# ... and from this share on in kernels that are known to have none, they are not. Depthwise convolutions of a YOLO26
# have none, and take a tenth.
TENSOR_CORES_UNUSED = 0.8

# An optimizer step that launches more kernels than this updates one parameter at a time: fused and foreach ones have
# one for some 100 tensors each.
PER_PARAMETER_KERNELS = 100
