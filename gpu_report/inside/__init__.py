"""What is loaded into the user's training process: standard library only, works from Python 3.8 on, never raises.

`on_path/` is put first on the PYTHONPATH of a recorded command. Python then runs its `sitecustomize.py` by itself,
which waits for ultralytics and adds our callbacks. The recorder knows of it where that folder lies and how the name of
the run folder travels; what comes back are the lines in the run folder's `inside/`.
"""

from pathlib import Path

ON_PATH = Path(__file__).resolve().parent / "on_path"
RUN_FOLDER_VARIABLE = "GPU_REPORT_RUN_FOLDER"
PROFILE_VARIABLE = "GPU_REPORT_PROFILE"  # which steps to profile, in JSON
STACKS_VARIABLE = "GPU_REPORT_STACKS"  # "0": no process notes where it stands
