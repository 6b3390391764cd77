"""Analysis -> ReportView: everything the page says, put into words."""

from pathlib import PurePath

from gpu_report.model import Analysis, Finding
from gpu_report.render import compose_findings, compose_overview, compose_recording, compose_tables
from gpu_report.render.moments import Clock
from gpu_report.render.view import GpuView, ReportView
from gpu_report.render.words import clean, counted, tied


def compose(analysis: Analysis) -> ReportView:
    """Return what the page says about a run."""
    clock = Clock(analysis.run.start_wall_s)
    unexpected, expected = compose_findings.ranked(analysis.findings)
    recording = analysis.run.recording
    return ReportView(
        title=clean(PurePath(analysis.run.path).name or analysis.run.path),
        verdict=tied(analysis.verdict),
        mood=_mood(unexpected) if analysis.gpus else "unknown",
        subtitle=compose_overview.subtitle(analysis),
        start=clock.moment(0.0),
        end=clock.moment(analysis.run.duration_s),
        tiles=compose_overview.tiles(analysis),
        gpus=tuple(
            GpuView(s.gpu.index, s.gpu.name or "GPU", s.gpu.uuid or "", counted(s.samples, "sample"))
            for s in analysis.gpus
        ),
        gpu_overview=compose_overview.gpu_table(analysis),
        legend=compose_overview.legend(analysis),
        ledger=compose_overview.ledger(analysis),
        ledger_note=compose_overview.ledger_note(analysis),
        findings=tuple(compose_findings.finding_view(f, clock, analysis) for f in unexpected),
        expected=tuple(compose_findings.finding_view(f, clock, analysis) for f in expected),
        no_findings=compose_findings.nothing_found(analysis),
        epoch_columns=compose_tables.epoch_columns(analysis),
        epochs=compose_tables.epochs(analysis, clock),
        statistics=compose_tables.statistics(analysis),
        processes=compose_tables.processes(analysis.run.processes, clock),
        kernel=compose_recording.kernel(analysis.run.kernel, clock),
        yolo=compose_recording.yolo(analysis.run.yolo_runs),
        recording=compose_recording.recording(analysis, clock),
        has_samples=not analysis.run.samples.empty,
        tool=f"gpu-report {recording.tool_version}" if recording.tool_version else "gpu-report",
    )


def _mood(unexpected: tuple[Finding, ...]) -> str:
    severities = {finding.severity for finding in unexpected}
    return next((s for s in ("critical", "warning") if s in severities), "good")
