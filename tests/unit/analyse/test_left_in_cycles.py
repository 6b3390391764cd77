import gc

import pandas as pd
from support.runs import make_run, readings

from gpu_report.analyse import analyse


def test_an_analysis_that_is_not_held_leaves_no_table_in_cycles():
    """A report is made without a look for garbage, and a comparison analyses many runs."""
    util_pct = readings((90, 300), (10, 60), (90, 300))
    rows = [(number, number * 60.0) for number in range(1, 12)]
    gc.collect()
    before = gc.get_debug()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        analyse(make_run(util_pct, rows=rows, quantities={"power_w": util_pct}))
        gc.collect()
        left = [type(each) for each in gc.garbage if isinstance(each, pd.DataFrame)]
    finally:
        gc.set_debug(before)
        gc.garbage.clear()
    assert left == []
