"""What the GPU waited for, as the page says it: waits for other ranks are no work, though their GPUs read as busy."""

from dataclasses import replace

import numpy as np
import pytest

from gpu_report.model import Analysis, CodeFrame, CodeLine, CodeTime, LedgerRow
from gpu_report.render.page.sections.code_time import code_time

OWN = CodeFrame("meet", "/home/me/meet.py", 124, "own")
BARRIER = CodeFrame("barrier()", "/venv/torch/distributed/distributed_c10d.py", 5030, "ranks")


@pytest.fixture
def ranks(analysis: Analysis) -> Analysis:
    at = np.zeros(1, dtype=np.int64)
    time = CodeTime("rank 1", 1.0, ((OWN, BARRIER),), ("train",), at, at, at, np.array([9.0]), np.array([0.5]))
    line = CodeLine("rank 1", "meet", OWN.file, OWN.line, 9.0, 0.5, "train", "ranks")
    return replace(analysis, code_time=(time,), code_lines=(line,), ledger=())


def test_a_wait_for_other_ranks_is_said_to_look_busy_with_its_length(ranks: Analysis) -> None:
    waited = LedgerRow("waiting-for-peer", False, 8.5, None, None, 0.1)
    view = code_time(replace(ranks, ledger=(waited,)))
    assert view is not None
    assert view.has_ranks
    assert "as busy: 8.5\u00a0s of that are not in here" in view.note
    assert "A rank is the training process of one GPU" in view.note
    assert "reads as busy" not in code_time(ranks).note


def test_a_training_of_one_gpu_has_no_such_colour(ranks: Analysis) -> None:
    alone = replace(ranks.code_time[0], stacks=((OWN,),))
    assert not code_time(replace(ranks, code_time=(alone,))).has_ranks
