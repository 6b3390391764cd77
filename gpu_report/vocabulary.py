"""What people are told: the names of causes in plain words, for the verdict and the page alike."""

from collections.abc import Mapping

CAUSES: Mapping[str, str] = {
    "validation": "Validation",
    "checkpoint": "Saving a checkpoint",
    "startup": "Start-up",
    "input-cpu": "Waiting for data: the loader's CPU",
    "input-storage": "Waiting for data: storage",
    "input-stalled": "Waiting for data: the loader stood still",
    "main-process": "Waiting for the trainer's main process",
    "launch-bound": "Kernels too small for the GPU",
    "memory-pressure": "Memory pressure",
    "trainer-blocked": "The trainer itself stood still",
    "other-process": "Another process on the GPU",
    "power-cap": "Power cap",
    "thermal": "Throttled by heat",
    "gpu-fault": "GPU fault",
    "waiting-for-peer": "Waiting for another GPU",
    "imbalance": "GPUs of one training far apart",
    "memory-growth": "GPU memory growing",
    "not-credible": "A reading that is not credible",
    "unused-gpu": "A GPU that nobody used",
    "run-ended": "The run had ended",
    "unexplained": "Not explained by anything recorded",
}


def cause_words(name: str) -> str:
    """Return a cause in plain words."""
    return CAUSES.get(name, name)
