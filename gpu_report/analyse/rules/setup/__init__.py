"""Rule: a set-up that does not fit its machine. To add one, write a Check (check.py) and list it here."""

from collections.abc import Hashable

from gpu_report.analyse.context import Context
from gpu_report.analyse.rules.setup.batch import batch_too_large
from gpu_report.analyse.rules.setup.check import Check, SetupIssue
from gpu_report.analyse.rules.setup.clocks import application_clocks
from gpu_report.analyse.rules.setup.host import cores, shared_memory, threads
from gpu_report.analyse.rules.setup.images import enlarged, repeated_images
from gpu_report.analyse.rules.setup.masks import finer_masks
from gpu_report.analyse.rules.setup.nccl import transport_off
from gpu_report.analyse.rules.setup.pcie import pcie_link
from gpu_report.analyse.rules.setup.polygons import polygon_labels
from gpu_report.analyse.rules.setup.sleep import machine_slept
from gpu_report.analyse.rules.setup.slow_images import slow_images, slow_npy
from gpu_report.analyse.rules.setup.storage import data_disk
from gpu_report.analyse.rules.setup.torch import (
    cudnn_off,
    full_precision,
    gpu_not_taken,
    no_gpu_for_torch,
    slow_mode,
    torch_a_little_newer,
    torch_too_new,
    torch_without_cuda,
)
from gpu_report.analyse.rules.setup.unlike_gpus import unlike_gpus
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.model import Finding

CHECKS: tuple[Check, ...] = (
    torch_without_cuda,
    torch_too_new,
    gpu_not_taken,
    no_gpu_for_torch,
    torch_a_little_newer,
    cudnn_off,
    slow_mode,
    full_precision,
    batch_too_large,
    enlarged,
    finer_masks,
    repeated_images,
    transport_off,
    pcie_link,
    application_clocks,
    unlike_gpus,
    shared_memory,
    threads,
    cores,
    data_disk,
    slow_npy,
    slow_images,
    polygon_labels,
    machine_slept,
)


def check_setup(context: Context) -> list[Finding]:
    """Report what of each training's set-up does not fit the machine; what several trainings share is said once."""
    found: dict[Hashable, tuple[Training, SetupIssue]] = {}
    for training in context.trainings:
        for check in CHECKS:
            issue = check(context, training)
            if issue is not None:
                found.setdefault((check, issue.about), (training, issue))
    return [_finding(context, *each) for each in found.values()]


def _finding(context: Context, training: Training, issue: SetupIssue) -> Finding:
    """Return a finding over the time that it held for; what is only worth a note has no length."""
    start_s, end_s = issue.span or training.span
    return context.finding(
        "environment",
        issue.severity,
        (start_s, start_s if issue.severity == "info" else end_s),
        issue.summary,
        evidence=issue.evidence,
        cause=issue.cause,
        advice=issue.advice,
        epoch=None,
        phase=None,
    )
