"""Cases of the fuzzers: small real folders and logs, mutated by number, and what must hold of every command on them."""

import contextlib
import io
import itertools
import json
import math
import os
import resource
import shutil
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import gpu_report.analyse.compare
import gpu_report.imports
import gpu_report.load
import gpu_report.render.comparison.comparison_json
import gpu_report.render.comparison.terminal
import gpu_report.render.redaction.redact
import gpu_report.render.run.summary_json
import gpu_report.render.run.terminal  # noqa: F401 - none of it is to be imported within the time of a case
from gpu_report import cli
from gpu_report.errors import GpuReportError
from support.mutations import mutate
from support.odd_values import NUMBERS, TEXTS

ROOT = Path(__file__).resolve().parents[2]
DATA, SAMPLES = ROOT / "tests" / "data", ROOT / "sample_runs"
SMI, KERNEL, SAME = DATA / "nvidia_smi", DATA / "kernel", DATA / "same_setup"
# A minute each: what ended well, badly and not at all; one GPU, two, a lost one; with callbacks, without, without YOLO.
RUNS = (
    "ab-batch-64",
    "s-oom",
    "s-killed",
    "n-oom-killed",
    "xid31",
    "n-xid",
    "s-ddp-stall",
    "fake-lost-gpu",
    "starved",
    "healthy",
)
LONGEST_S = 20.0  # of a core's time, for a case
WAITED = 6.0
MOST_MIB = 1024  # that it may add to the process
MOST_SAID = 64 * 1024  # characters on stderr
MOST_PRINTED = 32 * 2**20
PAGE_EVERY = 40  # cases of a run; a page takes ten times as long as all the rest
LONGEST_RUN_S = 2 * 366 * 86_400.0

Arguments = Sequence[object]


class Hang(BaseException):
    """A case took too long; no handler of ours takes it for an error that it can explain."""


@dataclass
class Case:
    """A command to run on what was mutated, the exit codes that it may have, and what follows one that succeeds."""

    command: Arguments
    codes: frozenset[int] = frozenset({0, 4})
    then: list["Case"] = field(default_factory=list)


@dataclass(frozen=True)
class Failure:
    """What was wrong with a case: in one line, and with all that was printed."""

    reason: str
    details: str


def mutations_of(number: int) -> int:
    """Return how many mutations a case has."""
    return 1 + number % 3


def numbers_of(mutations: int) -> range:
    """Return the cases that have so many mutations together."""
    done = 0
    for number in itertools.count():
        if done >= mutations:
            return range(number)
        done += mutations_of(number)
    raise AssertionError


# --- making a case ------------------------------------------------------------------------------------------------


def make_case(seed: int, number: int, folder: Path) -> Case:
    """Write what a case reads into an empty folder, and return it."""
    pick = Random(f"{seed}/{number}")
    kind = pick.choice((_run, _run, _run, _run, _run, _import, _import, _compare))
    return kind(pick, number, folder)


def kept_case(path: Path, folder: Path) -> Case:
    """Return a case of tests/data/fuzz_corpus: files that once failed, in the place of those of a real run.

    `{folder}` in its command stands for the folder.
    """
    kept = json.loads(path.read_text())
    if kept["run"]:
        shutil.copytree(SAMPLES / kept["run"], folder / "run")
    for name, text in kept["files"].items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text.encode("utf-8", "surrogateescape"))
    return Case([word.format(folder=folder) for word in kept["command"]], frozenset(kept["codes"]))


def _copied(pick: Random, folder: Path) -> Path:
    return Path(shutil.copytree(SAMPLES / pick.choice(RUNS), folder, ignore=shutil.ignore_patterns("labels.json")))


def _mutated(pick: Random, folder: Path, count: int) -> None:
    """Mutate files of a folder so many times, now and then where they lie."""
    for _ in range(count):
        files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
        if not files:
            return
        path = pick.choice(files)
        if pick.random() < 0.08:
            _displaced(pick, path, pick.choice(files))
        else:
            path.write_bytes(mutate(pick, path.name, path.read_bytes()))


def _displaced(pick: Random, path: Path, other: Path) -> None:
    """Put something else in the place of a file, or the file in another place."""
    data = other.read_bytes()
    numbered = path.parent / pick.choice(["1", "7", "00002", "٣", "99999999", "9" * 200])
    inside = path.parent / "inside"
    choices: tuple[Callable[[], object], ...] = (
        path.unlink,
        lambda: (path.unlink(), path.mkdir()),
        lambda: (path.unlink(), os.mkfifo(path)),
        lambda: (path.unlink(), path.symlink_to("/dev/zero")),
        lambda: (path.unlink(), path.symlink_to(path.name)),
        lambda: (path.unlink(), path.symlink_to(other)),
        lambda: path.write_bytes(data),
        lambda: path.write_bytes(path.read_bytes() + data),
        lambda: (numbered.mkdir(exist_ok=True), shutil.copy(path, numbered)),
        lambda: (inside.mkdir(exist_ok=True), (inside / f"{pick.randrange(99)}.jsonl").write_bytes(data)),
    )
    pick.choice(choices)()


def _run(pick: Random, number: int, folder: Path) -> Case:
    run = _copied(pick, folder / "run")
    _mutated(pick, run, mutations_of(number))
    if number % PAGE_EVERY == 0:
        redact = pick.choice([(), ("--redact",)])
        return Case(("render", folder / "page.html", run, "--json", folder / "summary.json", *redact))
    form = pick.choice(["json", "json", "json", "json", "text", "markdown"])
    return Case(("summary", run, "--format", form))


def _import(pick: Random, number: int, folder: Path) -> Case:
    """Return an import of mutated logs, and a summary of what was imported."""
    source = folder / "source"
    source.mkdir()
    logs = pick.sample(sorted(SMI.iterdir()), pick.choice([1, 1, 2]))
    kernel = pick.sample([path for path in sorted(KERNEL.iterdir()) if path.is_file()], pick.choice([0, 1]))
    for path in (*logs, *kernel):
        shutil.copy(path, source)
    options: list[object] = []
    if pick.random() < 0.3:
        shutil.copytree(SAMPLES / "healthy" / "yolo", source / "yolo")
        options += ["--yolo", source / "yolo"]
    _mutated(pick, source, mutations_of(number))
    options += ["--kernel-log", source / kernel[0].name] if kernel else []
    odd = pick.choice([*(text for text in TEXTS if "\0" not in text), *NUMBERS])
    for option, usual in (("--timezone", "UTC"), ("--boot-time", "1795000000"), ("--train-start", "1795223200")):
        options += [] if pick.random() < 0.5 else [option, odd if pick.random() < 0.1 else usual]
    made = folder / "made"
    again = Case(("summary", made, "--format", "json"), frozenset({0}))
    names = [source / log.name for log in logs]
    return Case(("import", *names, "--output", made, *options), frozenset({0, 2, 4}), [again])


def _compare(pick: Random, number: int, folder: Path) -> Case:
    """Return a comparison of a mutated run with a sound one, or of a run against gates in a mutated file."""
    runs = folder / "base", folder / "run"
    for run, name in zip(runs, ("run-1", "run-2"), strict=True):
        shutil.copytree(SAME / name, run)
    _mutated(pick, pick.choice(runs), mutations_of(number))
    if pick.random() < 0.5:
        return Case(("compare", *runs, "--json", folder / "out.json"), frozenset({0, 1, 3, 4}))
    gates = folder / pick.choice(["gpu-report.toml", "setup.cfg"])
    gates.write_text('fail_on = ["epoch_time:+5%", "findings:0"]\nwarn_on = ["gpu_work:-3%"]\n')
    if gates.suffix == ".cfg":
        gates.write_text("[gpu-report]\nfail_on =\n    epoch_time:+5%\n    findings:0\n")
    gates.write_bytes(mutate(pick, gates.name, gates.read_bytes()))
    return Case(("check", runs[1], "--config", gates), frozenset({0, 1, 2, 3, 4}))


# --- running it ---------------------------------------------------------------------------------------------------


def failure_of(case: Case) -> Failure | None:
    """Run a case in this process; return what was wrong with it, None where nothing was."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        with _at_most(LONGEST_S):
            found = _failure(case)
    except Hang:
        return Failure(f"hang: {_where(sys.exc_info()[2])}", f"{_words(case)}\n{traceback.format_exc()}")
    grown_mib = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    if found is None and grown_mib > MOST_MIB:
        return Failure("growth: the process needs much more memory", f"{_words(case)}\n{grown_mib:.0f} MiB more")
    return found


def _failure(case: Case) -> Failure | None:
    code, out, err, fault = _called(case.command)
    reason = fault or _wrong(case, code, out, err)
    if reason is not None:
        return Failure(reason.splitlines()[-1], f"{_words(case)}\nexit {code}\n{reason}\n{err[:4000]}")
    return next((found for each in case.then if code == 0 and (found := _failure(each)) is not None), None)


def _called(command: Arguments) -> tuple[int, str, str, str | None]:
    """Run the command line; return its exit code, what it printed, and the traceback of what is no GpuReportError."""
    out, err, faults = io.StringIO(), io.StringIO(), []
    show = cli._show

    def kept(error: BaseException, line: str, *, debug: bool) -> None:
        if not isinstance(error, GpuReportError):
            faults.append(
                "".join(traceback.format_exception(error)) + f"at {_where(error.__traceback__)}: {error!r}"[:300]
            )
        show(error, line, debug=debug)

    cli._show, sys.argv, code = kept, ["gpu-report", *map(str, command)], None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            cli.main()
        except SystemExit as ended:
            code = ended.code
        finally:
            cli._show = show
    return code if isinstance(code, int) else -1, out.getvalue(), err.getvalue(), faults[0] if faults else None


def _wrong(case: Case, code: int, out: str, err: str) -> str | None:
    """Return what is wrong with an exit code and what was printed."""
    commands = "    "  # to copy, which follow what is said
    said = [line for line in err.splitlines() if not line.startswith(("gpu-report: note: ", commands))]
    faults = {
        f"exit {code} of {case.command[0]}": code not in case.codes,
        f"exit {code} with more than a line on stderr": len(said) > 1,
        f"a strange line on stderr: {said[:1]}": any(not line.startswith("gpu-report: ") for line in said),
        f"{len(err):,} characters on stderr, {len(out):,} on stdout": len(err) > MOST_SAID or len(out) > MOST_PRINTED,
        f"exit {code} without a word on stderr, or with some on stdout": code in {2, 4} and (bool(out) or not said),
    }
    found = next((words for words, is_so in faults.items() if is_so), None)
    if found is None and code == 0 and "json" in case.command:
        return implausible(json.loads(out, parse_constant=_no_number))
    return found


def _no_number(text: str) -> None:
    raise ValueError(f"{text} in JSON")


def implausible(summary: dict[str, Any]) -> str | None:
    """Return what of a summary no recording can have shown."""
    run, gpus, ledger = summary["run"], summary["gpus"], summary["ledger"]
    shares = [gpu.get(name) or {} for gpu in gpus for name in gpu if name.endswith("_pct")]
    percents = [value for share in shares if isinstance(share, dict) for value in share.values() if value is not None]
    if not all(-1e-6 <= value <= 100 + 1e-6 for value in (*percents, run["coverage_pct"])):
        return f"percent outside 0 to 100: {min(percents, default=0)} to {max(percents, default=0)}"
    if not 0 <= run["duration_s"] <= LONGEST_RUN_S:
        return f"a run of {run['duration_s']} s"
    seconds, counted = sum(row["gpu_seconds"] for row in ledger), sum(gpu["allocated"] for gpu in gpus)  # not others'
    if not math.isclose(seconds, run["duration_s"] * max(counted, 1), rel_tol=1e-4, abs_tol=0.1):
        return f"a ledger of {seconds} GPU seconds of {run['duration_s']} s on {counted} GPUs"
    spans = [(finding["start_s"], finding["end_s"]) for finding in summary["findings"]]
    return next((f"a finding from {a} to {b} s" for a, b in spans if not a <= b), None)


@contextlib.contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Raise Hang in what takes more of a core's time, or WAITED times as much by the clock: others need cores, too."""

    def stop(*_: object) -> None:
        raise Hang

    timers = ((signal.ITIMER_PROF, signal.SIGPROF, seconds), (signal.ITIMER_REAL, signal.SIGALRM, WAITED * seconds))
    before = {number: signal.signal(number, stop) for _, number, _ in timers}
    for timer, _, most_s in timers:
        signal.setitimer(timer, most_s, 1.0)  # and again where it is held up
    try:
        yield
    finally:
        for timer, number, _ in timers:
            signal.setitimer(timer, 0)
            signal.signal(number, before[number])


def _where(trace: Any) -> str:
    """Return the innermost place in our own code."""
    places = [f"{Path(frame.filename).name}:{frame.name}" for frame in traceback.extract_tb(trace)]
    ours = [f.filename for f in traceback.extract_tb(trace)]
    return next(
        (place for place, name in zip(reversed(places), reversed(ours), strict=True) if "/gpu_report/" in name), "?"
    )


def _words(case: Case) -> str:
    return "gpu-report " + " ".join(repr(str(word)) if len(str(word)) < 300 else "..." for word in case.command)
