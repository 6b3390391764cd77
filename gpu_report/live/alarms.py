"""What is wrong at this moment: judged from a few readings, and provisional until the report says why."""

from collections.abc import Iterator
from dataclasses import dataclass

from gpu_report.gpu_words import gpu_words, gpus_words
from gpu_report.live.reading.gpu_readings import UTILISATION, GpuReadings
from gpu_report.live.reading.run_now import RunNow
from gpu_report.live.reading.training import LiveTraining
from gpu_report.wording import fall_words

DROP_S = 10.0  # as in the report
UNREAD_S = 5.0  # without any reading: a call that fails now and then is no lost GPU
TOGETHER_S = 5.0  # ranks of one training fall within a step or two
IDLE_S = 60.0  # idle for less is the end of an epoch
FULL_SHARE = 0.97  # of a card: as in the report
# A phase is as long as the longest one before it, and half as much; of a first one nobody knows more than that a
# validation takes minutes on a large data set.
LONGER_SHARE = 1.5
FIRST_PHASE_S = 300.0


@dataclass(frozen=True)
class Alarm:
    """Something that goes on: its kind (drop, idle, memory, unread, xid), GPU (None: all), and in words.

    `since_s` is since when (wall seconds), None where that is not known.
    """

    kind: str
    severity: str
    gpu: int | None
    since_s: float | None
    text: str

    @property
    def key(self) -> str:
        """Return what is the same as long as it is the same event."""
        since = "" if self.since_s is None else f"-{self.since_s:.0f}"
        return f"{self.kind}-{'all' if self.gpu is None else self.gpu}{since}"


def alarms(run: RunNow, now_s: float) -> list[Alarm]:
    """Return what goes on now, the worst first; nothing where no recorder says what is now."""
    if run.state(now_s) != "recording":
        return list(_xids(run))
    there = [gpu for gpu in run.gpus if run.is_of_now(gpu, now_s)]
    drops = list(_drops(run, now_s))
    found = [*_xids(run), *_unread(there), *(alarm for gpu in there for alarm in _full(run, gpu)), *drops]
    return found if drops else [*found, *_idle(run, now_s)]


@dataclass(frozen=True)
class Lasting:
    """What goes on of some GPUs: since when (wall seconds), and for how long of that there are samples (s)."""

    gpus: list[GpuReadings]
    since_s: float
    lasts_s: float

    @property
    def level_pct(self) -> float:
        """Return what utilisation was before, the highest of them."""
        return max(gpu.level_pct or 0.0 for gpu in self.gpus)


def _drops(run: RunNow, now_s: float) -> Iterator[Alarm]:
    for fall in falls(run, now_s, DROP_S):
        low = max(gpu.newest.get(UTILISATION, 0.0) for gpu in fall.gpus)
        training = run.training
        where = f" in {training.phase}" if training is not None and training.phase not in (None, "train") else ""
        text = f"{fall_words(_named(fall.gpus), fall.level_pct, low)}{where}"
        yield Alarm("drop", "warning", fall.gpus[0].index, fall.since_s, text)


def falls(run: RunNow, now_s: float, least_s: float) -> list[Lasting]:
    """Return where utilisation has been low for so long, unexpectedly; GPUs that fell together are one fall."""
    if is_expected(run.running, now_s):
        return []
    fell = {gpu.index: gpu.low_since_s for gpu in run.gpus if run.is_of_now(gpu, now_s)}
    low = sorted((since_s, index) for index, since_s in fell.items() if since_s is not None)
    together: list[list[tuple[float, int]]] = []
    for since_s, index in low:
        if together and since_s - together[-1][0][0] <= TOGETHER_S:
            together[-1].append((since_s, index))
        else:
            together.append([(since_s, index)])
    found = [_fall(run, fallen[0][0], [run.samples.gpus[index] for _, index in fallen]) for fallen in together]
    return [fall for fall in found if fall.lasts_s >= least_s]


def _fall(run: RunNow, since_s: float, gpus: list[GpuReadings]) -> Lasting:
    """Return a fall, which lasts for no reason that is known: not before training has begun again."""
    trains_s = [each.phase_since_s for each in run.running if each.phase == "train" and each.phase_since_s is not None]
    if len(trains_s) == len(run.running) == 1:
        since_s = max(since_s, *trains_s)
    return Lasting(gpus, since_s, gpus[0].at_s - since_s)


def _named(gpus: list[GpuReadings]) -> str:
    return gpus_words(sorted(gpu.index for gpu in gpus))


def is_expected(trainings: list[LiveTraining], now_s: float) -> bool:
    """Tell whether every training is in a phase that leaves its GPUs idle, for no longer than such phases take."""
    return bool(trainings) and all(_is_elsewhere(training, now_s) for training in trainings)


def _is_elsewhere(training: LiveTraining, now_s: float) -> bool:
    if training.phase in (None, "train") or training.phase_since_s is None:
        return False
    longest_s = training.longest_s.get(training.phase or "")
    most_s = FIRST_PHASE_S if longest_s is None else max(LONGER_SHARE * longest_s, DROP_S)
    return now_s - training.phase_since_s <= most_s


def _unread(gpus: list[GpuReadings]) -> Iterator[Alarm]:
    for gpu in gpus:
        since_s = gpu.unread_since_s
        if since_s is not None and gpu.at_s - since_s >= UNREAD_S:
            yield Alarm("unread", "critical", gpu.index, since_s, f"{gpu_words(gpu.index)} has given no reading")


def _full(run: RunNow, gpu: GpuReadings) -> Iterator[Alarm]:
    share = memory_share(run, gpu)
    if share is not None and share >= FULL_SHARE:
        text = f"{gpu_words(gpu.index)}'s memory is {100 * share:.0f} % full"
        yield Alarm("memory", "warning", gpu.index, None, text)


def memory_share(run: RunNow, gpu: GpuReadings) -> float | None:
    """Return how much of a GPU's memory is in use (0 to 1), None where it is not known."""
    device, used = run.devices.get(gpu.index), gpu.newest.get("memory_used_mib")
    total = device.memory_mib if device is not None else None
    return used / total if used is not None and total else None


def _idle(run: RunNow, now_s: float) -> Iterator[Alarm]:
    rest = idle(run, now_s)
    if rest is not None and rest.lasts_s >= IDLE_S:
        who = f"{gpu_words(run.gpus[0].index)} has" if len(run.gpus) == 1 else f"All {len(run.gpus)} GPUs have"
        yield Alarm("idle", "warning", None, rest.since_s, f"{who} been idle")


def idle(run: RunNow, now_s: float) -> Lasting | None:
    """Return that all GPUs are idle, None where one works, or one has no reading of now.

    What never had a reading of utilisation (some MIG devices) says nothing.
    """
    read = [gpu for gpu in run.gpus if UTILISATION in gpu.drawn]
    since = [gpu.idle_since_s if run.is_of_now(gpu, now_s) else None for gpu in read]
    known = [each for each in since if each is not None]
    if not known or len(known) < len(read):
        return None
    return Lasting(read, max(known), max(gpu.at_s for gpu in run.gpus) - max(known))


def _xids(run: RunNow) -> Iterator[Alarm]:
    for at_s, gpu, code in run.events.xids:
        where = "a GPU" if gpu is None else gpu_words(gpu)
        yield Alarm("xid", "critical", gpu, at_s, f"The driver reported Xid {code} of {where}")
