"""How far the phases seen from outside agree with what YOLO's callbacks said.

    python benchmarks/phases.py [RUN ...] [--ends of epochs]

RUN is a run folder whose labels.json has the moments of callbacks and of the first work on a GPU, or one recorded from
inside; left out, all of sample_runs/ that are either. Prints Markdown: what docs/phases.md holds. With --ends of epochs
each epoch's lengths are listed, too.
"""

import argparse
import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path

from gpu_report.analyse import analyse
from gpu_report.load import load_run
from gpu_report.model import Phase

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
from support.agreement import Agreement, compare, labelled, worst  # noqa: E402 - the path is set above
from support.labels import read_labels  # noqa: E402

NAMES = ("startup", "train", "validation", "checkpoint", "final evaluation")


def views(folder: Path) -> tuple[list[Phase], Sequence[Phase]] | None:
    """Return the truth and the outside view of a run, None where there is no truth."""
    run = load_run(folder)
    outside = analyse(dataclasses.replace(run, inside=())).phases
    labels = read_labels(folder) if (folder / "labels.json").exists() else None
    if labels is not None and labels.first_work_t_s is not None:
        return labelled(labels), outside
    phases = [p for inside in run.inside if inside.rank == 0 for p in inside.phases]
    return (phases, outside) if phases else None


def table(found: dict[str, Agreement]) -> str:
    """Return the table of agreement, one row a run."""
    head = "| run | seconds | right | " + " | ".join(NAMES) + " | epoch's row | training resumes | training ends |"
    rows = [head, "|---|" + "---:|" * (len(NAMES) + 5)]
    for name, one in found.items():
        of_each = (one.right_pct_of(phase) for phase in NAMES)
        cells = [f"{one.seconds:.1f}", f"**{one.right_pct:.1f} %**"]
        cells += ["-" if pct is None else f"{pct:.0f} %" for pct in of_each]
        cells += [error(worst(errors)) for errors in (one.row_ends, one.epoch_ends, one.train_ends)]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(rows)


def confusion(one: Agreement) -> str:
    """Return seconds by what was true (rows) and what was claimed (columns)."""
    columns = sorted({claimed for _, claimed in one.confusion}, key=[*NAMES, "idle", "another epoch", "unknown"].index)
    rows = ["| true \\ seen | " + " | ".join(columns) + " |", "|---|" + "---:|" * len(columns)]
    for true in (name for name in NAMES if any(t == name for t, _ in one.confusion)):
        seconds = (one.confusion.get((true, claimed), 0.0) for claimed in columns)
        rows.append(f"| {true} | " + " | ".join(f"{s:.1f}" for s in seconds) + " |")
    return "\n".join(rows)


def error(seconds: float | None) -> str:
    """Return an error with its sign, to the millisecond where it is that small."""
    if seconds is None:
        return "-"
    return f"{1000 * seconds:+.0f} ms" if abs(seconds) < 0.1 else f"{seconds:+.1f} s"


def lengths(truth: Sequence[Phase], seen: Sequence[Phase]) -> str:
    """Return each epoch's phases: true length, and the length that was seen."""
    of = {(p.epoch, p.name): p.end_t_s - p.start_t_s for p in seen}
    return "\n".join(
        f"    {p.epoch or '-':>5} {p.name:16} {p.end_t_s - p.start_t_s:7.2f} {of.get((p.epoch, p.name), 0.0):7.2f}"
        for p in truth
    )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="*", type=Path)
    parser.add_argument("--boundaries", action="store_true")
    options = parser.parse_args()
    folders = options.runs or sorted(path for path in (ROOT / "sample_runs").iterdir() if (path / "yolo").is_dir())
    told = {path.name: both for path in folders if (both := views(path)) is not None}
    found = {name: compare(*both) for name, both in told.items()}
    print(table(found))
    for name, one in found.items():
        print(f"\n`{name}`, in seconds:\n\n{confusion(one)}")
        if options.boundaries:
            print(lengths(*told[name]))


if __name__ == "__main__":
    main()
