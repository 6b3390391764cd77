"""Ends of trainings that were resumed within the recording: they are no end any more, and nobody is to resume them."""

from collections.abc import Sequence
from dataclasses import replace

from gpu_report.analyse.context import Context
from gpu_report.analyse.rules.training_end.resume_command import CUT_SHORT
from gpu_report.analyse.timeline.ranks import RankGroup
from gpu_report.analyse.timeline.thresholds import ENDED_TOGETHER_S
from gpu_report.model import Finding, Severity


def without_resumed(context: Context, findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings, ends that were no last ones as such: what made them is worth a look, but not a resume."""
    groups = context.rank_groups
    return [_as_resumed(each, groups) if each.rule == CUT_SHORT else each for each in findings]


def _as_resumed(finding: Finding, groups: Sequence[RankGroup]) -> Finding:
    cut = next((g for g in groups if g.start_t_s <= finding.end_t_s <= g.end_t_s + ENDED_TOGETHER_S), None)
    if cut is None or not any(_resumes(later, cut) for later in groups):
        return finding
    severity: Severity = "info" if finding.severity == "info" else "warning"
    where = "" if finding.epoch is None or finding.names_epoch else f", in epoch {finding.epoch}"
    advice = tuple(each for each in finding.advice if not each.resume)
    summary = f"{finding.summary}{where}, and was resumed"
    return replace(finding, severity=severity, summary=summary, names_epoch=True, advice=advice, was_resumed=True)


def _resumes(later: RankGroup, cut: RankGroup) -> bool:
    """Tell whether a training goes on with one that ended before: it said so itself, and wrote into the same folder."""
    folders = [each.main.settings.get("save_dir") for each in (later, cut)]
    is_same = folders[0] is not None and folders[0] == folders[1]
    return is_same and later.main.settings.get("resumed") is True and later.start_t_s >= cut.end_t_s
