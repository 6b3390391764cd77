"""The runs of a fleet as columns that a page holds: texts as numbers into lists of them, hours as whole numbers."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

from gpu_report.catalogue import cause_words
from gpu_report.fleet.figures import GROUPS, Fleet
from gpu_report.fleet.links import SUFFIXES, from_page, suffix_of
from gpu_report.fleet.remote import is_url
from gpu_report.render.formatting import clean
from gpu_report.render.page.blank.assets import squeeze

MOST_RUNS = 20_000  # on a page, those that wasted most: 10,000 take 0.4 MB and are drawn in a tenth of a second
TENTHS = 36_000  # of a second in an hour: whole seconds of short runs would not add up
SPENT = {  # hours of GPUs, by their names in the page's script
    "hours": "gpu_hours",
    "work": "work_h",
    "lost": "lost_h",
    "idle": "idle_h",
    "noProcess": "no_process_h",
    "saves": "saves_h",
}


def packed_runs(fleet: Fleet, page: Path) -> str:
    """Return the runs as dense text (gzip, then render/samples/base128.py), which fleet.js reads on `page`."""
    return squeeze(json.dumps(_columns(fleet, page), ensure_ascii=False, separators=(",", ":"), allow_nan=False))


def _columns(fleet: Fleet, page: Path) -> dict[str, object]:
    runs = fleet.runs.head(MOST_RUNS)
    folders, names = _split(runs["path"])
    texts = {by: runs[column] for by, column in GROUPS.items()} | {
        "folder": folders,
        "fix": runs["fix"].fillna(""),
        "fixCause": runs["fix_cause"].map(cause_words, na_action="ignore").fillna(""),
        "ending": runs["ended"],
    }
    number = {key: place for place, key in enumerate(runs["run"])}
    ledger = fleet.ledger[fleet.ledger["run"].isin(number)]
    causes, kinds = pd.factorize(ledger["name"])  # in the order in which they first come
    starts = runs["start"].astype("int64") // 60_000_000  # of microseconds, as minutes
    return {
        "texts": {name: _listed(column) for name, column in texts.items()},
        "names": [clean(name) for name in names],
        "starts": [
            None if missing else int(start) for start, missing in zip(starts, runs["start"].isna(), strict=True)
        ],
        "minutes": _whole(runs["duration_s"] / 60),
        "spent": {name: _whole(runs[column] * TENTHS) for name, column in SPENT.items()},
        "causes": {
            "names": [cause_words(str(kind)) for kind in kinds],
            "lost": ledger.drop_duplicates("name")["lost"].tolist(),
            "run": [number[key] for key in ledger["run"]],
            "cause": causes.tolist(),
            "spent": _whole(ledger["hours"] * TENTHS),
        },
        "links": _links(folders, names, page),
        "price": fleet.price,
    }


def _links(folders: pd.Series, names: list[str], page: Path) -> dict[str, object]:
    """Return links to reports in parts: to `folders`, in the order of their texts, and what follows each name."""
    found = [suffix_of(f"{folder}{name}") for folder, name in zip(folders, names, strict=True)]
    return {
        "folders": ["" if is_url(each) else f"{from_page(each or '.', page)}/" for each in pd.unique(folders)],
        "suffixes": SUFFIXES,
        "of": [
            None if suffix is None or clean(name) != name else SUFFIXES.index(suffix)
            for suffix, name in zip(found, names, strict=True)
        ],
    }


def _split(paths: pd.Series) -> tuple[pd.Series, list[str]]:
    """Return the folders around runs, and the runs' own names: many have the same folder."""
    parts = [str(path).rpartition("/") for path in paths]
    return pd.Series([folder + slash for folder, slash, _ in parts], dtype="object"), [name for _, _, name in parts]


def _listed(column: pd.Series) -> dict[str, object]:
    numbers, values = pd.factorize(column)
    return {"list": [clean(str(value)) for value in values], "of": numbers.tolist()}


def _whole(values: pd.Series) -> list[int | None]:
    return [None if pd.isna(value) else round(float(value)) for value in values]
