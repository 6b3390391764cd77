"""Files that each process of a training writes for itself: `inside/*.jsonl` and `stacks/*.jsonl`."""

from pathlib import Path

from gpu_report.run_folder import read_lines


def process_files(folder: Path, most: int) -> list[Path]:
    """Return the files of at most so many processes, by name; none where the folder cannot be read."""
    try:
        return sorted(folder.glob("*.jsonl"))[:most]
    except OSError:
        return []


def read_head(path: Path, most: int) -> tuple[bytes, str]:
    """Return a file as far as `most` bytes go, in whole lines, and what is left out of it, empty if nothing is."""
    try:
        if not path.is_file():
            return b"", "is no file and is left out"
        data, is_cut = read_lines(path, most)
    except OSError as error:
        return b"", f"could not be read ({error.strerror})"
    cut = f"only the first {len(data)} bytes are read: the file, or all of them, are too large" if is_cut else ""
    return data, cut
