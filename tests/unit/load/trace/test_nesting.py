import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpu_report.load.trace.nesting import outer_first, parents

INTERVALS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 40), st.integers(0, 40)), max_size=25)


def test_a_child_may_end_a_nanosecond_after_its_parent():
    thread = np.zeros(3, dtype=int)
    start_s, end_s = np.array([0.0, 1e-6, 5e-6]), np.array([5e-6, 5e-6 + 1e-9, 6e-6])
    assert parents(thread, start_s, end_s).tolist() == [-1, 0, -1]


def by_a_stack(thread, start, end):
    """Return the parents of events that nest, one after the other."""
    found, stack = [], []
    for row in range(len(start)):
        while stack and (thread[stack[-1]] != thread[row] or end[stack[-1]] <= start[row]):
            stack.pop()
        found.append(stack[-1] if stack else -1)
        stack.append(row)
    return found


@given(INTERVALS)
def test_what_nests_has_the_parents_that_a_stack_finds(drawn):
    nested = []
    for thread, start, length in drawn:  # only those that cross none
        end = start + length
        if all(
            t != thread or e <= start or end <= s or (s <= start and end <= e) or (start <= s and e <= end)
            for t, s, e in nested
        ):
            nested.append((thread, start, end))
    thread, start, end = (
        (np.array(column, dtype=float) for column in zip(*nested, strict=True)) if nested else [np.zeros(0)] * 3
    )
    order = outer_first(thread, start, end)
    thread, start, end = thread[order], start[order], end[order]
    assert parents(thread.astype(int), start, end).tolist() == by_a_stack(thread, start, end)


@given(INTERVALS)
def test_what_crosses_has_some_parent_before_it_on_its_thread(drawn):
    thread, start, length = (
        (np.array(column, dtype=float) for column in zip(*drawn, strict=True)) if drawn else [np.zeros(0)] * 3
    )
    order = outer_first(thread, start, start + length)
    thread, start, end = thread[order], start[order], (start + length)[order]
    for row, parent in enumerate(parents(thread.astype(int), start, end).tolist()):
        assert parent < row
        assert parent == -1 or thread[parent] == thread[row]
