"""Waits until ultralytics' default callbacks are imported, and adds ours: no import is needed before that moment.

Likewise for torch: with it, where the process stands is noted, also of a training that knows no ultralytics.
"""

from __future__ import annotations

import sys

from . import DEFAULT_CALLBACKS

TYPE_CHECKING = False  # typing's own would cost each start of Python 4 ms
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

TORCH = "torch.utils.data._utils.worker"  # imported with torch, and it says which worker of a loader a process is


def install() -> None:
    """Watch for the targets' import; where one has been imported already, do what it was waited for at once."""
    for name in (DEFAULT_CALLBACKS, TORCH):
        if name in sys.modules:
            imported(sys.modules[name])
    if DEFAULT_CALLBACKS not in sys.modules and not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder({DEFAULT_CALLBACKS, TORCH} - set(sys.modules)))


def imported(module: ModuleType) -> None:
    """Do what a target was waited for; never raises."""
    try:
        if module.__name__ == DEFAULT_CALLBACKS:
            _add_callbacks(module)
        from .stacks import start  # noqa: PLC0415 - most Python processes never get here

        start()
    except Exception as error:  # noqa: BLE001 - whatever ultralytics has become, the training must go on
        from .lines import report  # noqa: PLC0415 - likewise

        report("add_callbacks", error)


def _add_callbacks(base: ModuleType) -> None:
    """Append our functions to `default_callbacks`, in place and once."""
    from .callbacks import CALLBACKS  # noqa: PLC0415 - likewise

    for event, function in CALLBACKS.items():
        registered = base.default_callbacks.setdefault(event, [])
        if function not in registered:
            registered.append(function)


class Finder:
    """Finds nothing itself: it lets the others find a target, and has its loader call us when it is done.

    It stays until ultralytics has been imported: to look for a module is not yet to import it.
    """

    def __init__(self, targets: set[str]) -> None:
        self.targets = targets
        self._asking = False  # a finder that asks all finders in its turn must not come back to us for ever

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return a target's real spec with our loader around its own; None for every other module."""
        if name not in self.targets or self._asking:
            return None
        self._asking = True
        try:
            return self._ask(name, path, target)
        finally:
            self._asking = False

    def _ask(self, name: str, path: Any, target: Any) -> ModuleSpec | None:
        for finder in sys.meta_path:
            find_spec = getattr(finder, "find_spec", None) if finder is not self else None
            spec: ModuleSpec | None = find_spec(name, path, target) if find_spec is not None else None
            if spec is not None:
                if spec.loader is not None and hasattr(spec.loader, "exec_module"):
                    spec.loader = CallbackLoader(spec.loader)  # type: ignore[assignment]  # it need not be an abc.Loader
                return spec
        return None


class CallbackLoader:
    """Loads as the real loader does, takes itself out of the way, and adds the callbacks."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        """Return what else the real loader has, for those who only look the module up."""
        if name == "_real":
            raise AttributeError(name)
        return getattr(self._real, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Return what the real loader makes."""
        module: ModuleType | None = self._real.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Run the module; what it raises is its own affair."""
        if module.__spec__ is not None:
            module.__spec__.loader = self._real
        module.__loader__ = self._real
        self._real.exec_module(module)
        for finder in [each for each in sys.meta_path if isinstance(each, Finder)]:
            finder.targets.discard(module.__name__)
            if DEFAULT_CALLBACKS not in finder.targets:  # then there is nothing more to do at the other
                sys.meta_path.remove(finder)
        imported(module)
