"""Stretches of time as (start, end) in seconds, in order and without overlap."""

from collections.abc import Sequence

Span = tuple[float, float]


def intersect(left: Sequence[Span], right: Sequence[Span]) -> list[Span]:
    """Return what lies in both."""
    both = [(max(a, c), min(b, d)) for a, b in left for c, d in right]
    return sorted((a, b) for a, b in both if a < b)


def union(spans: Sequence[Span]) -> list[Span]:
    """Return what lies in any, those that touch as one."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def minus(spans: Sequence[Span], cuts: Sequence[Span]) -> list[Span]:
    """Return `spans` without `cuts`."""
    rest = list(spans)
    for a, b in cuts:
        rest = [piece for s, e in rest for piece in ((s, min(e, a)), (max(s, b), e)) if piece[0] < piece[1]]
    return sorted(rest)
