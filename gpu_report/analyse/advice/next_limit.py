"""What would hold a training back next, once a larger batch has made its steps faster: its loader's workers."""

from collections.abc import Sequence

from gpu_report.analyse.advice.larger_batches import LargerBatches
from gpu_report.analyse.context import Context
from gpu_report.analyse.signals.code.loader_work import WorkerCode, worker_places
from gpu_report.analyse.signals.code.stack_kinds import kind_of
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.model import Advice
from gpu_report.wording import counted, place_words

# YOLO's functions (ultralytics 8.4) that work on the points of polygons, of which detection uses the box alone.
OF_POLYGONS = frozenset({"resample_segments", "apply_segments"})


def next_limit(context: Context, training: Training, batches: LargerBatches, epoch_s: float) -> Advice | None:
    """Offer what makes the workers faster where they could not feed epochs whose training part takes `epoch_s`.

    What they load at the ends of short epochs may hide it: it is told all the same. None where nobody can change it.
    """
    workers, at_work = (batches.settings.workers or 0) * batches.settings.ranks, batches.workers_at_work
    spans = context.signals.steady_of(training)
    if not workers or not spans or at_work * batches.limit.epoch_s_now <= workers * epoch_s:
        return None
    places = worker_places(context.signals.idle_stacks, spans)
    do = _do(training, places)
    if not do:
        return None
    busy_pct = min(100 * at_work / workers, 100.0)
    first, *most = (place_words(each.line) for each in places)
    mostly = f", mostly in {most[0]}" if most else ""
    short = f"{do}: data-loader workers will be the next limit"
    work = f"{counted(workers, 'worker')} are at work {busy_pct:.0f} % of the time"
    return Advice(f"{short}. {work}, {100 * places[0].share:.0f} % of it in {first}{mostly}", short=short)


def _do(training: Training, places: Sequence[WorkerCode]) -> str:
    """Return what to do about the functions in which workers are; empty of those that cannot be helped."""
    own = next((each.line for each in places if kind_of(each.line) == "own"), None)
    if own is not None:
        return f"Then look at {place_words(own)}"
    of_polygons = any(each.line.function in OF_POLYGONS for each in places)
    return "Then turn polygon labels into boxes" if of_polygons and training.args.get("task") == "detect" else ""
