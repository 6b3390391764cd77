"""The family of each operator, and of each piece of GPU work by the operator that launched it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, get_args

import numpy as np

from gpu_report.analyse.trace.family_names import BLOCKS, KERNELS, KERNELS_BY_NATURE, OPERATORS, Patterns, family_of
from gpu_report.analyse.trace.gpu_work import NONE, Bools, Ints, take
from gpu_report.analyse.trace.name_masks import names_that
from gpu_report.analyse.trace.operator_tree import nearest, within_marks
from gpu_report.analyse.trace.window import TraceWindow
from gpu_report.model import FamilyName, Trace

NAMES: Final[tuple[FamilyName, ...]] = get_args(FamilyName)
OTHER: Final = NAMES.index("other")
NODE: Final = r"^autograd::engine::evaluate_function: "  # around each node of autograd
LAYER: Final = r"^layer \d+ "
CORE: Final[tuple[FamilyName, ...]] = ("convolution", "normalisation", "compiled")
# These are what they are, also between the forward and the backward pass. A detection head may end in matrix products.
NEVER_LOSS: Final[tuple[FamilyName, ...]] = (
    *CORE,
    "attention",
    "matrix products",
    "communication",
    "NMS",
    "optimizer",
    "copies",
    "layout changes",
)


@dataclass(frozen=True, eq=False)
class Families:
    """Families as indices into NAMES: of each operator of the trace, of each piece of the window's work, of names."""

    operator: Ints
    work: Ints
    kernel_name: Ints

    def name(self, index: int) -> FamilyName:
        """Return the family with an index."""
        return NAMES[index]


def find_families(window: TraceWindow) -> Families:
    """Return the families of a trace's operators, and of the work of its used steps."""
    operator = _of_operators(window.trace)
    kernel_name = _codes(window.trace.names, window.work.name, KERNELS)
    nature = np.isin(kernel_name, [NAMES.index(each) for each in KERNELS_BY_NATURE])
    by_name = kernel_name[window.work.name]
    launched_by = take(operator, window.work.operator, NONE)
    work = np.where(nature[window.work.name] | np.isin(launched_by, (NONE, OTHER)), by_name, launched_by)
    return Families(operator, np.where(work == NONE, OTHER, work), np.where(kernel_name == NONE, OTHER, kernel_name))


def _of_operators(trace: Trace) -> Ints:
    """Return the family of each operator: its own, else that of the nearest around it that has one.

    What has none is a building block by itself, else what its node of autograd is the backward pass of.
    """
    operators, nodes = trace.operators, names_that(trace, NODE)
    structure = nodes | names_that(trace, LAYER)
    codes = _codes(trace.names, operators.name, OPERATORS)
    found = nearest(operators, np.where(structure, NONE, codes)[operators.name])
    for otherwise in (
        np.where(structure, NONE, _codes(trace.names, operators.name, BLOCKS))[operators.name],
        nearest(operators, np.where(nodes, codes, NONE)[operators.name]),
    ):
        found = np.where(found == NONE, otherwise, found)
    found = np.where(_between_passes(trace, codes, nodes) & ~_is(found, NEVER_LOSS), NAMES.index("loss"), found)
    updates = names_that(trace, r"^Optimizer\.")[trace.annotations.name]
    in_optimizer = within_marks(trace.annotations, updates, operators.thread, operators.start_s)
    found = np.where(in_optimizer, NAMES.index("optimizer"), found)
    return np.where(found == NONE, OTHER, found)


def _between_passes(trace: Trace, codes: Ints, nodes: Bools) -> Bools:
    """Return which operators begin after the last of the model in a forward pass, and before the first of its backward.

    There the loss is computed, which no name says: its operators are everyday arithmetic.
    """
    operators = trace.operators
    core = _is(codes, CORE)[operators.name]
    backward = nodes[operators.name] & core
    in_node = nearest(operators, np.where(nodes[operators.name], 1, NONE)) != NONE
    at_s = np.concatenate([operators.start_s[core & ~in_node], operators.start_s[backward]])
    is_backward = np.repeat([False, True], [int((core & ~in_node).sum()), int(backward.sum())])
    order = np.argsort(at_s, kind="stable")
    at_s, is_backward = at_s[order], np.append(is_backward[order], False)
    following = np.searchsorted(at_s, operators.start_s, side="right")
    begun = np.append(is_backward, False)[np.maximum(following - 1, 0)]
    between: Bools = (following > 0) & ~begun & is_backward[following]
    return between


def _codes(names: Sequence[str], used: Ints, patterns: Patterns) -> Ints:
    """Return the family of each name that is used, NONE of all others: a kernel's has a thousand letters to search."""
    codes = np.full(len(names), NONE, dtype=np.int64)
    for at in np.unique(used).tolist():
        family = family_of(names[at], patterns)
        codes[at] = NONE if family is None else NAMES.index(family)
    return codes


def _is(codes: Ints, families: Sequence[FamilyName]) -> Bools:
    return np.isin(codes, [NAMES.index(each) for each in families])
