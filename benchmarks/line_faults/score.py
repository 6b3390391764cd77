"""What the report makes of recorded faults: found, cause and line right, as a Markdown table.

    python benchmarks/line_faults/score.py OUT [NAME...]        (OUT as campaign.sh left it)

A fault is found by a warning or critical finding. The finding that is judged is the one whose cause is right, else the
longest; a line is right where it is one of its first two.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
from support.line_faults import names_line, said


def row(folder: Path, name: str) -> str:
    truth, best = said(folder, name)
    if best is None:
        return f"| {name} | {truth['cause'] or '-'} | - | - | - |"
    where = ", ".join(f"{at.function} ({Path(at.file).name}:{at.line}) {at.share:.0%}" for at in best.where[:2])
    right = "-" if truth["line"] is None else "yes" if names_line(best, *truth["line"]) else "no"
    cause = best.cause.name if best.cause.name == truth["cause"] else f"**{best.cause.name}**"
    return f"| {name} | {truth['cause'] or '-'} | {cause} | {where} | {right} |"


def main() -> None:
    folder, names = Path(sys.argv[1]), sys.argv[2:]
    print("| fault | cause | said | where | line right |\n|---|---|---|---|---|")
    recorded = (path.stem for path in folder.glob("*.json") if path.stat().st_size)
    for name in names or sorted(recorded):
        print(row(folder, name))


if __name__ == "__main__":
    main()
