"""What the calls of models come to, in sentences: what to change first, then how fast they were."""

from collections.abc import Iterator, Sequence

from gpu_report.analyse.context import Context
from gpu_report.analyse.inference.in_calls import own_code_in_inference_s
from gpu_report.analyse.inference.served import served_models, unknown_gap_s
from gpu_report.analyse.results import thresholds as th
from gpu_report.analyse.rules.inference.contention import parts_are_its_own
from gpu_report.analyse.rules.inference.words import active_s, model_name, ms, of_calls, percent, rate
from gpu_report.catalogue import MEMORY_GROWS, RULES
from gpu_report.gpu_words import gpu_words
from gpu_report.model import Advice, Finding, Sentence, ServedModel, calls_needed
from gpu_report.wording import counted, lower_first, money_words, place_words, upper_first

FIX, LOOK = "fix", "look"
RARE_CALLS = "rare-calls"
SIDE_BY_SIDE = "shared-gpu"
# What distorts all else that is measured: the model on the wrong device, a program on too few cores.
BEFORE_ALL_ELSE = "cpu-inference", "few-cores"
# What a program did between calls, with its share of the time and the line.
BETWEEN = {
    "own code": "Between calls {} of the time from the first to the last went into {}",
    "waiting for calls": "Between calls it waited for {} of the time from the first to the last, in {}",
}
INFERENCE, PREPROCESSING, POSTPROCESSING = "Inference", "Pre-processing", "Post-processing"
PARTS_OF_RULES = {"slow-preprocessing": PREPROCESSING, "slow-postprocessing": POSTPROCESSING}  # what they are about
NAMED_MODELS = 2  # of several: the others stand in the report's table


def inference_sentences(context: Context, findings: Sequence[Finding]) -> tuple[Sentence, ...]:
    """Return what is said of calls."""
    served = context.cached(served_models)
    lead = _lead(findings)
    return (
        *(_no_lead(context, served[0], findings) if lead is None else _led(lead)),
        *_speed(served, is_named=lead is not None and RULES[lead.rule].of_calls),
        *_parts(context, served[0], lead),
        *_at_once(findings),
        *_between_calls(served[0], lead, findings),
        *_gpu(served),
        *_pause(findings, lead),
        *_money(served[0]),
    )


def leading(findings: Sequence[Finding]) -> frozenset[str]:
    """Return the ids of the findings that the verdict on calls leads with: they are said."""
    lead = _lead(findings)
    return frozenset() if lead is None else frozenset({lead.id})


def _lead(findings: Sequence[Finding]) -> Finding | None:
    """Return the finding to act on first: growing memory, what distorts all else, else the fix that wins most."""
    grown = [finding for finding in findings if finding.rule in MEMORY_GROWS and finding.severity != "info"]
    of_calls_only = [f for f in findings if RULES[f.rule].of_calls and f.severity != "info" and f.advice]
    distorts = [finding for rule in BEFORE_ALL_ELSE for finding in of_calls_only if finding.rule == rule]
    hints = [f for f in findings if f.rule == RARE_CALLS and f.advice]
    return next(iter((*grown, *distorts)), None) or max(of_calls_only or hints, key=_gain, default=None)


def _gain(finding: Finding) -> float:
    return max((_of_advice(advice) for advice in finding.advice), default=0.0)


def _of_advice(advice: Advice) -> float:
    return advice.gain_estimate if advice.gain_estimate is not None else advice.gain_at_most or 0.0


def _led(lead: Finding) -> Iterator[Sentence]:
    advice = lead.advice[0]
    about = lead.cause_name
    kind = FIX if advice.argument else LOOK
    yield Sentence(kind, f"{advice.short or advice.text}.", (lead.id,), about, advice)
    yield Sentence("why", f"{upper_first(lead.summary)}.", (lead.id,), about)


def _speed(served: Sequence[ServedModel], *, is_named: bool) -> Iterator[Sentence]:
    """Yield how long calls took and how many images a second that made.

    Of which model, too, where there are several, or no sentence before it has named it (`is_named`).
    """
    for each in served[:NAMED_MODELS]:
        figures = each.latency
        known = {"p50": figures.p50.value_ms, "p95": figures.p95.value_ms, "p99": figures.p99.value_ms}
        words = [f"{ms(value)} ({name})" for name, value in known.items() if value is not None]
        words = words or [f"{ms(figures.mean_ms)} (mean)"]
        speed = "" if each.images_per_s is None else f": {rate(each.images_per_s)} images/s in all"
        which = "A call" if is_named and len(served) == 1 else f"A call of {of_calls(each)},"
        yield Sentence("speed", f"{which} took {', '.join(words)}{speed}.")
    if len(served) > NAMED_MODELS:
        yield Sentence("speed", f"{counted(len(served) - NAMED_MODELS, 'more model')} in the table.")
    if served[0].latency.p95.value_ms is None:
        needed, had = calls_needed(0.95), served[0].latency.calls
        yield Sentence("speed", f"p95 is unknown: it needs {needed} calls after warm-up, there were {had:,}.")


def _parts(context: Context, served: ServedModel, lead: Finding | None) -> Iterator[Sentence]:
    """Yield which part of a call takes longest, unless the verdict leads with that, or all of them contain waits."""
    parts = served.parts
    if not parts_are_its_own(context, served):
        return
    named = {
        INFERENCE: parts.inference_ms,
        PREPROCESSING: parts.preprocess_ms,
        POSTPROCESSING: parts.postprocess_ms,
        "What ultralytics does not time (drawing, saving, warming up)": parts.other_ms,
    }
    known = {name: value for name, value in named.items() if value is not None}
    if known and parts.total_ms > 0:
        name = max(known, key=lambda each: known[each])
        if lead is not None and PARTS_OF_RULES.get(lead.rule) == name:
            return
        own_s = own_code_in_inference_s(context, served) if name == INFERENCE else 0.0
        hooked = ", your code in it included," if own_s >= th.OWN_IN_INFERENCE * active_s(served) else ""
        yield Sentence("part", f"{name}{hooked} takes {percent(known[name] / parts.total_ms)} of a call.")


def _at_once(findings: Sequence[Finding]) -> Iterator[Sentence]:
    """Yield that calls overlap on a GPU, so that each of them takes longer than alone."""
    yield from (Sentence("at once", f"{f.summary}.", (f.id,)) for f in findings if f.rule == SIDE_BY_SIDE)


def _between_calls(served: ServedModel, lead: Finding | None, findings: Sequence[Finding]) -> Iterator[Sentence]:
    """Yield in which line of the user's code the program was between calls, where that took much and does not lead.

    That it waited for calls is not said twice.
    """
    whole_s = served.end_s - served.start_s
    own = [part for part in served.gap_parts if part.kind in BETWEEN and part.where and not part.where.is_yolo]
    most = max(own, key=lambda part: part.seconds, default=None)
    if most is None or most.where is None or most.seconds < th.BETWEEN_CALLS_SHARE * whole_s:
        return
    said = [each for each in findings if each.rule == RARE_CALLS or each is lead]
    led = {(at.file, at.line) for each in said for at in each.where}
    if (most.where.file, most.where.line) not in led:
        what = BETWEEN[most.kind].format(percent(most.seconds / whole_s), place_words(most.where))
        yield Sentence("between calls", f"{what}.")


def _gpu(served: Sequence[ServedModel]) -> Iterator[Sentence]:
    first = served[0]
    if first.gpu_busy_share is not None and _awake(first):
        busy = f"{upper_first(gpu_words(first.calls.gpu))} was busy {percent(first.gpu_busy_share)}"
        yield Sentence("work", f"{busy} of the time from the first call to the last.")


def _awake(served: ServedModel) -> bool:
    """Tell whether a model, or its caller, was at work for most of the time."""
    return active_s(served) >= th.HALF * (served.end_s - served.start_s)


def _pause(findings: Sequence[Finding], lead: Finding | None) -> Iterator[Sentence]:
    """Yield that hardly any call came, unless the verdict leads with that."""
    rare = (each for each in findings if each.rule == RARE_CALLS and each is not lead)
    yield from (Sentence("no call", f"{f.summary}.", (f.id,)) for f in rare)


def _no_lead(context: Context, served: ServedModel, findings: Sequence[Finding]) -> Iterator[Sentence]:
    """Yield that nothing was found to fix, and what may be worth a try; or that most of the time is unknown.

    Where hardly any call came, images a second are what was asked for: how long a call takes is what counts.
    """
    whole_s = served.end_s - served.start_s
    unknown_s = unknown_gap_s(context, served)
    if unknown_s >= th.HALF * whole_s > 0:
        what = f"Unknown what the program did for {percent(unknown_s / whole_s)} of the time from the first to the last"
        yield Sentence("unknown", f"{what} call of {model_name(served)}: stack samples do not say it.")
    elif any(finding.rule == RARE_CALLS for finding in findings):
        waits = "it mostly waits for the next request or image, so its latency is what matters"
        yield Sentence("nothing", f"Nothing to fix was found in the calls of {model_name(served)}: {waits}.")
    elif (note := _to_try(findings)) is not None:
        to_try = lower_first(note.advice[0].short)
        text = f"Nothing to fix was found in the calls of {model_name(served)}. Worth a try: {to_try}."
        yield Sentence("nothing", text, (note.id,), note.cause_name)
    else:
        yield Sentence("nothing", f"Nothing to fix was found in the calls of {model_name(served)}.")


def _to_try(findings: Sequence[Finding]) -> Finding | None:
    """Return the note on calls whose advice may win most, None without one."""
    notes = [f for f in findings if RULES[f.rule].of_calls and f.advice and f.advice[0].short]
    return max(notes, key=_gain, default=None)


def _money(served: ServedModel) -> Iterator[Sentence]:
    if served.money_per_million is not None:
        yield Sentence(
            "cost", f"A million images cost {money_words(served.money_per_million)} of GPU time at this rate."
        )
