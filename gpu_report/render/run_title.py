"""What a run is called: by its folder, or by its training where the folder's name says nothing."""

import re
from pathlib import PurePath

from gpu_report.model import Run

# Names that any run may have: of folders of logs, of YOLO's own (`runs/detect/train2`, `best.pt`), and the recorder's
# (a time).
_ANY = re.compile(
    r"best|last|(gpu-?)?(runs?|logs?|recordings?|reports?|outputs?|out|results?|tmp|exp|weights)[-_]?\d*"
    r"|(train|training|val|predict|detect|segment|classify|pose|obb)[-_]?\d*|\d{8}-\d{6}(-\d+)?",
    re.IGNORECASE,
)


def run_title(run: Run) -> str:
    """Return a run's folder name; where that says nothing, its training's name, or its model and data."""
    folder = _last(run.path)
    if not _says_nothing(folder) or len(run.yolo_runs) != 1:
        return folder or run.path
    (yolo,) = run.yolo_runs
    named = [_last(str(yolo.args.get(name) or "")) for name in ("name", "project")]
    model, data = (PurePath(_last(str(yolo.args.get(name) or ""))).stem for name in ("model", "data"))
    what = f"{model} on {data}" if model and not _is_any_data(data) else "" if _says_nothing(model) else model
    return next((name for name in named if not _says_nothing(name)), "") or what or folder or run.path


def _last(path: str) -> str:
    return PurePath(path.replace("\\", "/")).name


def _says_nothing(name: str) -> bool:
    return not name or _ANY.fullmatch(name) is not None


def _is_any_data(stem: str) -> bool:
    return stem in {"", "data", "dataset"}
