"""What a benchmark is to do, as it travels to the process that does it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from gpu_report.bench.sources import SYNTHETIC
from gpu_report.bench.variants import Variant, grid

SECONDS = 20.0  # of calls of each variant that count: 1,000 calls, which p99 needs, of up to 20 ms
BUILT_DIR = "gpu-bench"  # what was built, in the working directory


@dataclass(frozen=True)
class BenchPlan:
    """The variants and what all of them share. `device` is None for the first GPU, else the CPU."""

    models: tuple[str, ...]
    formats: tuple[str, ...] = ("pt",)
    batches: tuple[int, ...] = (1,)
    half: bool = False
    imgsz: int = 640
    source: str = SYNTHETIC
    data: str | None = None
    device: str | None = None
    seconds: float = SECONDS
    built: str = BUILT_DIR

    @property
    def variants(self) -> tuple[Variant, ...]:
        """Return all variants."""
        return grid(self.models, self.formats, self.batches, half=self.half)

    def as_fields(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return asdict(self)

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> "BenchPlan":
        """Return the plan of such fields."""
        lists = {name: tuple(fields[name]) for name in ("models", "formats", "batches")}
        return cls(**{**fields, **lists})
