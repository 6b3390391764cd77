"""A benchmark as one HTML page that needs nothing else: same look, policy and escaping as the report."""

from gpu_report import __version__
from gpu_report.model import BenchResult
from gpu_report.render.bench.chart import chart
from gpu_report.render.bench.rows import (
    FULL_SPEED_HEAD,
    HEAD,
    INTERVALS_HEAD,
    OUTPUTS_HEAD,
    PARTS_HEAD,
    START_HEAD,
    failed_rows,
    full_speed_rows,
    headline,
    notes,
    output_rows,
    part_rows,
    second_sentence,
    start_rows,
    wide_rows,
)
from gpu_report.render.bench.view import BenchView, TableSection
from gpu_report.render.formatting import with_amounts_unbroken
from gpu_report.render.page.blank.small_page import small_page
from gpu_report.render.page.views.tables import TextTable

TEMPLATE = "bench.html.j2"
STYLE = "bench.css"
TEXTS = frozenset({"Variant", "Compared with"})  # columns that are no numbers
SECTIONS = (
    (
        "variants",
        "Throughput and latency",
        "All calls without warm-up, ranked by images/s at full speed.",
        (*HEAD, *INTERVALS_HEAD),
        wide_rows,
    ),
    (
        "full-speed",
        "At full speed",
        "The fastest tenth of turns. It ranks the variants, because a busy host slows the other turns.",
        FULL_SPEED_HEAD,
        full_speed_rows,
    ),
    ("parts", "Parts of a call", "Medians, and the energy of the GPU's board.", PARTS_HEAD, part_rows),
    (
        "outputs",
        "Same outputs?",
        "Boxes on the same images: same class, IoU of 0.9 or more.",
        OUTPUTS_HEAD,
        output_rows,
    ),
    ("start", "Until it serves", "Loading, and calls at the beginning that were slower.", START_HEAD, start_rows),
)


def render_bench_html(result: BenchResult) -> str:
    """Return a benchmark as one HTML page that works offline and loads nothing."""
    return small_page(TEMPLATE, STYLE, compose_bench(result))


def compose_bench(result: BenchResult) -> BenchView:
    """Return what the page says about a benchmark."""
    models = ", ".join(dict.fromkeys(row.variant.short for row in result.rows))
    tables = ((id_, title, about, head, rows(result)) for id_, title, about, head, rows in SECTIONS)
    return BenchView(
        title=f"Benchmark of {models}",
        status=_status(result),
        verdict=with_amounts_unbroken(headline(result)),
        verdict_rest=with_amounts_unbroken(second_sentence(result)),
        chart=chart(result),
        sections=tuple(
            TableSection(id_, title, about, TextTable(head, tuple(name not in TEXTS for name in head), tuple(rows)))
            for id_, title, about, head, rows in tables
            if rows
        ),
        failed=tuple(failed_rows(result)),
        notes=notes(result),
        tool=f"gpu-report {__version__}",
    )


def _status(result: BenchResult) -> str:
    if not any(row.measured for row in result.rows):
        return "critical"
    return "good" if result.sure and result.run.finished else "warning"
