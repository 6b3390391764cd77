"""What torch.compile has made of the model so far: graphs, and where the model's code breaks them."""

from __future__ import annotations

import sys
from typing import Any

RESUMES = "torch_dynamo_resume_in_"  # torch's name for what comes after a break: `..._in_forward_at_88`
MOST_BREAKS = 8


def graphs() -> int | None:
    """Return how many graphs have been made, None where nothing is compiled."""
    counters = _counters()
    return None if counters is None else int(counters["stats"]["unique_graphs"])


def breaks() -> list[str]:
    """Return the functions and lines after which a graph ends before its function does: `forward at 88`."""
    counters = _counters()
    names = [] if counters is None else [name for name in counters["resumes"] if name.startswith(RESUMES)]
    return [" at ".join(name[len(RESUMES) :].rpartition("_at_")[::2]) for name in names[:MOST_BREAKS]]


def _counters() -> Any:
    """Return torch's own counts: a Counter of each of many names."""
    dynamo = sys.modules.get("torch._dynamo.utils")  # only where something was compiled
    counters = getattr(dynamo, "counters", None)
    return counters if counters and counters["stats"]["unique_graphs"] else None
