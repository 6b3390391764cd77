"""Configuration problem: the fast ways of NCCL between the GPUs of one machine that are switched off."""

from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.setup.check import SetupIssue
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.model import Advice
from gpu_report.wording import setting_location_words

P2P, SHM = "p2p", "shm"  # directly from GPU to GPU (NVLink, PCIe); through the host's shared memory
VARIABLES = {P2P: "NCCL_P2P_DISABLE", SHM: "NCCL_SHM_DISABLE"}


def transport_off(context: Context, training: Training) -> SetupIssue | None:
    """Find a training on several GPUs of this machine whose NCCL may not take the direct way between them.

    Without both ways gradients go through the network's (sockets, InfiniBand): YOLO26l on two H200, 16 images each,
    made 5.2 steps a second instead of 8.6. Without P2P alone they go through shared memory, all that GPUs without
    NVLink may have: it is a note, unless that may take much of a step. (NVIDIA, NCCL
    User Guide: Environment Variables.)
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
    short = f"Unset {variables}{place}, unless the training hangs without it"
    share = _share_of_a_step(context, training)
    if share is None or share < th.HOST_GRADIENTS_SHARE:
        return SetupIssue("info", text, tuple(named), (), (Advice(short),))
    most = (
        f"At {th.HOST_MIB_PER_S:,} MiB/s that is up to {100 * share:.0f} % of each step. Compare one epoch without it"
    )
    numbers = evidence(("of a step, for gradients through the host's memory, at most", 100 * share, "%"))
    do = Advice(f"{short}. {most}", short=short, gain_at_most=share)
    return SetupIssue("warning", text, tuple(named), numbers, (do,))


def _share_of_a_step(context: Context, training: Training) -> float | None:
    """Return which share (0 to 1) of a step gradients take at most on their way through the host's memory.

    Each rank sends and receives 2 * (N - 1) / N of them (a ring), in 32 bits. None where that is not known, and of
    cards that have no direct way: NVIDIA's driver gives GeForce none.
    """
    gpus, parameters = training.gpus, training.quantity("parameters")
    steps = [signals.step_s for gpu in gpus if (signals := context.signals.of_training(gpu, training)) is not None]
    step_s = max((each for each in steps if each), default=None)
    if step_s is None or not parameters or any("GeForce" in (context.run.gpu(gpu).name or "") for gpu in gpus):
        return None
    sent_mib = th.GRADIENT_BYTES * parameters * 2 * (len(gpus) - 1) / len(gpus) / 2**20
    return min(sent_mib / th.HOST_MIB_PER_S / step_s, th.HOST_GRADIENTS_MOST)
