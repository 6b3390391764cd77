"""Rules: what the caller does between two calls, while the GPU has nothing to do."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import PurePath

from gpu_report.analyse.causes.confidence import SUPPORTED
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.inference.call_time import MS
from gpu_report.analyse.inference.copied import copied_mib, copies_tensor
from gpu_report.analyse.inference.gap_growth import growth_of
from gpu_report.analyse.inference.gap_kinds import draws_by_pil
from gpu_report.analyse.inference.gaps import RECEIVING, asks_for_images, makes_number, noted_thread, share_within
from gpu_report.analyse.inference.locks import Queue, queue_of
from gpu_report.analyse.inference.served import judged_models
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.inference.words import (
    BECOMES,
    OF_CALLS,
    active_s,
    is_rare,
    model_px,
    ms,
    percent,
    percent_or_none,
    rate,
    severity,
    speed_now,
)
from gpu_report.analyse.signals.code.stack_kinds import THREAD
from gpu_report.model import Advice, Cause, CodeLocation, Finding, GapPart, ServedModel, Severity, Stack
from gpu_report.wording import counted, place_words, where_it_is

# Of one function's time, which notes estimate; calls may take another time then, up to a fifth: no limit.
ABOUT = "{now} become about {then}"
WITHOUT_IT = "without it " + ABOUT
# What a caller does: its cause, and in words.
GAPS = {
    "own code": ("own-code", "your code"),
    "decoding": ("decoding", "reading and decoding images"),
    "network": ("network", "waiting for the network"),
    RECEIVING: ("receiving", "copying images out of another process"),
}
COPY_ONCE = Advice(
    "Copy results to the CPU once, before a loop over them: `result.boxes.data.tolist()`, or `.cpu()`",
    short="Copy results to the CPU once, before a loop over them",
)
BY_OPENCV = Advice(
    "Give classes names in ASCII: ultralytics draws all others by PIL, which is slower than OpenCV. Or make the image "
    "smaller before `plot`",
    short="Give classes names in ASCII: ultralytics draws all others by PIL, which is slower",
)
# What another thread does, which calls wait for.
OF_OTHERS = {"own code": "your code", "decoding": "images to be decoded", "network": "the network"}
# What to do about it: beside calls, and where one thread already does it.
BESIDE = {
    "decoding": "Decode the next images in several threads or processes while the model works",
    "network": "Fetch the next images in other threads while the model works",
}
MORE_THREADS = {
    "own code": "Run {what} in several threads or processes, since one does not keep up",
    "decoding": "Decode in several threads or processes, since one does not keep up",
    "network": "Fetch images in several threads, since one does not keep up",
}


def time_between_calls(context: Context) -> list[Finding]:
    """Report what takes PART_SHARE of a model's time or more between its calls, other than waiting for them."""
    return [
        _between(context, served, part)
        for served in context.cached(judged_models)
        for part in served.gap_parts
        if part.kind in GAPS and part.seconds >= th.PART_SHARE * active_s(served)
    ]


def _between(context: Context, served: ServedModel, part: GapPart) -> Finding:
    cause, what = GAPS[part.kind]
    share, each_ms = part.seconds / active_s(served), MS * part.seconds / served.latency.calls
    asks = _asks(context, served, part)
    copies, copied = _copies_numbers(context, served, part), _copied_mib(context, served, part)
    line = _lines(served, part, asks, copies=copies)
    summary = f"Before each call {what} takes {ms(each_ms)}, {percent(share)} {OF_CALLS}{line}"
    if part.waited_for:
        summary = f"Calls wait for {OF_OTHERS[part.kind]} in another thread, {percent(share)} {OF_CALLS}{line}"
    queue = _queue(context, served, part)
    return context.finding(
        "slow-between-calls",
        _severity(served, part),
        (served.start_s, served.end_s),
        summary + _copied(part, copied) + _grown(served, part) + _queued(queue),
        gpu=served.calls.gpu,
        evidence=evidence(
            ("between two calls", each_ms, "ms"),
            ("a call (mean)", served.latency.mean_ms, "ms"),
            ("GPU utilisation meanwhile", percent_or_none(served.gpu_busy_share), "%"),
            ("threads that wait for one another (mean)", queue and queue.threads, ""),
            ("sent to the GPU for each call (PCIe)", copied, "MiB"),
        ),
        cause=Cause(cause, SUPPORTED, f"by stack samples: {percent(share)} {OF_CALLS}"),
        where=tuple(each for each in (*_places(served, part), asks, queue and queue.where) if each is not None),
        advice=(
            *_unlocked(served, queue),
            *_ways(served, part, (*([COPY_ONCE] if copies else []), *_kept(part, copied))),
            *_drawn(context, served, part),
        ),
    )


def _lines(served: ServedModel, part: GapPart, asks: CodeLocation | None, *, copies: bool) -> str:
    """Return the lines that a part went to, as the end of a phrase."""
    line = "" if part.where is None else f"{_in(served, part)}{_near(part, where_it_is(part.where))}"
    line += ", which copies numbers from the GPU one by one" if copies else ""
    line += "".join(f", then {where_it_is(place)}" for place, _ in _others(served, part))
    return line + (f", for {where_it_is(asks)}" if asks else "")


def _in(served: ServedModel, part: GapPart) -> str:
    """Return what leads to the place of a part: all of it lies there, or most, where the advice has another share."""
    of_all, of_place = (percent(seconds / active_s(served)) for seconds in (part.seconds, part.function_s))
    return ": " if part.kind != "own code" or of_place == of_all else ", mostly in "


def _near(part: GapPart, place: str) -> str:
    """Return the words of a part's place, and that the work may lie in a line beside it."""
    return f"{place.removesuffix(')')} or a line near it)" if part.is_near else place


def _others(served: ServedModel, part: GapPart) -> list[tuple[CodeLocation, float]]:
    """Return the user's other functions that take long between calls, the longest first, with their seconds."""
    least_s = th.OTHER_SHARE * active_s(served) if part.kind == "own code" else float("inf")
    return [(place, spent) for place, spent in part.others if spent >= least_s]


def _places(served: ServedModel, part: GapPart) -> list[CodeLocation | None]:
    return [part.where, *(place for place, _ in _others(served, part))]


def _severity(served: ServedModel, part: GapPart) -> Severity:
    """Return how bad a part is: a note, where a service that mostly waits gets its images by it."""
    brings_requests = is_rare(served) and part.kind != "own code"
    return "info" if brings_requests else severity(part.seconds / active_s(served), part.seconds)


def _copied_mib(context: Context, served: ServedModel, part: GapPart) -> float | None:
    """Return how many MiB each call sends to the GPU, where a function does so for most of its time."""
    copies = _share(context, served, part, copies_tensor) >= th.TO_GPU_SHARE
    return copied_mib(context, served) if copies else None


def _kept(part: GapPart, copied: float | None) -> Iterator[Advice]:
    """Yield to copy once what stays the same from call to call."""
    if copied is not None:
        text = f"Keep on the GPU what {_named(part)} copies there for each call, as far as it stays the same"
        yield Advice(text, short=text)


def _copied(part: GapPart, copied: float | None) -> str:
    """Return what each call copies to the GPU, as the end of a sentence, empty where that is not much."""
    about = "" if copied is None else f"{float(f'{copied:.2g}'):,.0f} MiB"
    return f". {_named(part).replace('`', '')} copies about {about} to the GPU for each call" if about else ""


def _copies_numbers(context: Context, served: ServedModel, part: GapPart) -> bool:
    """Tell whether the function that a part went to makes numbers of what is on the GPU for most of its time."""
    on_gpu = served.calls.gpu is not None
    return on_gpu and _share(context, served, part, makes_number) >= th.NUMBERS_SHARE


def _share(context: Context, served: ServedModel, part: GapPart, does: Callable[[Stack], bool]) -> float:
    """Return for which share of its time (0 to 1) the user's function that a part went to did something."""
    notes, span = noted_thread(context, served.calls.pid), (served.start_s, served.end_s)
    if notes is None or part.where is None or part.kind != "own code":
        return 0.0
    return share_within(notes, span, part.where, does)


def _drawn(context: Context, served: ServedModel, part: GapPart) -> Iterator[Advice]:
    """Yield what makes ultralytics draw by OpenCV, where it draws by PIL for much of a function's time."""
    if _share(context, served, part, draws_by_pil) >= th.DRAWN_SHARE:
        yield BY_OPENCV


def _asks(context: Context, served: ServedModel, part: GapPart) -> CodeLocation | None:
    """Return the user's line that asks for what ultralytics reads itself."""
    notes = noted_thread(context, served.calls.pid)
    if notes is None or part.kind != "decoding" or part.where is None or not part.where.is_yolo:
        return None
    return asks_for_images(notes, (served.start_s, served.end_s))


def _grown(served: ServedModel, part: GapPart) -> str:
    """Return how the time before a call grew, as the end of a sentence, empty where it did not."""
    growth = growth_of(served, part)
    return "" if growth is None else f". It grew from {ms(growth.first_ms)} to {ms(growth.last_ms)} a call"


def _queue(context: Context, served: ServedModel, part: GapPart) -> Queue | None:
    """Return where the threads that make calls wait for one another, None where one thread makes them."""
    notes = noted_thread(context, served.calls.pid)
    by_threads = part.where is not None and part.where.process == THREAD and not part.waited_for
    return queue_of(notes.process, (served.start_s, served.end_s)) if notes is not None and by_threads else None


def _queued(queue: Queue | None) -> str:
    if queue is None:
        return ""
    return f". Meanwhile {_threads(queue)} in {where_it_is(queue.where)}, as for a lock"


def _threads(queue: Queue) -> str:
    waiting = max(round(queue.threads), 1)
    return f"{counted(waiting, 'thread')} {'wait' if waiting > 1 else 'waits'}"


def _unlocked(served: ServedModel, queue: Queue | None) -> Iterator[Advice]:
    """Yield that threads need to take turns in calls alone: all else they can do side by side."""
    if queue is not None:
        text = f"Hold the lock of {place_words(queue.where)} for the call alone"
        called_s = served.in_calls_share * (served.end_s - served.start_s)
        yield _advice(served, text, max(active_s(served) - called_s, 0.0))


def _ways(served: ServedModel, part: GapPart, cheaper: Iterable[Advice]) -> Iterator[Advice]:
    """Yield what to do about a part, with how many images a second it makes."""
    if part.kind == "own code":
        yield from _looked_at(served, part, cheaper)
    elif part.kind == "decoding":
        yield from _smaller(served, part)
    elif part.kind == RECEIVING:
        yield _advice(served, _less_sent(served, part), part.seconds)
    if part.waited_for:
        yield _advice(served, MORE_THREADS[part.kind].format(what=_named(part)), part.seconds)
    elif part.kind in BESIDE and not is_rare(served):
        yield _advice(served, BESIDE[part.kind], part.seconds)


def _looked_at(served: ServedModel, part: GapPart, cheaper: Iterable[Advice]) -> Iterator[Advice]:
    """Yield to look at functions, which may go or become `cheaper`; and to run one beside calls where that wins much.

    Threads run Python by turns: what another thread does takes as long as it did, and calls may wait for it.
    """
    place = "your code there" if part.where is None else _near(part, _place(part.where))
    spent = part.seconds if part.where is None else part.function_s
    yield _estimate(served, f"Look at {place}", spent, WITHOUT_IT)
    yield from cheaper
    for other, other_s in _others(served, part):
        yield _estimate(served, f"Look at {_place(other)}", other_s, WITHOUT_IT)
    hidden_s = min(spent, active_s(served) - spent)
    by_threads = part.where is not None and part.where.process == THREAD
    if not by_threads and not is_rare(served) and hidden_s >= th.PART_SHARE * active_s(served):
        text = f"Run {_named(part)} in another thread or process while the model works"
        yield _estimate(served, text, hidden_s, ABOUT)


def _estimate(served: ServedModel, what: str, saved_s: float, becomes: str) -> Advice:
    """Return an advice with what calls come to without some seconds of one function, which is no limit."""
    advice = _advice(served, what, saved_s, becomes)
    return replace(advice, gain_at_most=None, gain_estimate=advice.gain_at_most)


def _less_sent(served: ServedModel, part: GapPart) -> str:
    """Return what another process may send instead of whole images: each is packed, copied twice and unpacked."""
    largest_px, size_px = served.calls.image_px, model_px(served)
    by = "your code" if part.where is None else _place(part.where)
    if largest_px and size_px and largest_px >= th.DECODED_TIMES * size_px:
        return f"Shrink images before {by} receives them (now up to {largest_px:,} px), or put them in shared memory"
    return f"Put the images that {by} receives in shared memory, and send their places alone"


def _smaller(served: ServedModel, part: GapPart) -> Iterator[Advice]:
    """Yield to make images smaller once where a decoder makes many more pixels than the model sees."""
    largest_px, size_px = served.calls.image_px, model_px(served)
    if largest_px and size_px and largest_px >= th.DECODED_TIMES * size_px:
        text = f"Shrink the images once (now up to {largest_px:,} px, `imgsz={size_px}`)"
        yield _advice(served, text, part.seconds)


def _advice(served: ServedModel, what: str, saved_s: float, becomes: str = BECOMES) -> Advice:
    """Return an advice with how many images a second calls make without some seconds between them.

    Of a service that mostly waits it is how long a call takes, with what comes before it.
    """
    active = active_s(served)
    now, then, limit = speed_now(served), rate(served.images / (active - saved_s)), "at most"
    if is_rare(served):
        each_ms, then_ms = (MS * seconds / served.latency.calls for seconds in (active, active - saved_s))
        now, then, limit = f"{ms(each_ms)} a call, with what comes before it,", ms(then_ms), "at least"
    text = f"{what}: {becomes.format(now=now, then=then, limit=limit)}"
    return Advice(text, gain_at_most=saved_s / active, short=text)


def _place(place: CodeLocation) -> str:
    """Return a function with its line, or the line alone where it is in none."""
    in_none = place.function.startswith("<")  # <module>
    return f"line {place.line} of {PurePath(place.file).name}" if in_none else place_words(place)


def _named(part: GapPart) -> str:
    """Return the function that a part is, or the line where it is in none."""
    if part.where is None:
        return "it"
    return _place(part.where) if part.where.function.startswith("<") else f"`{part.where.function}`"
