"""Words for numbers: amounts and changes with their units, lengths of time, counts; and how sentences begin."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from gpu_report.model import CodeLine, CodeLocation, Ending, Frame, LineChange, SettingLocation, ValidationPart

MISSING = "n/a"
MIB_PER_GIB = 1024
JOULE_PER_WATT_HOUR = 3600
RATIO_FROM = 1.5  # a time that changed by more is said to be so many times as long: +322 % is hard to picture
ROUND_FROM = 9.95  # what would read 10.0 reads 10
TENTHS_UNDER_S = 59.95  # an epoch under it is given to a tenth of a second: 12.1 s, not 12
ABOUT_S = 5  # to which minutes are rounded where a tenth of a second says nothing
MILLISECONDS_UNDER = 0.0995  # s: hundredths of a second would hide that 18 ms became 22 ms
SMALLEST_MONEY, WHOLE_MONEY_FROM = 0.005, 1000  # less than half a cent is not nothing
LONGEST_SENTENCE = 20  # words of a verdict's sentence: readers are tired, and English is often not their first language
LONGEST_SHOWN = 160  # characters of an exception's own words in a sentence: an error of NCCL has hundreds
# The parts of a validation, within a sentence.
VALIDATION_PART_WORDS: Mapping[ValidationPart, str] = {
    "data": "waiting for data",
    "preprocess": "preprocessing",
    "inference": "inference",
    "loss": "loss",
    "postprocess": "postprocessing (NMS)",
    "metrics": "metrics",
    "plots": "plots",
    "gather": "waiting for other ranks",
    "other": "everything else",
}
_SENTENCE_END = re.compile(r"(?<=\w{3})\.(?:\s|$)")  # not of "e.g. "
SMALLEST_SHOWN_SHARE = 0.0005  # under this a change reads 0.0 %, and has no sign


def amount(value: float | None, unit: str) -> str:
    """Return a value in a unit that suits its size, n/a where it is missing."""
    if value is None or not math.isfinite(value):
        return MISSING
    if unit == "s":
        return _seconds(value)
    if unit == "MiB":
        return f"{value / MIB_PER_GIB:,.1f} GiB" if abs(value) >= MIB_PER_GIB else f"{value:,.0f} MiB"
    if unit == "J":
        return _watt_hours(value / JOULE_PER_WATT_HOUR)
    if unit == "%":
        return f"{value:.1f} %" if abs(value) < ROUND_FROM else f"{value:.0f} %"
    text = f"{value:,.1f}" if abs(value) < 100 and value != round(value) else f"{value:,.0f}"
    if unit == "J/image" and abs(value) < 1:
        text = f"{value:.2g}"  # a small model takes a tenth of a joule
    return f"{text} {unit}".strip()


def gpu_models(names: Iterable[str | None]) -> str:
    """Return the models of some GPUs: NVIDIA H200, or 8 x NVIDIA H200; empty of none."""
    models = Counter(name or "GPU of unknown model" for name in names)
    return ", ".join(name if count == 1 else f"{count} \u00d7 {name}" for name, count in models.items())


def counted(count: int, one: str, many: str | None = None) -> str:
    """Return a count with its noun in the right number."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def between(ends: tuple[float, float], unit: str) -> str:
    """Return two values as the ends of a range: a unit that both have is said once, and so is what reads the same."""
    low, high = (amount(end, unit) for end in ends)
    if low == high:
        return low
    said = high.rpartition(" ")[2]
    return f"{low.removesuffix(f' {said}')} to {high}"


def change(value: float | None, unit: str) -> str:
    """Return a change in a unit, with its sign; one of a percentage is in percentage points."""
    if value is None or not math.isfinite(value):
        return MISSING
    size = f"{abs(value):.1f} pp" if unit == "%" else amount(abs(value), unit)
    return size if not any(digit in size for digit in "123456789") else f"{_sign(value)}{size}"


def share_change(share: float | None) -> str:
    """Return a change as a share of what it was, in percent and with its sign; n/a where it is missing."""
    if share is None or not math.isfinite(share):
        return MISSING
    if abs(share) < SMALLEST_SHOWN_SHARE:
        return "0.0 %"
    percent = abs(100 * share)
    return f"{_sign(share)}{percent:.1f} %" if percent < ROUND_FROM else f"{_sign(share)}{percent:,.0f} %"


def interval(ends: tuple[float, float] | None) -> str:
    """Return an interval of a change as shares, empty without one."""
    return "" if ends is None else ends_of_change(*map(share_change, ends))


def ends_of_change(low: str, high: str) -> str:
    """Return two changes as the ends of a range: a unit that both have is said once."""
    unit = high.rpartition(" ")[2]
    return f"{low.removesuffix(f' {unit}')} to {high}"


def speed_change(time_share: float) -> str:
    """Return how much faster or slower something is whose time changed by this share of what it was.

    4.2x slower, 4.2x faster; where the longer time is less than RATIO_FROM of the other one, 16 % slower.
    """
    way = "slower" if time_share > 0 else "faster"
    if abs(time_share) < SMALLEST_SHOWN_SHARE:
        return "0.0 %"
    if time_share <= -1:
        return share_change(time_share)
    ratio = 1 + time_share if time_share > 0 else 1 / (1 + time_share)
    if ratio < RATIO_FROM:
        return f"{share_change(abs(time_share)).removeprefix('+')} {way}"
    return f"{ratio:.1f}\u00d7 {way}" if ratio < ROUND_FROM else f"{ratio:,.0f}\u00d7 {way}"


def shown_ratio(longer_s: float, shorter_s: float) -> float:
    """Return how many times as long one time is as another, by what is shown of both: a reader may divide them."""
    longer, shorter = (round(seconds, 1) for seconds in (longer_s, shorter_s))
    return longer / shorter if shorter else longer_s / shorter_s


def brief_seconds(seconds: float | None) -> str:
    """Return a time for a sentence, where a hundredth of a second is no news: 2.9 s, 12.2 s, 19 ms."""
    if seconds is None or not MILLISECONDS_UNDER < abs(seconds) < 9.95:
        return amount(seconds, "s")
    return f"{seconds:.1f} s"


def step_words(seconds: float) -> str:
    """Return what a step takes, in milliseconds where that is less than a second: a tenth of one is much of it."""
    return brief_seconds(seconds) if seconds >= 1 else f"{1000 * seconds:.0f} ms"


def lower_first(words: str) -> str:
    """Return words as they stand within a sentence; an abbreviation or a name (PyTorch) stays as it is."""
    is_name = any(letter.isupper() for letter in words.partition(" ")[0][1:])
    return words if is_name else words[:1].lower() + words[1:]


def upper_first(words: str) -> str:
    """Return words as they stand at the beginning of a sentence."""
    return words[:1].upper() + words[1:]


def fall_words(who: str, before_pct: float, during_pct: float) -> str:
    """Return how far the utilisation of GPUs (in %) fell, as the beginning of a sentence."""
    return f"Utilisation of {who} fell from {before_pct:.0f} % to {during_pct:.0f} %"


def every_words(epochs: int | None) -> str:
    """Return after how many epochs something comes again, as the end of a phrase; empty where it does not."""
    return f" every {epochs} epochs" if epochs else ""


def every_so_often(period_s: float | None) -> str:
    """Return after how long something comes again, as a part of a phrase; empty where that is not known."""
    if period_s is None:
        return ""
    return ", every hour" if about_length(period_s) == "1 h" else f", every {about_length(period_s)}"


def and_words(names: Sequence[str]) -> str:
    """Return names as they stand in a sentence: "A, B and C"."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def length(seconds: float) -> str:
    """Return a duration as a person says it: 1.4 s, 44 s, 2 min, 2 min 5 s, 3 h 10 min."""
    if seconds < ROUND_FROM:
        return _tenths(seconds)
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return _two(divmod(whole, 60), "min", "s")
    return _two(divmod(round(seconds / 60), 60), "h", "min")


def epoch_length(seconds: float) -> str:
    """Return an epoch's length as the tables have it: to a tenth of a second under a minute."""
    return f"{seconds:.1f} s" if seconds < TENTHS_UNDER_S else length(seconds)


def brief_length(seconds: float) -> str:
    """Return an epoch's length for a sentence: a tenth of a second under a minute, else the digits that matter."""
    return f"{seconds:.1f} s" if seconds < TENTHS_UNDER_S else about_length(seconds)


def about_length(seconds: float) -> str:
    """Return a duration with the digits that matter: 1.4 s, 44 s, 4 min 30 s, 20 min, 3 h 10 min, 2 d 5 h."""
    if seconds < ROUND_FROM:
        return _tenths(seconds)
    if round(seconds) < 90:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    if minutes < ROUND_FROM:
        return _two(divmod(ABOUT_S * round(seconds / ABOUT_S), 60), "min", "s")
    if round(minutes) < 60:
        return f"{minutes:.0f} min"
    hours = minutes / 60
    if hours < 24:
        return _two(divmod(round(minutes), 60), "h", "min")
    return _two(divmod(round(hours), 24), "d", "h")


def _tenths(seconds: float) -> str:
    """Return a few seconds as the page's tables and tiles have them: of 1.4 s, 1 s would be another number."""
    return f"{round(seconds, 1) + 0.0:g} s"  # not -0


def _two(parts: tuple[int, int], larger: str, smaller: str) -> str:
    return f"{parts[0]} {larger}" + (f" {parts[1]} {smaller}" if parts[1] else "")


def where_words(location: CodeLocation) -> str:
    """Return a line of code as a person says it: log_images (callbacks.py:41) 92 %.

    A share of a few stack dumps says of how many: 75 % (4 stack dumps).
    """
    few = "" if location.dumps is None else f" ({location.dumps} stack dumps)"
    calls = " with what it calls" if location.with_calls else ""
    return f"{where_it_is(location)}{calls} {100 * location.share:.0f} %{few}"


def where_it_is(place: CodeLocation | CodeLine | Frame) -> str:
    """Return where a line of code stands: log_images (callbacks.py:41)."""
    return f"{place.function} ({_line(place)})"


def line_words(line: CodeLine) -> str:
    """Return a line of code, and what it waited for where that is known."""
    waits = {"data": "the data loader", "gpu": "the GPU", "ranks": "other ranks"}
    return where_it_is(line) + (f", waiting for {waits[line.waits_for]}" if line.waits_for else "")


def line_change_words(line: LineChange) -> str:
    """Return a line of code of two runs, with its number in each where it moved: log_images (callbacks.py:41 → 57)."""
    numbers = dict.fromkeys(number for number in (line.baseline_line, line.run_line) if number is not None)
    moved = " \u2192 ".join(map(str, numbers))
    waits = ", waiting for the data loader" if line.waits_for == "data" else ""
    return f"{line.function} ({_file(line.file)}:{moved}){waits}"


def role_words(role: str) -> str:
    """Return what people call the processes of a role: Main process, Rank 1, Loader workers."""
    return {"main": "Main process", "workers": "Loader workers"}.get(role, upper_first(role))


def place_words(location: CodeLocation | Frame) -> str:
    """Return a line of code as within a sentence: `log_images` (callbacks.py:41)."""
    function, line = (text.replace("`", "'") for text in (location.function, _line(location)))
    return f"`{function}` ({line})"


def _line(location: CodeLocation | CodeLine | Frame) -> str:
    return f"{_file(location.file)}:{location.line}"


def _file(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]


def setting_location_words(places: Iterable[SettingLocation], *names: str) -> str:
    """Return the lines that set any of these, as the end of a sentence: " (train.py:7 and 8)"; empty for none."""
    of_file: dict[str, list[str]] = {}
    for each in places:
        if each.name in names:
            of_file.setdefault(_file(each.file).replace("`", "'"), []).append(str(each.line))
    said = (f"{file}:{' and '.join(dict.fromkeys(lines))}" for file, lines in of_file.items())
    return f" ({', '.join(said)})" if of_file else ""


def memory_words(mib: float) -> str:
    """Return an amount of memory as a person says it: 842 MiB, 19.3 GiB."""
    return f"{mib:.0f} MiB" if abs(mib) < MIB_PER_GIB else f"{mib / MIB_PER_GIB:.1f} GiB"


def gib(mib: float | None) -> float | None:
    """Return MiB as GiB, None for what is not known."""
    return None if mib is None else mib / MIB_PER_GIB


def money_words(amount: float) -> str:
    """Return an amount of money, in the currency of the price that was given: with cents while they matter."""
    if 0 < amount < SMALLEST_MONEY:
        return "< 0.01"
    return f"{amount:,.2f}" if amount < WHOLE_MONEY_FROM else f"{amount:,.0f}"


def ending_words(ending: Ending, subject: str = "It") -> str:
    """Return how a training ended, as a sentence without its full stop; a failure has a subject of its own."""
    of = f" of {ending.epochs}" if ending.epochs else ""
    where = "" if ending.names_epoch else ", before its first epoch"
    if ending.epoch is not None and not ending.names_epoch:
        where = f", {'after' if ending.whole_epochs else 'in'} epoch {ending.epoch}{of}"
    if ending.name == "finished":
        if ending.epoch is None or ending.epoch == ending.epochs:
            which = "its only epoch" if ending.epochs == 1 else f"all {ending.epochs} epochs" if ending.epochs else ""
            return f"{subject} finished {which}".rstrip()
        return f"{subject} stopped at its time limit (`time=`) in epoch {ending.epoch}{of}"
    if ending.name == "early stop":
        why = "" if ending.patience is None else f": no better result for {ending.patience} epochs (patience)"
        return f"{subject} stopped early after epoch {ending.epoch}{of}{why}"
    if ending.name in {"failed", "interrupted"}:
        return f"{ending.failure}{where}"
    if ending.name == "going on":
        still = "is still running" if ending.still_recorded else "still ran when the recording ended"
        return f"{subject} {still}{where}"
    return f"It is unknown how it ended{where}"


def exception_words(error: str | None, message: str) -> str:
    """Return an exception's type and the first sentence of its words in brackets, as far as they are known.

    What follows it is mostly general advice of a library.

    `--redact` looks for what this returns, for the words may quote a path or data.
    """
    first = _SENTENCE_END.split(message, maxsplit=1)[0]
    short = first if len(first) <= LONGEST_SHOWN else f"{first[:LONGEST_SHOWN].rstrip()} ..."
    known = ": ".join(part for part in (error, short) if part)
    return f" ({known})" if known else ""


# Why a window of PyTorch's profiler has no trace.
PROFILER_FAILED = {
    "no_space": "the temporary folder has too little free space",
    "other_profiler": "another profiler of PyTorch was on",
    "too_short": "the epoch ended before it had a step",
    "interrupted": "the training ended, or its epoch began again",
    "export": "it could not be written",
    "error": "the profiler failed",
}


def _sign(value: float) -> str:
    return "\u2212" if value < 0 else "+"


def _watt_hours(value: float) -> str:
    size = abs(value)
    if size >= 1000:
        return f"{value / 1000:,.2f} kWh"
    if size >= ROUND_FROM:
        return f"{value:,.0f} Wh"
    return f"{value:.2f} Wh" if size >= 0.0995 or not value else f"{value:.2g} Wh"


def _seconds(value: float) -> str:
    size = abs(value)
    if 0 < size < MILLISECONDS_UNDER:
        return f"{1000 * value:.1f} ms" if size < 0.00995 else f"{1000 * value:.0f} ms"
    if size < 9.995:
        return f"{value:.2f} s" if value else "0 s"
    if size < 60:
        return f"{value:.1f} s"
    whole = round(value)
    if size < 3600:
        return _two(divmod(whole, 60), "min", "s")
    return _two((whole // 3600, whole % 3600 // 60), "h", "min")


def is_short(text: str) -> bool:
    """Tell whether a text is short enough for one sentence of the verdict."""
    return len(text.split()) <= LONGEST_SENTENCE


def few_names(names: Sequence[str], most: int) -> str:
    """Return names for a sentence: so many of them, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def first_few(notes: Sequence[str], most: int = 50) -> tuple[str, ...]:
    """Return notes for a person: as many as anybody reads, and how many more there are."""
    return tuple(notes) if len(notes) <= most else (*notes[:most], f"... and {len(notes) - most:,} more of such notes")
