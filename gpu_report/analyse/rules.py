"""The rules: each takes the context of a run and returns findings. To add one, write its module and list it here."""

from collections.abc import Callable, Sequence

from gpu_report.analyse.context import Context
from gpu_report.analyse.dropping import drops
from gpu_report.analyse.endings import bad_endings
from gpu_report.analyse.environment import environment
from gpu_report.analyse.epoch_rules import odd_epochs
from gpu_report.analyse.imbalance import uneven_gpus
from gpu_report.analyse.kernel_faults import kernel_faults
from gpu_report.analyse.losing import lost_gpus
from gpu_report.analyse.memory_growth import growing_memory
from gpu_report.analyse.memory_near_limit import full_memory
from gpu_report.analyse.not_credible import readings_not_credible
from gpu_report.analyse.sharing import other_processes
from gpu_report.analyse.slowing import slowdowns
from gpu_report.analyse.starvation import starved_gpus
from gpu_report.analyse.throttling import throttling
from gpu_report.analyse.unused_gpu import unused_gpus
from gpu_report.analyse.waiting import waiting_for_peer
from gpu_report.model import Finding

Rule = Callable[[Context], Sequence[Finding]]

RULES: tuple[Rule, ...] = (
    drops,
    slowdowns,
    starved_gpus,
    kernel_faults,
    lost_gpus,
    other_processes,
    waiting_for_peer,
    throttling,
    growing_memory,
    full_memory,
    uneven_gpus,
    unused_gpus,
    readings_not_credible,
    bad_endings,
    environment,
    odd_epochs,
)
