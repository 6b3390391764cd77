"""How ranks exchange gradients, in words and as JSON: NCCL's version, its network, and the ways between ranks."""

from typing import Any

from gpu_report.model import Nccl

OF_NODE = "NET/"  # how a transport between nodes begins; NCCL seldom takes it within one


def nccl_words(nccl: Nccl) -> str:
    """Return what NCCL's file says, empty without one: 2.28.9, ranks connected by P2P/CUMEM and NET/IB/GDRDMA."""
    versions, ways = ", ".join(nccl.versions), " and ".join(nccl.transports)
    adapters = dict.fromkeys(name for each in nccl.processes for name in each.adapters)
    by_net = any(way.startswith(OF_NODE) for way in nccl.transports)
    through = f" ({', '.join(adapters)})" if adapters and by_net else ""
    return ", ".join(filter(None, (versions, f"ranks connected by {ways}{through}" if ways else "")))


def nccl_json(nccl: Nccl) -> list[dict[str, Any]]:
    """Return NCCL's processes as JSON-ready values."""
    return [
        {
            "rank": each.rank,
            "pid": each.pid,
            "version": each.version,
            "network": each.network,
            "adapters": list(each.adapters),
            "transports": list(each.transports),
            "settings": dict(each.settings),
            "warnings": [{"t_s": one.t_s, "source": one.source or None, "text": one.text} for one in each.warnings],
        }
        for each in nccl.processes
    ]
