"""The command line's process as it ends."""

import subprocess
import sys

ENDS = """
import atexit, gc, gpu_report.__main__
atexit._run_exitfuncs()
print(gc.get_count()[0], gc.get_freeze_count())
"""


def test_a_process_that_ends_does_not_look_for_garbage_in_all_that_it_holds() -> None:
    done = subprocess.run([sys.executable, "-c", ENDS], capture_output=True, text=True, check=True)
    looked_at, left_alone = map(int, done.stdout.split())
    assert looked_at < 100
    assert left_alone > 10_000
