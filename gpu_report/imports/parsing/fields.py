"""What other tools call a quantity, and what makes a value of theirs one of ours."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from gpu_report.imports.parsing.readings import Failure, Floats
from gpu_report.wording import first_few

MIB_PER_GIB: Final = 1024.0
MIB_PER_MB: Final = 1e6 / 2**20
BYTES_PER_MIB: Final = 2.0**20
HZ_PER_MHZ: Final = 1e6
PERCENT: Final = 100.0  # of a ratio

LARGEST: Final[Mapping[str, float]] = {"gpu_util_pct": 100, "memory_util_pct": 100, "performance_state": 15}

# What DCGM writes where it has no value (dcgm_structs.h: DCGM_INT32_BLANK and DCGM_INT64_BLANK, DCGM_FP64_BLANK, each
# followed by not found, not supported and no permission).
BLANKS: Final = frozenset(float(first + more) for first in (2**31 - 16, 2**63 - 16, 2**47) for more in range(4))
_MOST_SHOWN: Final = 20  # unknown columns that a sentence lists


@dataclass(frozen=True)
class Field:
    """The column of samples.csv (or host.csv) that a value belongs in, and what it is multiplied by."""

    column: str
    factor: float = 1.0


def converted(values: Floats, field: Field) -> Floats:
    """Return values in our unit; a blank, a negative number and what no such quantity can be are missing."""
    most = LARGEST.get(field.column, np.inf)
    with np.errstate(invalid="ignore", over="ignore"):
        known = np.where(np.isin(values, list(BLANKS)) | (values < 0) | ~np.isfinite(values), np.nan, values)
        ours = known * field.factor
        return np.where(ours <= most, ours, np.nan)


def failures(
    quantities: Mapping[str, Floats], gpu: np.ndarray[tuple[int], np.dtype[np.int64]], reason: str = "no number"
) -> tuple[Failure, ...]:
    """Return which rows hold no number, by GPU and quantity, for `reason`."""
    found = []
    for index in np.unique(gpu):
        mine = np.flatnonzero(gpu == index)
        for name, values in quantities.items():
            missing = mine[np.isnan(values[mine])]
            if missing.size:
                found.append(Failure(int(index), name, reason, missing))
    return tuple(found)


def not_imported(where: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return the sentence that lists what a log has and a run folder has no place for; none where there is nothing."""
    unknown = first_of(names)
    return (f"Not imported of {where}, for a run has no such column: {unknown}.",) if unknown else ()


def first_of(names: Iterable[str]) -> str:
    """Return names as a list for a sentence, empty where there are none."""
    return ", ".join(first_few(sorted(set(names)), _MOST_SHOWN))
