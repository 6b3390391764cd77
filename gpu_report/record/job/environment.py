"""The job as its launcher names it in the environment: Slurm, torchrun, Kubernetes. Nothing else of it is kept."""

import re
from collections.abc import Mapping

from gpu_report.run_folder import slurm_job_id

_ID = re.compile(r"[\w.:-]{1,64}")
NO_ID = "none"  # torchrun's, where nobody gave one
LARGEST = 1_000_000  # ranks or nodes: more is no count

# In this order: who knows the machines goes before who was started on them.
NODE_RANKS = ("SLURM_NODEID", "GROUP_RANK", "PET_NODE_RANK", "JOB_COMPLETION_INDEX")
NODES = ("SLURM_JOB_NUM_NODES", "SLURM_NNODES", "GROUP_WORLD_SIZE", "PET_NNODES")
IDS = ("TORCHELASTIC_RUN_ID", "PET_RDZV_ID")


def job_of(env: Mapping[str, str]) -> dict[str, object]:
    """Return schema.RUN_JOB without ranks and clock; null is what no variable says."""
    scheduler, job = _named(env)
    return {
        "id": job,
        "scheduler": scheduler,
        "node_rank": _first(env, NODE_RANKS),
        "nodes": _first(env, NODES),
        "world_size": _first(env, ("WORLD_SIZE",)),
        "restarts": _first(env, ("TORCHELASTIC_RESTART_COUNT",)),
    }


def own_rank(env: Mapping[str, str]) -> dict[str, object] | None:
    """Return the rank that the recorder was started as, and its command with it; None outside torchrun."""
    rank = _count(env.get("RANK"))
    if rank is None:
        return None
    return {"rank": rank, "local_rank": _count(env.get("LOCAL_RANK")), "gpu_uuid": None, "pid": None}


def _named(env: Mapping[str, str]) -> tuple[str | None, str | None]:
    named = next((value for name in IDS if (value := env.get(name)) and value != NO_ID and _ID.fullmatch(value)), None)
    slurm = slurm_job_id(env.get("SLURM_JOB_ID"))
    if slurm is not None:
        return "slurm", slurm
    if env.get("KUBERNETES_SERVICE_HOST"):
        return "kubernetes", named
    return ("torchrun" if env.get("TORCHELASTIC_RUN_ID") else None), named


def _first(env: Mapping[str, str], names: tuple[str, ...]) -> int | None:
    return next((count for name in names if (count := _count(env.get(name))) is not None), None)


def _count(text: str | None) -> int | None:
    """Return a whole number; None for what is none, such as the range of nodes of an elastic job (1:4)."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 8 and int(text) <= LARGEST else None
