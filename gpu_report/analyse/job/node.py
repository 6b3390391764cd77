"""What is kept of the analysis of one node."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from gpu_report.analyse.job.rank_lines import rank_lines
from gpu_report.analyse.signals.code.collectives import traces_of_the_end
from gpu_report.model import Analysis, InsideRun, NodeGpu, NodeRun, RankTraining, Run

MOST_STEPS = 2000  # of a GPU's utilisation: the page draws a fifth of it
MOST_FINDINGS = 20


def node_run(analysis: Analysis) -> NodeRun:
    """Return what is kept of an analysis: some hundred kB, also of a day."""
    run = analysis.run
    step_s = max(run.duration_s / MOST_STEPS, run.recording.interval_s or 1.0)
    used = {summary.gpu.index for summary in analysis.gpus if summary.used}
    return NodeRun(
        path=run.path,
        host=run.recording.host,
        start_wall_s=run.start_wall_s,
        duration_s=run.duration_s,
        step_s=step_s,
        job=run.job,
        gpus=tuple(
            NodeGpu(
                gpu.index,
                gpu.uuid,
                gpu.name,
                gpu.memory_total_mib,
                gpu.index in used,
                utilisation(run, gpu.index, step_s),
            )
            for gpu in run.gpus
        ),
        ranks=tuple(_ranks(run, sorted(used))),
        verdict=_verdict(analysis),
        busy_pct=analysis.verdict.busy_pct,
        findings=tuple(finding for finding in analysis.findings if not finding.expected)[:MOST_FINDINGS],
        ledger=analysis.ledger,
        problems=run.problems,
        ended_by=run.recording.ended_by,
        nccl=replace(run.nccl, traces=traces_of_the_end(run)),
    )


def _verdict(analysis: Analysis) -> str:
    """Return a node's verdict without the advice to render all nodes together: that is what is done."""
    return " ".join(said.text for said in analysis.verdict.sentences if said.kind != "all nodes")


def utilisation(run: Run, gpu: int, step_s: float) -> npt.NDArray[np.float32]:
    """Return a GPU's mean utilisation (%) in each stretch of `step_s`, NaN where nothing was read."""
    rows = run.samples_of(gpu)
    t_s, util = rows["t_s"].to_numpy(dtype=float), rows["gpu_util_pct"].to_numpy(dtype=float)
    count = int(np.ceil(run.duration_s / step_s)) + 1
    known = np.isfinite(util) & (t_s >= 0)
    at = np.minimum((t_s[known] / step_s).astype(np.int64), count - 1)
    number = np.bincount(at, minlength=count)
    total = np.bincount(at, util[known], minlength=count)
    return np.where(number > 0, total / np.maximum(number, 1), np.nan).astype(np.float32)


def _ranks(run: Run, used: Sequence[int]) -> list[RankTraining]:
    """Return the ranks in order of their beginnings; outside torchrun a training is one of rank 0."""
    trained = [each for each in run.inside if each.task == "train" and each.phases]
    trained.sort(key=lambda each: each.phases[0].start_t_s)
    starts: Counter[int] = Counter()
    found = []
    for each in trained:
        start = each.settings.get("restarts")
        found.append(_rank(run, each, start if isinstance(start, int) else starts[each.rank], _gpu(run, each, used)))
        starts[each.rank] += 1
    return found


def _rank(run: Run, each: InsideRun, start: int, gpu: int | None) -> RankTraining:
    loading, working = rank_lines(run, each)
    workers = each.settings.get("workers")
    return RankTraining(
        rank=each.rank,
        pid=each.pid,
        gpu=gpu,
        start=start,
        on_gpu=str(each.settings.get("device", "")).startswith("cuda"),
        workers=workers if isinstance(workers, int) else None,
        epochs=each.epochs,
        loading=loading,
        working=working,
    )


def _gpu(run: Run, rank: InsideRun, used: Sequence[int]) -> int | None:
    """Return the GPU of a rank: as it named it, else as the driver saw its process, else the only one there is."""
    named = run.gpu_of_uuid(rank.settings.get("gpu_uuid"))
    if named is not None:
        return named
    seen = run.processes[run.processes["pid"] == rank.pid]["gpu"]
    if len(seen):
        return int(seen.iloc[0])
    return used[0] if len(used) == 1 else None
