"""What the rules of a job are called."""

from collections.abc import Mapping

from gpu_report.model import JobRule

TITLES: Mapping[JobRule, str] = {
    "straggler": "Slowest rank",
    "stall-from-node": "One node stalled, others waited",
    "missing-rank": "Rank missing from a collective",
    "missing-node": "Missing from this report",
    "elastic-restart": "Ranks were restarted",
    "sockets": "TCP between nodes",
    "unequal-gpus": "Unequal GPUs",
    "clocks-apart": "Clocks differ",
    "clocks-unknown": "Clocks cannot be aligned",
    "same-host": "Same host name",
}
