"""`nvidia-smi dmon -s pucvmet -o DT`: readings once a second, utilisation the mean of that second."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from gpu_report.imports.formats.nvidia_smi.dmon_table import HOW, DmonTable, header_of, read_tables
from gpu_report.imports.parsing.csv_file import numbers_of
from gpu_report.imports.parsing.each_log import read_each
from gpu_report.imports.parsing.fields import PERCENT, Field, converted, failures, not_imported
from gpu_report.imports.parsing.readings import Floats, Found, Readings
from gpu_report.imports.selection import Selection

TOOL: Final = "nvidia-smi dmon"
# `nvidia-smi dmon -h` names the columns. MB of memory have 2**20 bytes, as everywhere in nvidia-smi. Of which size
# those of the bus's traffic are nobody says (at most 5 % apart); they are of the 20 ms before.
FIELDS: Final[Mapping[str, Field]] = {
    "pwr": Field("power_w"),
    "gtemp": Field("temperature_c"),
    "temp": Field("temperature_c"),  # of drivers before 390, which had one temperature
    "mtemp": Field("memory_temperature_c"),
    "sm": Field("gpu_util_pct"),
    "mem": Field("memory_util_pct"),
    "mclk": Field("memory_clock_mhz"),
    "pclk": Field("sm_clock_mhz"),
    "fb": Field("memory_used_mib"),
    "rxpci": Field("pcie_rx_mib_s"),
    "txpci": Field("pcie_tx_mib_s"),
    # With --gpm-metrics 2,3,5,10,20,21, on Hopper and later: means of the period, and MiB/s that say so.
    "smutil": Field("sm_active_pct"),
    "smocc": Field("sm_occupancy_pct"),
    "mmaact": Field("tensor_active_pct"),
    "dram": Field("dram_active_pct"),
    "pcitx": Field("pcie_tx_mib_s"),
    "pcirx": Field("pcie_rx_mib_s"),
}
POWER_VIOLATION: Final = "pviol"  # % of the time since the row before in which the power limit held clocks down
LONGEST_PERIOD_S: Final = 60.0  # of dmon, which takes up to 10 s: what is longer is a pause of the log
_KNOWN: Final = frozenset({"date", "time", "gpu", POWER_VIOLATION})
_WANTED: Final = frozenset({*FIELDS, POWER_VIOLATION})


def is_log(_: Path, head: str) -> bool:
    """Tell whether a file's first lines are dmon's."""
    columns = header_of(head)
    return bool(columns) and "pid" not in columns and not FIELDS.keys().isdisjoint(columns)


def read(paths: Sequence[Path], _: Selection) -> Found:
    """Return all rows of all logs; InputError where none can be used."""
    logs, left_out = read_each(paths, lambda path: read_tables(path, "dmon", _WANTED), HOW.format(tool="dmon"))
    tables = [table for found, _ in logs for table in found]
    unknown = {name for table in tables for name in table.columns} - FIELDS.keys() - _KNOWN
    problems = [*left_out, *(problem for _, said in logs for problem in said), *not_imported(TOOL, unknown)]
    return Found(TOOL, HOW.format(tool="dmon"), [_readings(table) for table in tables], tuple(problems), in_utc=False)


def _readings(table: DmonTable) -> Readings:
    quantities = {
        field.column: converted(numbers_of(table.cells[name]), field)
        for name, field in FIELDS.items()
        if name in table.cells
    }
    failed = failures(quantities, table.gpu, "-")
    if POWER_VIOLATION in table.cells:
        share = converted(numbers_of(table.cells[POWER_VIOLATION]), Field("", 1 / PERCENT))
        quantities["power_cap_s"] = _counted_s(share, table)
    return Readings(table.stamp_s, table.gpu, quantities, failed, dropped=table.dropped)


def _counted_s(share: Floats, table: DmonTable) -> Floats:
    """Return the seconds so far, from the share of the time since the row before of the same GPU."""
    counted = np.full(len(share), np.nan)
    for gpu in np.unique(table.gpu):
        rows = np.flatnonzero(table.gpu == gpu)
        spacing = np.clip(np.diff(table.stamp_s[rows], prepend=table.stamp_s[rows[:1]]), 0.0, LONGEST_PERIOD_S)
        known = np.isfinite(share[rows])
        counted[rows] = np.where(known, np.cumsum(np.where(known, share[rows] * spacing, 0.0)), np.nan)
    return counted
