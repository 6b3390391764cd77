"""What a line says of an exception becomes codes where there are numbers and fixed formats; the rest stays words."""

import pytest

from gpu_report.load.yolo.exceptions import LONGEST_MESSAGE, raised
from gpu_report.model import NAN_GRADIENT, Frame, Raised, RefusedAllocation


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"errno": "ENOSPC", "message": "No space left on device"}, "ENOSPC"),
        ({"cuda_error": 710, "message": "CUDA error: device-side assert triggered"}, "cudaErrorAssert"),
        ({"cuda_error": 77, "message": "CUDA error: of the future"}, "cudaError"),
        ({"message": "CUDA error: an illegal memory access was encountered"}, "cudaErrorIllegalAddress"),
        (
            {"message": "CUDA error: device-side assert triggered CUDA kernel errors might be asynchronous"},
            "cudaErrorAssert",
        ),
        ({"message": "CUDA error: out of memory Compile with `TORCH_USE_CUDA_DSA`"}, "cudaErrorMemoryAllocation"),
        ({"message": "CUDA error: of the future"}, "cudaError"),
        (
            {"message": "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"},
            "CUBLAS_STATUS_ALLOC_FAILED",
        ),
        ({"message": "cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"}, "CUDNN_STATUS_EXECUTION_FAILED"),
        ({"message": "Function 'ConvolutionBackward0' returned nan values in its 1th output."}, NAN_GRADIENT),
        ({"message": "my Function 'ConvolutionBackward0' returned nan values in its 1th output."}, None),
        ({"message": "my own words about a CUDA error: out of memory"}, None),
        ({"cuda_error": "x", "message": ""}, None),
        ({}, None),
    ],
)
def test_a_code_is_a_number_or_a_fixed_format(fields, code):
    assert raised(fields).code == code


@pytest.mark.parametrize(
    ("message", "how"),
    [
        ("DataLoader worker (pid 7) is killed by signal: Killed.", "SIGKILL"),
        ("DataLoader worker (pid 7) is killed by signal: Bus error. It is possible that dataloader's", "SIGBUS"),
        ("DataLoader worker (pid 7) is killed by signal: Segmentation fault.", "SIGSEGV"),
        ("DataLoader worker (pid 7) is killed by signal: Of the future.", "exited"),
        ("DataLoader worker (pid(s) 7, 8) exited unexpectedly", "exited"),
        ("DataLoader worker (pid 7) exited unexpectedly with exit code 3. Details are lost", "exited"),
        ("my worker (pid 7) is killed by signal: Killed.", None),
    ],
)
def test_the_end_of_a_loaders_worker_is_known_by_its_format(message, how):
    assert raised({"message": message}).loader_worker == how


@pytest.mark.parametrize(
    ("message", "refused"),
    [
        (
            "CUDA out of memory. Tried to allocate 400.00 MiB. GPU 0 has a total capacity of 139.80 GiB of which "
            "105.96 GiB is free. Including non-PyTorch memory, this process has 33.82 GiB memory in use. 33.53 GiB "
            "allowed; Of the allocated memory 26.36 GiB is allocated by PyTorch",
            RefusedAllocation(400.0, 105.96 * 1024, 33.53 * 1024),
        ),
        (
            "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 79.19 GiB total capacity; 78.00 GiB already "
            "allocated; 17.00 MiB free; 78.10 GiB reserved in total by PyTorch)",
            RefusedAllocation(2048.0, 17.0),
        ),
        ("CUDA out of memory. Tried to allocate 20.00 GiB.", RefusedAllocation(20 * 1024.0)),
        ("my words: CUDA out of memory. Tried to allocate 20.00 GiB.", None),
    ],
)
def test_an_allocation_that_failed_is_known_by_its_format(message, refused):
    assert raised({"message": message}).refused == refused


def test_words_are_one_line_that_can_be_printed_and_not_long():
    told = raised({"message": "a\x1b[31m b\n\u202ec" + "x" * 2000, "bases": ["Error", 5, "", "x" * 2000]})
    assert told.message.startswith("a[31m b c")
    assert len(told.message) == LONGEST_MESSAGE
    assert [len(name) for name in told.bases] == [5, LONGEST_MESSAGE]


@pytest.mark.parametrize("odd", [5, None, [], {"a": 1}, True, 1e400])
def test_nonsense_is_not_known(odd):
    nonsense = dict.fromkeys(("message", "bases", "errno", "cuda_error", "raised_in", "frames"), odd)
    assert raised(nonsense) in {Raised(), Raised(code="cudaErrorUnknown" if odd == 999 else "cudaError")}


def test_frames_are_those_it_came_through():
    told = raised({"frames": [["/me/train.py", 41, "fail"], ["/x/trainer.py", 7, "_do_train"]]})
    assert told.frames == (Frame("/me/train.py", 41, "fail"), Frame("/x/trainer.py", 7, "_do_train"))


@pytest.mark.parametrize("odd", [["x"], [["a", 1]], [["", 1, "f"]], [["a", "one", ""]], [[1, 2, 3]], {"a": 1}, [[]]])
def test_frames_that_make_no_sense_are_none(odd):
    assert raised({"frames": odd}).frames == ()
