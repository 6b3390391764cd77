"""Who took the CPU cores that a training needs: the programs of others that used most, where these explain it."""

from collections.abc import Sequence

from gpu_report.analyse.causes import thresholds as th
from gpu_report.analyse.signals.host.other_programs import ProgramUse, programs_in
from gpu_report.analyse.signals.interval_signals import IntervalSignals
from gpu_report.model import Advice, Evidence
from gpu_report.wording import counted


def main_cpu_users(signals: IntervalSignals, took_pct: float) -> list[ProgramUse]:
    """Return the few programs that used most of what others took (% of a core), most first; none where they did not."""
    uses = programs_in(signals.other_programs, signals.span)
    return _most_of(took_pct, [(use.shared_pct, use) for use in uses])


def use_other_cores(signals: IntervalSignals, took_pct: float) -> bool:
    """Tell whether what others took was mostly on cores that the trainer may not use: it lacks none of theirs."""
    uses = programs_in(signals.other_programs, signals.span)
    known_pct, shared_pct = sum(use.cpu_pct for use in uses), sum(use.shared_pct for use in uses)
    return known_pct >= th.TOOK_SHARE * took_pct and shared_pct < th.SHARED_LEAST * known_pct


def new_cpu_users(signals: IntervalSignals, took_pct: float) -> list[ProgramUse]:
    """Likewise of what others took more than is typical, on cores that the trainer may use."""
    uses = programs_in(signals.other_programs, signals.span)
    return _most_of(took_pct, [(_more(use, signals), use) for use in uses])


def cpu_users_words(uses: Sequence[ProgramUse]) -> str:
    """Return who they are, empty of nobody: the program stress-ng of user bob (40 processes).

    No name begins it: the first letter of a sentence becomes a capital one.
    """
    each = [f"{use.most.who} ({counted(use.most.processes, 'process', 'processes')})" for use in uses]
    return f"the {'program' if len(each) == 1 else 'programs'} {' and '.join(each)}" if each else ""


def cores_words(uses: Sequence[ProgramUse], cores: int) -> str:
    """Return how many of all cores they used."""
    used = min(sum(use.there_pct for use in uses) / 100, cores)
    return f"{round(used, 1 if used < th.WHOLE_CORES else 0):g} of the {cores} CPU cores"


def cpu_users_evidence(uses: Sequence[ProgramUse]) -> tuple[Evidence, ...]:
    """Return what each of them used."""
    return tuple(Evidence(f"CPU of {use.most.who}, pid {use.most.pid}", use.there_pct, "% of a core") for use in uses)


def cpu_users_advice(uses: Sequence[ProgramUse]) -> tuple[Advice, ...]:
    """Return what to do about them, nothing where they are not known."""
    if not uses:
        return ()
    short = f"Keep {' and '.join(use.most.who for use in uses)} off the CPU cores of the training"
    who = " and ".join(f"{use.most.who} (pid {use.most.pid})" for use in uses)
    text = f"Keep {who} off the CPU cores of the training: with `taskset`, with a cgroup, or at another time"
    return (Advice(text, short=short),)


def _more(use: ProgramUse, signals: IntervalSignals) -> float:
    """Return what a program used on cores of the trainer beyond what is typical of it."""
    share = use.shared_pct / use.cpu_pct if use.cpu_pct else 0.0
    return use.shared_pct - share * signals.typical_programs.get(use.program, 0.0)


def _most_of(took_pct: float, uses: Sequence[tuple[float, ProgramUse]]) -> list[ProgramUse]:
    named = [(used, use) for used, use in uses if used >= th.NAMED_SHARE * took_pct]
    named = sorted(named, key=lambda each: -each[0])[: th.MOST_NAMED]
    return [use for _, use in named] if sum(used for used, _ in named) >= th.TOOK_SHARE * took_pct else []
