"""The first validation of a process, which its memory shows."""

from support.runs import make_run, readings

from gpu_report.analyse import analyse
from gpu_report.analyse.build_context import build_context
from gpu_report.model import Options


def stopped_run():
    """Return 3 epochs of 600 s whose memory steps up at the first batch alone; the first was stopped for 200 s."""
    epoch = [(92, 560), (40, 40)]
    util = readings((0, 20), (92, 300), (0, 200), (92, 260), (40, 40), *epoch, *epoch)
    memory = [400.0] * 26 + [9000.0] * (len(util) - 26)
    return make_run(util, rows=[(1, 820), (2, 1420), (3, 2020)], quantities={"memory_used_mib": memory})


def test_a_step_of_memory_at_the_first_batch_is_no_validation_that_takes_all_of_the_epoch():
    context = build_context(stopped_run(), Options())
    validated = {p.epoch: p.end_t_s - p.start_t_s for p in context.phases if p.name == "validation"}
    assert validated[1] < 60
    (drop,) = [f for f in analyse(stopped_run()).findings if f.rule in {"drop", "sustained-low"} and not f.expected]
    assert (drop.start_t_s, drop.end_t_s) == (320.0, 520.0)
