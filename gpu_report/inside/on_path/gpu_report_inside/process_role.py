"""What this process is in a training: its main process, a rank of it, or a worker of a loader."""

from __future__ import annotations

import os
import sys
from typing import Any

SPAWNED_RANK = "torch.multiprocessing.spawn"
FORKSERVER = "multiprocessing.forkserver"


def role() -> str | None:
    """Return `main`, `rank N` or `worker N`, None for a process that is none of them."""
    info = getattr(sys.modules.get("torch.utils.data._utils.worker"), "_worker_info", None)
    if info is not None:
        return f"worker {info.id}"
    process = _child()
    if process is None:
        return None if any(FORKSERVER in word for word in getattr(sys, "orig_argv", ())) else _rank() or "main"
    target = getattr(process, "_target", None)
    if getattr(target, "__module__", None) != SPAWNED_RANK:
        return None
    args: Any = getattr(process, "_args", ())  # the function, its number on this machine, ...
    return _rank() or (f"rank {args[1]}" if len(args) > 1 and isinstance(args[1], int) else None)


def is_child() -> bool:
    """Tell whether another process made this one by `multiprocessing`: where it is one of a loader, or a rank."""
    module = sys.modules.get("multiprocessing.process")
    current = getattr(module, "current_process", lambda: None)()
    return _child() is not None or bool(getattr(current, "_inheriting", False))


def _child() -> Any:
    """Return the process as `multiprocessing` knows it, None where it did not make it."""
    module = sys.modules.get("multiprocessing.process")
    if module is None or getattr(module, "parent_process", lambda: None)() is None:
        return None
    return module.current_process()


def _rank() -> str | None:
    """Return which rank this is: as torch.distributed says, else as torchrun set it; None where there is just one."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return f"rank {distributed.get_rank()}" if distributed.get_world_size() > 1 else None
    rank = os.environ.get("RANK", "-1")
    return f"rank {rank}" if rank.isdigit() and os.environ.get("WORLD_SIZE", "1") != "1" else None
