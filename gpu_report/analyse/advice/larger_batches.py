"""How long an epoch takes with a larger batch: its launches, its kernels or its data loader, whichever is slowest."""

from dataclasses import dataclass

from gpu_report.analyse.advice import thresholds as th
from gpu_report.analyse.advice.run_settings import RunSettings
from gpu_report.analyse.causes.candidate import data_came
from gpu_report.analyse.signals.interval_signals import IntervalSignals
from gpu_report.model import SpeedupLimit


@dataclass(frozen=True)
class Batches:
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

        It is doubled as long as each time wins what is worth a person's time: no larger than its loader can feed.
        """
        best_s, try_ = self.limit.epoch_s_now, self.batch
        while try_ * 2 <= min(self.nominal, most):
            epoch_s = self._epoch_s(try_ * 2)
            if epoch_s * th.LEAST_SPEED_UP > best_s:
                break
            try_, best_s = try_ * 2, epoch_s
        return None if try_ == self.batch else (try_, best_s)

    def _epoch_s(self, larger: int) -> float:
        """Return the training part of an epoch (s) with a larger batch.

        What is done image by image takes as long as now, and so do waits for the loader.
        """
        signals = self.signals
        by_image = signals.stood.by_image if signals.stood is not None else 0.0
        waits = 0.0 if data_came(signals) else signals.data_wait_share or 0.0
        stays = min(by_image + waits, 1.0)
        of_now = stays + (1 - stays) * _of_steps(self.batch, larger, self.nominal, signals)
        return max(self.limit.epoch_s_now * of_now, self._loader_s(larger), self.limit.epoch_s_at_best)

    def _loader_s(self, larger: int) -> float:
        """Return what the loader's workers need for the training part of an epoch (s), 0 where that is not known.

        They can be busy all the time, no more; what lies ready at its start they loaded at the end of the one before.
        """
        settings, cpu_pct = self.settings, self.signals.within("workers_cpu_pct")
        workers = (settings.workers or 0) * settings.ranks
        if cpu_pct is None or not workers or not settings.images:
            return 0.0
        all_s = self.limit.epoch_s_now * min(cpu_pct / 100 / workers, 1.0)
        ready_s = all_s * th.READY_BATCHES * workers * larger / settings.ranks / settings.images
        return all_s - min(ready_s, self.limit.rest_s)


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
