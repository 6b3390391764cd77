"""How long an epoch takes with a larger batch: its launches, its kernels or its data loader, whichever is slowest."""

import sys
from dataclasses import dataclass, replace
from math import ceil

from gpu_report.analyse.advice import thresholds as th
from gpu_report.analyse.advice.run_settings import RunSettings
from gpu_report.analyse.causes.candidate import never_waits_for_data
from gpu_report.analyse.signals.interval_signals import IntervalSignals
from gpu_report.analyse.timeline.trainings import whole
from gpu_report.catalogue import LAUNCH_BOUND
from gpu_report.model import LEAST_SPEED_UP, SpeedupLimit

VALIDATED_BY_BATCH = frozenset({"obb", "semantic", "depth"})  # tasks; others validate twice a batch at once


@dataclass(frozen=True)
class LargerBatches:
    """A training whose `batch` may be larger, its optimizer stepping every `nominal` images at least.

    `limit` has what an epoch takes now and at best, `signals` are of all the training.
    """

    settings: RunSettings
    limit: SpeedupLimit
    signals: IntervalSignals
    batch: int
    nominal: int

    def worth_trying(self, most: float) -> tuple[int, float] | None:
        """Return the batch to try, of `most` images at most, with the training part of an epoch (s), else None.

        It is doubled as long as each time wins what is worth a person's time: no larger than its loader can feed. None
        where all of that is no more than what the estimate may be off.
        """
        best_s, try_ = self.limit.epoch_s_now, self.batch
        while try_ * 2 <= min(self.nominal, most):
            epoch_s = self.epoch_s(try_ * 2)
            if not self.is_worth(epoch_s, best_s):
                break
            try_, best_s = try_ * 2, epoch_s
        return (try_, best_s) if self.is_worth(best_s, self.limit.epoch_s_now, th.LARGER_BATCH_LEAST) else None

    def is_worth(self, epoch_s: float, best_s: float, least: float = LEAST_SPEED_UP) -> bool:
        """Tell whether a training part of an epoch (s) makes whole epochs `least` times as fast as another one does."""
        rest_s = self.limit.rest_s
        return (epoch_s + rest_s) * least <= best_s + rest_s

    def fed_by(self, workers: int) -> "LargerBatches":
        """Return the same training with another number of data-loader workers (of each rank)."""
        return replace(self, settings=replace(self.settings, workers=workers))

    def workers_for(self, larger: int, most: int) -> int:
        """Return how many workers feed a larger batch, and a little more; `most` at most, and no fewer than now."""
        now = self.settings.workers or 0
        feed = (n for n in range(now, most) if self.fed_by(n).loader_s(larger) <= self.steps_s(larger))
        least = next(feed, most)
        return least if least == now else min(ceil(least * th.WORKERS_MARGIN), most)

    def steps_s(self, larger: int) -> float:
        """Return the training part of an epoch (s) with a larger batch whose images come in time.

        What is done image by image takes as long as now, and so do waits for the loader.
        """
        idle_location, now_s = self.signals.idle_location, self.limit.epoch_s_now
        waits = 0.0 if never_waits_for_data(self.signals) else self.signals.data_wait_share or 0.0
        stays = min((idle_location.by_image if idle_location is not None else 0.0) + waits, 1.0)
        of_now = stays + (1 - stays) * _of_steps(self.batch, larger, self.nominal, self.signals)
        return max(now_s * of_now, self.limit.epoch_s_at_best)

    def epoch_s(self, larger: int) -> float:
        """Return the training part of an epoch (s) with a larger batch, and what its validation takes longer."""
        return max(self.steps_s(larger), self.loader_s(larger)) + self.validation_s(larger)

    def loader_s(self, larger: int) -> float:
        """Return what the loader's workers need for the training part of an epoch (s), 0 where that is not known.

        They can be busy all the time and no more; what is ready at its start they loaded at the end of the one before,
        also while a validation goes on that takes longer then. A loader that keeps the trainer waiting, nobody knows
        why, delivers as fast as it does now.
        """
        settings, workers = self.settings, (self.settings.workers or 0) * self.settings.ranks
        if self.waits_for_unknown:
            return self.limit.epoch_s_now
        if not workers or not settings.images:
            return 0.0
        all_s = min(self._image_s * settings.images / workers, self.limit.epoch_s_now)
        ready_s = all_s * settings.ready_batches * workers * larger / settings.ranks / settings.images
        return max(all_s - min(ready_s, self.limit.rest_s + self.validation_s(larger)), 0.0)

    def validation_s(self, larger: int) -> float:
        """Return what a validation takes longer (s) whose images are a single batch then: it has no workers.

        Ultralytics 8.4 loads such a one in the main process (`build_dataloader`); before, one worker did.
        """
        images, ranks = self.settings.val_images, self.settings.ranks
        at_once = 1 if self.settings.args.get("task") in VALIDATED_BY_BATCH else 2
        if not images or not at_once * self.batch < images <= at_once * larger:
            return 0.0
        return self._validated_s * images / ranks

    @property
    def waits_for_unknown(self) -> bool:
        """Tell whether the trainer waits for workers that neither compute nor have stacks: whatever they wait for."""
        waits = self.signals.data_wait_share is not None and not never_waits_for_data(self.signals)
        workers = (self.settings.workers or 0) * self.settings.ranks
        return waits and not self._at_work and self._computing < th.WORKERS_COMPUTE * workers

    @property
    def _validated_s(self) -> float:
        """Return the seconds of a core in which an image to validate is loaded: it is decoded, and hardly augmented.

        Decoding goes with the pixels on disk, the rest with those of imgsz; as many of both where the size is unknown.
        """
        scaled = self.settings.scaled_down
        times = 1.0 if scaled is None else 1 / scaled.pixels_used
        return self._image_s * (times + th.AUGMENTING / 2) / (times + th.AUGMENTING)

    @property
    def _image_s(self) -> float:
        """Return the seconds in which a worker loads an image to train, 0 where that is not known.

        By how many are at work, where stacks say it: their CPU says nothing of what they wait for.
        """
        images = self.settings.images
        return self.workers_at_work * self.limit.epoch_s_now / images if images else 0.0

    @property
    def workers_at_work(self) -> float:
        """Return how many workers of all ranks are at work, by their CPU or their stacks; 0 where that is not known."""
        return max(self._computing, self._at_work)

    @property
    def workers_compute(self) -> bool:
        """Tell whether workers at work mostly compute: what they wait for may not answer more of them any faster."""
        return self._computing >= th.WORKERS_COMPUTE * self._at_work

    @property
    def _computing(self) -> float:
        """Return the cores that the workers of all ranks keep busy, 0 where that is not known."""
        return (self.signals.within("workers_cpu_pct") or 0.0) / 100

    @property
    def _at_work(self) -> float:
        """Return how many workers of all ranks are at work, as in the one whose stacks are known; 0 without them."""
        return (self.signals.workers_at_work or 0.0) * self.settings.ranks


def outweighed_by(settings: RunSettings, signals: IntervalSignals, rest: float) -> str:
    """Return what takes away all that twice the batch wins, in words; empty where that is worth trying.

    It is told for an epoch of whatever length, whose end adds a share `rest` of its training part.
    """
    nominal = whole(settings.args.get("nbs"))
    if not settings.batch or not nominal:
        return ""
    epoch = SpeedupLimit(LAUNCH_BOUND, 1.0, sys.float_info.min, "", rest_s=rest)
    batches, twice = LargerBatches(settings, epoch, signals, settings.batch, nominal), 2 * settings.batch
    steps_s, loader_s, validation_s = batches.steps_s(twice), batches.loader_s(twice), batches.validation_s(twice)
    least = th.LARGER_BATCH_LEAST
    if batches.waits_for_unknown:
        return "the training already waits for data"
    if batches.is_worth(max(steps_s, loader_s) + validation_s, 1.0, least):
        return ""
    if batches.is_worth(steps_s + validation_s, 1.0, least):
        return "the data-loader workers could not feed it"
    if batches.is_worth(max(steps_s, loader_s), 1.0, least):
        return "validation would be a single batch, which is loaded without workers"
    return "epochs would be hardly faster"


def _of_steps(batch: int, larger: int, nominal: int, signals: IntervalSignals) -> float:
    """Return the time of an image in the steps of a larger batch, against that in the present ones.

    A pass takes as long as its launches, or as its kernels on the GPU, if that is longer. Launches take the same time
    whatever the batch, but for the optimiser's. Kernels take as long as before until they fill all SMs, from there on
    longer with the images, if less than in proportion.
    """
    times, util_pct = larger / batch, signals.gpu_within("gpu_util_pct") or 0.0
    active_pct = signals.gpu_within("sm_active_pct")
    filled = th.FULL_SM_SHARE if active_pct is None or not util_pct else active_pct / util_pct
    grown: float = max(times * filled / th.FULL_SM_SHARE, 1.0) ** th.KERNELS_GROW
    slower = _batch_cost(larger, nominal) / _batch_cost(batch, nominal)
    launched = (1 - th.BACKWARD_LAUNCHES) * slower, th.BACKWARD_LAUNCHES * slower
    computed = (1 - th.BACKWARD_SHARE) * util_pct / 100 * grown, th.BACKWARD_SHARE * util_pct / 100 * grown
    return (max(launched[0], computed[0]) + max(launched[1], computed[1])) / times


def _batch_cost(batch: int, nominal: int) -> float:
    """Return what launching a batch takes, in forward and backward passes: its share of an optimiser's step with it."""
    return 1 + th.OPTIMISER_STEP / max(round(nominal / batch), 1)
