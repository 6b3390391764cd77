"""Values as JSON holds them: no NaN, no infinity, floats with the decimals that mean something."""

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

DECIMALS = 3  # milliseconds, milliwatts: finer than anything that is measured
# Numbers of the user's stand as he wrote them: a weight_decay of 0.0005 is no 0.001, nor a gate's limit of 0.25 %.
AS_GIVEN = frozenset({"args", "effective", "limit"})
AS_LEARNED = frozenset({"lr"})  # a rate of 1e-9 is one: as many digits as results.csv has
AS_LEARNED_DIGITS = 6
# Shares, money and the like may be small, and are then no zero: they keep digits below the third decimal.
MAY_BE_SMALL = frozenset(
    {
        *("share", "data_wait_share", "in_calls_share", "gpu_busy_share", "gain_at_most", "gain_estimate"),
        *("money", "money_per_million_images", "joules_per_image", "loss", "value"),
    }
)
SMALL_DIGITS = 3
NOISE_DECIMALS = 6  # coarser than what the order of additions changes, and than what a wall time of today holds
LONGEST_TEXT = 16_384  # characters: no line of a kernel log or of a command is longer; a megabyte of text is no fact
# What JSON may hold as it is, and a terminal would obey, or show in another order: written as escapes.
COMMANDING = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
LONE_SURROGATE = re.compile("[\ud800-\udfff]")  # JSON and YAML can hold them as escapes, UTF-8 cannot


def json_text(value: object) -> str:
    """Return JSON-ready values as text in which neither a CI service (##[error]) nor a terminal finds a command."""
    text = json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)
    text = COMMANDING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return re.sub(r"#(?=#\w*\[)", r"\\u0023", text) + "\n"


def json_ready(value: Any, rounded: Callable[[float], float] | None = None) -> Any:
    """Return `value` with NaN and infinity as None, floats rounded, and everything else JSON cannot hold as text.

    How floats are rounded goes by the key that they stand under; `rounded` is that of the keys around.
    """
    if isinstance(value, str):
        return LONE_SURROGATE.sub("\ufffd", value if len(value) <= LONGEST_TEXT else f"{value[:LONGEST_TEXT]}\u2026")
    if isinstance(value, Mapping):
        return {json_ready(str(key)): json_ready(item, rounded or _rounding(key)) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_ready(item, rounded) for item in value]
    if isinstance(value, bool | int) or value is None:
        return value
    if isinstance(value, float):
        return (rounded or _to_decimals)(value) if math.isfinite(value) else None
    return str(value)


def _rounding(key: object) -> Callable[[float], float] | None:
    """Return how what stands under a key is rounded, None where nothing is said of it."""
    if key in AS_GIVEN:
        return float
    if key in AS_LEARNED:
        return lambda value: float(f"{value:.{AS_LEARNED_DIGITS}g}")
    return _to_digits if key in MAY_BE_SMALL else None


def _to_decimals(value: float, decimals: int = DECIMALS) -> float:
    # A mean of round numbers often lies in the middle between two: which side a sum falls on differs with the CPU.
    return round(round(value, NOISE_DECIMALS), decimals)


def _to_digits(value: float) -> float:
    """Return a number to the usual decimals, and a small one to SMALL_DIGITS, of which noise is none."""
    if not value:
        return value
    return _to_decimals(
        value, min(max(DECIMALS, SMALL_DIGITS - 1 - math.floor(math.log10(abs(value)))), NOISE_DECIMALS)
    )
