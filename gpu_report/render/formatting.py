"""Numbers, times and text as a person reads them. A missing value reads n/a, never 0."""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from statistics import median

from gpu_report.catalogue import RULES, cause_words, row_words
from gpu_report.gpu_words import gpu_words
from gpu_report.model import (
    WELL_COVERED,
    Analysis,
    Ending,
    EpochNow,
    EpochSummary,
    Evidence,
    Finding,
    KernelEvent,
    LedgerRow,
    Recording,
    Run,
)
from gpu_report.wording import JOULE_PER_WATT_HOUR, MIB_PER_GIB, MISSING, counted, lower_first

TRAININGS_SHOWN = 3  # with the length of their epochs
SHOWN_SECONDS = 0.05  # a row of the ledger with less would read 0.0 s
DAYS_FROM_H = 100

_NUMBER_AND_UNIT = re.compile(r"(\d) (?=[%a-zA-Z°])")

LONGEST_TEXT = 4000  # characters of one text that a page shows: nobody reads on, and a megabyte of them hides the rest

_PROCESS_FIRST = re.compile(r"\S+( \S+\.\w+)? \(pid \d")  # a name stays as it is: python3 train.py (pid 2477)
_SENTENCE_END = re.compile(r"(?<=[.?!]) (?=[A-Z0-9])")

# Control characters draw nothing and may upset a terminal that the text is pasted into, overrides of direction turn the
# words around them about, and lone surrogates cannot be written at all; tab and newline stay. Accents piled on each
# other reach over the lines above.
_UNSHOWN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_STACKED = re.compile("([\u0300-\u036f\u1ab0-\u1aff\u20d0-\u20ff]{4})[\u0300-\u036f\u1ab0-\u1aff\u20d0-\u20ff]+")

# Of a part of a step: where milliseconds have a second decimal, one, and where seconds are read more easily.
HUNDREDTHS_UNDER_S, TENTHS_UNDER_S, SECONDS_FROM_S = 1e-3, 0.1, 10.0


def clean(text: str) -> str:
    """Return text that a page can show: what draws nothing is U+FFFD, and the rest of a very long one is counted."""
    if len(text) > LONGEST_TEXT:
        text = f"{text[:LONGEST_TEXT]}\u2026 ({len(text) - LONGEST_TEXT:,} more characters)"
    if text.isascii() and text.isprintable():  # nearly every text
        return text
    return _STACKED.sub(r"\1", _UNSHOWN.sub("\ufffd", text))


def with_amounts_unbroken(sentence: str) -> str:
    """Return a sentence whose numbers do not part from what they count at the end of a line."""
    return _NUMBER_AND_UNIT.sub("\\1\u00a0", sentence)


def with_code(text: str) -> str:
    """Return text whose commands stand between backticks: all of it where it marks none itself."""
    return text if "`" in text or not text else f"`{text}`"


def first_sentence(text: str) -> tuple[str, str]:
    """Return the first sentence of a text, and the rest; a point within a number ends none."""
    parts = _SENTENCE_END.split(text, maxsplit=1)
    return parts[0], parts[1] if len(parts) > 1 else ""


def sentence(text: str) -> str:
    """Return text as a sentence: a capital first, but for the name of a process, and a full stop last."""
    text = text.strip()
    first = text[:1] if _PROCESS_FIRST.match(text) else text[:1].upper()
    return first + text[1:] + ("" if text.endswith((".", "?", "!")) or not text else ".")


def known(value: float | None) -> float | None:
    """Return the value, or None when it is missing, NaN or infinite."""
    return None if value is None or not math.isfinite(value) else float(value)


def number(value: float | None, decimals: int = 0) -> str:
    """Return a number with its thousands set apart, or n/a."""
    value = known(value)
    return MISSING if value is None else f"{value:,.{decimals}f}"


def quantity(value: float | None, unit: str) -> str:
    """Return a whole number with its unit, or n/a."""
    return MISSING if known(value) is None else f"{number(value)}\u00a0{unit}"


def gibibytes(mib: float | None) -> str:
    """Return memory given in MiB as GiB, or n/a."""
    mib = known(mib)
    return MISSING if mib is None else f"{mib / MIB_PER_GIB:.1f}\u00a0GiB"


def saw_training(analysis: Analysis) -> bool:
    """Tell whether a training was seen, of which alone one can say what it did between its batches."""
    return bool(analysis.epochs) or any(phase.name == "train" for phase in analysis.phases)


def partly(coverage: float) -> str:
    """Return of which part of a recording its samples are, empty where they are of all of it."""
    return "" if coverage >= WELL_COVERED else f"{share(coverage)} of the time"


def ledger_rows(analysis: Analysis) -> list[LedgerRow]:
    """Return where GPU time went, without next to nothing: work, what was lost, phases, idle; the largest first."""
    return sorted((row for row in analysis.ledger if row.gpu_seconds >= SHOWN_SECONDS), key=_order)


def _order(row: LedgerRow) -> tuple[int, float]:
    return ledger_place(row.name, expected=row.expected), -row.gpu_seconds


def ledger_words(row: LedgerRow, analysis: Analysis) -> str:
    """Return a row of the ledger in plain words; idle are also the GPUs that a training left unused."""
    unused = [gpu.gpu.index for gpu in analysis.gpus if not gpu.used and not gpu.of_others]
    if row.name != "idle" or not saw_training(analysis) or not 0 < len(unused) < len(analysis.gpus):
        return row_words(row.name, is_training=saw_training(analysis))
    which = gpu_words(unused[0]) if len(unused) == 1 else counted(len(unused), "GPU")
    return f"Idle: {which} not used, or outside training"


def ledger_place(name: str, *, expected: bool) -> int:
    """Return where a row of the ledger stands among its kinds: work, what was lost, phases, idle, not measured."""
    ends = {"work": 0, "idle": 3, "unmeasured": 4}
    return ends.get(name, 2 if expected else 1)


def share(fraction: float | None) -> str:
    """Return a fraction of 1 as a percentage; one that is small but not nothing reads under 1 %."""
    fraction = known(fraction)
    if fraction is None:
        return MISSING
    if 0 < fraction < 0.005:
        return "<\u00a01\u00a0%"
    return f"{fraction * 100:.0f}\u00a0%"


def energy(joules: float | None) -> str:
    """Return an energy in Wh or kWh, or n/a."""
    joules = known(joules)
    if joules is None:
        return MISSING
    watt_hours = joules / JOULE_PER_WATT_HOUR
    if 0 < watt_hours < 0.05:
        return "<\u00a00.1\u00a0Wh"
    return f"{watt_hours / 1000:,.2f}\u00a0kWh" if watt_hours >= 1000 else f"{watt_hours:,.1f}\u00a0Wh"


def recorded_length(run: Run) -> str:
    """Return how long a recording took by the clock on the wall, and for how much of it the machine slept."""
    if not run.slept_long:
        return duration(run.duration_s)
    return f"{duration(run.duration_s + run.slept_s)}, asleep for {duration(run.slept_s)} of it"


def duration(seconds: float | None, *, aligned: bool = False) -> str:
    """Return a length of time in its two largest units, or n/a; `aligned` keeps a second one that is nothing.

    It is rounded to the second of them, as `wording.length` is. Of under DAYS_FROM_H hours nobody says how many days
    they are.
    """
    seconds = known(seconds)
    if seconds is None:
        return MISSING
    if seconds < 59.95:
        tenths = f"{seconds:.1f}"
        return (tenths if aligned else tenths.removesuffix(".0")) + "\u00a0s"
    step_s = 1 if round(seconds) < 3600 else 60 if seconds < DAYS_FROM_H * 3600 else 3600
    minutes, rest = divmod(round(seconds / step_s) * step_s, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24) if hours >= DAYS_FROM_H else (0, hours)
    parts = [(days, "d"), (hours, "h"), (minutes, "min"), (rest, "s")]
    first = next(i for i, (count, _) in enumerate(parts) if count)
    return " ".join(f"{count}\u00a0{unit}" for count, unit in parts[first : first + 2] if count or aligned)


def elapsed(seconds: float) -> str:
    """Return seconds since the run's start as a clock: 1:02:03."""
    sign = "-" if seconds < -0.5 else ""
    minutes, rest = divmod(abs(round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{sign}{hours}:{minutes:02d}:{rest:02d}"


def utc(wall_s: float) -> str:
    """Return a wall time as UTC; n/a where it is no time that a calendar has."""
    try:
        return datetime.fromtimestamp(wall_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return MISSING


def how_it_ended(recording: Recording, training: Ending | None = None) -> str:
    """Return how a recording came to its end, empty where that says nothing; its training may have been stopped."""
    if recording.ended_by is None:
        killed = "no end marker: the recorder was killed, its disk was full, or the machine went down"
        return "still being recorded" if recording.goes_on else killed
    if training is not None and training.name == "interrupted" and _is_of_ctrl_c(recording):
        return "the command was stopped by Ctrl-C"
    if recording.exit_signal:
        return f"the command was ended by {recording.exit_signal}"
    failed = training is not None and training.name == "failed"
    if failed and recording.ended_by == "command" and recording.exit_code == 0:
        return "exit code 0, though the training failed"
    if recording.exit_code not in (None, 0):
        return f"the command failed with exit code {recording.exit_code}"
    is_over = training is not None and training.name in {"finished", "early stop"}
    by_signal = "stopped after the training" if is_over else "stopped by hand"
    endings = {"duration": "stopped after the time asked for", "signal": by_signal, "import": "imported log"}
    return endings.get(recording.ended_by, "the command ended with exit code 0" if recording.exit_code == 0 else "")


def _is_of_ctrl_c(recording: Recording) -> bool:
    """Tell whether a command can have ended of Ctrl-C: Python's own exit code is 130, that of a launcher 1."""
    return recording.ended_by == "command" and (recording.exit_code in {1, 130} or recording.exit_signal == "SIGINT")


# What the parts of an epoch that stand out are called within a sentence; a stall by its cause.
_OUTLIERS = {
    "train": "training took",
    "validation": "validation took",
    "checkpoint": "the checkpoint took",
    "data wait": "it waited for data",
}


def outlier_words(epoch: EpochSummary) -> tuple[str, ...]:
    """Return in what an epoch stands out, in phrases, and last what makes an epoch of its kind longer."""
    said = [
        f"{_OUTLIERS.get(each.part) or lower_first(cause_words(each.cause)) + ' for'} {duration(each.seconds)}, "
        f"typical {duration(each.typical_s)}"
        for each in epoch.outliers
    ]
    if said and epoch.first:
        said.append("the first epoch of its process")
    elif said and epoch.closing:
        said.append("the mosaic was closed and the data loader restarted")
    elif said and epoch.profiled:
        said.append("PyTorch's profiler ran in it")
    return tuple(said)


ENDINGS = {
    "finished": "finished",
    "early stop": "stopped early",
    "interrupted": "stopped by Ctrl-C",
    "failed": "failed",
    "going on": "still running",
    "unknown": "end not seen",
}


def ending_name(ending: Ending) -> str:
    """Return in a few words how a training ended: one that `time=` ended has not finished its epochs."""
    timed = ending.name == "finished" and None not in {ending.epoch, ending.epochs} and ending.epoch != ending.epochs
    return "stopped by time=" if timed else ENDINGS[ending.name]


def epoch_counts(epochs: Sequence[EpochSummary], now: EpochNow | None, shown: Callable[[float], str]) -> list[str]:
    """Return how many epochs were completed, and how long they were; what cut one short has not completed it.

    Of several trainings each has a length of its own.
    """
    runs = list(dict.fromkeys(epoch.run for epoch in epochs))
    if len(runs) > 1:
        count = number(sum(not epoch.partial for epoch in epochs))
        return [count, f"in {number(len(runs))} trainings", *_of_trainings(epochs, runs, shown)]
    whole, parts = [epoch for epoch in epochs if not epoch.partial], [epoch for epoch in epochs if epoch.partial]
    lengths = [f"{shown(epoch.end_t_s - epoch.start_t_s)}, start-up included" for epoch in whole[: len(whole) == 1]]
    if now is not None:
        whose = "each" if whole[1:] else "for a later one" if whole else "for a full one"
        lengths.append(f"{shown(now.seconds)} {whose} ({now.now_is})")
    cut = [f"epoch {each.epoch} was cut short after {shown(each.end_t_s - each.start_t_s)}" for each in parts]
    return [number(len(whole)), *lengths, *cut]


def _of_trainings(epochs: Sequence[EpochSummary], runs: Sequence[int], shown: Callable[[float], str]) -> list[str]:
    """Return how long the epochs of each training were, the first apart; nothing of more than a sentence holds."""
    mine = ([e for e in epochs if e.run == run and not e.partial] for run in runs[:TRAININGS_SHOWN])
    typical = [(median(e.duration_s for e in each[1:] or each), " each" * (len(each) > 1)) for each in mine if each]
    named = [f"training {number}: {shown(seconds)}{each}" for number, (seconds, each) in enumerate(typical, 1)]
    how = " (medians, without the first)" if any(each for _, each in typical) else ""
    return [*named[:-1], f"{named[-1]}{how}"] if named and len(runs) <= TRAININGS_SHOWN else []


def finding_title(finding: Finding) -> str:
    """Return a finding's name; a note's is its own."""
    rule = RULES[finding.rule]
    return rule.note_title if rule.note_title and finding.severity == "info" else rule.title


def epochs_in_words(epochs: Sequence[EpochSummary]) -> str:
    """Return how many epochs there were, and in how many trainings where there are several."""
    trainings = len({epoch.run for epoch in epochs})
    whole = sum(not epoch.partial for epoch in epochs)
    return counted(whole, "epoch") + (f" in {number(trainings)} trainings" if trainings > 1 else "")


def training_words(analysis: Analysis) -> str:
    """Return which training the ending is of: the last one of several, also where none completed an epoch."""
    trainings = max(len({epoch.run for epoch in analysis.epochs}), len(analysis.run.yolo_runs))
    return "The training" if trainings <= 1 else f"The last of {number(trainings)} trainings"


def last_epoch_words(ending: Ending) -> str:
    """Return the epoch that a training had come to, and when it ended, as a clock since the run's start."""
    of = f" of {ending.epochs}" if ending.epochs is not None else ""
    epoch = f"epoch {ending.epoch}{of}, " if ending.epoch is not None else ""
    return f"{epoch}{elapsed(ending.t_s)} after the start"


def kernel_log_counts(events: Sequence[KernelEvent]) -> str:
    """Return how many events of the kernel log there are, and of how many messages where one came again and again."""
    messages = sum(event.count for event in events)
    return counted(len(events), "event") + (f" of {messages:,} messages" if messages > len(events) else "")


def lines_title(analysis: Analysis) -> str:
    """Return what the table of lines of code is called: where no GPU was read, all time counts."""
    return f"Lines of code with the most {'idle GPU time' if analysis.gpus else 'time'}"


def step_time(seconds: float | None) -> str:
    """Return a part of a training step in milliseconds, or n/a."""
    seconds = known(seconds)
    if seconds is None:
        return MISSING
    if seconds >= SECONDS_FROM_S:
        return f"{seconds:,.1f}\u00a0s"
    decimals = 2 if seconds < HUNDREDTHS_UNDER_S else 1 if seconds < TENTHS_UNDER_S else 0
    return f"{1000 * seconds:,.{decimals}f}\u00a0ms"


def numbers(evidence: Iterable[Evidence]) -> str:
    """Return numbers from a run in one line."""
    return "; ".join(f"{each.text}: {quantity(each.value, each.unit)}" for each in evidence)
