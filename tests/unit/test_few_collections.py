import gc

import pytest

from gpu_report.few_collections import few_collections


@pytest.fixture
def looks(monkeypatch):
    """How many objects each look for garbage began with, by generation."""
    seen = []
    look = lambda phase, about: seen.append(about["generation"]) if phase == "start" else None  # noqa: E731
    gc.collect()
    gc.callbacks.append(look)
    yield seen
    gc.callbacks.remove(look)


def test_many_objects_are_looked_at_neither_meanwhile_nor_when_it_is_over(looks):
    before = gc.get_threshold()
    with few_collections():
        made = [[number] for number in range(100 * before[0])]
    after = [[number] for number in range(before[0] // 2)]
    assert looks == []
    assert len(made) > len(after)
    assert gc.get_threshold() == before


def test_what_is_left_of_it_is_found_in_the_next_look_at_all():
    class Ring:
        """Something that holds itself."""

    with few_collections():
        ring = Ring()
        ring.itself = ring
        del ring
    assert gc.get_freeze_count() == 0
    assert gc.collect() > 0
    assert not [each for each in gc.get_objects() if type(each) is Ring]
