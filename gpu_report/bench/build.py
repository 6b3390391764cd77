"""Exports what a variant needs into a folder of its own, or takes what an earlier benchmark built alike.

What is built depends on weights, arguments, versions and the GPU: a TensorRT engine runs on no other one. All of these
are in the folder's name as a hash, so that none is taken for another.
"""

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from gpu_report import run_folder
from gpu_report.bench.child import Answers
from gpu_report.bench.variants import Variant
from gpu_report.errors import InputError

BUILD_LIMIT_S = 3600.0  # TensorRT tries kernels for many minutes for a large model
BUILT_JSON = "build.json"
HASH_CHARACTERS = 12
CHUNK = 1 << 20


@dataclass(frozen=True)
class Built:
    """A file that serves, and how long its export took, also where an earlier benchmark made it (`reused`)."""

    file: str
    build_s: float | None
    reused: bool


@dataclass(frozen=True)
class Export:
    """What is to be made of weights for a variant, under `home`.

    `around` is what else it depends on: imgsz, device, GPU and versions.
    """

    variant: Variant
    weights: Path
    home: Path
    around: Mapping[str, Any]

    @property
    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the export; those that are the same in all versions of ultralytics."""
        around = {name: self.around[name] for name in ("imgsz", "device")}
        return {"format": self.variant.format, "batch": self.variant.batch, **around}

    @property
    def facts(self) -> dict[str, Any]:
        """Return all that it depends on but the weights."""
        return {**self.around, **self.arguments, "half": self.variant.half}

    @cached_property
    def folder(self) -> Path:
        """Return its folder."""
        return self.home / f"{self.variant.file_name}-{self.around['imgsz']}-{_key(self.weights, self.facts)}"

    def earlier(self) -> Built | None:
        """Return what an earlier benchmark has built whole."""
        return _earlier(self.folder)

    def make(self, child: Answers) -> Built:
        """Let `child` make it; ChildFailed or OSError where it cannot be."""
        shutil.rmtree(self.folder, ignore_errors=True)  # what was begun and not finished
        self.folder.mkdir(parents=True)
        own = self.folder / self.weights.name  # exports are written beside the weights
        _link(self.weights, own)
        request = {"do": "build", "weights": str(own), "half": self.variant.half, **self.arguments}
        made = child.ask(request, BUILD_LIMIT_S)
        own.unlink(missing_ok=True)
        kept = {"file": Path(made["file"]).name, "build_s": made["build_s"], **self.facts}
        run_folder.write_json(self.folder / BUILT_JSON, kept)
        return Built(made["file"], made["build_s"], reused=False)


def _earlier(folder: Path) -> Built | None:
    with contextlib.suppress(InputError, KeyError, TypeError):
        facts = run_folder.read_json(folder / BUILT_JSON)
        file = folder / str(facts["file"])
        if file.exists():
            return Built(str(file), run_folder.finite(facts["build_s"]), reused=True)
    return None


def _key(weights: Path, facts: Mapping[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    with weights.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()[:HASH_CHARACTERS]


def _link(weights: Path, own: Path) -> None:
    try:
        os.link(weights, own)
    except OSError:  # another filesystem, or one without links
        shutil.copyfile(weights, own)


def size_mib(file: Path) -> float | None:
    """Return the size of a file, or of all in a folder; None where it cannot be read."""
    try:
        files = [path for path in file.rglob("*") if path.is_file()] if file.is_dir() else [file]
        return sum(path.stat().st_size for path in files) / 2**20
    except OSError:
        return None
