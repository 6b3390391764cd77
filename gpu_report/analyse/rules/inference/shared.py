"""Rules: what calls have to share: a few CPU cores, the GPU with another process, or with calls beside them."""

from collections.abc import Iterable, Sequence

from gpu_report.analyse.causes.confidence import LIKELY, STRONG
from gpu_report.analyse.causes.host import ALLOW_MORE_CORES
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.inference.served import judged_models
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.inference.contention import (
    FullCores,
    busy_without_calls,
    calls_at_once,
    full_cores,
    others_on_its_gpu,
    taken_by_others,
)
from gpu_report.analyse.rules.inference.words import active_s, of_calls, percent, percent_or_none, set_where, severity
from gpu_report.analyse.signals.host.other_processes import OtherProcess
from gpu_report.gpu_words import gpu_words
from gpu_report.model import Advice, Cause, Finding, ServedModel
from gpu_report.wording import counted

AFFINITY = "affinity"  # of lines that set something
PINNED = "it, or what starts it, sets its affinity (`os.sched_setaffinity`, `taskset`, `numactl`)"
UNSEEN = "another program, or other work of yours"
PROCESSES = "Measure whether all processes together make more images/s: several fill a GPU that one cannot"
THREADS = "Measure whether one process for each thread makes more images/s (Python threads take turns)"


def few_cores(context: Context) -> list[Finding]:
    """Report a program that may use few of the machine's CPU cores and fills them, while its GPU has time left."""
    served = next(iter(context.cached(judged_models)), None)
    cores = None if served is None else context.cached(full_cores, served)
    if served is None or cores is None:
        return []
    gain = 1 - max(served.gpu_busy_share or 0.0, cores.usable / cores.there)
    return [_few(context, served, cores, gain)] if gain >= th.CALLS_LOST_SHARE else []


def _few(context: Context, served: ServedModel, cores: FullCores, gain: float) -> Finding:
    place = set_where(context, served, AFFINITY)
    short = f"Let the program use more than {cores.usable:g} of the {cores.there} CPU cores{place}"
    how = "code of yours sets its affinity" if place else PINNED if cores.pinned else ALLOW_MORE_CORES
    text = f"{short}: {how}"
    return context.finding(
        "few-cores",
        severity(gain, gain * active_s(served)),
        (served.start_s, served.end_s),
        f"A thread waited for a CPU core for {cores.pressure_pct:.0f} % of the time, since the program may use only "
        f"{cores.usable:g} of {cores.there}{_gpu_meanwhile(served)}",
        gpu=served.calls.gpu,
        evidence=evidence(
            ("CPU of the program", cores.cpu_pct, "% of a core"),
            ("cores that it may use", cores.usable, ""),
            ("time with a process waiting for a CPU core", cores.pressure_pct, "%"),
            ("GPU utilisation meanwhile", percent_or_none(served.gpu_busy_share), "%"),
        ),
        cause=Cause("cpu-limit", STRONG, "it filled the cores that it may use, and others were there"),
        advice=(Advice(text, gain_at_most=gain, short=short),),
    )


def _gpu_meanwhile(served: ServedModel) -> str:
    busy = served.gpu_busy_share
    return "" if busy is None else f"; {gpu_words(served.calls.gpu)} was busy {percent(busy)}"


def other_process_on_gpu(context: Context) -> list[Finding]:
    """Report each GPU of models that worked for other processes, or for what the driver does not show."""
    found = []
    for gpu, served in _first_of_each_gpu(context.cached(judged_models)).items():
        taken = context.cached(taken_by_others, served)
        if taken >= th.TAKEN_FROM_CALLS:
            found.append(_other(context, served, gpu, taken))
        unseen = context.cached(busy_without_calls, served)
        if unseen >= th.CALLS_LOST_SHARE:
            found.append(_unseen(context, served, gpu, unseen))
    return found


def _first_of_each_gpu(models: Iterable[ServedModel]) -> dict[int, ServedModel]:
    """Return the model with the most images of each GPU."""
    first: dict[int, ServedModel] = {}
    for served in models:
        if served.calls.gpu is not None:
            first.setdefault(served.calls.gpu, served)
    return first


def _other(context: Context, served: ServedModel, gpu: int, taken: float) -> Finding:
    there = sorted(others_on_its_gpu(context, served), key=lambda other: -(other.util_pct or 0.0))
    who, gain = _named(there), taken * served.in_calls_share
    keep = f"Keep {who.replace('`', chr(39))} off {gpu_words(gpu)}"
    short = f"{keep}: at most {percent(gain)} less time for all calls"
    return context.finding(
        "other-process-in-calls",
        severity(gain, gain * (served.end_s - served.start_s)),
        (served.start_s, served.end_s),
        f"Another program took {percent(taken)} of {gpu_words(gpu)}'s time during the calls "
        f"({of_calls(served)}): {who}",
        gpu=gpu,
        evidence=evidence(
            ("its share of the GPU time meanwhile, at most", there[0].util_pct, "%"),
            ("its memory", there[0].memory_mib, "MiB"),
            ("GPU utilisation", percent_or_none(served.gpu_busy_share), "%"),
        ),
        cause=Cause("other-process", STRONG, "the driver says how much of the GPU's time each process took"),
        advice=(Advice(f"{keep} while the model serves, or use another GPU", gain_at_most=gain, short=short),),
    )


def _unseen(context: Context, served: ServedModel, gpu: int, share: float) -> Finding:
    """Return what is to be said of a GPU that was busy while no call can have used it, and on which nobody is seen."""
    gain = share * served.in_calls_share
    fix = f"Find what else uses {gpu_words(gpu)} (`nvidia-smi` on the host), and keep it off"
    return context.finding(
        "other-process-in-calls",
        severity(gain, gain * (served.end_s - served.start_s)),
        (served.start_s, served.end_s),
        f"While no call could use it, {gpu_words(gpu)} was busy {percent(share)} of the time "
        f"({of_calls(served)}): {UNSEEN}",
        gpu=gpu,
        evidence=evidence(
            ("busy while no call can have used it", 100 * share, "%"),
            ("GPU utilisation", percent_or_none(served.gpu_busy_share), "%"),
        ),
        cause=Cause("other-process", LIKELY, "the GPU worked while no call did; a container may hide others"),
        advice=(Advice(fix, gain_at_most=gain, short=fix),),
    )


def _named(there: Sequence[OtherProcess]) -> str:
    """Return the process that worked most, and how many there were beside it."""
    more = len({other.pid for other in there} - {there[0].pid})
    return there[0].who + (f" and {counted(more, 'more process')}" if more else "")


def side_by_side(context: Context) -> list[Finding]:
    """Note each GPU on which several calls go on at once: of several processes, or of threads of one."""
    by_gpu: dict[int, list[ServedModel]] = {}
    for served in context.cached(judged_models):
        if served.calls.gpu is not None:
            by_gpu.setdefault(served.calls.gpu, []).append(served)
    return [found for gpu, mine in sorted(by_gpu.items()) if (found := _several(context, gpu, mine)) is not None]


def _several(context: Context, gpu: int, mine: list[ServedModel]) -> Finding | None:
    pids = {each.calls.pid for each in mine}
    at_once = max(context.cached(calls_at_once, None, each) for each in mine)
    if _overlap(mine):
        who, text = f"{len(pids)} of your processes call models on {gpu_words(gpu)} at the same time", PROCESSES
    elif len(pids) == 1 and at_once >= th.CALLS_AT_ONCE:
        models = f" of {len(mine)} models" if len(mine) > 1 else ""
        who, text = f"Threads of your program have {at_once:.1f} calls{models} at once on {gpu_words(gpu)}", THREADS
    else:
        return None
    return context.finding(
        "shared-gpu",
        "info",
        (min(each.start_s for each in mine), max(each.end_s for each in mine)),
        f"{who}: each makes the others' calls longer",
        gpu=gpu,
        evidence=evidence(
            *((f"images a second of process {each.calls.pid}", each.images_per_s, "") for each in mine),
            ("calls at once (mean)", at_once, ""),
            ("GPU utilisation", percent_or_none(mine[0].gpu_busy_share), "%"),
        ),
        advice=(Advice(text, short=text),),
    )


def _overlap(mine: list[ServedModel]) -> bool:
    """Tell whether models of different processes were called in the same time."""
    return any(
        one.calls.pid != other.calls.pid and one.start_s < other.end_s and other.start_s < one.end_s
        for one in mine
        for other in mine
    )
