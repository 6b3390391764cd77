"""What NCCL and torch's flight recorder left in a run folder (`nccl/`)."""

from pathlib import Path

from gpu_report import schema
from gpu_report.load.nccl.debug_file import read_debug_files
from gpu_report.load.nccl.flight_recorder import read_traces
from gpu_report.load.run_clock import RunClock
from gpu_report.model import Nccl
from gpu_report.ordinary_file import refuse_way_out

PICKLED = (
    "PyTorch's flight recorder wrote pickles, which run code when they are read: they are left out. "
    "docs/nodes.md says how to make JSON of them"
)
MOST_FILES = 128  # of each kind: a node has 16 ranks, and torchrun may start them again


def load_nccl(folder: Path, clock: RunClock, duration_s: float) -> tuple[Nccl, tuple[str, ...]]:
    """Return what is there, and what could not be read; InputError for a link that leads out of the run folder."""
    place = folder / schema.NCCL_DIR
    try:
        if not place.is_dir():
            return Nccl(), ()
        files = sorted(path for path in place.iterdir() if path.suffix in {".log", ".json"})
    except OSError as error:
        return Nccl(), (f"{schema.NCCL_DIR}/ could not be read ({error.strerror})",)
    for path in files:
        refuse_way_out(path, folder)
    logs, traces = ([path for path in files if path.suffix == suffix] for suffix in (".log", ".json"))
    processes, problems = read_debug_files(logs[:MOST_FILES], clock, duration_s)
    found, trace_problems = read_traces(traces[:MOST_FILES], clock, duration_s)
    many = len(files) - len(logs[:MOST_FILES]) - len(traces[:MOST_FILES])
    left_out = [f"{schema.NCCL_DIR}/ has {many} more files, which are left out"] if many else []
    if (place / schema.NCCL_PICKLES).exists():
        left_out.append(PICKLED)
    return Nccl(processes, found), (*problems, *trace_problems, *left_out)
