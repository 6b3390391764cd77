"""Options that belong together: declared once, they reach a command as one argument."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import click


def as_one(
    name: str, make: Callable[..., object], options: Sequence[Callable[[Any], Any]]
) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Return what adds options to a command, which gets what `make` makes of their values as its argument `name`."""

    def add(command: Callable[..., object]) -> Callable[..., object]:
        @wraps(command)
        def called(**given: Any) -> object:
            values = {each: given.pop(each) for each in names}
            return command(**given, **{name: make(**values)})

        for option in reversed(options):
            option(called)
        added: Sequence[click.Parameter] = called.__click_params__[-len(options) :]  # type: ignore[attr-defined] # click
        names = [param.name for param in added]
        return called

    return add
