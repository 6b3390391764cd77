"""What a run comes to that only validated models, in sentences: what to change, how fast, and where the time went."""

from collections.abc import Iterator, Sequence
from math import isfinite

from gpu_report.analyse.context import Context
from gpu_report.analyse.results import thresholds as th
from gpu_report.analyse.results.verdict.leads.lead import LOOK
from gpu_report.analyse.timeseries.intervals import length_s, minus
from gpu_report.analyse.validations import validations
from gpu_report.gpu_words import gpu_words
from gpu_report.model import VALIDATION_PARTS, Advice, Sentence, Validation, ValidationPart
from gpu_report.wording import VALIDATION_PART_WORDS, amount, counted, length, upper_first

NAMED = 2  # validations; the page has a table of more
NAMED_PARTS = 4


def validation_sentences(context: Context) -> tuple[Sentence, ...]:
    """Return what is said of validations."""
    found = [phase.validated for _, phase in validations(context) if phase.validated is not None]
    if not found:
        return (Sentence("validation", "No validation came to its end."),)
    return (*_first(found), *_speed(found), *_parts(found), *_around(context, found), *_gpus(context, found))


def _seconds(found: Sequence[Validation], part: ValidationPart) -> float:
    return sum(each.seconds.get(part, 0.0) for each in found)


def _whole_s(found: Sequence[Validation]) -> float:
    return sum(each.duration_s for each in found)


def _first(found: Sequence[Validation]) -> Iterator[Sentence]:
    """Yield that the loader is what to change, where validations waited for it long after their first batch."""
    waited_s = _seconds(found, "data") - sum(each.first_wait_s for each in found)
    share = waited_s / _whole_s(found)
    if share < th.VALIDATION_WAITS:
        what = "validation" if len(found) == 1 else "validations"
        yield Sentence("nothing", f"Nothing to fix was found in the {what}.")
        return
    workers = found[0].workers
    now = "" if workers is None else f" (now {workers})"
    text = f"Set more `workers`{now}, or `cache=ram`: validation waited for images {100 * share:.0f} % of its time"
    yield Sentence(LOOK, f"{text}.", advice=Advice(text, gain_at_most=share, short=text))


def _speed(found: Sequence[Validation]) -> Iterator[Sentence]:
    named = [_took(each) for each in found[:NAMED]]
    more = f"; {counted(len(found) - NAMED, 'more validation')} in the table" if len(found) > NAMED else ""
    yield Sentence("speed", f"Validated {', then '.join(named)}{more}.")


def _took(each: Validation) -> str:
    what = "unknown images" if each.images is None else counted(each.images, "image")
    rate = "" if each.images_per_s is None else f" ({each.images_per_s:,.0f} images/s)"
    return f"{what} in {amount(each.duration_s, 's')}{rate}"


def _parts(found: Sequence[Validation]) -> Iterator[Sentence]:
    """Yield where the time of all validations went, the longest part first."""
    shares = {part: _seconds(found, part) / _whole_s(found) for part in VALIDATION_PARTS}
    most = sorted(shares, key=lambda part: -shares[part])[:NAMED_PARTS]
    said = [part for part in most if shares[part] >= th.PART_SAID]
    if said:
        named = ", ".join(f"{VALIDATION_PART_WORDS[part]} {100 * shares[part]:.0f} %" for part in said)
        yield Sentence("part", f"{upper_first(named)} of that time.")


def _around(context: Context, found: Sequence[Validation]) -> Iterator[Sentence]:
    """Yield what of the run was start-up, or lay between validations, where that was long beside them."""
    starts = [phase.span for phase in context.phases if phase.name == "startup"]
    validated = [(each.start_t_s, each.end_t_s) for each in found]
    between_s = length_s(minus([(validated[0][0], validated[-1][1])], [*starts, *validated]))
    whole_s = context.run.duration_s
    startup, between = (seconds >= th.STARTUP_SAID * whole_s > 0 for seconds in (length_s(starts), between_s))
    what = f"Start-up took {length(length_s(starts))}" if startup else f"Validating took {length(_whole_s(found))}"
    rest = f", validating {length(_whole_s(found))}" if startup else ""
    gaps = f"{',' if startup else ''} and {length(between_s)} lay between validations" if between else ""
    if startup or between:
        yield Sentence("start", f"{what} of {length(whole_s)}{rest}{gaps}.")


def _gpus(context: Context, found: Sequence[Validation]) -> Iterator[Sentence]:
    """Yield how busy the GPUs that were used were in validations."""
    for series in context.used_series:
        pairs = [(series.mean_util_pct(each.start_t_s, each.end_t_s), each.duration_s) for each in found]
        known = [(pct, seconds) for pct, seconds in pairs if isfinite(pct)]
        if known:
            busy = sum(pct * seconds for pct, seconds in known) / sum(seconds for _, seconds in known)
            yield Sentence("work", f"Meanwhile {gpu_words(series.gpu)} was busy {busy:.0f} %.")
