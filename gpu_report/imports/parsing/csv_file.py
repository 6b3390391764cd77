"""A CSV of numbers with a header, as its columns."""

import io
from pathlib import Path

import numpy as np
import pandas as pd

from gpu_report.errors import InputError
from gpu_report.imports.parsing.json_documents import number
from gpu_report.imports.parsing.readings import Floats
from gpu_report.imports.parsing.text_file import read_text

_LONGEST_REASON = 80  # characters


def read_columns(path: Path, tool: str, how: str) -> dict[str, Floats]:
    """Return the columns of a CSV as numbers, NaN where a cell holds none; InputError (with `how`) where it is none."""
    text = read_text(path, tool)
    try:
        frame = pd.read_csv(io.BytesIO(text.encode("utf-8", "replace")), on_bad_lines="skip")
    except ValueError as error:  # pandas' own errors are ValueErrors
        raise InputError(f"{path} cannot be read ({' '.join(str(error).split())[:_LONGEST_REASON]}): {how}") from error
    return {str(name): numbers_of(frame[name]) for name in frame}


def numbers_of(cells: pd.Series) -> Floats:
    """Return cells as numbers, NaN where one holds none."""
    try:
        numbers: Floats = pd.to_numeric(cells, errors="coerce").to_numpy(dtype=float)
    except OverflowError:  # a damaged cell may be a whole number of 400 digits
        numbers = np.array([number(str(cell)) for cell in cells], dtype=float)
    return numbers
