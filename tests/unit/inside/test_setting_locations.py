"""Which lines of code switch on what slows a training: read from sources, never executed."""

import os
import subprocess
import sys
import textwrap
import time
import warnings
from pathlib import Path
from types import ModuleType

import pytest

from gpu_report.inside.on_path.gpu_report_inside import setting_locations
from gpu_report.inside.on_path.gpu_report_inside.setting_locations import user_files

HERE = Path(setting_locations.__file__).parents[2]


def lines(source):
    return sorted(setting_locations._lines(textwrap.dedent(source), setting_locations.PATTERNS))


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
        ("import torch\ntorch.cuda.set_per_process_memory_fraction(36e9 / total)", [("memory_fraction", 2)]),
        ("from torch.cuda import set_per_process_memory_fraction as cap\ncap(0.5)", [("memory_fraction", 2)]),
        ("from torch.backends import cudnn\ncudnn.enabled: bool = False", [("cudnn_off", 2)]),
        ("import torch\ntorch.backends.cudnn.benchmark = True", [("cudnn_benchmark", 2)]),
        ("import torch\ntorch.backends.cudnn.benchmark = False", []),
        ("import os\nos.environ['CUDA_LAUNCH_BLOCKING'] = '1'", [("launch_blocking", 2)]),
        ("import os\nos.environ['CUDA_LAUNCH_BLOCKING'] = '0'", []),
        ("import os\nos.environ['CUDA_VISIBLE_DEVICES'] = ''", [("no_gpu", 2)]),
        ("from os import environ\nenviron.setdefault('CUDA_LAUNCH_BLOCKING', '1')", [("launch_blocking", 2)]),
        ("import os\nos.environ.update({'NCCL_P2P_DISABLE': '1'}, NCCL_SHM_DISABLE='1')", [("p2p", 2), ("shm", 2)]),
        ("import os\nos.putenv('OMP_NUM_THREADS', str(n))", [("threads", 2)]),
        ("print('os.environ[CUDA_LAUNCH_BLOCKING] = 1')  # CUDA_LAUNCH_BLOCKING", []),
        ("other['CUDA_LAUNCH_BLOCKING'] = '1'", []),
        ("import os\nos.sched_setaffinity(0, {0})", [("affinity", 2)]),
        ("import os\nos.environ['OMP_PLACES'] = 'cores'", [("OMP_PLACES", 2)]),
        ("import os\nos.environ.setdefault('GOMP_CPU_AFFINITY', '0')", [("GOMP_CPU_AFFINITY", 2)]),
        (
            "import psutil\npsutil.Process().cpu_affinity([0])\nprint(psutil.Process().cpu_affinity())",
            [("affinity", 2)],
        ),
        ("import torch\ntorch.set_num_threads(1)", [("threads", 2)]),
        ("import torch.multiprocessing as mp\nmp.set_start_method('spawn')", [("start_method", 2)]),
        ("loader.multiprocessing_context = 'spawn'", [("start_method", 1)]),
        (
            "import gc, sys\ngc.set_threshold(20)\nsys.settrace(None)\nsys.settrace(f)",
            [("frequent_gc", 2), ("trace_function", 4)],
        ),
        ("from torch.profiler import profile\nwith profile() as p: ...", [("torch_profiler", 2)]),
        ("def profile(): ...\nprofile()", []),
        ("import torch\nmodel = torch.nn.SyncBatchNorm.convert_sync_batchnorm(model)", [("sync_bn", 2)]),
        ("this is no Python", []),
        ("x = " + "(" * 5000 + ")" * 5000, []),
        ("x = " + "-" * 90_000 + "1", []),
        ("\0", []),
    ],
)
def test_what_a_source_switches_on(source, found):
    assert lines(source) == found


def test_only_what_is_on_is_looked_for_and_nothing_costs_nothing(monkeypatch):
    monkeypatch.setattr(setting_locations, "own_files", lambda _: pytest.fail("it looks"))
    assert setting_locations.places([]) == []
    assert setting_locations.places(["of a later version"]) == []


@pytest.mark.parametrize(
    ("told", "on"),
    [
        ({"amp": False, "tf32": False}, ["tf32"]),
        ({"memory_fraction": 0.24}, ["memory_fraction"]),
        ({"memory_fraction": 1.0}, []),
        ({"memory_fraction": None}, []),
        ({"amp": True, "tf32": False}, []),
        ({"nccl_disabled": ["p2p"], "torch_threads": 8}, ["p2p", "threads"]),
        ({"torch_threads": 1}, []),
        ({"start_method": "spawn"}, ["start_method"]),
        ({"start_method": "fork"}, []),
        ({"device": "cpu", "gpus_hidden": True}, ["no_gpu"]),
        ({"device": "cuda:0", "gpus_hidden": False}, []),
        ({"synced_norms": True}, ["sync_bn"]),
        ({}, []),
    ],
)
def test_what_settings_say_is_on(told, on, monkeypatch):
    monkeypatch.setattr(setting_locations, "_affinity", list)
    assert setting_locations.switched_on(told) == on


def test_variables_that_bind_threads_are_looked_for_where_cores_are_few(monkeypatch):
    told = {"thread_binding": ["OMP_PLACES"]}
    monkeypatch.setattr(setting_locations, "_affinity", lambda: ["affinity"])
    assert setting_locations.switched_on(told) == ["affinity", "OMP_PLACES"]
    monkeypatch.setattr(setting_locations, "_affinity", list)
    assert setting_locations.switched_on(told) == []


def test_files_that_nobody_writes_are_not_read(tmp_path, monkeypatch):
    large, pipe, binary = tmp_path / "large.py", tmp_path / "pipe.py", tmp_path / "binary.py"
    large.write_text("import gc\ngc.set_threshold(20)\n" + "#" * user_files.MOST_BYTES)
    os.mkfifo(pipe)
    binary.write_bytes(b"gc.set_threshold\xff\xfe\0")
    files = [str(each) for each in (large, pipe, binary, tmp_path, tmp_path / "missing.py")]
    assert setting_locations._in_files(files, setting_locations.PATTERNS) == []
    usual = tmp_path / "usual.py"
    usual.write_text("import gc\ngc.set_threshold(20)\n")
    assert setting_locations._in_files([str(usual)], setting_locations.PATTERNS) == [("frequent_gc", str(usual), 2)]
    monkeypatch.setattr(setting_locations, "MOST_READ", 1)
    assert len(setting_locations._in_files([str(usual), str(usual)], setting_locations.PATTERNS)) == 1


CHILD = """
import sys
sys.path.insert(0, {here!r})
from gpu_report_inside import setting_locations
import helper
print([(name, file.rpartition("/")[2], line) for name, file, line in setting_locations.places({names})])
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


def test_a_variable_that_a_script_sets_to_something_else_than_the_shell_is_the_scripts(tmp_path):
    hides = "import os\nos.environ['CUDA_VISIBLE_DEVICES'] = ''\n"
    assert run(tmp_path, hides, ["no_gpu"], CUDA_VISIBLE_DEVICES="2") == "[('no_gpu', 'main.py', 2)]"


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


ON = "import gc\ngc.set_threshold(5)\n"


def module(monkeypatch, file, name="hostile"):
    """Load a module of this file, the only one of the user's: a script that started pytest owns the repository, too."""
    monkeypatch.setattr(setting_locations, "ancestors", list)
    loaded = ModuleType("hostile")
    loaded.__file__ = file
    monkeypatch.setitem(sys.modules, name, loaded)


@pytest.mark.parametrize(
    "content",
    [
        ON.encode() + b"x" + b".a" * 120_000,  # Python 3.8 to 3.10 end the process where they parse this
        ON.encode() + b"x" + b".a" * 20_000,
        ON.encode() + b"x = 1\n" * 20_000,
        ON.encode("utf-16"),
        ON.encode() + b"\0",
    ],
)
def test_sources_that_no_person_writes_are_not_parsed(tmp_path, monkeypatch, content):
    monkeypatch.chdir(tmp_path)
    Path("hostile.py").write_bytes(content)
    module(monkeypatch, f"{tmp_path}/hostile.py")
    assert setting_locations.found(["frequent_gc"]) == []


@pytest.mark.parametrize("content", [b"\xef\xbb\xbf" + ON.encode(), b"# coding: latin-1\n# \xe9\n" + ON.encode()])
def test_sources_with_a_mark_or_in_another_encoding_are_read(tmp_path, monkeypatch, content):
    monkeypatch.chdir(tmp_path)
    Path("hostile.py").write_bytes(content)
    module(monkeypatch, f"{tmp_path}/hostile.py")
    assert [each["name"] for each in setting_locations.found(["frequent_gc"])] == ["frequent_gc"]


def test_what_is_no_file_is_never_opened(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("fifo.py")
    Path("folder.py").mkdir()
    for link, target in (("loop.py", "loop.py"), ("zero.py", "/dev/zero"), ("gone.py", "none")):
        Path(link).symlink_to(target)
    for name in ("fifo", "folder", "loop", "zero", "gone", "nul\0", "x" * 5000, "\ud800"):
        module(monkeypatch, f"{tmp_path}/{name}.py", name)
    assert setting_locations.found(["frequent_gc"]) == []


def test_names_that_are_no_plain_text_run_no_code(tmp_path, monkeypatch):
    class Name(str):
        def endswith(self, *_):
            raise AssertionError

    monkeypatch.chdir(tmp_path)
    module(monkeypatch, Name(f"{tmp_path}/a.py"))
    module(monkeypatch, f"{tmp_path}/a.py", ("no", "text"))
    assert setting_locations.found(["frequent_gc"]) == []


def test_a_deleted_current_folder_is_no_error(tmp_path, monkeypatch):
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    module(monkeypatch, "relative.py")
    assert setting_locations.found(["frequent_gc"]) == []
    monkeypatch.chdir(tmp_path)


def test_no_more_is_parsed_than_half_a_second_takes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number in range(4):
        source = tmp_path / f"m{number}.py"
        source.write_text(ON + "x = 1\n" * 10_000)
        module(monkeypatch, str(source), f"hostile{number}")
    assert len(setting_locations.found(["frequent_gc"])) == 2


@pytest.mark.parametrize(
    ("literal", "parsed"),
    [('"\\d"', True), ("r'\\d\\\\'", True), ('"\\\\"', True), ('f"\\N{DASH}{x}"', True), ('"', False)],
)
def test_the_parser_warns_nobody_of_the_users_escapes(literal, parsed):
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        assert bool(lines(f"import gc\nx = {literal}\ngc.set_threshold(5)")) is parsed
    assert warned == []


def test_a_long_chain_of_calls_is_no_name():
    began = time.thread_time()
    assert lines("x" + ".set_threshold()" * 600 + "\nimport gc\ngc.set_threshold(5)") == [("frequent_gc", 3)]
    assert time.thread_time() - began < 1
