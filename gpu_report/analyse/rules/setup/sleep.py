"""Configuration problem: a machine that goes to sleep while it trains, so that nothing runs for much of the time."""

from gpu_report.analyse.context import Context
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.setup.check import SetupIssue
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.catalogue import SLEPT_KEY
from gpu_report.model import SLEPT_LEAST_S, Advice, Evidence
from gpu_report.wording import counted, length

AWAKE = "Keep the machine awake while it trains"
HOW = "start it with `systemd-inhibit --what=sleep:idle:handle-lid-switch COMMAND`, or change its power settings"


def machine_slept(context: Context, training: Training) -> SetupIssue | None:
    """Find a machine that slept for much of a training. No clock of the recording went on meanwhile, nor did work."""
    start_s, end_s = training.span
    within = [(at_s, seconds) for at_s, seconds in context.run.slept if start_s <= at_s <= end_s]
    slept = [seconds for _, seconds in within]
    lasted_s = end_s - start_s + sum(slept)
    if sum(slept) < max(SLEPT_LEAST_S, th.SLEPT_SHARE * lasted_s):
        return None
    return SetupIssue(
        "warning",
        f"The machine slept for {length(sum(slept))} of this training ({length(lasted_s)}), and nothing ran",
        (start_s,),
        (
            Evidence(f"asleep, {counted(len(slept), 'time')}", sum(slept), "s", key=SLEPT_KEY),
            Evidence("awake in this training", end_s - start_s, "s"),
        ),
        (Advice(f"{AWAKE}: {HOW}", short=AWAKE),),
        span=(within[0][0], within[-1][0]),
    )
