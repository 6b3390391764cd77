"""What to change about validations that take much of a training: an argument for each part that takes its time.

Only arguments that stand in the run's own args.yaml are named, each with what it wins at most. `rect` is none of them:
YOLO's validations within a training are rectangular already, and for the training it is another thing.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from gpu_report.analyse.causes.data_loading import handed_over_share
from gpu_report.analyse.causes.thresholds import HANDED_OVER_SHARE
from gpu_report.analyse.context import Context
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.epochs.typical_validation import TypicalValidation
from gpu_report.analyse.timeline.scaled_down import scaled_down
from gpu_report.analyse.timeline.trainings import BYTES_PER_PIXEL, Training, whole
from gpu_report.analyse.timeseries.intervals import as_array
from gpu_report.model import Advice, ValidationPart
from gpu_report.wording import amount

DEFAULT_CONF = 0.001  # of a validation whose `conf` is not set (engine/validator.py of ultralytics)
DEFAULT_BOXES = {"iou": 0.7, "max_det": 300}  # cfg/default.yaml: more of either keeps more boxes
WRITE = ("save_txt", "save_json")  # arguments by which predictions are written as files; off unless asked for
TWICE_LEAVES_ONE = 2  # batches of a validation: with a batch twice as large they are one
MIB = 2**20
OF_BOXES: tuple[ValidationPart, ...] = ("postprocess", "metrics")  # NMS among them
LOADERS = 2  # times as many workers as `workers` says load for a validation within a training


@dataclass(frozen=True)
class ValidationAdvice:
    """Advice on the validations of a training whose epochs, with their ends, take `epoch_s` seconds."""

    context: Context
    training: Training
    typical: TypicalValidation
    epoch_s: float

    def on_validation(self) -> list[Advice]:
        """Return what is worth a change whatever else is advised, what wins most first.

        Validations that something else holds up are no reason for fewer of them, or for fewer boxes.
        """
        never = last_epoch_only(self.training, self.typical.length_s, self.epoch_s)
        loading = (*self._decoded_once(), *self._smaller_images()) if self._loads_most() else ()
        held_up = self._held_up()
        of_length = () if held_up else (*never, *self._fewer_boxes())
        return [*held_up, *self._worth(*of_length, *self._no_files(), *self._no_plots(), *loading)]

    def on_waits(self) -> list[Advice]:
        """Return to look at images that a validation waits for, where training hardly waits for its own.

        Where an argument helps, or far larger images are known, that says more.
        """
        throughput = self.context.throughput
        waited = throughput.data_wait_share(self.training.train_spans) if throughput is not None else None
        known = self.training.args.get("cache") or any((*self._decoded_once(), *self._smaller_images()))
        if not self._loads_most() or known or waited is None or waited >= th.STALLS_SHARE:
            return []
        seconds = self.typical.of("data")
        short = "Find why validations wait for their images"
        why = f"{amount(seconds, 's')} each, while training hardly waits for its own. They may lie on a slower disk"
        return [Advice(f"{short}: {why}", short=short)] if seconds >= th.STALLS_SHARE * self.epoch_s else []

    def on_loading(self) -> list[Advice]:
        """Return what changes the training's own steps, too: none where more is advised on those."""
        return self._worth(*self._more_workers(), *self._larger_batch())

    def _worth(self, *offers: Advice) -> list[Advice]:
        worth = [advice for advice in offers if (advice.gain_at_most or 0.0) >= th.STALLS_SHARE]
        return sorted(worth, key=lambda advice: -(advice.gain_at_most or 0.0))

    def _loads_most(self) -> bool:
        """Tell whether to wait for data is what takes most of a validation."""
        return self.typical.of("data") >= th.LARGEST_PART * self.typical.length_s

    def _decoded_once(self) -> Iterator[Advice]:
        """Offer to keep images in memory, of all that is few."""
        seconds, imgsz = self.typical.of("data"), whole(self.training.args.get("imgsz"))
        train, validate = (self.training.quantity(name) for name in ("images", "val_images"))
        if imgsz and train and validate and self.training.args.get("cache") is False:
            text = f"Decode each image once, and keep it in memory: a validation waits {amount(seconds, 's')} for data"
            if (train + validate) * BYTES_PER_PIXEL * imgsz**2 <= th.CACHED_TIMES_MIB * MIB:
                yield Advice(text, "cache", "False", "ram", gain_at_most=seconds / self.epoch_s)

    def _smaller_images(self) -> Iterator[Advice]:
        """Offer to resize images that are far larger than what is used of them."""
        larger, imgsz = scaled_down(self.training.settings), whole(self.training.args.get("imgsz"))
        if larger is not None and larger.is_far_larger and imgsz and not self.training.args.get("cache"):
            seconds = (1 - larger.pixels_used) * self.typical.of("data")
            short = f"Resize the images once to {imgsz} px (now {larger.px:,})"
            text = f"{short}: one of {1 / larger.pixels_used:.0f} pixels is used. YOLO's labels are relative and stay"
            yield Advice(text, gain_at_most=seconds / self.epoch_s, short=short, images_px=imgsz)

    def _fewer_boxes(self) -> Iterator[Advice]:
        """Offer fewer boxes: NMS and metrics take as long as there are many."""
        asked = self.training.args.get("conf", "")
        conf = DEFAULT_CONF if asked is None else asked
        of_files = self._written()
        seconds = self.typical.of("postprocess") if of_files else self.typical.of(*OF_BOXES)
        more, gain = self._more_boxes(), seconds / self.epoch_s
        taking = "NMS takes" if of_files else "NMS and metrics take"
        text = f"Keep fewer boxes: {taking} {amount(seconds, 's')} a validation"
        if isinstance(conf, float) and 0 <= conf < th.ENOUGH_CONF:
            usual = f" (`conf` is {conf:g}, its default {DEFAULT_CONF:g})" if conf < DEFAULT_CONF else ""
            too = "".join(
                f". `{name}={now}` keeps more than its default ({least})" for name, (now, least) in more.items()
            )
            text = f"{text}{usual}. mAP reads a bit lower{too}"
            yield Advice(text, "conf", f"{conf:g}", f"{th.ENOUGH_CONF:g}", gain_at_most=gain)
        else:
            for name, (now, least) in more.items():
                yield Advice(f"{text}. {least} is the default", name, now, least, gain_at_most=gain)

    def _held_up(self) -> list[Advice]:
        """Return what to do about NMS and metrics that something else holds up, none where nothing is known to.

        Many small tensors do, which are handed over for the next epoch meanwhile: Python runs one thread at a time. So
        does what makes them far slower than in the final evaluation: beside that no loader works. It has the same
        images, and the boxes of one of these epochs.
        """
        signals = (self.context.signals.of_training(gpu, self.training) for gpu in self.training.gpus)
        if any(each is not None and handed_over_share(each) >= HANDED_OVER_SHARE for each in signals):
            short = "Judge validations without the many small tensors: handing them over slows NMS and metrics, too"
            return [Advice(short, short=short)]
        took_s, final_s = self.typical.of(*OF_BOXES), self._final_s
        if final_s is None or final_s >= th.HELD_UP_SHARE * took_s:
            return []
        final = f"{amount(final_s, 's')} in the final evaluation"
        short = f"Find what slows NMS and metrics: {amount(took_s, 's')}, and {final}"
        return [Advice(short, gain_at_most=(took_s - final_s) / self.epoch_s, short=short)]

    @property
    def _final_s(self) -> float | None:
        """Return what NMS and metrics took in the final evaluation of the same images, None where nobody said it."""
        start_s, end_s = self.training.span
        finals = (p for p in self.context.phases if p.name == "final evaluation" and start_s <= p.start_t_s <= end_s)
        known = [p.validated for p in finals if p.validated and p.validated.images == self.typical.last.images]
        return sum(known[-1].seconds.get(part, 0.0) for part in OF_BOXES) if known else None

    def _written(self) -> str:
        """Return the argument by which a validation writes its predictions as files, empty where none does."""
        return next((name for name in WRITE if self.training.args.get(name) is True), "")

    def _no_files(self) -> Iterator[Advice]:
        """Offer to write no predictions as files, which YOLO does in its metrics, for each image by itself."""
        name, seconds = self._written(), self.typical.of("metrics")
        if name:
            text = f"Write no predictions as files: metrics, which write them, take {amount(seconds, 's')} a validation"
            yield Advice(text, name, "True", "False", gain_at_most=seconds / self.epoch_s)

    def _more_boxes(self) -> dict[str, tuple[str, str]]:
        """Return the arguments that keep more boxes than their defaults do, each with its value and its default."""
        asked = ((name, self.training.args.get(name), usual) for name, usual in DEFAULT_BOXES.items())
        return {
            name: (f"{value:g}", f"{usual:g}")
            for name, value, usual in asked
            if isinstance(value, int | float) and value > usual
        }

    def _no_plots(self) -> Iterator[Advice]:
        """Offer to draw nothing. Most is drawn in the final evaluation, which counts, too."""
        start_s, end_s = self.training.span
        mine = [phase for phase in self.context.phases if start_s <= phase.start_t_s < end_s]
        seconds = sum(phase.validated.seconds.get("plots", 0.0) for phase in mine if phase.validated)
        if self.training.args.get("plots") is True and end_s > start_s:
            text = f"Draw no plots: they took {amount(seconds, 's')} of all validations"
            yield Advice(text, "plots", "True", "False", gain_at_most=seconds / (end_s - start_s))

    def _more_workers(self) -> Iterator[Advice]:
        """Offer more workers, as far as cores go; one that has fewer than it asked for would get no more."""
        asked, has = whole(self.training.args.get("workers")), self.typical.last.workers
        cores, waits_s = self.context.run.recording.usable_cores, self.typical.of("data")
        if not asked or not has or cores is None or has < LOADERS * asked:
            return
        working = max(1 - waits_s / self.typical.length_s, 1 / th.MOST_TIMES_WORKERS)
        to = min(ceil(asked / working), int(cores) // (LOADERS * self.training.ranks_here))
        if to > asked:
            text = f"Load with more workers: a validation waits {amount(waits_s, 's')} for data. It has twice as many"
            yield Advice(text, "workers", str(asked), str(to), gain_at_most=waits_s / self.epoch_s)

    def _larger_batch(self) -> Iterator[Advice]:
        """Offer a larger batch where the GPU is idle while the model runs: a step is too small for it.

        Several batches have to be left: a single one is loaded without workers (ultralytics 8.4, `build_dataloader`).
        """
        batch, nominal, busy = *(whole(self.training.args.get(name)) for name in ("batch", "nbs")), self._busy_share()
        if not batch or not nominal or 2 * batch > nominal or busy is None or not self._has_room():
            return
        typical = self.typical
        if typical.last.batches <= TWICE_LEAVES_ONE:
            return
        idle_s = min(typical.of("inference", "loss"), (1 - busy) * typical.length_s - typical.of("data"))
        at_once = typical.last.batch or batch
        at_once_words = f"Validate more than {at_once} images at once, which is twice the batch"
        text = f"{at_once_words}: the GPU is busy {100 * busy:.0f} % of validation"
        yield Advice(text, "batch", str(batch), str(2 * batch), gain_at_most=idle_s / self.epoch_s)

    def _busy_share(self) -> float | None:
        """Return mean utilisation (0 to 1) of the busiest GPU in validations, None where readings are too far apart."""
        validations = [phase.span for phase in self.context.phases if phase.name == "validation"]
        spans = as_array(self.training.within(validations))
        mine = [series for series in self.context.series if series.gpu in self.training.gpus]
        fine = [series.mean_util_in(spans) for series in mine if series.interval_s <= self.typical.length_s]
        return max((pct / 100 for pct, seconds in fine if seconds > 0), default=None)

    def _has_room(self) -> bool:
        """Tell whether twice the memory that was in use would fit each of its GPUs."""
        mine = [self.context.gpu_memory(each) for each in self.context.series if each.gpu in self.training.gpus]
        most = self.training.memory_fraction * th.NEAR_LIMIT_PCT / 100
        return all(each.peak_share is not None and 2 * each.peak_share <= most for each in mine)


def without_files(training: Training, computed_s: float, epoch_s: float) -> Iterator[Advice]:
    """Offer to write no predictions as files, where a main process computed so long in a validation, the GPU idle."""
    for name in (name for name in WRITE if training.args.get(name) is True):
        text = f"Write no predictions as files while it trains: {amount(computed_s, 's')} of each validation the main "
        text += f"process computes with the GPU idle. Do it once afterwards, with `yolo val {name}=True`"
        yield Advice(text, name, "True", "False", gain_at_most=computed_s / epoch_s)


def last_epoch_only(training: Training, validation_s: float, epoch_s: float) -> Iterator[Advice]:
    """Offer not to validate but at the end, which needs no part of a validation to be known: only how long it takes."""
    epochs = whole(training.args.get("epochs"))
    if training.args.get("val") is True and epochs:
        text = "Validate after the last epoch only. Nothing stops early then, and `best.pt` is the last epoch's"
        yield Advice(text, "val", "True", "False", gain_at_most=validation_s * (1 - 1 / epochs) / epoch_s)
