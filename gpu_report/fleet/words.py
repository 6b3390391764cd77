"""What a fleet's report says, for terminal and page: its sentences, and its tables as text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from gpu_report.catalogue import cause_words
from gpu_report.fleet.figures import CAUSE, FAILED, UNKNOWN, UNMEASURED, WORST_RUNS, Fleet, by_group, fixes
from gpu_report.render.formatting import known, share
from gpu_report.wording import MISSING, counted, money_words

TITLES = {
    "user": "User",
    "project": "Project",
    CAUSE: "Where the GPU time went",
    "gpu": "GPU",
    "week": "Week of",
    "host": "Host",
    "model": "Model",
}
PATH = "Run"  # a column of runs' paths
MOST_ROWS = 50  # of a table: nobody reads on, and the tables of the fleet have all
LINES_SHOWN = 20
STARTUP, UNKNOWN_TRAINING = "startup", "training"  # rows of the ledger; of the latter utilisation is unknown
FIRST_PARTS = 3  # of what GPU hours went to, in the first sentence
SHOWN_SHARE = 1e-3  # of all hours: what rounding leaves of a part that is not there is no part
SMALLEST_HOURS = 0.005  # less would read 0.00

Row = tuple[str, ...]


@dataclass(frozen=True)
class FleetTable:
    """A table of text: `numeric` says column by column whether it is set to the right. `more` rows are left out.

    `has_paths`: the first column are runs' paths, which somebody may want to copy.
    """

    id: str
    title: str
    about: str
    columns: Row
    numeric: tuple[bool, ...]
    rows: tuple[Row, ...]
    more: int = 0
    has_paths: bool = False


def hours_words(hours: float | None) -> str:
    """Return GPU hours with the digits that matter; less than a hundredth is not nothing."""
    hours = known(hours)
    if hours is None:
        return MISSING
    if 0 < hours < SMALLEST_HOURS:
        return "< 0.01"
    return f"{hours:,.0f}" if hours >= 99.5 else f"{hours:,.1f}" if hours >= 9.95 else f"{hours:.2f}"


def of_hours(part: float, whole: float) -> str:
    """Return a part of some hours as a percentage."""
    return share(part / whole) if whole > 0 else MISSING


def headline(fleet: Fleet) -> str:
    """Return where all GPU hours went, in a sentence or two."""
    if fleet.runs.empty:
        return "No run of this fleet could be read."
    total = fleet.total("gpu_hours")
    if not total:
        return f"No GPU was recorded in {counted(len(fleet.runs), 'run')}."
    if fleet.cause is not None:
        lost = fleet.total("lost_h")
        took = f"{cause_words(fleet.cause)} took {hours_words(lost)} GPU hours"
        return f"{took}, {of_hours(lost, total)} of {counted(len(fleet.runs), 'run')}."
    of = f"{hours_words(total)} GPU hours in {counted(len(fleet.runs), 'run')}"
    said = [f"{of_hours(hours, total)} {name}" for name, hours in _parts(fleet, total)]
    rest = f" The rest: {', '.join(said[FIRST_PARTS:])}." if said[FIRST_PARTS:] else ""
    return f"{of}: {', '.join(said[:FIRST_PARTS])}.{rest}"


def _parts(fleet: Fleet, total: float) -> list[tuple[str, float]]:
    """Return all that GPU hours went to, what there is of it: these add up to the total."""
    by_row = fleet.ledger.groupby("name")["hours"].sum()
    named = {
        "work": fleet.total("work_h"),
        "lost time": fleet.total("lost_h"),
        "idle": fleet.total("idle_h"),
        "start-up": float(by_row.get(STARTUP, 0.0)),
        "not measured": sum(float(by_row.get(name, 0.0)) for name in (UNMEASURED, UNKNOWN_TRAINING)),
    }
    named["validation and saving"] = total - sum(known(hours) or 0.0 for hours in named.values())
    return [(name, hours) for name, hours in named.items() if hours > SHOWN_SHARE * total]


def what_to_do(fleet: Fleet) -> tuple[str, ...]:
    """Return what would save most, and what was held for nothing: a sentence or two each."""
    said = []
    best = fixes(fleet).head(1)
    if not best.empty:
        first = best.iloc[0]
        cost = f" (cost {money_words(first['hours'] * fleet.price)})" if fleet.price is not None else ""
        saved = f"{hours_words(first['hours'])} GPU hours{cost}"
        said.append(
            f"Change `{first['argument']}` first: it would have saved {saved} in {counted(first['runs'], 'run')}."
        )
    if not fleet.held.empty and fleet.cause is None:
        gpus, hours = int(fleet.held["gpus"].sum()), hours_words(fleet.held["hours"].sum())
        said.append(f"{counted(gpus, 'GPU')} had no process at all while runs held {_them(gpus)}: {hours} GPU hours.")
    failed = fleet.runs[fleet.runs["ending"] == FAILED]
    if len(failed):
        spent = float(failed["gpu_hours"].sum())
        cost = f" (cost {money_words(spent * fleet.price)})" if fleet.price is not None else ""
        said.append(f"{counted(len(failed), 'run')} failed after {hours_words(spent)} GPU hours{cost} in all.")
    return tuple(said)


def _them(count: int) -> str:
    return "it" if count == 1 else "them"


def group_table(fleet: Fleet, by: str, most: int = MOST_ROWS) -> FleetTable:
    """Return sums by group as a table."""
    rows = by_group(fleet, by)
    if by == CAUSE:
        return _cause_table(fleet, rows, most)
    cells: list[tuple[str, bool, Callable[[pd.Series], str]]] = [
        (TITLES[by], False, lambda row: str(row["name"])),
        ("Runs", True, lambda row: f"{row['runs']:,}"),
        *_cost_of(fleet, "gpu_hours"),
        ("Work", True, lambda row: of_hours(row["work_h"], row["gpu_hours"])),
        ("Lost", True, lambda row: hours_words(row["lost_h"])),
        ("Idle", True, lambda row: hours_words(row["idle_h"])),
        ("No process", True, lambda row: hours_words(row["no_process_h"])),
        ("Fixes save", True, lambda row: hours_words(row["saves_h"])),
    ]
    title = "Trend by week" if by == "week" else f"By {by if by != 'gpu' else 'GPU'}"
    return _table(f"by-{by}", title, "Hours of GPUs; work is a share of them.", cells, rows, most)


def _cause_table(fleet: Fleet, rows: pd.DataFrame, most: int) -> FleetTable:
    total = float(rows["hours"].sum())
    cells: list[tuple[str, bool, Callable[[pd.Series], str]]] = [
        (TITLES[CAUSE], False, lambda row: cause_words(str(row["name"]))),
        ("Runs", True, lambda row: f"{row['runs']:,}"),
        *_cost_of(fleet, "hours"),
        ("Share", True, lambda row: of_hours(row["hours"], total)),
        ("Lost time", False, lambda row: "yes" if row["lost"] else ""),
        ("--cause", False, lambda row: str(row["name"]) if row["lost"] else ""),
        ("Fixes save", True, lambda row: hours_words(row["saves_h"]) if row["saves_h"] > 0 else ""),
    ]
    return _table(f"by-{CAUSE}", "By cause", "All GPU time, by where it went.", cells, rows, most)


def fix_table(fleet: Fleet) -> FleetTable:
    """Return what could have been saved, by the argument to change."""
    total = fleet.total("gpu_hours")
    cells: list[tuple[str, bool, Callable[[pd.Series], str]]] = [
        ("Change", False, lambda row: str(row["argument"])),
        ("To, most often", False, lambda row: ", ".join(map(str, row["values"]))),
        ("Runs", True, lambda row: f"{row['runs']:,}"),
        *_cost_of(fleet, "hours", "Saves, GPU hours", "Saves, cost"),
        ("Of all", True, lambda row: of_hours(row["hours"], total)),
    ]
    about = "What the best change of each run would have saved in the epochs recorded. It is an estimate."
    return _table("fixes", "What could have been saved", about, cells, fixes(fleet), MOST_ROWS)


def worst_table(fleet: Fleet, most: int = WORST_RUNS) -> FleetTable:
    """Return the runs in which a known change would have saved most, then those that wasted most."""
    cells: list[tuple[str, bool, Callable[[pd.Series], str]]] = [
        (PATH, False, lambda row: str(row["path"])),
        ("User", False, lambda row: str(row["user"])),
        ("Change", False, lambda row: row["fix"] if isinstance(row["fix"], str) else ""),
        ("Saves", True, lambda row: hours_words(row["saves_h"]) if row["saves_h"] > 0 else ""),
        *_cost_of(fleet, "gpu_hours"),
        ("Lost", True, lambda row: hours_words(row["lost_h"])),
        ("Idle", True, lambda row: hours_words(row["idle_h"])),
        (
            "Largest cause",
            False,
            lambda row: cause_words(row["top_cause"]) if isinstance(row["top_cause"], str) else "",
        ),
        ("Ending", False, lambda row: str(row["ended"])),
    ]
    rows = fleet.runs[fleet.runs["wasted_h"] > 0]
    rows = rows.assign(won=rows["saves_h"].fillna(0.0).clip(lower=0.0))
    rows = rows.sort_values(["won", "wasted_h", "run"], ascending=[False, False, True])
    about = "First runs in which a known change saves most GPU hours, then those with most lost or idle."
    return _table("worst", "Worst runs", about, cells, rows, most)


def held_table(fleet: Fleet, most: int = LINES_SHOWN) -> FleetTable:
    """Return the GPUs that runs held without a process, by run."""
    cells: list[tuple[str, bool, Callable[[pd.Series], str]]] = [
        (PATH, False, lambda row: str(row["path"])),
        ("User", False, lambda row: str(row["user"])),
        ("Project", False, lambda row: str(row["project"])),
        ("Host", False, lambda row: str(row["host"])),
        ("GPUs", True, lambda row: f"{row['gpus']:,}"),
        *_cost_of(fleet, "hours"),
    ]
    about = "GPUs that a run held and never used: no process was on them."
    return _table("held", "GPUs held without a process", about, cells, fleet.held, most)


def after_end_table(fleet: Fleet, most: int = LINES_SHOWN) -> FleetTable:
    """Return the runs whose GPUs were held longest after the end of their training."""
    cells: list[tuple[str, bool, Callable[[pd.Series], str]]] = [
        (PATH, False, lambda row: str(row["path"])),
        ("User", False, lambda row: str(row["user"])),
        ("Ending", False, lambda row: str(row["ended"]) or MISSING),
        *_cost_of(fleet, "idle_after_end_h"),
    ]
    rows = fleet.runs[fleet.runs["idle_after_end_h"] > 0].sort_values(
        ["idle_after_end_h", "run"], ascending=[False, True]
    )
    total = hours_words(fleet.total("idle_after_end_h"))
    about = f"GPUs that stayed idle after the end of the last training: {total} GPU hours in all."
    return _table("after-end", "Idle after the end", about, cells, rows, most)


def line_table(fleet: Fleet) -> FleetTable:
    """Return the lines of code in which trainings were while GPUs had nothing to do."""
    cells: list[tuple[str, bool, Callable[[pd.Series], str]]] = [
        ("Function", False, lambda row: str(row["function"])),
        ("Line", False, lambda row: f"{row['file']}:{row['line']}"),
        ("Process", False, lambda row: str(row["process"])),
        ("Runs", True, lambda row: f"{row['runs']:,}"),
        *_cost_of(fleet, "hours", "Lost GPU hours"),
    ]
    about = "Where the training was while its GPUs had nothing to do."
    return _table("lines", "Lines of code", about, cells, fleet.locations, LINES_SHOWN)


def unread_table(fleet: Fleet) -> FleetTable:
    """Return the runs that cannot be read, with the reasons."""
    frame = pd.DataFrame(list(fleet.unread), columns=["path", "error"])
    cells: list[tuple[str, bool, Callable[[pd.Series], str]]] = [
        (PATH, False, lambda row: str(row["path"])),
        ("Why", False, lambda row: str(row["error"]).removeprefix(str(row["path"])).lstrip("/: ")),
    ]
    return _table("unread", "Runs that cannot be read", "They count nowhere else.", cells, frame, MOST_ROWS)


def _cost_of(
    fleet: Fleet, column: str, name: str = "GPU hours", money: str = "Cost"
) -> list[tuple[str, bool, Callable[[pd.Series], str]]]:
    """Return the column of some hours, and with a price that of their cost."""
    cells: list[tuple[str, bool, Callable[[pd.Series], str]]] = [(name, True, lambda row: hours_words(row[column]))]
    if (price := fleet.price) is not None:
        cells.append((money, True, lambda row: money_words(row[column] * price)))
    return cells


def _table(  # noqa: PLR0913, PLR0917 - what a table is made of
    id_: str,
    title: str,
    about: str,
    cells: list[tuple[str, bool, Callable[[pd.Series], str]]],
    rows: pd.DataFrame,
    most: int,
) -> FleetTable:
    shown = [tuple(make(row) for _, _, make in cells) for _, row in rows.head(most).iterrows()]
    columns, numeric = tuple(name for name, _, _ in cells), tuple(right for _, right, _ in cells)
    return FleetTable(id_, title, about, columns, numeric, tuple(shown), max(len(rows) - most, 0), columns[0] == PATH)


def tiles(fleet: Fleet) -> tuple[tuple[str, str, str], ...]:
    """Return the main figures: what is measured, the value, and a note."""
    total = fleet.total("gpu_hours")
    price = fleet.price

    def figure(name: str, hours: float, within: str = "") -> tuple[str, str, str]:
        cost = f", cost {money_words(hours * price)}" if price is not None and known(hours) is not None else ""
        return name, quantity_of(hours), f"{of_hours(hours, total)} of all{cost}{within}"

    never = float(fleet.held["hours"].sum())
    unused = f". {quantity_of(never)} of it: GPUs that never had a process" if never > 0 else ""

    return (
        ("GPU hours", quantity_of(total), f"cost {money_words(total * price)}" if price is not None else _span(fleet)),
        figure("Lost time", fleet.total("lost_h")),
        figure("Idle", fleet.total("idle_h")),
        figure("Without a process", fleet.total("no_process_h"), f". Counted in idle and start-up, too{unused}"),
        figure("Idle after the end", fleet.total("idle_after_end_h"), ". Counted in idle, too"),
        figure("Fixes would have saved", fleet.total("saves_h")),
    )


def quantity_of(hours: float) -> str:
    """Return hours with their unit."""
    return MISSING if known(hours) is None else f"{hours_words(hours)}\u00a0h"


def _span(fleet: Fleet) -> str:
    weeks = sorted(week for week in fleet.runs["week"].unique() if week[:1].isdigit())
    return f"weeks of {weeks[0]} to {weeks[-1]}" if weeks else ""


def notes(fleet: Fleet) -> tuple[str, ...]:
    """Return what a reader has to know of the figures."""
    said = [
        "Lost time is what a cause took of training. Idle is time outside training, and of GPUs held but not used.",
        "Time without a process is mostly part of idle and start-up, too: do not add these figures.",
        "Only recorded runs are in it. GPUs that nobody recorded are not.",
    ]
    if fleet.runs["no_process_gpu_s"].isna().any():
        unseen = int(fleet.runs["no_process_gpu_s"].isna().sum())
        said.append(
            f"Of {counted(unseen, 'run')} nobody could see the processes: they are not in the figures on these."
        )
    if (fleet.runs["user"] == UNKNOWN).any():
        said.append("A user is unknown in recordings made before gpu-report kept it, and in imported logs.")
    return tuple(said)
