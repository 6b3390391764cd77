"""Which lines of code switch on what slows a training: read from sources, never executed."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from gpu_report.inside.on_path.gpu_report_inside import set_in

HERE = Path(set_in.__file__).parents[1]


def lines(source):
    return sorted(set_in._lines(textwrap.dedent(source), set_in.SETTERS))


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import torch\ntorch.autograd.set_detect_anomaly(True)", [("detect_anomaly", 2)]),
        ("from torch import autograd as ag\nag.set_detect_anomaly(mode=True)", [("detect_anomaly", 2)]),
        ("from torch.autograd import set_detect_anomaly as f\nf(True)", [("detect_anomaly", 2)]),
        ("import torch\nwith torch.autograd.detect_anomaly():\n  pass", [("detect_anomaly", 2)]),
        ("import torch\ntorch.autograd.set_detect_anomaly(False)", []),
        ("def set_detect_anomaly(on): ...\nset_detect_anomaly(True)", []),  # one of the user's own
        ("import torch\ntorch.backends.cudnn.allow_tf32 = False", [("tf32", 2)]),
        ("import torch\ntorch.backends.cudnn.allow_tf32 = FAST", [("tf32", 2)]),
        ("import torch\ntorch.backends.cudnn.allow_tf32 = True", []),
        ("from torch.backends import cudnn\ncudnn.enabled: bool = False", [("cudnn_off", 2)]),
        ("import os\nos.environ['CUDA_LAUNCH_BLOCKING'] = '1'", [("launch_blocking", 2)]),
        ("import os\nos.environ['CUDA_LAUNCH_BLOCKING'] = '0'", []),
        ("from os import environ\nenviron.setdefault('CUDA_LAUNCH_BLOCKING', '1')", [("launch_blocking", 2)]),
        ("import os\nos.environ.update({'NCCL_P2P_DISABLE': '1'}, NCCL_SHM_DISABLE='1')", [("p2p", 2), ("shm", 2)]),
        ("import os\nos.putenv('OMP_NUM_THREADS', str(n))", [("threads", 2)]),
        ("print('os.environ[CUDA_LAUNCH_BLOCKING] = 1')  # CUDA_LAUNCH_BLOCKING", []),
        ("other['CUDA_LAUNCH_BLOCKING'] = '1'", []),
        ("import os\nos.sched_setaffinity(0, {0})", [("affinity", 2)]),
        (
            "import psutil\npsutil.Process().cpu_affinity([0])\nprint(psutil.Process().cpu_affinity())",
            [("affinity", 2)],
        ),
        ("import torch\ntorch.set_num_threads(1)", [("threads", 2)]),
        (
            "import gc, sys\ngc.set_threshold(20)\nsys.settrace(None)\nsys.settrace(f)",
            [("frequent_gc", 2), ("trace_function", 4)],
        ),
        ("from torch.profiler import profile\nwith profile() as p: ...", [("torch_profiler", 2)]),
        ("def profile(): ...\nprofile()", []),
        ("this is no Python", []),
        ("x = " + "(" * 5000 + ")" * 5000, []),
        ("x = " + "-" * 90_000 + "1", []),
        ("\0", []),
    ],
)
def test_what_a_source_switches_on(source, found):
    assert lines(source) == found


def test_only_what_is_on_is_looked_for_and_nothing_costs_nothing(monkeypatch):
    monkeypatch.setattr(set_in, "_own_files", lambda _: pytest.fail("it looks"))
    assert set_in.places([]) == []
    assert set_in.places(["of a later version"]) == []


@pytest.mark.parametrize(
    ("told", "on"),
    [
        ({"amp": False, "tf32": False}, ["tf32"]),
        ({"amp": True, "tf32": False}, []),
        ({"nccl_disabled": ["p2p"], "torch_threads": 8}, ["p2p", "threads"]),
        ({"torch_threads": 1}, []),
        ({}, []),
    ],
)
def test_what_settings_say_is_on(told, on, monkeypatch):
    monkeypatch.setattr(set_in, "_affinity", list)
    assert set_in.switched_on(told) == on


def test_files_that_nobody_writes_are_not_read(tmp_path, monkeypatch):
    large, pipe, binary = tmp_path / "large.py", tmp_path / "pipe.py", tmp_path / "binary.py"
    large.write_text("import gc\ngc.set_threshold(20)\n" + "#" * set_in.MOST_BYTES)
    os.mkfifo(pipe)
    binary.write_bytes(b"gc.set_threshold\xff\xfe\0")
    files = [str(each) for each in (large, pipe, binary, tmp_path, tmp_path / "missing.py")]
    assert set_in._in_files(files, set_in.SETTERS) == []
    usual = tmp_path / "usual.py"
    usual.write_text("import gc\ngc.set_threshold(20)\n")
    assert set_in._in_files([str(usual)], set_in.SETTERS) == [("frequent_gc", str(usual), 2)]
    monkeypatch.setattr(set_in, "MOST_IN_ALL", 1)
    assert len(set_in._in_files([str(usual), str(usual)], set_in.SETTERS)) == 1


CHILD = """
import sys
sys.path.insert(0, {here!r})
from gpu_report_inside import set_in
import helper
print([(name, file.rpartition("/")[2], line) for name, file, line in set_in.places({names})])
"""


def run(folder, source, names, **environment):
    (folder / "helper.py").write_text("import os\nos.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n")
    main = folder / "main.py"
    main.write_text(source + CHILD.format(here=str(HERE), names=names))
    env = {**os.environ, **environment}
    done = subprocess.run([sys.executable, main], cwd="/", env=env, capture_output=True, text=True, check=True)
    return done.stdout.strip().splitlines()[-1]


SETS = "import os\nos.environ['CUDA_LAUNCH_BLOCKING'] = '1'\n"


def test_the_script_and_the_modules_beside_it_are_looked_at(tmp_path):
    found = run(tmp_path, SETS, ["launch_blocking", "affinity"])
    assert found == "[('launch_blocking', 'main.py', 2), ('affinity', 'helper.py', 2)]"


def test_a_variable_that_the_shell_has_set_is_not_the_scripts(tmp_path):
    assert run(tmp_path, SETS, ["launch_blocking"], CUDA_LAUNCH_BLOCKING="1") == "[]"


def test_a_variable_that_a_script_leaves_to_its_ranks_is_the_scripts(tmp_path):
    (tmp_path / "child").mkdir()
    (tmp_path / "child" / "helper.py").write_text("")
    rank = tmp_path / "child" / "rank.py"
    rank.write_text(CHILD.format(here=str(HERE), names=["launch_blocking"]))
    starter = tmp_path / "train.py"
    starter.write_text(f"{SETS}import subprocess, sys\nsubprocess.run([sys.executable, {str(rank)!r}], check=True)\n")
    done = subprocess.run([sys.executable, "train.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[('launch_blocking', 'train.py', 2)]"


def test_of_more_places_than_a_few_nobody_knows_which_one_it_was(tmp_path):
    assert run(tmp_path, SETS + SETS.partition("\n")[2] * 3, ["launch_blocking"]) == "[]"
