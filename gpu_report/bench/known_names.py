"""Which names of models and data sets ultralytics can resolve without a file here: its own, and links.

YAMLs lie in its package, where it looks for them as well. Of weights only its code knows which it can download: it is
asked in a process of its own, for it imports torch. Nothing is downloaded.
"""

from __future__ import annotations

import glob
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module, util
from pathlib import Path
from typing import Any

ASK_LIMIT_S = 60.0  # torch from a slow disk; after that the benchmark itself says what is missing
YAMLS = (".yaml", ".yml")
LINK = "://"  # of the web, of a cloud, of Ultralytics' platform: to know what is there is a download
_SCALE = re.compile(r"(\d+)([nslmx])(.+)?$")  # yolo26n.yaml is yolo26.yaml, as ultralytics' yaml_model_load has it


def unknown_data(name: str) -> bool:
    """Tell whether a data set is no file here, no link and none that ultralytics has."""
    with_ending = (name,) if Path(name).suffix in YAMLS else (name, *(f"{name}{ending}" for ending in YAMLS))
    return not _is_here(name) and not any(map(_is_in_package, with_ending))


def unknown_models(names: Sequence[str]) -> list[str]:
    """Return the models that are no file here, no link, none that ultralytics has and none that it can download.

    Where it cannot be asked what it can download, all of those may be.
    """
    away = [name for name in names if not _is_here(name) and not _is_in_package(name)]
    no_asset = {name for name in away if len(Path(name).parts) > 1 or Path(name).suffix in YAMLS}
    bare = [name for name in away if name not in no_asset]
    no_asset.update(_no_assets(bare) if bare else ())
    return [name for name in away if name in no_asset]


def _is_here(name: str) -> bool:
    return LINK in name or Path(name).exists()


def _is_in_package(name: str) -> bool:
    """Tell whether ultralytics' package holds a file of that name; of an architecture in several sizes its one file."""
    spec = util.find_spec("ultralytics")
    roots = (spec.submodule_search_locations if spec is not None else None) or []
    is_yaml = Path(name).suffix in YAMLS
    names = {name, _SCALE.sub(r"\1\3", name)} if is_yaml else {name}
    return any(
        glob.glob(os.path.join(root, "**", glob.escape(each)), recursive=True)  # noqa: PTH118, PTH207 - as it does
        for root in roots
        for each in names
    )


def _no_assets(names: Sequence[str]) -> list[str]:
    words = (sys.executable, "-m", __name__, json.dumps(list(names)))
    offline = {**os.environ, "YOLO_OFFLINE": "true"}
    try:
        asked = subprocess.run(words, capture_output=True, text=True, timeout=ASK_LIMIT_S, check=False, env=offline)
        found = json.loads(asked.stdout.splitlines()[-1])
    except (OSError, subprocess.TimeoutExpired, ValueError, IndexError):
        return []
    return [name for name in names if name in found]


def _is_asset(name: str) -> bool:
    """Tell whether ultralytics has weights of that name, or knows where to get them."""
    downloads: Any = import_module("ultralytics.utils.downloads")
    weights = Path(import_module("ultralytics.utils").SETTINGS["weights_dir"])
    own = str(import_module("ultralytics.utils.checks").check_yolov5u_filename(name, verbose=False))
    is_stem = not Path(own).suffix and own in downloads.GITHUB_ASSETS_STEMS
    return is_stem or own in downloads.GITHUB_ASSETS_NAMES or (weights / own).exists()


def main() -> None:
    """Print those of the names on the command line, a JSON list, that are no weights of ultralytics."""
    unknown = [name for name in json.loads(sys.argv[1]) if not _is_asset(name)]
    sys.stdout.write(f"\n{json.dumps(unknown)}\n")


if __name__ == "__main__":
    main()
