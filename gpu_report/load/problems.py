"""What could not be read, counted: one row has, several rows have."""


def noted(file: str, count: int, one: str, several: str) -> str:
    """Return in words how many of something a file has: `one` says it of one, `several` of more."""
    return f"{file}: {count:,} {one if count == 1 else several}"


def lines_left_out(file: str, count: int) -> str:
    """Return in words how many lines of a file could not be read."""
    return noted(file, count, "line could not be read and is left out", "lines could not be read and are left out")
