"""The benchmark from the first export to the last turn. What becomes of each variant goes into bench.json at once.

A variant that fails keeps its reason, and the others go on. Workers start and load some at a time; calls that count,
and those of a warm-up, are made by one at a time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from gpu_report import run_folder, schema
from gpu_report.bench.agreement import agreement, as_fields
from gpu_report.bench.build import Built, Export, size_mib
from gpu_report.bench.child import ChildFailed, Renewed, WorkerProcess
from gpu_report.bench.finite_json import finite
from gpu_report.bench.plan import BenchPlan
from gpu_report.bench.rounds import is_precise, orders, turn_lengths
from gpu_report.bench.variants import Variant

HELLO_LIMIT_S = 300.0  # imports of torch from a network disk
LOAD_LIMIT_S = 900.0  # also a download of weights, and a runtime that compiles at its first call
ANSWER_LIMIT_S = 300.0  # beyond what a request is meant to take: a large batch on a CPU is one call of minutes
VAL_LIMIT_S = 7200.0  # COCO has 5,000 images to validate: on a CPU a second each
# Of calls before the first turn, in which a warm-up is looked for; after it the energy of short turns is read.
WARM_UP_S, WARM_UP_SHARE = 3.0, 0.5
SAY_EVERY_S = 10.0  # how far it has come; then bench.json is written, too
TOGETHER = 8  # processes that start and load at a time, on as many cores: more would wait for the disk and the driver
AGREEMENT_IMAGES = 16  # each synthetic one once: with MOST_BOXES of each, 1 % of boxes is still several
# Of boxes that are compared: also those that a service would drop, for they show a difference first. Weights at random
# have no others.
LOWEST_SCORE, LOWEST_AT_RANDOM = 0.01, 0.0
COMPUTED_AS_ASKED = frozenset({"pt", "torchscript"})  # the precision of other formats is in the file
BUILDER = "builder"


class Terminated(KeyboardInterrupt):
    """SIGTERM, which this process alone gets. A terminal's Ctrl-C has reached the workers as well.

    A second SIGINT would end them while they write their last calls.
    """


@dataclass
class _Entry:
    """A variant, what is known of it, and its process."""

    variant: Variant
    fields: dict[str, Any] = field(default_factory=dict)
    child: WorkerProcess | None = None
    boxes: list[Any] | None = None

    @property
    def turns(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.fields.get("turns", [])
        return found

    @property
    def has_served_enough(self) -> bool:
        return is_precise([turn["median_ms"] for turn in self.turns], sum(turn["calls"] for turn in self.turns))

    @property
    def works(self) -> bool:
        return "failed" not in self.fields


class BenchmarkRun:
    """One benchmark."""

    def __init__(
        self, plan: BenchPlan, folder: Path, start: Callable[[str], WorkerProcess], say: Callable[[str], None]
    ) -> None:
        """Prepare it: `start` starts a worker with a name, `say` says what is done."""
        self._plan, self._folder, self._start, self._say = plan, folder, start, say
        self._built = Path(plan.built).absolute()
        self._builder = Renewed(partial(start, BUILDER))
        self._entries = [_Entry(variant) for variant in plan.variants]
        self._facts: dict[str, Any] = {}
        self._weights: dict[str, dict[str, Any]] = {}
        self._finished = False

    def run(self) -> bool:
        """Do it all; tell whether any variant has served."""
        try:
            if self._learn():
                self._build()
                self._load()
                self._serve()
                self._check()
            self._finished = True
        except Terminated:
            self._hurry()
            raise
        finally:
            try:
                self._write()
            finally:
                self._end_all()
        return any(entry.turns for entry in self._entries)

    def _end_all(self) -> None:
        self._builder.end()
        for entry in self._entries:  # all at once: each takes a second
            if entry.child is not None:
                entry.child.close()
        for entry in self._entries:
            self._end(entry)

    def _hurry(self) -> None:
        """Stop what goes on in all processes."""
        for child in (self._builder, *(entry.child for entry in self._entries)):
            if child is not None:
                child.interrupt()

    def _learn(self) -> bool:
        """Learn what device there is; without an answer every variant fails."""
        try:
            self._facts = self._builder.ask({"do": "hello", "device": self._plan.device}, HELLO_LIMIT_S)
        except (ChildFailed, OSError) as error:
            for entry in self._entries:
                self._fail(entry, "start", str(error))
            return False
        self._say(f"serving on {self._facts['gpu'] or 'the CPU'}")
        return True

    def _build(self) -> None:
        """Find the models, and build what is missing."""
        for entry in self._entries:
            self._try(entry, "model", self._find_one)
            self._try(entry, "build", self._build_one)
        self._builder.end()

    def _find_one(self, entry: _Entry) -> None:
        found = self._weights_of(entry.variant.model)
        entry.fields.update(task=found["task"], random_weights=found["random"])

    def _build_one(self, entry: _Entry) -> None:
        variant, plan = entry.variant, self._plan
        weights = self._weights_of(variant.model)
        made = Built(weights["file"], None, reused=False)
        if not variant.given and variant.format != "pt":
            around = {"imgsz": plan.imgsz, **{name: self._facts[name] for name in ("device", "gpu", "versions")}}
            export = Export(variant, Path(weights["file"]), self._built, around)
            made = export.earlier() or self._made(export)
        entry.fields.update(asdict(made), size_mib=size_mib(Path(made.file)))

    def _made(self, export: Export) -> Built:
        self._say(f"building {export.variant.name}")
        return export.make(self._builder)

    def _weights_of(self, model: str) -> dict[str, Any]:
        """Return a model's weights, which are asked for once; what failed once fails again."""
        if model not in self._weights:
            request = {"do": "weights", "model": model, "folder": str(self._built)}
            try:
                self._weights[model] = self._builder.ask(request, LOAD_LIMIT_S)
            except ChildFailed as error:
                self._weights[model] = {"error": str(error)}
        if "error" in self._weights[model]:
            raise ChildFailed(self._weights[model]["error"])
        return self._weights[model]

    def _load(self) -> None:
        """Start a process for each variant, some at a time, which load their models; then one after the other warms up.

        A model's first call on a GPU takes one core for ten seconds.
        """
        entries, together = self._working(), min(os.cpu_count() or 1, TOGETHER)
        for some in (entries[at : at + together] for at in range(0, len(entries), together)):
            self._say(f"loading {len(some)} of {len(entries)} variants")
            steps = (("start", self._begin_one), ("start", self._begun_one), ("load", self._load_one))
            for stage, step in (*steps, ("load", self._loaded_one)):
                for entry in some:
                    self._try(entry, stage, step)
        for entry in self._working():
            self._try(entry, "load", self._warm_up_one)

    def _begin_one(self, entry: _Entry) -> None:
        entry.child = self._start(entry.variant.file_name)
        entry.child.send({"do": "hello", "device": self._facts["device"]})

    def _begun_one(self, entry: _Entry) -> None:
        entry.fields["pid"] = _child(entry).answer(HELLO_LIMIT_S)["pid"]

    def _load_one(self, entry: _Entry) -> None:
        variant, plan, child = entry.variant, self._plan, _child(entry)
        request = {
            "do": "load",
            "file": entry.fields["file"],
            "task": entry.fields["task"],
            "device": self._facts["device"],
            "batch": variant.batch,
            "imgsz": plan.imgsz,
            "half": variant.half,
            "source": plan.source,
        }
        child.send(request)

    @staticmethod
    def _loaded_one(entry: _Entry) -> None:
        entry.fields.update(_child(entry).answer(LOAD_LIMIT_S))
        in_fp32 = entry.fields["settings"].get("half") is False
        if entry.variant.half and in_fp32 and entry.variant.format in COMPUTED_AS_ASKED:
            raise ChildFailed("asked for FP16, but ultralytics runs it in FP32 here: FP16 needs a GPU")

    def _warm_up_one(self, entry: _Entry) -> None:
        seconds = min(WARM_UP_S, WARM_UP_SHARE * self._plan.seconds)
        request = {"do": "serve", "seconds": seconds}
        entry.fields["warm_up"] = _child(entry).ask(request, seconds + ANSWER_LIMIT_S)

    def _serve(self) -> None:
        """Let all variants serve in turn, until the median of each is known, or all of their seconds are over."""
        entries = self._working()
        slowest_s = max((entry.fields["warm_up"]["median_ms"] / 1000 for entry in entries), default=0.0)
        rounds, seconds, settle_s = turn_lengths(self._plan.seconds, slowest_s, on_gpu=bool(self._facts["gpu"]))
        said_s = time.monotonic()
        for number, order in enumerate(orders(len(entries), rounds if entries else 0)):
            if number % 2 == 0 and number and all(entry.has_served_enough for entry in self._working()):
                self._say(f"medians are known after {number} of {rounds} rounds")
                break
            if time.monotonic() > said_s + SAY_EVERY_S:
                said_s = time.monotonic()
                self._say(f"{number} of {rounds} rounds done")
                self._write()
            for place in order:
                self._try(entries[place], "serve", partial(_serve_one, seconds=seconds, settle_s=settle_s))
        self._write()

    def _check(self) -> None:
        """Compare what the variants of each model find, validate where there is a data set, and read memory."""
        for entry in self._working():
            self._try(entry, "check", self._check_one)
        for model in dict.fromkeys(self._plan.models):
            _compare([entry for entry in self._working() if entry.variant.model == model])

    def _check_one(self, entry: _Entry) -> None:
        child = _child(entry)
        entry.fields.update(child.ask({"do": "memory"}, ANSWER_LIMIT_S))
        lowest = LOWEST_AT_RANDOM if entry.fields["random_weights"] else LOWEST_SCORE
        request = {"do": "boxes", "images": AGREEMENT_IMAGES, "lowest_score": lowest}
        entry.boxes = child.ask(request, ANSWER_LIMIT_S)["boxes"]
        if self._plan.data:
            self._say(f"validating {entry.variant.name}")
            request = {"do": "val", "data": self._plan.data, "folder": str(self._folder.absolute() / schema.BENCH_LOGS)}
            entry.fields.update(child.ask(request, VAL_LIMIT_S))

    def _working(self) -> list[_Entry]:
        return [entry for entry in self._entries if entry.works]

    def _try(self, entry: _Entry, stage: str, do: Callable[[_Entry], None]) -> None:
        """Do a step of a variant; one that fails keeps its reason, and takes no part in what comes."""
        if not entry.works:
            return
        try:
            do(entry)
        except (ChildFailed, OSError) as error:
            self._fail(entry, stage, str(error))

    def _fail(self, entry: _Entry, stage: str, reason: str) -> None:
        self._say(f"{entry.variant.name}: {stage} failed: {reason}")
        entry.fields["failed"] = {"stage": stage, "reason": reason}
        self._end(entry)
        self._write()

    @staticmethod
    def _end(entry: _Entry) -> None:
        child, entry.child = entry.child, None
        if child is not None:
            child.end()

    def _write(self) -> None:
        """Write bench.json as it is by now."""
        fields = {
            "format": schema.FORMAT_VERSION,
            "finished": self._finished,
            "plan": self._plan.as_fields(),
            **{name: self._facts.get(name) for name in ("device", "gpu", "gpu_uuid", "versions")},
            "variants": [{**entry.variant.as_fields(), **entry.fields} for entry in self._entries],
        }
        run_folder.write_json(self._folder / schema.BENCH_JSON, finite(fields))


def _child(entry: _Entry) -> WorkerProcess:
    if entry.child is None:
        raise ChildFailed("its process has ended")
    return entry.child


def _serve_one(entry: _Entry, seconds: float, settle_s: float) -> None:
    request = {"do": "serve", "seconds": seconds, "settle_s": settle_s}
    turn = _child(entry).ask(request, seconds + ANSWER_LIMIT_S)
    entry.fields.setdefault("turns", []).append(turn)


def _compare(entries: Sequence[_Entry]) -> None:
    """Compare a model's variants with PyTorch in FP32, or else with the first one."""
    in_pytorch = [each for each in entries if each.variant.format == "pt" and not each.variant.half]
    for reference in (in_pytorch or entries)[:1]:
        for entry in entries:
            if entry is not reference and reference.boxes is not None and entry.boxes is not None:
                entry.fields["agreement"] = as_fields(agreement(reference.boxes, entry.boxes), reference.variant.name)
