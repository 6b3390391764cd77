"""What the report makes of recorded faults: found, cause and line right, as a Markdown table.

    python benchmarks/line_faults/score.py OUT [NAME...]        (OUT as campaign.sh left it)

A fault is found by a warning or critical finding. The finding that is judged is the one whose cause is right, else the
longest; a line is right where it is one of its first two.
"""

import json
import sys
from pathlib import Path

from gpu_report.analyse import analyse
from gpu_report.load import load_run
from gpu_report.model import Finding


def is_right(finding: Finding, line: list | None) -> bool:
    return line is not None and any(at.file.endswith(line[0]) and at.line == line[1] for at in finding.where[:2])


def row(folder: Path, name: str) -> str:
    truth = json.loads((folder / f"{name}.json").read_text())
    findings = [f for f in analyse(load_run(folder / name)).findings if f.severity != "info" and not f.expected]
    of_training = [f for f in findings if f.cause]
    best = max(of_training, key=lambda f: (f.cause.name == truth["cause"], f.took_s), default=None)
    if best is None:
        return f"| {name} | {truth['cause'] or '-'} | - | - | - |"
    where = ", ".join(f"{at.function} ({Path(at.file).name}:{at.line}) {at.share:.0%}" for at in best.where[:2])
    right = "-" if truth["line"] is None else "yes" if is_right(best, truth["line"]) else "no"
    said = best.cause.name if best.cause.name == truth["cause"] else f"**{best.cause.name}**"
    return f"| {name} | {truth['cause'] or '-'} | {said} | {where} | {right} |"


def main() -> None:
    folder, names = Path(sys.argv[1]), sys.argv[2:]
    print("| fault | cause | said | where | line right |\n|---|---|---|---|---|")
    for name in names or sorted(path.stem for path in folder.glob("*.json")):
        print(row(folder, name))


if __name__ == "__main__":
    main()
