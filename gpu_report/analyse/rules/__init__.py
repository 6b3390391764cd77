"""The rules: each takes the context of a run and returns findings. To add one, write its module and list it here.

No rule asks another. What compares epochs has to leave out what other rules have found in them: compare_epochs comes
last, and takes those findings as well. A fall of utilisation that is part of what lasts is left out then.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from gpu_report.analyse.context import Context
from gpu_report.analyse.inference.served import is_inference
from gpu_report.analyse.rules.between_trainings import between_trainings
from gpu_report.analyse.rules.between_validations import between_validations
from gpu_report.analyse.rules.contained_findings import without_contained
from gpu_report.analyse.rules.drops import drops
from gpu_report.analyse.rules.drops.merged_over_ranks import merged_over_ranks
from gpu_report.analyse.rules.drops.slow_epoch_ends import slow_epoch_ends
from gpu_report.analyse.rules.drops.slowdowns import slowdowns
from gpu_report.analyse.rules.drops.stalled_epoch_ends import stalled_epoch_ends
from gpu_report.analyse.rules.epochs import compare_epochs
from gpu_report.analyse.rules.epochs.growing_pauses import without_growing_pauses
from gpu_report.analyse.rules.gpus.gpu_imbalance import uneven_gpus
from gpu_report.analyse.rules.gpus.implausible_readings import readings_not_credible
from gpu_report.analyse.rules.gpus.lost_gpus import lost_gpus
from gpu_report.analyse.rules.gpus.memory_growth import growing_memory
from gpu_report.analyse.rules.gpus.memory_limit import full_memory
from gpu_report.analyse.rules.gpus.throttling import throttling
from gpu_report.analyse.rules.gpus.unused_gpus import unused_gpus
from gpu_report.analyse.rules.host_memory_growth import growing_host_memory
from gpu_report.analyse.rules.inference import inference_findings
from gpu_report.analyse.rules.kernel_events import attach_to_their_finding, kernel_faults
from gpu_report.analyse.rules.leftover_processes import leftover_processes
from gpu_report.analyse.rules.low_utilisation import starved_gpus
from gpu_report.analyse.rules.nccl import missing_ranks, nccl_warnings
from gpu_report.analyse.rules.other_processes import other_processes
from gpu_report.analyse.rules.past_causes import with_past_causes_as_notes
from gpu_report.analyse.rules.profiler import profiled_findings
from gpu_report.analyse.rules.rank_waits import waiting_for_peer
from gpu_report.analyse.rules.repeated_data import repeated_data
from gpu_report.analyse.rules.setup import check_setup
from gpu_report.analyse.rules.slow_exit import slow_exits
from gpu_report.analyse.rules.slow_start import slow_starts
from gpu_report.analyse.rules.tensor_share import other_gpu_work
from gpu_report.analyse.rules.training_end import bad_endings
from gpu_report.analyse.rules.training_end.resume_command import with_resume_command
from gpu_report.analyse.rules.trainings_at_once import trainings_at_once
from gpu_report.analyse.rules.user_code import user_code, without_less_specific
from gpu_report.analyse.validations import nothing_trained
from gpu_report.catalogue import RULES as CATALOGUE
from gpu_report.model import Finding

Rule = Callable[[Context], Sequence[Finding]]

RULES: tuple[Rule, ...] = (
    drops,
    slowdowns,
    slow_epoch_ends,
    stalled_epoch_ends,
    slow_starts,
    slow_exits,
    between_trainings,
    between_validations,
    repeated_data,
    starved_gpus,
    user_code,
    other_gpu_work,
    profiled_findings,
    kernel_faults,
    lost_gpus,
    other_processes,
    trainings_at_once,
    waiting_for_peer,
    throttling,
    growing_memory,
    growing_host_memory,
    full_memory,
    uneven_gpus,
    unused_gpus,
    readings_not_credible,
    bad_endings,
    missing_ranks,
    nccl_warnings,
    leftover_processes,
    check_setup,
)


# What is said of a training alone: its drops, its loader, its epochs and its ranks.
OF_TRAININGS: frozenset[Rule] = frozenset(
    {drops, slowdowns, slow_epoch_ends, stalled_epoch_ends, slow_starts, starved_gpus, user_code, waiting_for_peer}
    | {other_gpu_work, uneven_gpus, unused_gpus}
)
# Calls have rules of their own for it.
NOT_OF_CALLS: frozenset[Rule] = frozenset({growing_memory, growing_host_memory, other_processes})


def find_all(context: Context) -> list[Finding]:
    """Return what all rules say about a run, its findings numbered by their kind (drop-3).

    A kernel line within another finding is none of its own, and what ended a training says how to resume it.
    What held an earlier training back, and no longer does, is a note.
    """
    calls = is_inference(context)
    not_theirs = (OF_TRAININGS if calls or nothing_trained(context) else set()) | (NOT_OF_CALLS if calls else set())
    rules = [rule for rule in RULES if rule not in not_theirs]
    found = [finding for rule in rules for finding in rule(context)]
    found += inference_findings(context)
    found = merged_over_ranks(context, found)
    found += compare_epochs(context, found)
    found = without_less_specific(without_contained(without_growing_pauses(found)))
    counts: Counter[str] = Counter()
    for at, finding in enumerate(found):
        anchor = CATALOGUE[finding.rule].anchor
        counts[anchor] += 1
        found[at] = replace(finding, id=f"{anchor}-{counts[anchor]}")
    return with_past_causes_as_notes(context, with_resume_command(context, attach_to_their_finding(found)))
