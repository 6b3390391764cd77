import subprocess
import sys

import pytest


def test_pandas_does_not_load_pyarrow_which_may_be_imported_later():
    pytest.importorskip("pyarrow")
    asked = """
import sys
from gpu_report.pandas_without_arrow import import_pandas_without_arrow
import_pandas_without_arrow()
import_pandas_without_arrow()
import pandas
assert "pyarrow" not in sys.modules
assert pandas.Series(["a"], dtype="str").dtype.storage == "python"
import pyarrow
assert pyarrow.array([1]).to_pylist() == [1]
"""
    subprocess.run([sys.executable, "-c", asked], check=True)
