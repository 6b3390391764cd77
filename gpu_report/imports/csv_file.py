"""A CSV of numbers with a header, as its columns."""

from pathlib import Path

import pandas as pd

from gpu_report.errors import InputError
from gpu_report.imports.readings import Floats
from gpu_report.ordinary_file import LARGEST_SMI_LOG, refuse_special

_LONGEST_REASON = 80  # characters


def read_columns(path: Path, how: str) -> dict[str, Floats]:
    """Return the columns of a CSV as numbers, NaN where a cell holds none; InputError (with `how`) where it is none."""
    refuse_special(path, LARGEST_SMI_LOG)
    try:
        frame = pd.read_csv(path, encoding="utf-8-sig", encoding_errors="replace", on_bad_lines="skip")
    except (OSError, ValueError) as error:  # pandas' own errors are ValueErrors
        raise InputError(f"{path} cannot be read ({' '.join(str(error).split())[:_LONGEST_REASON]}): {how}") from error
    return {str(name): pd.to_numeric(frame[name], errors="coerce").to_numpy(dtype=float) for name in frame}
