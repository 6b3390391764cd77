"""How to install what not every install has: the package is on no index, so by its name pip finds another."""


def command_for(extra: str) -> str:
    """Return the command that installs an extra, with where it works."""
    return f"`pip install '.[{extra}]'` in a checkout of gpu-report"


AGAIN = "install it again: `pip install --force-reinstall .` in a checkout of gpu-report"  # where a file is missing
