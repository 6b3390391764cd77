"""A collective that ranks wait in, as a sentence and as what to do about it."""

from collections.abc import Sequence

from gpu_report.analyse.signals.code.collectives import PendingCollective
from gpu_report.wording import few_names, place_words

SHOWN = 8  # ranks that a sentence names
DIFFERENT = 3  # names of collectives that it has


def pending_words(held: PendingCollective) -> str:
    """Return what the ranks' traces say, without a full stop."""
    call = f"{_name(held.collective.name)} {held.collective.number:,}"
    if held.missing:
        text = f"{_ranks(held.missing)} had not called {call}, in which {_ranks(held.waiting).lower()} waited"
    else:
        of_name: dict[str, list[int]] = {}
        for rank, name in held.called.items():
            of_name.setdefault(name, []).append(rank)
        calls = [f"{_ranks(ranks).lower()} {_name(name)}" for name, ranks in list(of_name.items())[:DIFFERENT]]
        text = f"Ranks called different collectives as number {held.collective.number:,}: {', '.join(calls)}"
    unknown = f". There is no trace of {_ranks(held.untraced).lower()}" if held.untraced else ""
    return f"{text}{unknown}"


def pending_advice(held: PendingCollective) -> str:
    """Return what to look at, without a full stop."""
    if not held.missing:
        return "Let all ranks call the same collectives in the same order: look for a branch that only some ranks take"
    last = f" after {place_words(held.last_where[0])}, its last collective," if held.last_where else ""
    return f"Find what held {_ranks(held.missing).lower()} up{last} and look at its own log first"


def _name(name: str) -> str:
    return f"`{name.replace('`', chr(39))}`"


def _ranks(ranks: Sequence[int]) -> str:
    return f"Rank{'s' if len(ranks) != 1 else ''} {few_names([f'{rank:,}' for rank in sorted(ranks)], SHOWN)}"
