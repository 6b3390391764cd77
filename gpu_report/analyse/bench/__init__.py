"""A benchmark becomes figures a variant, and what to choose."""

from dataclasses import replace

from gpu_report.analyse.bench.choice import choose
from gpu_report.analyse.bench.figures import figures
from gpu_report.analyse.bench.host_speed import host_speed
from gpu_report.model import BenchResult, BenchRun, LatencyLimit

__all__ = ["analyse_bench"]


def analyse_bench(run: BenchRun, limit: LatencyLimit | None = None) -> BenchResult:
    """Return what is to be said about a benchmark; `limit` is what a call may take."""
    chosen = choose(run, tuple(figures(run, variant) for variant in run.variants), limit)
    return replace(chosen, host=host_speed(run))
