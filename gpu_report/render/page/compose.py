"""Analysis -> ReportView: everything the page says, put into words."""

from functools import cache, partial

from gpu_report.model import Analysis, Run
from gpu_report.render.formatting import clean, recorded_length
from gpu_report.render.page.sections import (
    code_time,
    epochs,
    findings,
    gpu_tables,
    inference,
    overview,
    profiler,
    recording,
    speedup_limits,
    yolo_run,
)
from gpu_report.render.page.sections.findings_section import FINDINGS_AT_THE_TOP, findings_section
from gpu_report.render.page.sections.status import status
from gpu_report.render.page.sections.validation import validation_table
from gpu_report.render.page.views.report import HeaderView, LedgerView, ReportView, SeriesView
from gpu_report.render.page.views.tables import NamedTable
from gpu_report.render.run_clock import WallClock
from gpu_report.render.run_title import run_title
from gpu_report.render.samples.quantity_series import UTILISATION, series_of_each_gpu


def compose(analysis: Analysis) -> ReportView:
    """Return what the page says about a run."""
    clock = WallClock(analysis.run.start_wall_s)
    unexpected, _ = findings.unexpected_and_expected(analysis.findings)
    tracks = cache(partial(series_of_each_gpu, analysis.run))
    said = overview.verdict(analysis, [each.id for each in unexpected[:FINDINGS_AT_THE_TOP]])
    return ReportView(
        header=_header(analysis),
        verdict=said,
        status=status(unexpected, analysis),
        advice=findings.first_advice(unexpected, analysis),
        advice_title=findings.advice_title(analysis),
        tiles=overview.tiles(analysis),
        more_tiles=(more := overview.more_tiles(analysis)),
        more_tiles_title=overview.more_title(more),
        gpus=tuple(gpu_tables.gpu(s, analysis.run, tracks(UTILISATION).get(s.gpu.index)) for s in analysis.gpus),
        gpu_overview=overview.gpu_table(analysis),
        legend=overview.legend(analysis),
        ledger=LedgerView(overview.ledger(analysis), overview.ledger_note(analysis)),
        speedup=NamedTable("Possible speed-up", speedup_limits.note(analysis), speedup_limits.limits(analysis)),
        findings=findings_section(analysis, tracks),
        inference=inference.inference(analysis, clock),
        code_time=code_time.code_time(analysis),
        profiler=profiler.windows(analysis),
        profiler_failures=profiler.failures(analysis),
        phases_note=yolo_run.phases_note(analysis),
        epochs=epochs.epochs(analysis, clock),
        validation=validation_table(analysis),
        statistics=gpu_tables.statistics(analysis),
        processes=gpu_tables.processes(analysis.run.processes, clock),
        kernel=recording.kernel(analysis.run.kernel, clock),
        yolo=yolo_run.yolo(analysis),
        recording=recording.recording(analysis, clock),
        series=_series(analysis.run),
    )


def _header(analysis: Analysis) -> HeaderView:
    run = analysis.run
    return HeaderView(
        title=clean(run_title(run)),
        subtitle=(*overview.subtitle(analysis), *yolo_run.set_up(analysis)),
        start=WallClock(run.start_wall_s).moment(0.0),
        end=WallClock(run.start_wall_s + run.slept_s).moment(run.duration_s),
        duration=recorded_length(run),
        tool=f"gpu-report {run.recording.tool_version or ''}".rstrip(),
    )


def _series(run: Run) -> SeriesView:
    has_host = not run.host.empty
    return SeriesView(has_host or not run.samples.empty, overview.has_heat(run), has_host)
