"""Analysis -> ReportView: everything the page says, put into words."""

from dataclasses import replace

from gpu_report.model import HEALTHY_PCT, Analysis, Finding, Run
from gpu_report.render.formatting import clean, duration
from gpu_report.render.page import (
    code_time,
    epochs,
    findings,
    gpu_tables,
    inference,
    overview,
    profiler,
    recording,
    speedup_limits,
    static_charts,
    yolo_run,
)
from gpu_report.render.page.validation import validation_table
from gpu_report.render.page.view import FindingView, ReportView
from gpu_report.render.run_clock import WallClock
from gpu_report.render.run_title import run_title
from gpu_report.render.samples.quantity_series import UTILISATION, QuantitySeries, series_of_each_gpu

OPEN_FINDINGS = 5  # the worst stand open, the others are folded: what follows them is to be found
FINDINGS_IN_FULL = 100  # the worst; of more, each is a row of a table
FINDINGS_AT_THE_TOP = 3
FILTERED_FROM = 5  # findings; fewer are seen at a glance, and a filter would only stand over them
EXPECTED_IN_FULL = 20  # the first of the expected ones have a chart; a long run has thousands that look the same


def compose(analysis: Analysis) -> ReportView:
    """Return what the page says about a run."""
    clock = WallClock(analysis.run.start_wall_s)
    unexpected, expected = findings.parted(analysis.findings)
    tracks = _Tracks(analysis.run)
    views = _finding_views(unexpected, FINDINGS_IN_FULL, analysis, tracks)
    said = overview.verdict(analysis, [each.id for each in unexpected[:FINDINGS_AT_THE_TOP]])
    return ReportView(
        title=clean(run_title(analysis.run)),
        verdict=said,
        mood=_mood(unexpected, analysis),
        advice=findings.first_advice(unexpected, analysis),
        advice_title=findings.advice_title(analysis),
        subtitle=(*overview.subtitle(analysis), *yolo_run.set_up(analysis)),
        duration=duration(analysis.run.duration_s),
        start=clock.moment(0.0),
        end=clock.moment(analysis.run.duration_s),
        tiles=overview.tiles(analysis),
        more_tiles=(more := overview.more_tiles(analysis)),
        more_tiles_title=overview.more_title(more),
        gpus=tuple(gpu_tables.gpu(s, analysis.run, tracks[UTILISATION].get(s.gpu.index)) for s in analysis.gpus),
        gpu_overview=overview.gpu_table(analysis),
        legend=overview.legend(analysis),
        ledger=overview.ledger(analysis),
        ledger_note=overview.ledger_note(analysis),
        speedup_limits=speedup_limits.limits(analysis),
        speedup_note=speedup_limits.note(analysis),
        findings=views[:FINDINGS_IN_FULL],
        open_findings=OPEN_FINDINGS,
        is_filtered=len(unexpected) + len(expected) >= FILTERED_FROM,
        at_the_top=views[:FINDINGS_AT_THE_TOP],
        more_findings=views[FINDINGS_IN_FULL:],
        findings_count=f"{len(views):,}",
        inference=inference.inference(analysis, clock),
        code_time=code_time.code_time(analysis),
        profiler=profiler.windows(analysis),
        profiler_failures=profiler.failures(analysis),
        expected=_finding_views(expected, EXPECTED_IN_FULL, analysis, tracks),
        no_findings=findings.nothing_found(analysis),
        phases_note=yolo_run.phases_note(analysis),
        epoch_columns=epochs.columns(analysis),
        epoch_util_column=epochs.utilisation_column(analysis),
        epochs=epochs.rows(analysis, clock),
        epoch_chart=epochs.chart(analysis),
        epochs_outliers=epochs.outliers_note(analysis),
        epochs_unknown=" ".join(filter(None, (epochs.known_note(analysis), epochs.rows_note(analysis)))),
        validation=validation_table(analysis),
        statistics=gpu_tables.statistics(analysis),
        processes=gpu_tables.processes(analysis.run.processes, clock),
        kernel=recording.kernel(analysis.run.kernel, clock),
        yolo=yolo_run.yolo(analysis),
        recording=recording.recording(analysis, clock),
        has_samples=not (analysis.run.samples.empty and analysis.run.host.empty),
        has_heat=overview.has_heat(analysis.run),
        has_host=not analysis.run.host.empty,
        tool=f"gpu-report {analysis.run.recording.tool_version or ''}".rstrip(),
    )


class _Tracks(dict[str, dict[int, QuantitySeries]]):
    """A quantity of each GPU by its name, worked out when it is first asked for."""

    def __init__(self, run: Run) -> None:
        super().__init__()
        self._run = run

    def __missing__(self, name: str) -> dict[int, QuantitySeries]:
        self[name] = series_of_each_gpu(self._run, name)
        return self[name]


def _finding_views(
    of: tuple[Finding, ...], in_full: int, analysis: Analysis, tracks: _Tracks
) -> tuple[FindingView, ...]:
    """Return the views of findings, the first `in_full` with the charts of what each is about."""
    clock, path = WallClock(analysis.run.start_wall_s), static_charts.paths()
    numbers = findings.finding_numbers(analysis)
    views = [findings.finding_view(finding, clock, analysis, numbers.get(finding.id)) for finding in of]
    charts = [
        None
        if findings.is_brief(f) or f.rule in static_charts.TIMELESS
        else static_charts.surroundings(f, analysis, tracks[static_charts.subject(f)], clock, path)
        for f in of[:in_full]
    ]
    drawn = [replace(view, chart=chart) for view, chart in zip(views, static_charts.shared(charts), strict=False)]
    return (*drawn, *views[in_full:])


def _mood(unexpected: tuple[Finding, ...], analysis: Analysis) -> str:
    """Return how the verdict is coloured: by the worst finding; without a bad one good, where the GPUs had work.

    Where nothing trained there is nothing that could be won. Calls are good where nothing would make them faster: a
    service that waits for most of the time is none the worse for it.
    """
    severities = {finding.severity for finding in unexpected}
    worst = next((s for s in ("critical", "warning") if s in severities), "")
    worked = analysis.is_validation or _trained(analysis)
    if worst or not (analysis.gpus or not analysis.is_training) or not worked:
        return worst or "unknown"
    if analysis.is_validation:
        return "room" if any(sentence.advice for sentence in analysis.verdict.sentences) else "good"
    if analysis.is_inference:
        return "room" if any(finding.advice for finding in unexpected) else "good"
    return "good" if analysis.verdict.is_healthy or 100 * _worked(analysis) >= HEALTHY_PCT else "room"


def _trained(analysis: Analysis) -> bool:
    """Say whether anything trained or was called: an epoch or a call is known of, or the GPUs had any work."""
    return bool(analysis.epochs or analysis.served) or any(
        row.name == "work" and row.gpu_seconds > 0 for row in analysis.ledger
    )


def _worked(analysis: Analysis) -> float:
    """Return the share of the ledger's training time in which the GPUs worked; 0 where there was none."""
    work = sum(row.gpu_seconds for row in analysis.ledger if row.name == "work")
    lost = sum(
        row.gpu_seconds for row in analysis.ledger if not row.expected and row.name not in {"work", "unmeasured"}
    )
    return work / (work + lost) if work > 0 else 0.0
