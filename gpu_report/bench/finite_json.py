"""What bench.json keeps of a plan and of what workers answer: no secrets, and null for a number that is none."""

from collections.abc import Mapping
from typing import Any

from gpu_report import run_folder
from gpu_report.inside.on_path.gpu_report_inside.secrets.hide import hide_and_cut


def finite(value: Any) -> Any:
    """Return a value as JSON can have it, all that is in it included: FP16 that overflows makes scores and mAP NaN."""
    if isinstance(value, str):
        return hide_and_cut(value)
    if isinstance(value, float):
        return run_folder.finite(float(value))
    if isinstance(value, Mapping):
        return {name: finite(item) for name, item in value.items()}
    return [finite(item) for item in value] if isinstance(value, list | tuple) else value
