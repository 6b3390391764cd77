"""What could not be read, counted: one row has, several rows have; and what was too much to be read."""


def noted(file: str, count: int, one: str, several: str) -> str:
    """Return in words how many of something a file has: `one` says it of one, `several` of more."""
    return f"{file}: {count:,} {one if count == 1 else several}"


def lines_left_out(file: str, count: int) -> str:
    """Return in words how many lines of a file could not be read."""
    return noted(file, count, "line could not be read and is left out", "lines could not be read and are left out")


def too_many(what: str, most: int) -> str:
    """Return that there is more of something than a recording of this length has; `what` says where and of what."""
    return f"{what}: those after the first {most:,} are left out"


def too_large(file: str, read_bytes: int) -> str:
    """Return that of a file only the beginning is read."""
    return (
        f"{file} is larger than that of a recording of this length can be: only its first {read_bytes:,} bytes are read"
    )
