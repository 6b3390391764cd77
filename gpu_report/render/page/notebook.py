"""A run in a notebook's output: the verdict, where the time went, utilisation and epochs, in tables and one image.

It has no script, and styles only where losing them costs nothing: GitHub drops both, and an untrusted JupyterLab some.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from jinja2 import Template

from gpu_report.model import Analysis
from gpu_report.render.formatting import clean, recorded_length
from gpu_report.render.page.blank import skeleton
from gpu_report.render.page.sections import epochs, findings, overview
from gpu_report.render.page.utilisation_picture import Picture, picture, sparks
from gpu_report.render.page.views.epochs import EpochRowView
from gpu_report.render.page.views.findings import AdviceView, FindingView
from gpu_report.render.page.views.report import VerdictView
from gpu_report.render.page.views.tables import TextTable
from gpu_report.render.run_clock import WallClock
from gpu_report.render.run_title import run_title
from gpu_report.template_files import find_templates

TEMPLATE = "notebook.html.j2"
BAR = 20  # characters of a bar that is all of the time
EIGHTHS = " ▏▎▍▌▋▊▉█"
FINDINGS_SHOWN = 5
EPOCHS_SHOWN = 20
FIRST_EPOCHS, LAST_EPOCHS = 3, 8  # of more epochs; between them stand those that stand out
# The columns of the report's table of epochs that a notebook has room for.
EPOCH_COLUMNS = ("Length", "Train", "Validation", "Images/s", "Data wait", "GPU utilisation", "Loss")
GPU_COLUMNS = ("GPU", "Model", "Mean utilisation", "Memory, peak", "Mean power", "Energy")


@dataclass(frozen=True)
class NotebookView:
    """All that a notebook's output says; `link` leads to the full report, `instead` is its path or its code."""

    title: str
    subtitle: tuple[str, ...]
    verdict: VerdictView
    advice: tuple[AdviceView, ...]
    advice_title: str
    findings: tuple[FindingView, ...]
    findings_left: int
    ledger: TextTable
    ledger_note: str
    picture: Picture | None
    gpus: TextTable
    epochs: TextTable
    epochs_note: str
    link: str
    instead: str


def render_notebook(analysis: Analysis, link: str = "", instead: str = "") -> str:
    """Return a run as HTML for a notebook's output, at most 300 kB whatever the run's length.

    `link` is the address of the full report; without one, `instead` is its path or the code that writes it.
    """
    return _template().render(view=compose(analysis, link, instead))


def compose(analysis: Analysis, link: str = "", instead: str = "") -> NotebookView:
    """Return what a notebook's output says about a run."""
    clock, run = WallClock(analysis.run.start_wall_s), analysis.run
    unexpected, _ = findings.unexpected_and_expected(analysis.findings)
    shown = tuple(findings.finding_view(each, clock, analysis) for each in unexpected[:FINDINGS_SHOWN])
    return NotebookView(
        title=clean(run_title(run)),
        subtitle=(*overview.subtitle(analysis), clock.moment(0.0).utc, recorded_length(run)),
        verdict=overview.verdict(analysis, [each.id for each in shown]),
        advice=findings.first_advice(unexpected, analysis),
        advice_title=findings.advice_title(analysis),
        findings=shown,
        findings_left=len(unexpected) - len(shown),
        ledger=_ledger(analysis),
        ledger_note=overview.ledger_note(analysis),
        picture=picture(analysis),
        gpus=_gpus(analysis),
        epochs=_epochs(analysis, clock),
        epochs_note=_epochs_note(analysis),
        link=link,
        instead=instead,
    )


@cache
def _template() -> Template:
    return skeleton.environment(find_templates()).get_template(TEMPLATE)


def _ledger(analysis: Analysis) -> TextTable:
    """Return where the GPU time went, each row with a bar of characters: they are there where colours are not."""
    items = overview.ledger(analysis)
    has_price = any(item.money for item in items)
    rows = [
        (item.name, item.share, item.time, *([item.money] if has_price else []), bar(item.width_pct / 100))
        for item in items
    ]
    header = ("", "Share", "GPU time", *(["Cost"] if has_price else []), "")
    return TextTable(header, (False, *[True] * (len(header) - 2), False), tuple(rows))


def bar(fraction: float) -> str:
    """Return a share of 1 as a bar of characters; what is not nothing shows."""
    eighths = round(min(max(fraction, 0.0), 1.0) * BAR * 8)
    whole, rest = divmod(max(eighths, 1) if fraction > 0 else 0, 8)
    return "█" * whole + EIGHTHS[rest].strip()


def _gpus(analysis: Analysis) -> TextTable:
    table, rows = overview.gpu_table(analysis), sparks(analysis)
    places = [table.columns.index(name) for name in GPU_COLUMNS]
    return TextTable(
        (*GPU_COLUMNS, "Over time"),
        (*(table.numeric[place] for place in places), False),
        tuple(
            (*(row[place] for place in places), rows.get(summary.gpu.index, ""))
            for row, summary in zip(table.rows, analysis.gpus, strict=True)
        ),
    )


def _epochs(analysis: Analysis, clock: WallClock) -> TextTable:
    heads = epochs.columns(analysis)
    kept = [name for name in EPOCH_COLUMNS if name in heads]
    places = [1 + heads.index(name) for name in kept]
    rows = _listed(epochs.rows(analysis, clock))
    noted = any(row.outliers for row in rows)
    return TextTable(
        ("Epoch", *kept, *(["Stands out"] if noted else [])),
        (False, *[True] * len(kept), *([False] if noted else [])),
        tuple(
            (row.cells[0], *(row.cells[place] for place in places), *([row.outliers] if noted else [])) for row in rows
        ),
    )


def _listed(rows: Sequence[EpochRowView]) -> Sequence[EpochRowView]:
    """Return all rows, or of many the first, the last, and between them those that stand out."""
    if len(rows) <= EPOCHS_SHOWN:
        return rows
    between = [row for row in rows[FIRST_EPOCHS:-LAST_EPOCHS] if row.outliers]
    return (*rows[:FIRST_EPOCHS], *between[: EPOCHS_SHOWN - FIRST_EPOCHS - LAST_EPOCHS], *rows[-LAST_EPOCHS:])


def _epochs_note(analysis: Analysis) -> str:
    count = len(analysis.epochs)
    if count <= EPOCHS_SHOWN:
        return ""
    return f"The first {FIRST_EPOCHS} and the last {LAST_EPOCHS} of {count:,} epochs, and those that stand out."
