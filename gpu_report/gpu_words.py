"""How a GPU is called: by its index, a MIG device by its GPU's and its number there, as `--gpus` takes them."""

from collections.abc import Sequence

from gpu_report.schema import MIG_INDEX_STEP


def gpu_number(index: int) -> str:
    """Return the number of a GPU, or of a MIG device: 3, or 0:1 for the second one of GPU 0."""
    parent, number = divmod(index, MIG_INDEX_STEP)
    return f"{parent - 1}:{number}" if parent else str(number)


def gpu_words(index: int | None) -> str:
    """Return a GPU as it is spoken: GPU 3, GPU 0:1; one that is not known is a GPU."""
    return "a GPU" if index is None else f"GPU {gpu_number(index)}"


def gpus_words(gpus: Sequence[int]) -> str:
    """Return GPUs, in order, as they are spoken: GPU 1, GPUs 0 and 1, GPUs 0 to 7; empty for none."""
    if len(gpus) <= 1:
        return gpu_words(gpus[0]) if gpus else ""
    if len(gpus) > 2 and gpus[-1] - gpus[0] == len(gpus) - 1:
        return f"GPUs {gpu_number(gpus[0])} to {gpu_number(gpus[-1])}"
    return f"GPUs {', '.join(map(gpu_number, gpus[:-1]))} and {gpu_number(gpus[-1])}"
