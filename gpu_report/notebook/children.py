"""The processes that a training starts: ranks of `device=[0, 1]` get our hook as those of a recorded command do.

Before ultralytics 8.4.140 they lose the callbacks of their model. Later they have them, and then the hook's are taken
away again (`gpu_report_inside/callbacks.py`).
"""

import os
from pathlib import Path

from gpu_report.inside import ON_PATH
from gpu_report.record.yolo.inject import PYTHONPATH, environment


def reach(run_folder: Path) -> None:
    """Let Python processes that are started from now on load our hook, and write into this folder."""
    os.environ.update(environment(run_folder))


def leave() -> None:
    """Let them load it no more; what else stands on PYTHONPATH stays."""
    kept = [entry for entry in os.environ.get(PYTHONPATH, "").split(os.pathsep) if entry not in {"", str(ON_PATH)}]
    if kept:
        os.environ[PYTHONPATH] = os.pathsep.join(kept)
    else:
        os.environ.pop(PYTHONPATH, None)
