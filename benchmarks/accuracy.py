"""How right the analysis is on the labelled runs of sample_runs/: the tables of docs/accuracy.md.

    python benchmarks/accuracy.py [--write]

Prints Markdown and writes nothing; with --write the part of docs/accuracy.md between its marker lines is replaced.
What is counted, and how, stands there. The matching itself is tests/support/matching.py.
"""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
from support.accuracy import judge_all, page, written_into  # noqa: E402 - the path is set above
from support.other_gpus import table  # noqa: E402

DOCUMENT = ROOT / "docs" / "accuracy.md"


def main() -> None:
    """Print the tables, or write them into the document."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write them into docs/accuracy.md")
    options = parser.parse_args()
    generated = page(judge_all(), table())
    if options.write:
        text = written_into(DOCUMENT.read_text(encoding="utf-8"), generated)
        DOCUMENT.write_text(text, encoding="utf-8")
        print(f"wrote {DOCUMENT.relative_to(ROOT)}")
    else:
        print(generated)


if __name__ == "__main__":
    main()
