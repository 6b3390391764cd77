"""Set-up at odds: the fast ways of NCCL between the GPUs of one machine that are switched off."""

from gpu_report.analyse.context import Context
from gpu_report.analyse.rules.setup.check import SetupIssue
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.model import Advice
from gpu_report.wording import setting_location_words

P2P, SHM = "p2p", "shm"  # directly from GPU to GPU (NVLink, PCIe); through the host's shared memory
VARIABLES = {P2P: "NCCL_P2P_DISABLE", SHM: "NCCL_SHM_DISABLE"}


def transport_off(context: Context, training: Training) -> SetupIssue | None:  # noqa: ARG001 - as all checks
    """Find a training on several GPUs of this machine whose NCCL may not take the direct way between them.

    Without both ways gradients go through the network's (sockets, InfiniBand): YOLO26l on two H200, 16 images each,
    made 5.2 steps a second instead of 8.6. Without P2P alone they go through shared memory, all that GPUs without
    NVLink may have: it is a note. (NVIDIA, NCCL User Guide: Environment Variables.)
    """
    off = training.settings.get("nccl_disabled")
    named = [way for way in VARIABLES if isinstance(off, list | tuple) and way in off]
    if len(training.gpus) <= 1 or P2P not in named:
        return None
    place = setting_location_words(training.setting_locations, *named)
    variables = " and ".join(f"`{VARIABLES[way]}`" for way in named)
    if SHM in named:
        short = f"Unset {variables}{place}"
        text = "The GPUs of this machine exchange gradients as if over a network"
        do = Advice(f"{short} in the shell or the script that sets them", short=short)
        return SetupIssue("warning", text, tuple(named), (), (do,))
    text = "Gradients go through the host's memory: P2P between GPUs is switched off"
    unless = Advice(f"Unset {variables}{place}, unless the training hangs without it")
    return SetupIssue("info", text, tuple(named), (), (unless,))
