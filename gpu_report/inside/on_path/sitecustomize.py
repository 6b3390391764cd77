"""Python imports this by itself at its start; it lets our hook wait for ultralytics, then runs the user's own one."""

import os
import sys


def _install_hook() -> None:
    if os.environ.get("GPU_REPORT_RUN_FOLDER"):
        try:
            from gpu_report_inside import hook  # noqa: PLC0415 - only recorded commands need it

            hook.install()
        except Exception:  # noqa: BLE001, S110 - a training without our callbacks is better than none
            pass


def _run_shadowed() -> None:
    """Run the sitecustomize that this one hides, in its own name; what it raises is its own affair."""
    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - pathlib costs 3 ms at each start
    others = [entry for entry in sys.path if os.path.abspath(entry) != here]  # noqa: PTH100 - likewise
    for finder in sys.meta_path:
        find_spec = getattr(finder, "find_spec", None)
        spec = find_spec("sitecustomize", others) if find_spec is not None else None
        if spec is not None and spec.loader is not None and spec.origin != __file__:
            from importlib.util import module_from_spec  # noqa: PLC0415 - only where there is one to run

            module = sys.modules["sitecustomize"] = module_from_spec(spec)
            spec.loader.exec_module(module)
            return


_install_hook()
_run_shadowed()
