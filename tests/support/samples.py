"""The sample runs, each loaded and analysed once a process: about 0.1 s a run."""

from functools import cache
from pathlib import Path

from gpu_report.analyse import analyse
from gpu_report.load import load_run
from gpu_report.model import Analysis, Run
from support.labels import Labels, read_labels

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "sample_runs"
SAME_SETUP = ROOT / "tests" / "data" / "same_setup"  # nine runs of one set-up, two of them with stalls
ALL_NAMES = tuple(sorted(path.name for path in SAMPLES.iterdir() if path.is_dir()))
SERVED = tuple(name for name in ALL_NAMES if name.startswith("serve-"))  # programs that call a model
OF_A_JOB = tuple(name for name in ALL_NAMES if name.startswith("two-nodes-"))  # two nodes of one training
NAMES = tuple(name for name in ALL_NAMES if name not in {*SERVED, *OF_A_JOB})  # trainings


@cache
def run_of(name: str) -> Run:
    """Return a sample run; nobody may change its tables."""
    return load_run(SAMPLES / name)


@cache
def analysis_of(name: str) -> Analysis:
    """Return what is said of a sample run."""
    return analyse(run_of(name))


@cache
def labels_of(name: str) -> Labels:
    """Return what was done to a sample run."""
    return read_labels(SAMPLES / name)
