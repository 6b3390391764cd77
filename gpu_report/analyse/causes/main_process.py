"""Causes in the trainer's main process: stopped, blocked, or full."""

from collections.abc import Iterator

from gpu_report.analyse.causes import thresholds as th
from gpu_report.analyse.causes.candidate import (
    Candidate,
    computes_in_place,
    idle,
    is_in_unusual_place,
    loading_workers,
    main_fills_one_core,
    never_waits_for_data,
    usable_cores,
    waits_for_loader,
)
from gpu_report.analyse.causes.confidence import CERTAIN, HINTED, LIKELY, POSSIBLE, PRESENT, STRONG
from gpu_report.analyse.causes.data_loading import loader_idle
from gpu_report.analyse.evidence import evidence, stopped_processes, usually
from gpu_report.analyse.signals.code.call_growth import CallGrowth
from gpu_report.analyse.signals.code.loader_work import WorkerCode
from gpu_report.analyse.signals.code.stack_profile import IdleLocation
from gpu_report.analyse.signals.interval_signals import IntervalSignals
from gpu_report.analyse.signals.signals_index import OwnCode
from gpu_report.analyse.signals.thresholds import (
    COMPUTES_CPU_PCT,
    FAST_LAUNCHES_S,
    LAUNCHES_S,
    MOSTLY_SHARE,
    MUCH_SHARE,
    OWN_SHARE,
)
from gpu_report.catalogue import BUSY_THREAD_KEY, GROWN_FROM_KEY, GROWN_TO_KEY, GROWS_ON_KEY, IDLE_IN_STEPS_KEY
from gpu_report.model import Advice, Cause, Evidence, Setting
from gpu_report.wording import place_words, step_words

# What helps where nothing that is recorded says which operations are so many.
PROFILE = Advice(
    "Find the slow operations of a step: `gpu-report record --profile -- COMMAND`",
    short="Find the slow operations of a step: `gpu-report record --profile -- COMMAND`",
)
# ... and which line of the user's it is, of which no stacks were noted; the cause itself says where to look.
PROFILE_STEPS = Advice(PROFILE.text)
LET_IT_WAIT = Advice(
    "Let that thread compute less often, or in another process (`multiprocessing`). One that polls can wait for its "
    "work (`queue.get()`, `Event.wait()`)"
)
WHO_PAUSED = Advice(
    "Find who paused the training: Ctrl-Z, `kill -STOP`, or a daemon that limits CPU time, as login nodes have",
    short="Find who paused the training",
)
CODE_CAUSES = frozenset({"trainer-blocked", "main-process"})  # causes that a function of the user's can be


def trainer_stopped(signals: IntervalSignals) -> Candidate | None:
    """Find that a signal had stopped the training, a rank of it, or a worker that it waited for."""
    stopped = signals.within("trainer_stopped")
    if stopped is None or (signals.share_above("trainer_stopped", 1) or 0.0) < th.STOPPED_SHARE:
        return None
    numbers = evidence(stopped_processes(stopped))
    main, workers = signals.within("main_cpu_pct"), signals.within("workers")
    # what is stopped notes nothing: the line in which it stood last says as little of a stopped main process
    if waits_for_loader(signals) and (main or 0.0) > 0 and stopped <= (workers or 0.0):
        return Candidate(
            "input-stalled", CERTAIN, "a signal paused a data-loader worker (SIGSTOP)", numbers, (WHO_PAUSED,)
        )
    text = "a signal paused the training (SIGSTOP, Ctrl-Z)"
    return Candidate("trainer-blocked", CERTAIN, text, numbers, (WHO_PAUSED,))


def trainer_blocked(signals: IntervalSignals) -> Candidate | None:
    """Find that the main process itself stalled: no CPU, no disk, and the workers waited for it.

    Where its stacks show it in a place of its own, that it used little CPU there is enough.
    """
    elsewhere = is_in_unusual_place(signals)
    blocked = elsewhere and computes_in_place(signals) is False
    if not blocked and (waits_for_loader(signals) or not idle(signals) or loader_idle(signals) is not None):
        return None
    numbers = evidence(
        *_in_one_place(signals),
        _main_cpu(signals),
        usually(signals.typical("main_cpu_pct"), "% of a core"),
        ("CPU of all workers", signals.within("workers_cpu_pct"), "% of a core"),
    )
    where = "function" if signals.idle_location and signals.idle_location.is_in_call else "line of code"
    text = "the main process was blocked, using neither CPU nor disk (callback, lock, logger, remote service)"
    if blocked:
        text = f"the main process waited in one {where}, using little CPU there"
    return Candidate("trainer-blocked", STRONG if elsewhere else LIKELY, text, numbers)


def gil_held_by_thread(signals: IntervalSignals) -> Candidate | None:
    """Find another thread of the main process that ran Python nearly always, so that the main one could not.

    Where its CPU was not noted, as in old recordings, only a step that launches cannot explain says so: the thread may
    wait in a line that calls nothing.
    """
    thread, waited = signals.busy_thread, signals.waited_share or 0.0
    if thread is None or waited >= MUCH_SHARE or is_in_unusual_place(signals):
        return None
    if thread.main_share is None and not launches_too_much(signals):
        return None
    numbers = evidence(
        Evidence("another thread ran Python", 100 * thread.share, "% of that time", key=BUSY_THREAD_KEY),
        (
            "CPU of the main thread meanwhile",
            None if thread.main_share is None else 100 * thread.main_share,
            "% of a core",
        ),
        ("a training step took, at its fastest", signals.step_s, "s"),
    )
    text = "another thread held the GIL (Python's lock), and the main thread waited for it"
    return Candidate("main-process", LIKELY, text, numbers, (LET_IT_WAIT,))


def partly_in_call(signals: IntervalSignals) -> Candidate | None:
    """Find a function of the user's that YOLO called and that took much of the idle time, though not most of it."""
    idle_location = signals.idle_location
    computes = computes_in_place(signals)
    if idle_location is None or not idle_location.is_partly_in_call or computes is None:
        return None
    numbers = evidence(_in_call(idle_location), _main_cpu(signals))
    there = "in your own code for part of the idle time"
    if computes:
        return Candidate("main-process", HINTED, f"the main process computed {there}", numbers)
    return Candidate("trainer-blocked", HINTED, f"the main process was blocked {there}", numbers)


def in_call(own: OwnCode, who: str, did: str) -> Cause:
    """Return that `who` waited in a function of the user's, by its CPU; where that is not known, that it `did` so."""
    if own.cpu_pct is not None and own.cpu_pct < COMPUTES_CPU_PCT:
        return Cause("trainer-blocked", LIKELY, f"{who} waited in {own.function.function}()")
    return Cause("main-process", LIKELY, f"{who} {did} in {own.function.function}()")


def in_validations(place: str, cause: str) -> Advice:
    """Return what to do about a function that validations need: what it gives cannot come later, nor from elsewhere."""
    do = "Do what {} waits for in a background thread" if cause == "trainer-blocked" else "Do the work of {} {}"
    short = do.format(place, "for all images at once (NumPy, torch)")
    return Advice(f"{short}, or use it in fewer validations", short=short)


def main_process_bound(signals: IntervalSignals) -> Candidate | None:
    """Find one core full with the main process while workers idled: it cannot feed the GPU faster.

    Where its stacks show it in a place of its own, it need not be all of a core: what it computes there may wait for a
    disk in between.
    """
    elsewhere = is_in_unusual_place(signals)
    computes = computes_in_place(signals)
    works_there = elsewhere and computes is not False and signals.within("main_cpu_pct") is not None
    if not works_there and (elsewhere or not main_fills_one_core(signals)):
        return None
    numbers = evidence(
        *_in_one_place(signals),
        _main_cpu(signals),
        ("CPU of all workers", signals.within("workers_cpu_pct"), "% of a core"),
        ("CPU, all cores", signals.within("cpu_pct"), "%"),
    )
    if works_there:
        return Candidate("main-process", STRONG if computes else POSSIBLE, _other_work(signals), numbers)
    if signals.is_steady and launches_too_much(signals) and _meets_sizes(signals):
        text = f"a step took {_launching_s(signals):.1f} s, for each of {signals.image_sizes} image sizes once"
        return Candidate("main-process", LIKELY, text, numbers, (_one_size(signals),))
    if signals.is_steady and launches_too_much(signals):  # one batch of a drop says nothing of all steps
        text = f"a step took {_launching_s(signals):.1f} s of CPU work, far more than any YOLO model needs"
        return Candidate("main-process", LIKELY, text, numbers, (_of_layer(signals) or PROFILE,))
    if partly_in_call(signals) is not None:  # which says where
        return None
    util = signals.gpu_within("gpu_util_pct")
    alone = never_waits_for_data(signals) and util is not None and util < th.MAIN_BOUND_UTIL_PCT  # nothing else is left
    return Candidate(
        "main-process",
        PRESENT if alone else POSSIBLE,
        "the main process used one CPU core fully",
        numbers,
        is_launching=_may_launch(signals),
    )


def idles_in_long_steps(signals: IntervalSignals) -> Candidate | None:
    """Find a GPU that idles in each step though data is ready, and its work is so long that launching is done by then.

    What is left is other code of the main process between two batches. Where stacks were noted, they say so themselves.
    """
    util, step_s = signals.gpu_within("gpu_util_pct"), signals.step_s
    if util is None or step_s is None or not (signals.is_steady and signals.is_alone) or signals.idle_location:
        return None
    if (signals.within("main_cpu_pct") or 0.0) < th.MAIN_FULL_PCT:  # who waits leaves its core
        return None
    idle_s = (1 - util / 100) * step_s
    if (
        idle_s < th.IDLE_IN_STEPS_SHARE * step_s
        or step_s - idle_s < th.LONG_WORK_S
        or not never_waits_for_data(signals)
    ):
        return None
    text = f"the GPU was idle for {step_words(idle_s)} of each step of {step_words(step_s)}, with its data ready"
    numbers = evidence(
        Evidence("idle in each step", idle_s, "s", key=IDLE_IN_STEPS_KEY),
        ("a training step took", step_s, "s"),
        _main_cpu(signals),
    )
    return Candidate("main-process", LIKELY, f"{text}: other code ran between the steps", numbers, (PROFILE_STEPS,))


def _may_launch(signals: IntervalSignals) -> bool:
    """Tell whether a full main process can have been launching: in the loader, or in a user's function, it is not."""
    idle_location = signals.idle_location
    if idle_location is None:
        return True
    return max(idle_location.in_loader, idle_location.call_share, idle_location.own_share) < MOSTLY_SHARE


def _meets_sizes(signals: IntervalSignals) -> bool:
    """Tell whether images have so many sizes that each step may be the first with its own: cuDNN prepares kernels then.

    Of sizes that are drawn at random some come for the first time after a multiple of their number.
    """
    steps = (signals.end_t_s - signals.start_t_s) / signals.step_s if signals.step_s else 0.0
    return signals.image_sizes > 1 and steps < th.SIZES_MET * signals.image_sizes


def _one_size(signals: IntervalSignals) -> Advice:
    short = f"Let it train on: each of {signals.image_sizes} image sizes (`multi_scale`) takes long only once"
    return Advice(f"{short}. `multi_scale=0` keeps one size", short=short, also=(Setting("multi_scale", None, "0.0"),))


def _of_layer(signals: IntervalSignals) -> Advice | None:
    """Return to look at the user's own layer in which most of a forward pass is spent; None without one.

    What it launches there comes once more in the backward pass, of which stacks tell nothing.
    """
    layer = signals.own_layer
    if layer is None or layer.share < MOSTLY_SHARE:
        return None
    took = f"{100 * layer.share:.0f} % of the model's forward pass"
    short = f"Look at {place_words(layer.line)}: your layer takes {took}"
    why = "A loop in Python launches many small operations, and as many in the backward pass: compute on whole tensors"
    return Advice(f"{short}. {why}", short=short)


def launch_bound(signals: IntervalSignals) -> Candidate | None:
    """Find one core full with launching kernels that are too small for the GPU.

    The main process was full and waited for no data: so it launched. Where callbacks did not tell, SM activity far
    under utilisation does. A GPU that is not even busy LAUNCH_UTIL_PCT of the time gets no stream of kernels: then the
    main process does something else, as it does where it fills more cores than can launch (LAUNCHES_CPU_PCT). Stacks
    that show it launching need none of this: it may wait elsewhere in between. A step that leaves the GPU idle for
    longer than the model's launches take (LAUNCHES_S) launches something else. One of more than they take with a fast
    CPU (FAST_LAUNCHES_S) may, where no stacks say what the main process did.
    """
    util, sm = signals.gpu_within("gpu_util_pct"), signals.gpu_within("sm_active_pct")
    if util is None or (signals.within("main_cpu_pct") or 0.0) > th.LAUNCHES_CPU_PCT or launches_too_much(signals):
        return None
    if idles_in_long_steps(signals) is not None:
        return None
    small = sm is not None and sm < th.LAUNCH_SM_SHARE * util
    streams = util >= th.LAUNCH_UTIL_PCT and (small or never_waits_for_data(signals)) and main_fills_one_core(signals)
    if not (_only_launches(signals) or streams) or _computes_in_call(signals):
        return None
    numbers = evidence(
        Evidence("utilisation", util, "%", key="gpu_util_pct"),
        ("SM activity", sm, "%"),
        ("CPU of the main process", signals.within("main_cpu_pct"), "% of a core"),
        ("CPU of all workers", signals.within("workers_cpu_pct"), "% of a core"),
    )
    text, advice = "each batch was too small to keep the GPU busy", _less_in_workers(signals)
    if signals.idle_location is None and (_launching_s(signals) or 0.0) > FAST_LAUNCHES_S:
        text, advice = f"{text}, or the main process ran other code in each step", (*advice, PROFILE)
    return Candidate("launch-bound", LIKELY, text, numbers, advice)


def _less_in_workers(signals: IntervalSignals) -> tuple[Advice, ...]:
    """Return to make a function of the user's cheaper that keeps most cores, or workers, busy.

    Who launches shares the cores with them; workers that are hardly ever free could not feed steps that are faster.
    """
    code, workers_pct, cores = signals.worker_code, signals.within("workers_cpu_pct") or 0.0, usable_cores(signals)
    if code is None or code.share < MOSTLY_SHARE:
        return ()
    if not cores or workers_pct < 100 * th.CROWDED_SHARE * cores:
        return _of_busy_workers(signals, code)
    taken = f"{code.share * workers_pct / 100:.0f} of {cores:g} CPU cores"
    short = f"Make {place_words(code.line)} cheaper: in data-loader workers it keeps {taken} busy"
    why = "The main process, which launches the GPU's work, shares these cores with them"
    return (Advice(f"{short}. {why}", short=short),)


def _of_busy_workers(signals: IntervalSignals, code: WorkerCode) -> tuple[Advice, ...]:
    there, at_work = loading_workers(signals) / signals.ranks, signals.workers_at_work or 0.0
    if not there or at_work < th.WORKERS_BUSY_SHARE * there:
        return ()
    short = (
        f"Make {place_words(code.line)} shorter: data-loader workers spend {100 * code.share:.0f} % of their work there"
    )
    why = f"They are at work {100 * at_work / there:.0f} % of the time, so that faster steps would wait for them"
    return (Advice(f"{short}. {why}", short=short),)


def launches_too_much(signals: IntervalSignals) -> bool:
    """Tell whether the GPU idled in a step, not waiting for data, for longer than launching any model takes."""
    return (_launching_s(signals) or 0.0) > LAUNCHES_S


def _launching_s(signals: IntervalSignals) -> float | None:
    """Return the seconds of a step in which the GPU idled, data had come, and no function of the user's was called.

    None where not known.
    """
    util = signals.gpu_within("gpu_util_pct")
    if util is None or signals.step_s is None:
        return None
    in_call = signals.idle_location.call_share * (1 - util / 100) if signals.idle_location is not None else 0.0
    return max(1 - util / 100 - (signals.waited_share or 0.0) - in_call, 0.0) * signals.step_s


def _only_launches(signals: IntervalSignals) -> bool:
    """Tell whether stacks show the main process launching steps in most of the idle time.

    Code of the user's within the steps, such as a hook, makes launching slow by itself; between them it does not. Nor
    does what only waits, as for a server: it launches nothing, however long it takes.
    """
    idle_location = signals.idle_location
    if idle_location is None or idle_location.launching < MOSTLY_SHARE:
        return False
    is_beside = idle_location.call_share < MUCH_SHARE or computes_in_place(signals) is False
    return idle_location.own_share - idle_location.call_share < OWN_SHARE and is_beside


def _computes_in_call(signals: IntervalSignals) -> bool:
    """Tell whether much of the time went into a function of the user's that may have computed: that is no launching."""
    much = signals.idle_location is not None and signals.idle_location.is_partly_in_call
    return much and computes_in_place(signals) is not False


def _other_work(signals: IntervalSignals) -> str:
    """Return what the main process did: with threads of arithmetic on how many cores, by the CPU in that place."""
    idle_location = signals.idle_location
    whole = signals.within("main_cpu_pct") if idle_location is not None and idle_location.is_alone else None
    cores = round(max(whole or 0.0, (idle_location.cpu_pct or 0.0) if idle_location else 0.0) / 100)
    if cores > 1:
        return f"the main process itself kept {cores} CPU cores busy"
    return "the GPU waited for Python code in the training process"


def _in_one_place(signals: IntervalSignals) -> Iterator[tuple[str, float, str]]:
    """Yield for how much of the GPU's idle time the main process stood in one place that is none of its usual ones."""
    idle_location = signals.idle_location
    if idle_location is None or not is_in_unusual_place(signals):
        return
    if idle_location.is_in_call and idle_location.call_share > idle_location.share:
        yield _in_call(idle_location)
    else:
        yield ("the main process was in one line of code", 100 * idle_location.share, "% of the idle time")


def _in_call(idle_location: IdleLocation) -> tuple[str, float, str]:
    return (
        "in your code that YOLO called, and in what that called",
        100 * idle_location.call_share,
        "% of the idle time",
    )


def _main_cpu(signals: IntervalSignals) -> tuple[str, float | None, str]:
    """Return the CPU of the main process, in the place where it stood if that is known."""
    if is_in_unusual_place(signals) and signals.idle_location and signals.idle_location.cpu_pct is not None:
        return "CPU of the main process there", signals.idle_location.cpu_pct, "% of a core"
    return "CPU of the main process", signals.within("main_cpu_pct"), "% of a core"


def of_growth(growth: CallGrowth | None) -> tuple[Evidence, ...]:
    """Return the numbers of a function of the user's that takes ever longer, none where it does not."""
    if growth is None:
        return ()
    first = Evidence("in it, a batch at first", growth.first_s, "s", key=GROWN_FROM_KEY)
    last = Evidence("in it, a batch in the end", growth.last_s, "s", key=GROWN_TO_KEY)
    if growth.grows_on_s is None:
        return first, last
    return first, last, Evidence("each epoch will take longer by at least", growth.grows_on_s, "s", key=GROWS_ON_KEY)
