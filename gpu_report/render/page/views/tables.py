"""Facts, tables and bars: what every page is made of."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Fact:
    """A label and what is to be said under it; `note` explains it in smaller print."""

    label: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class TextTable:
    """A table of text. `numeric` says column by column whether it is set to the right."""

    columns: tuple[str, ...]
    numeric: tuple[bool, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class LedgerItem:
    """A part of the ledger's bar, from `start_pct` of its width; `kind` picks its colour, `label` stands in it."""

    name: str
    kind: str
    start_pct: float
    width_pct: float
    label: str
    share: str
    time: str
    energy: str
    money: str


@dataclass(frozen=True)
class NamedTable:
    """A table with its heading and what is to be known of it."""

    title: str
    note: str
    table: TextTable
