"""Rule: processes of a training that were still running when the command that started them had ended."""

from gpu_report.analyse.context import Context
from gpu_report.analyse.timeline.trainings import whole
from gpu_report.gpu_words import gpu_number
from gpu_report.model import Advice, Finding, RecordedEvent
from gpu_report.wording import and_words, counted

PIDS_NAMED = 8  # in a command: the ranks, and some workers
PIDS_SAID = 3  # in a sentence: of more only how many
PIDS = range(2, 2**22 + 1)  # what Linux gives (proc(5), pid_max): `kill -1` and `kill 1` would end far more


def leftover_processes(context: Context) -> list[Finding]:
    """Report what the recorder saw of them at the end.

    A launcher that is killed, by Ctrl-C twice or by a time limit, leaves its ranks: they go on, and nobody knows it.
    One on a GPU keeps its memory and time from the next training; others are a note.
    """
    return [_finding(context, event) for event in context.run.events if event.kind == "left_behind" and _pids(event)]


def _pids(event: RecordedEvent) -> list[int]:
    return [pid for pid in _whole_numbers(event, "pids") if pid in PIDS]


def _whole_numbers(event: RecordedEvent, name: str) -> list[int]:
    value = event.fields.get(name)
    return [each for each in value if whole(each) is not None] if isinstance(value, list | tuple) else []


def _finding(context: Context, event: RecordedEvent) -> Finding:
    pids, gpus = _pids(event), sorted(set(_whole_numbers(event, "gpus")))
    listed = f"GPU{'s' if len(gpus) > 1 else ''} {and_words([gpu_number(gpu) for gpu in gpus])}" if gpus else ""
    on, held = (f" on {listed}", f", and held {listed}") if gpus else ("", "")
    named = [str(pid) for pid in pids[:PIDS_NAMED]]
    which = f" (pid {', '.join(named)})" if len(pids) <= PIDS_SAID else ""
    shown = "it" if len(named) == len(pids) else f"the first {len(named)} of {len(pids)} processes"
    short = f"Stop what still runs{on} (`ps -p {','.join(named)}` shows {shown})"
    return context.finding(
        "left-behind",
        "warning" if gpus else "info",
        (event.t_s, event.t_s),
        f"{counted(len(pids), 'process', 'processes')}{which} kept running after the command ended{held}",
        gpu=gpus[0] if len(gpus) == 1 else None,
        epoch=None,
        phase=None,
        advice=(Advice(f"{short}. It takes GPU memory and time from the next training", short=short),) if gpus else (),
    )
