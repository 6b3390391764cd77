"""What `record` asks when it is done: the first sentence of a run's verdict, on stdout; nothing of a long recording."""

import sys
from pathlib import Path

from gpu_report.terminal import plain

LARGEST_BYTES = 20_000_000  # some ten hours of one GPU at one reading a second; more takes seconds to analyse


def main(folder: Path) -> int:
    """Print the sentence; return the exit code."""
    if sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) > LARGEST_BYTES:
        return 1
    from gpu_report.analyse import analyse
    from gpu_report.load import load_run

    sentences = analyse(load_run(folder), with_code_time=False).verdict.sentences
    sys.stdout.write(plain(sentences[0].text) if sentences else "")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
