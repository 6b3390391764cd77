"""What tests of every stage share: the fake NVML library, and the command line in a subprocess."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import settings

# How long an example takes says nothing where tests share the cores.
settings.register_profile("shared cores", deadline=None)
settings.load_profile("shared cores")

REPOSITORY = Path(__file__).resolve().parent.parent
FAKE_SOURCE = REPOSITORY / "tests" / "fakes" / "fake_nvml.c"
# PYTEST_CURRENT_TEST makes ultralytics believe that its own tests run, and write into site-packages.
NOT_INHERITED = (
    "PYTEST_CURRENT_TEST",
    "GPU_REPORT_RUN_FOLDER",
    "FAKE_NVML_STATE",
    "FAKE_NVML_TRACE",
    "LD_LIBRARY_PATH",
    "CUDA_VISIBLE_DEVICES",
)


def pytest_configure() -> None:
    """Let Ctrl-C end what tests start: what a shell runs in its background ignores it, and so do children of that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that train: one of a few slow tests that comes last would leave the other cores idle."""
    slow = {item.path for item in items if item.get_closest_marker("yolo")}
    items.sort(key=lambda item: item.path not in slow)


@dataclass(frozen=True)
class FakeNvml:
    """A fake GPU machine: its state is a text file that the fake library reads at each call."""

    library: Path
    state: Path
    trace: Path

    def env(self) -> dict[str, str]:
        """Return the environment in which a subprocess meets the fake instead of the driver."""
        return {
            "LD_LIBRARY_PATH": str(self.library.parent),
            "FAKE_NVML_STATE": str(self.state),
            "FAKE_NVML_TRACE": str(self.trace),
        }

    def write(self, state: str) -> None:
        """Set the state (see tests/fakes/fake_nvml.c for its lines), all at once."""
        beside = self.state.with_suffix(".part")
        beside.write_text(state, encoding="utf-8")
        beside.replace(self.state)

    def script(self, *lines: str, start_wall_s: float | None = None) -> float:
        """Play lines such as `at=12.0 gpu0.util=3` from `start_wall_s` (default: now), which is returned."""
        start = time.time() if start_wall_s is None else start_wall_s
        self.write("\n".join([f"start={start:.6f}", *lines]) + "\n")
        return start

    def calls(self, name: str) -> list[float]:
        """Return the wall times at which a function of the library was called."""
        if not self.trace.exists():
            return []
        lines = (line.split() for line in self.trace.read_text().splitlines())
        return [float(words[0]) for words in lines if len(words) == 3 and words[1] == name]


@dataclass
class Running:
    """A command line that runs in the background; `stop` sends it a signal and waits."""

    process: subprocess.Popen[str]

    def stop(self, number: int = signal.SIGTERM, timeout_s: float = 20) -> subprocess.CompletedProcess[str]:
        """Send a signal to the process alone, and wait for its end."""
        self.process.send_signal(number)
        return self.wait(timeout_s)

    def wait(self, timeout_s: float = 20) -> subprocess.CompletedProcess[str]:
        """Wait for the end; the process is killed when that takes too long."""
        try:
            out, err = self.process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            raise
        return subprocess.CompletedProcess(self.process.args, self.process.returncode, out, err)


@pytest.fixture(scope="session")
def fake_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile the fake library; without a C compiler the tests fail, for they would prove nothing."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.fail("no C compiler for tests/fakes/fake_nvml.c: install one (apt-get install gcc)", pytrace=False)
    library = tmp_path_factory.mktemp("fake-nvml") / "libnvidia-ml.so.1"
    options = ["-O2", "-Wall", "-Werror", "-shared", "-fPIC", f"-Wl,-soname,{library.name}"]
    subprocess.run([compiler, *options, "-o", library, FAKE_SOURCE, "-lm"], check=True)
    return library


@pytest.fixture
def fake_nvml(fake_library: Path, tmp_path: Path) -> FakeNvml:
    """One fake H200, busy, until the test writes something else."""
    fake = FakeNvml(fake_library, tmp_path / "nvml-state.txt", tmp_path / "nvml-trace.txt")
    fake.write("count=1\n")
    return fake


@pytest.fixture
def yolo_home(tmp_path: Path) -> Path:
    """Make a folder with a tiny synthetic detection set, and a name that is not Latin."""
    from support.yolo import make_data_set  # noqa: PLC0415 - the other tests need no numpy and no ultralytics

    home = tmp_path / "Übung-训练"
    make_data_set(home)
    return home


def offline_environment(fake: FakeNvml, folder: Path) -> dict[str, str]:
    """Return the environment in which YOLO trains beside a fake GPU and asks no network."""
    return {
        **fake.env(),
        "YOLO_OFFLINE": "1",
        "YOLO_CONFIG_DIR": str(folder / "config"),
        "YOLO_AUTOINSTALL": "false",
        "OMP_NUM_THREADS": "1",  # several tests share the cores, and torch's threads spin while they wait
    }


@pytest.fixture
def offline(tmp_path: Path, fake_nvml: FakeNvml) -> dict[str, str]:
    """Return the environment of a training in this test's folder."""
    return offline_environment(fake_nvml, tmp_path)


def clean_environment(env: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return an environment that reaches the checkout's package, and no NVML but the one asked for."""
    kept = {name: value for name, value in os.environ.items() if name not in NOT_INHERITED}
    path = os.pathsep.join(filter(None, [os.environ.get("ULTRALYTICS_UNDER_TEST"), str(REPOSITORY)]))
    return {**kept, "PYTHONPATH": path, **(env or {})}


def cli_command(*args: object) -> list[str]:
    """Return the words that run `gpu-report` with these arguments."""
    return [sys.executable, "-m", "gpu_report", *map(str, args)]


@pytest.fixture
def run_cli(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `gpu-report` in a subprocess, in an empty folder, to its end."""

    def run(
        *args: object, env: Mapping[str, str] | None = None, timeout: float = 60, cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            cli_command(*args),
            env=clean_environment(env),
            cwd=cwd or tmp_path,
            timeout=timeout,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.fixture(scope="session")
def warm_command() -> Iterator[list[str]]:
    """Words that run `gpu-report` in a fork of a process that has imported it: no fake NVML, and a second less."""
    from support.warm import warm_server  # noqa: PLC0415 - few tests need it

    with warm_server(clean_environment()) as words:
        yield words


@pytest.fixture
def run_warm(tmp_path: Path, warm_command: list[str]) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `gpu-report` as `run_cli` does, where imports are not what is tested."""

    def run(*args: object, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*warm_command, *map(str, args)],
            env=clean_environment(env),
            cwd=tmp_path,
            timeout=60,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.fixture
def start_cli(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """Start `gpu-report` in the background, in a session of its own; what still runs at the end is killed."""
    started: list[subprocess.Popen[str]] = []

    def start(*args: object, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> Running:
        process = subprocess.Popen(
            cli_command(*args),
            env=clean_environment(env),
            cwd=cwd or tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return Running(process)

    yield start
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def wait_for(condition: Callable[[], object], timeout_s: float = 30) -> None:
    """Wait until `condition` holds, and fail when it does not in time; one that misses a file does not hold yet."""

    def holds() -> object:
        try:
            return condition()
        except FileNotFoundError:
            return False

    deadline = time.monotonic() + timeout_s
    while not holds():
        if time.monotonic() > deadline:
            pytest.fail(f"{condition} did not hold within {timeout_s} s")
        time.sleep(0.02)
