"""What a command writes to stderr: an error is one line, and the commands in it are lines of their own."""


def one_line(stderr: str) -> str:
    """Return the only line of stderr, joined with its commands; a traceback is never one line."""
    line, *commands = stderr.strip().splitlines()
    assert line.startswith("gpu-report: ")
    assert all(each.startswith("    ") for each in commands)
    return " ".join([line, *(each.strip() for each in commands)])
