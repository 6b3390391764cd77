"""The errors a person may see: one line saying what happened and what to do, and an exit code."""


class GpuReportError(Exception):
    """Something the user can act on; the command line prints it as one line and exits with `exit_code`."""

    exit_code = 1


class UsageError(GpuReportError):
    """The command was asked for something that cannot be: exit 2."""

    exit_code = 2


class NotComparableError(GpuReportError):
    """There is nothing to compare with, or too little data to say: exit 3."""

    exit_code = 3


class InputError(GpuReportError):
    """The input could not be read, or holds not one valid row: exit 4."""

    exit_code = 4


class NothingToRecordError(GpuReportError):
    """No NVML, no GPU, and no command to run: exit 5."""

    exit_code = 5
