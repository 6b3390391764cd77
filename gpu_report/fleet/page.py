"""A fleet as one HTML page that needs nothing else: same look, policy and escaping as a run's report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from gpu_report import __version__
from gpu_report.catalogue import cause_look, cause_words
from gpu_report.fleet import words
from gpu_report.fleet.figures import BY, CAUSE, UNKNOWN, Fleet, by_group
from gpu_report.fleet.links import link
from gpu_report.fleet.run_columns import MOST_RUNS, packed_runs
from gpu_report.fleet.words import FleetTable
from gpu_report.render.formatting import ledger_place, share, with_amounts_unbroken
from gpu_report.render.page.blank.small_page import small_page
from gpu_report.render.page.views.tables import LedgerItem
from gpu_report.wording import counted, money_words

TEMPLATE, STYLE = "fleet.html.j2", "fleet.css"
SCRIPTS = ("codec", "settings", "filter", "fleet")
LABEL_PCT = 8.0  # of the bar's width: a share has room in it
MOST_WEEKS = 53  # in the chart
LEAST_WEEKS, MOST_LABELS = 12, 6  # for how many there is room: few weeks are no wider, and their dates do not meet
WEEK_PARTS = (("Work", "work", "work_h"), ("Lost time", "other-process", "lost_h"), ("Idle", "idle", "idle_h"))


@dataclass(frozen=True)
class WeekBar:
    """A week in the chart: its place and height in percent, and its parts from the ground up as (kind, y, height)."""

    x: float
    width: float
    title: str
    label: str
    parts: tuple[tuple[str, float, float], ...]


@dataclass(frozen=True)
class FleetView:
    """What the page says. `links` are of the worst runs, None where there is none; the first of `by` is chosen."""

    title: str
    verdict: str
    to_do: tuple[str, ...]
    tiles: tuple[tuple[str, str, str], ...]
    ledger: tuple[LedgerItem, ...]
    weeks: tuple[WeekBar, ...]
    most_week: str
    week_parts: tuple[tuple[str, str], ...]
    fixes: FleetTable
    worst: FleetTable
    links: tuple[str | None, ...]
    others: tuple[FleetTable, ...]
    by: tuple[tuple[str, str], ...]
    runs: int
    left_out: int
    notes: tuple[str, ...]
    tool: str


def render_fleet_html(fleet: Fleet, page: Path, by: str | None = None) -> str:
    """Return a fleet as a page that works offline and loads nothing; `page` is where it will lie, for its links."""
    return small_page(TEMPLATE, STYLE, compose_fleet(fleet, page, by), SCRIPTS, packed_runs(fleet, page))


def compose_fleet(fleet: Fleet, page: Path, by: str | None) -> FleetView:
    """Return what the page says about a fleet."""
    worst = words.worst_table(fleet)
    others = (words.held_table(fleet), words.after_end_table(fleet), words.line_table(fleet), words.unread_table(fleet))
    of_cause = f": {cause_words(fleet.cause)}" if fleet.cause else ""
    weeks, most = _weeks(fleet)
    first = by or BY[0]
    return FleetView(
        title=f"Fleet of {counted(len(fleet.runs), 'run')}{of_cause}",
        verdict=with_amounts_unbroken(words.headline(fleet)),
        to_do=tuple(map(with_amounts_unbroken, words.what_to_do(fleet))),
        tiles=words.tiles(fleet),
        ledger=_ledger(fleet),
        weeks=weeks,
        most_week=most,
        week_parts=tuple((name, kind) for name, kind, _ in WEEK_PARTS),
        fixes=words.fix_table(fleet),
        worst=worst,
        links=tuple(link(path, page) for path, *_ in worst.rows),
        others=tuple(table for table in others if table.rows),
        by=tuple((name, "Cause" if name == CAUSE else words.TITLES[name]) for name in dict.fromkeys((first, *BY))),
        runs=len(fleet.runs),
        left_out=max(len(fleet.runs) - MOST_RUNS, 0),
        notes=words.notes(fleet),
        tool=f"gpu-report {__version__}",
    )


def _ledger(fleet: Fleet) -> tuple[LedgerItem, ...]:
    """Return where all GPU time went as parts of one bar: work, what was lost, what belongs to training, the rest."""
    rows = by_group(fleet, CAUSE)
    total, start = float(rows["hours"].sum()), 0.0
    items = []
    kinds = zip(rows["name"], rows["expected"], strict=True)
    place = [ledger_place(name, expected=expected) for name, expected in kinds]
    for _, row in rows.assign(place=place).sort_values(["place", "hours"], ascending=[True, False]).iterrows():
        part = row["hours"] / total if total > 0 else 0.0
        cost = money_words(row["hours"] * fleet.price) if fleet.price is not None else ""
        label = share(part) if 100 * part >= LABEL_PCT else ""
        hours = words.quantity_of(row["hours"])
        look = cause_look(str(row["name"]))
        width = round(100 * part, 4)
        items.append(
            LedgerItem(cause_words(str(row["name"])), look, round(start, 4), width, label, share(part), hours, "", cost)
        )
        start += 100 * part
    return tuple(items)


def _every_week(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the latest weeks in order, those without a run between them as well."""
    known = rows[rows["name"] != UNKNOWN].sort_values("name").set_index("name")
    if known.empty:
        return known.reset_index()
    mondays = pd.date_range(known.index[0], known.index[-1], freq="7D").strftime("%Y-%m-%d")
    return known.reindex(mondays[-MOST_WEEKS:], fill_value=0).rename_axis("name").reset_index()


def _weeks(fleet: Fleet) -> tuple[tuple[WeekBar, ...], str]:
    """Return the chart of GPU hours by week, the latest last, and the hours of its top."""
    rows = _every_week(by_group(fleet, "week"))
    top = float(rows["gpu_hours"].max()) if len(rows) else 0.0
    if top <= 0:
        return (), ""
    width = 100 / max(len(rows), LEAST_WEEKS)
    every = -(-max(len(rows), LEAST_WEEKS) // MOST_LABELS)
    bars = []
    for number, (_, row) in enumerate(rows.iterrows()):
        known = [(kind, float(row[column])) for _, kind, column in WEEK_PARTS]
        rest = max(float(row["gpu_hours"]) - sum(hours for _, hours in known), 0.0)
        parts, ground = [], 100.0
        for kind, hours in (*known, ("startup", rest)):
            ground -= 100 * hours / top
            parts.append((kind, round(ground, 3), round(100 * hours / top, 3)))
        said = ", ".join(f"{name.lower()} {words.quantity_of(float(row[column]))}" for name, _, column in WEEK_PARTS)
        whole = words.quantity_of(float(row["gpu_hours"]))
        title = f"Week of {row['name']}: {whole} in {counted(row['runs'], 'run')}; {said}"
        label = str(row["name"]) if number % every == 0 else ""
        bars.append(WeekBar(round(number * width, 3), round(width * 0.86, 3), title, label, tuple(parts)))
    return tuple(bars), words.quantity_of(top)
