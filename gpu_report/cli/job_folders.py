"""A job of several nodes: which folders are its nodes, each analysed and cut down, in processes where that pays."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING, Any

from gpu_report import schema
from gpu_report.cli.common import say
from gpu_report.errors import InputError
from gpu_report.run_folder import read_json
from gpu_report.usable_cores import usable_cores

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from multiprocessing.context import BaseContext
    from pathlib import Path

    from gpu_report.model import NodeRun, Options
    from gpu_report.render.redaction.redact import JobRedaction
    from gpu_report.terminal import ProgressLine

# Processes have to import pandas first, which takes as long as to read so many bytes.
WORTH_A_PROCESS = 20 << 20
PRELOADED = ["gpu_report.load", "gpu_report.analyse.job"]
MOST_PROCESSES = 8  # each of an hour of 8 GPUs takes 300 MB


def nodes_of(runs: Sequence[Path]) -> list[Path]:
    """Return the run folders of a job's nodes; empty where a single run is named, or none.

    They are named one by one, or lie in one folder that holds nothing but nodes.
    """
    distinct = list({path.resolve(): path for path in runs}.values())
    if len(distinct) > 1:
        return distinct
    if not distinct or not distinct[0].is_dir() or _is_run(distinct[0]):
        return []
    found = sorted(path for path in distinct[0].glob("*") if path.is_dir() and _is_run(path))
    if len(found) < 2:
        return []
    return found if _are_nodes(found) else []


def _is_run(path: Path) -> bool:
    return (path / schema.SAMPLES_CSV).is_file()


def _are_nodes(folders: Sequence[Path]) -> bool:
    """Tell whether runs in one folder are nodes of a job, as they were told; a folder of any runs is none."""
    jobs = [_job(folder) for folder in folders]
    ids = {job.get("id") for job in jobs}
    return (len(ids) == 1 and None not in ids) or all(_nodes(job) > 1 for job in jobs)


def _job(folder: Path) -> Mapping[str, Any]:
    """Return what a recording says of its job; of one that is broken, or older, nothing."""
    try:
        job = read_json(folder / schema.RUN_JSON).get("job")
    except InputError:
        return {}
    return job if isinstance(job, dict) else {}


def _nodes(job: Mapping[str, Any]) -> int:
    nodes = job.get("nodes")
    return nodes if isinstance(nodes, int) else 1


def _refuse_several_jobs(folders: Sequence[Path]) -> None:
    """Raise InputError where folders are of several jobs, before any of them is analysed."""
    from gpu_report.analyse.job.nodes import refuse_several_jobs
    from gpu_report.model import JobPart

    ids = [(str(folder), _job(folder).get("id")) for folder in folders]
    refuse_several_jobs([(path, JobPart(id=name)) for path, name in ids if isinstance(name, str)])


def read_nodes(
    folders: Sequence[Path], options: Options, progress: ProgressLine, redaction: JobRedaction | None = None
) -> tuple[list[NodeRun], list[str]]:
    """Return what is kept of each node, and notes on those that cannot be read; InputError where none can be."""
    _refuse_several_jobs(folders)
    tasks = [(folder, options) for folder in folders]
    processes = min(usable_cores(), len(folders), MOST_PROCESSES)
    if redaction is None and processes > 1 and sum(map(_size, folders)) > WORTH_A_PROCESS:
        with ProcessPoolExecutor(processes, mp_context=_processes()) as pool:
            found = _followed(pool.map(_node, tasks), folders, progress)
    else:
        found = _followed((_node(task, redaction) for task in tasks), folders, progress)
    nodes = [each for each in found if not isinstance(each, str)]
    notes = [each for each in found if isinstance(each, str)]
    if not nodes:
        raise InputError(notes[0])
    for note in notes:
        say(f"note: {note}")
    return nodes, notes


def _processes() -> BaseContext:
    """Return how processes are started: pandas is imported once for all of them, where they can be forked so."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    return context


def _followed(results: object, folders: Sequence[Path], progress: ProgressLine) -> list[NodeRun | str]:
    """Return all results, and say how many there are so far."""
    found: list[NodeRun | str] = []
    progress.step(f"reading {len(folders)} nodes ...")
    for result in results:  # type: ignore[attr-defined] # any iterable
        found.append(result)
        progress.step(f"reading nodes: {len(found)} of {len(folders)} ...")
    return found


def _node(task: tuple[Path, Options], redaction: JobRedaction | None = None) -> NodeRun | str:
    """Return what is kept of one node, or why it cannot be read."""
    from gpu_report.analyse import analyse
    from gpu_report.analyse.job import node_run
    from gpu_report.load import load_run

    folder, options = task
    try:
        analysis = analyse(load_run(folder), options)
    except InputError as error:
        return str(error)
    if redaction is not None:
        redaction.learn(analysis)
    return node_run(analysis)


def _size(folder: Path) -> int:
    try:
        return (folder / schema.SAMPLES_CSV).stat().st_size
    except OSError:
        return 0
