"""The section of findings: which of them stand in full, with charts of what each is about, and which as rows."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from gpu_report.model import Analysis, Finding
from gpu_report.render.page.sections import findings, static_charts
from gpu_report.render.page.views.findings import FindingsView, FindingView
from gpu_report.render.run_clock import WallClock
from gpu_report.render.samples.quantity_series import QuantitySeries

OPEN_FINDINGS = 5  # the worst stand open, the others are folded: what follows them is to be found
FINDINGS_IN_FULL = 100  # the worst; of more, each is a row of a table
FINDINGS_AT_THE_TOP = 3
FILTERED_FROM = 5  # findings; fewer are seen at a glance, and a filter would only stand over them
EXPECTED_IN_FULL = 20  # the first of the expected ones have a chart; a long run has thousands that look the same

Tracks = Callable[[str], Mapping[int, QuantitySeries]]  # a quantity of each GPU by its name


def findings_section(analysis: Analysis, tracks: Tracks) -> FindingsView:
    """Return what the section of findings says."""
    unexpected, expected = findings.unexpected_and_expected(analysis.findings)
    views = _views(unexpected, FINDINGS_IN_FULL, analysis, tracks)
    return FindingsView(
        cards=views[:FINDINGS_IN_FULL],
        open_cards=OPEN_FINDINGS,
        at_the_top=views[:FINDINGS_AT_THE_TOP],
        more=views[FINDINGS_IN_FULL:],
        count=f"{len(views):,}",
        is_filtered=len(unexpected) + len(expected) >= FILTERED_FROM,
        expected=_views(expected, EXPECTED_IN_FULL, analysis, tracks),
        none_found=findings.nothing_found(analysis),
    )


def _views(of: tuple[Finding, ...], in_full: int, analysis: Analysis, tracks: Tracks) -> tuple[FindingView, ...]:
    """Return the views of findings, the first `in_full` with the charts of what each is about."""
    clock, path = WallClock(analysis.run.start_wall_s), static_charts.paths()
    numbers = findings.finding_numbers(analysis)
    views = [findings.finding_view(finding, clock, analysis, numbers.get(finding.id)) for finding in of]
    charts = [
        None
        if findings.is_brief(f) or f.rule in static_charts.WITHOUT_MOMENT
        else static_charts.surroundings(f, analysis, tracks(static_charts.subject(f)), clock, path)
        for f in of[:in_full]
    ]
    drawn = [replace(view, chart=chart) for view, chart in zip(views, static_charts.shared(charts), strict=False)]
    return (*drawn, *views[in_full:])
