"""What to do with a training that was cut short: resume it, with what makes it faster, or start it again."""

from collections.abc import Sequence
from dataclasses import replace

from gpu_report.analyse.advice import thresholds as th
from gpu_report.analyse.context import Context
from gpu_report.analyse.rules.training_end.resume_command import resumed_with
from gpu_report.catalogue import ENDS_EPOCHS_KEY
from gpu_report.model import Advice, Ending, Finding, Projection
from gpu_report.wording import lower_first

# Arguments that a resumed training takes anew (`check_resume` of ultralytics/engine/trainer.py); others it takes from
# the checkpoint. Older versions ignore `workers` and `cache`, and resume all the same.
RESUMED_WITH = frozenset({"batch", "cache", "workers"})
# All arguments that it takes anew (ultralytics 8.4).
RESUME_ARGUMENTS = RESUMED_WITH | {
    *("augmentations", "channels_last", "close_mosaic", "data", "device", "freeze", "imgsz", "patience", "plots"),
    *("project", "save_dir", "save_period", "time", "val"),
}
RESTART = "Restart with longer epochs"  # how long is in the advice itself
NEXT_TIME = "Make epochs longer in the next training"


def keep_faster_option(
    context: Context, findings: Sequence[Finding], ending: Ending | None, projection: Projection | None
) -> list[Finding]:
    """Return the findings with one way on: where both are offered, the one by which the training is over sooner.

    Longer epochs need a new start, for `epochs` is taken from the checkpoint. What a resumed training can take anew
    stands in the command that resumes it.
    """
    ended = next((f for f in findings if any(advice.resume for advice in f.advice)), None)
    if ended is None:
        return list(findings)
    kept = next((f for f in findings if _kept(f) and _is_same(context, f, ended)), None)
    if kept is not None:
        return _with_kept(findings, ended, kept, ending)
    longer = next((f for f in findings if _makes_longer(f) and _is_same(context, f, ended)), None)
    if longer is None:
        return [_resumed_with(f, _fix(findings, projection)) if f is ended else f for f in findings]
    if _is_restart_faster(ending, max(advice.gain_estimate or 0.0 for advice in longer.advice)):
        ways = {ended.id: _without_resume(ended), longer.id: _with_restart(longer)}
    else:
        ways = {longer.id: _next_time(longer, ending)}
    return [ways.get(f.id, f) for f in findings]


def _kept(finding: Finding) -> Advice | None:
    """Return the argument that a warning asks to set, and a resumed training keeps as it is; None without one."""
    wanted = finding.advice if finding.severity != "info" else ()
    return next((a for a in wanted if a.argument and a.short and a.argument not in RESUME_ARGUMENTS), None)


def _with_kept(findings: Sequence[Finding], ended: Finding, finding: Finding, ending: Ending | None) -> list[Finding]:
    """Return the findings where resuming keeps what is to be set: with a new start, or saying that it is kept."""
    advice = _kept(finding)
    if advice is None:
        return list(findings)
    if _is_restart_faster(ending, advice.gain_estimate or advice.gain_at_most or 0.0):
        anew = replace(advice, short=f"Restart with `{advice.argument}={advice.to_value}`")
        ways = {
            ended.id: _without_resume(ended),
            finding.id: replace(finding, advice=tuple(anew if each is advice else each for each in finding.advice)),
        }
    else:
        keeps = f". It keeps `{advice.argument}={advice.from_value}`: only a new start changes that"
        told = (replace(each, text=f"{each.text}{keeps}") if each.resume else each for each in ended.advice)
        ways = {ended.id: replace(ended, advice=tuple(told))}
    return [ways.get(f.id, f) for f in findings]


def _makes_longer(finding: Finding) -> bool:
    return finding.rule == "long-epoch-ends" and any(advice.gain_estimate for advice in finding.advice)


def _is_same(context: Context, one: Finding, other: Finding) -> bool:
    """Tell whether two findings are of one training."""
    return context.training_at(one.end_t_s) is context.training_at(other.end_t_s)


def _is_restart_faster(ending: Ending | None, gain: float) -> bool:
    """Tell whether all epochs, with a share (0 to 1) of their time won, take far less than those left as they are."""
    if ending is None or not ending.epochs or ending.epoch is None:
        return False
    done = ending.epoch if ending.whole_epochs else ending.epoch - 1
    return (1 - gain) * ending.epochs < th.RESTART_WORTH_SHARE * (ending.epochs - done)


def _without_resume(ended: Finding) -> Finding:
    return replace(ended, advice=tuple(advice for advice in ended.advice if not advice.resume))


def _with_restart(longer: Finding) -> Finding:
    """Return the finding with its advice for a training that is started again."""
    anew = (replace(advice, short=RESTART) if advice.gain_estimate else advice for advice in longer.advice)
    return replace(longer, advice=tuple(anew))


def _next_time(longer: Finding, ending: Ending | None) -> Finding:
    """Return the finding with its advice for the next training, for this one is resumed.

    Longer epochs are left out where a whole training would win little by them.
    """
    epoch_s = longer.duration_s / (longer.number(ENDS_EPOCHS_KEY) or 1.0)
    asked = ending.epochs if ending is not None and ending.epochs else 1
    worth = (
        a for a in longer.advice if a.gain_estimate is None or a.gain_estimate * epoch_s * asked >= th.WORTH_NEXT_S
    )
    return replace(longer, advice=tuple(map(_later, worth)))


def _later(advice: Advice) -> Advice:
    """Return advice for the next training; an argument that a resumed one takes anew is for this one, too."""
    if advice.argument in RESUMED_WITH:
        return advice
    text = f"In the next training: {advice.text if advice.argument else lower_first(advice.text)}"
    for_next = bool(advice.gain_estimate)
    return replace(advice, text=text, short=NEXT_TIME if for_next else "", gain_estimate=None, for_next=for_next)


def _fix(findings: Sequence[Finding], projection: Projection | None) -> Advice | None:
    """Return the setting that the verdict leads with, where a resumed training takes it."""
    if projection is None:
        return None
    offered = (a for f in findings if f.cause and f.cause.name == projection.cause for a in f.advice)
    return next((a for a in offered if a.gain_estimate is not None and a.argument in RESUMED_WITH), None)


def _resumed_with(ended: Finding, fix: Advice | None) -> Finding:
    """Return the finding whose command resumes the training with a setting, unless it sets that already."""
    if fix is None or any(advice.argument == fix.argument for advice in ended.advice):
        return ended
    return replace(ended, advice=tuple(_with_setting(a, fix) for a in ended.advice))


def _with_setting(advice: Advice, fix: Advice) -> Advice:
    if not advice.resume or not fix.argument:
        return advice
    command = advice.resume
    for each in fix.settings:
        command = resumed_with(command, each.argument, each.to_value)
    return replace(advice, text=advice.text.replace(advice.resume, command), resume=command)
