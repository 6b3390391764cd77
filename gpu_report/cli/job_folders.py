"""A job of several nodes: which folders are its nodes, each analysed and cut down, in processes where that pays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpu_report import schema
from gpu_report.baseline_store import one_run, refuse_missing
from gpu_report.cli.common import say
from gpu_report.errors import InputError
from gpu_report.run_folder import read_json
from gpu_report.usable_cores import usable_cores

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from multiprocessing.context import BaseContext
    from pathlib import Path

    from gpu_report.model import NodeRun, Options, UnreadNode
    from gpu_report.render.redaction.redact import JobRedaction
    from gpu_report.terminal import ProgressLine

# Processes have to import pandas first, which takes as long as to read so many bytes.
WORTH_A_PROCESS = 20 << 20
PRELOADED = ["gpu_report.load", "gpu_report.analyse.job"]
SHOWN = 3  # names in a message
MOST_PROCESSES = 8  # each of an hour of 8 GPUs takes 300 MB


def nodes_of(runs: Sequence[Path]) -> list[Path]:
    """Return the run folders of a job's nodes; empty where a single run is named, or none.

    They are named one by one, or by a folder that they lie in, of which the launchers' variables say that they are
    nodes; one may be all that is left. InputError for a path that does not exist, and for a folder of nodes and others.
    """
    if len(runs) > 1:
        refuse_missing(runs)
    folders: dict[Path, Path] = {}
    inside = [_nodes_in(path) for path in runs]
    for path, nodes in zip(runs, inside, strict=True):
        for each in nodes or [one_run(path) if len(runs) > 1 and _runs_in(path) else path]:
            if each.resolve() in folders:
                say(f"note: {each} is named twice: it counts once")
            folders.setdefault(each.resolve(), each)
    return list(folders.values()) if len(folders) > 1 or any(inside) else []


def refuse_job(run: Path | None) -> None:
    """Raise InputError where a folder of nodes is named and a command is of one run."""
    if run is not None and (nodes := _nodes_in(run)):
        from gpu_report.wording import few_names

        names = few_names([node.name for node in nodes], SHOWN)
        together = f"to see them together: `gpu-report render job.html {run}`"
        raise InputError(f"{run} holds the nodes of a job ({names}): name one of them, or {together}")


def _nodes_in(folder: Path) -> list[Path]:
    """Return the nodes that lie in a folder; empty for a run itself, and for a folder of runs that are none.

    InputError where several nodes lie beside another run: nobody can tell what is asked for.
    """
    found = _runs_in(folder)
    jobs = [_job(path) for path in found]
    ids = {job.get("id") for job in jobs}
    nodes = [path for path, job in zip(found, jobs, strict=True) if _is_one_of_several(job)]
    if len(nodes) == len(found) or (len(found) > 1 and len(ids) == 1 and None not in ids):
        return found
    if len(nodes) <= 1:
        return []
    from gpu_report.wording import few_names

    names, others = ([path.name for path in found if (path in nodes) is among] for among in (True, False))
    raise InputError(
        f"{folder} holds nodes of a job ({few_names(names, SHOWN)}) and runs that are none "
        f"({few_names(others, SHOWN)}): name the nodes"
    )


def _runs_in(folder: Path) -> list[Path]:
    """Return the runs that lie in a folder; of a run itself none."""
    if _is_run(folder) or not folder.is_dir():
        return []
    return sorted(path for path in folder.glob("*") if path.is_dir() and _is_run(path))


def _is_run(path: Path) -> bool:
    return (path / schema.SAMPLES_CSV).is_file()


def _job(folder: Path) -> Mapping[str, Any]:
    """Return what a recording says of its job; of one that is broken, or older, nothing."""
    try:
        job = read_json(folder / schema.RUN_JSON).get("job")
    except InputError:
        return {}
    return job if isinstance(job, dict) else {}


def _is_one_of_several(job: Mapping[str, Any]) -> bool:
    nodes = job.get("nodes")
    return isinstance(nodes, int) and nodes > 1


def _node_rank(folder: Path) -> int | None:
    rank = _job(folder).get("node_rank")
    return rank if isinstance(rank, int) and not isinstance(rank, bool) else None


def _refuse_several_jobs(folders: Sequence[Path]) -> None:
    """Raise InputError where folders are of several jobs, before any of them is analysed."""
    from gpu_report.analyse.job.nodes import refuse_several_jobs
    from gpu_report.model import JobPart

    ids = [(str(folder), _job(folder).get("id")) for folder in folders]
    refuse_several_jobs([(path, JobPart(id=name)) for path, name in ids if isinstance(name, str)])


def read_nodes(
    folders: Sequence[Path], options: Options, progress: ProgressLine, redaction: JobRedaction | None = None
) -> tuple[list[NodeRun], list[UnreadNode]]:
    """Return what is kept of each node, and those that cannot be read; InputError where none can be."""
    from gpu_report.model import UnreadNode

    _refuse_several_jobs(folders)
    tasks = [(folder, options) for folder in folders]
    processes = _worth(folders)
    if redaction is None and processes > 1:
        from concurrent.futures import ProcessPoolExecutor

        with ProcessPoolExecutor(processes, mp_context=_processes()) as pool:
            found = _followed(pool.map(_node, tasks), folders, progress)
    else:
        found = _followed((_node(task, redaction) for task in tasks), folders, progress)
    nodes = [each for each in found if not isinstance(each, str)]
    unread = [
        UnreadNode(str(folder), _node_rank(folder), why)
        for folder, why in zip(folders, found, strict=True)
        if isinstance(why, str)
    ]
    if not nodes:
        raise InputError(unread[0].reason)
    for each in unread:
        say(f"note: {each.reason}")
    return nodes, unread


def begin_processes(folders: Sequence[Path]) -> None:
    """Have the processes' modules imported while this one imports its own, where nodes are read by several."""
    if _worth(folders) > 1 and _processes().get_start_method() == "forkserver":
        from multiprocessing import forkserver

        forkserver.ensure_running()


def _worth(folders: Sequence[Path]) -> int:
    """Return how many processes nodes are worth."""
    is_much = sum(map(_size, folders)) > WORTH_A_PROCESS
    return min(usable_cores(), len(folders), MOST_PROCESSES) if is_much else 1


def _processes() -> BaseContext:
    """Return how processes are started: pandas is imported once for all of them, where they can be forked so."""
    import multiprocessing

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
        analysis = analyse(load_run(folder), options, with_code_time=False)
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
