"""Whose recording it is: the user and the project, by which a fleet of runs is reported."""

import os
import pwd

from gpu_report.without_secrets import safe_text

# In this order: what somebody set for it, what Slurm says of its job, and of the user what the machine does. A recorder
# in a prolog is root's, and its job another user's.
USER_VARIABLES = ("GPU_REPORT_USER", "SLURM_JOB_USER")
PROJECT_VARIABLES = ("GPU_REPORT_PROJECT", "SLURM_JOB_ACCOUNT")
LONGEST_NAME = 200  # characters: a name of Linux has 32, a label of Kubernetes 63


def user() -> str | None:
    """Return who records: as a variable or else the machine's list of users has it, None for an id without a name."""
    return _of_variables(USER_VARIABLES) or _of_machine()


def project() -> str | None:
    """Return the project that it is for, None where no variable says it."""
    return _of_variables(PROJECT_VARIABLES)


def _of_variables(names: tuple[str, ...]) -> str | None:
    values = (os.environ.get(name, "").strip() for name in names)
    return next((safe_text(value[:LONGEST_NAME]) for value in values if value), None)


def _of_machine() -> str | None:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except (KeyError, OSError):  # in a container ids often have no name
        return None
