"""The extra [fleet]: what is missing is said in a line, and nothing of it is imported unasked."""

from importlib.util import find_spec

from gpu_report.errors import UsageError
from gpu_report.extras import command_for


def need(module: str) -> None:
    """Raise UsageError where a module of the extra is missing."""
    if find_spec(module) is None:
        raise UsageError(f"gpu-report fleet needs {module} in this Python: {command_for('fleet')}")
