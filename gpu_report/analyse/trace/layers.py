"""GPU work by layer of the model, where the training marked its layers (`layer 3 C3k2`)."""

import re
from typing import Final

import numpy as np

from gpu_report.analyse.trace.families import NODE
from gpu_report.analyse.trace.gpu_work import NONE, Bools, Ints, sums_by_row, take
from gpu_report.analyse.trace.name_masks import names_that
from gpu_report.analyse.trace.operator_tree import nearest
from gpu_report.analyse.trace.window import TraceWindow
from gpu_report.model import LayerTime, Trace

_LAYER: Final = re.compile(r"layer (\d{1,5})(?: (.*))?")


def layer_times(window: TraceWindow) -> tuple[LayerTime, ...]:
    """Return the layers by index, none where they are not marked.

    Work of the backward pass belongs to the layer whose forward operator made its node of autograd.
    """
    trace, operators = window.trace, window.trace.operators
    marks = {at: found for at, name in enumerate(trace.names) if (found := _LAYER.fullmatch(name))}
    marked = np.isin(operators.name, list(marks))
    if not marked.any():
        return ()
    forward = nearest(operators, np.where(marked, operators.name, NONE).astype(np.int64))
    backward = _backward(trace, forward)
    work, count = window.work, len(trace.names)
    forward_s, backward_s = (
        sums_by_row(take(each, work.operator, NONE), work.length_s, count) for each in (forward, backward)
    )
    rows = (
        LayerTime(int(found[1]), found[2] or "", float(forward_s[at]), float(backward_s[at]))
        for at, found in marks.items()
    )
    return tuple(sorted(rows, key=lambda row: (row.index, row.module)))


def _backward(trace: Trace, forward: Ints) -> Ints:
    """Return the layer's name of what runs in a node of autograd: by the number that it shares with its operator.

    The forward operators around the one that made a node have its number, too, as has what ran without a gradient
    before it: the last one counts.
    """
    operators = trace.operators
    nodes = names_that(trace, NODE)[operators.name]
    in_node: Bools = nearest(operators, np.where(nodes, 1, NONE)) != NONE
    made = np.flatnonzero(~in_node & (operators.sequence >= 0))
    made = made[np.lexsort((operators.start_s[made], operators.sequence[made]))]
    numbers = operators.sequence[made]
    number = nearest(operators, np.where(nodes, operators.sequence, NONE))
    at = np.searchsorted(numbers, number, side="right") - 1
    found = in_node & (at >= 0) & (number >= 0)
    found[found] = numbers[at[found]] == number[found]
    return np.where(found, forward[made[np.maximum(at, 0)]] if len(made) else NONE, NONE)
