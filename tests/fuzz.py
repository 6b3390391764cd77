"""Run the fuzzers in several processes (`make fuzz`), or one case again: `python tests/fuzz.py --case NUMBER`.

Every failing input stays under .fuzz/SEED-NUMBER/, with what was wrong with it in failure.txt.
"""

import argparse
import faulthandler
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

from support.fuzzing import (  # noqa: E402 - it is reached by the line above
    LONGEST_S,
    WAITED,
    Failure,
    failure_of,
    make_case,
    numbers_of,
)

KEPT = Path(__file__).parents[1] / ".fuzz"
DEAD_S = 2 * WAITED * LONGEST_S  # a case that even the alarms do not stop


def main() -> int:
    """Run as many mutations as asked for; return 1 where any fails."""
    options = _options()
    KEPT.mkdir(exist_ok=True)
    if options.case is not None:
        failure = _run(options.seed, options.case)
        print(failure.details if failure else "nothing is wrong with it")
        return int(failure is not None)
    if options.worker is not None:
        return _work(options)
    return _watch(options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutations", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--case", type=int, help="run this one, and say what is wrong with it")
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    return parser.parse_args()


def _run(seed: int, number: int) -> Failure | None:
    folder = KEPT / f"{seed}-{number}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    failure = failure_of(make_case(seed, number, folder))
    if failure is None:
        shutil.rmtree(folder)
    else:
        (folder / "failure.txt").write_text(f"{failure.reason}\n\n{failure.details}\n", errors="backslashreplace")
    return failure


def _work(options: argparse.Namespace) -> int:
    """Run every n-th case; each number is printed before it is run, so that one that kills the process is known."""
    for number in numbers_of(options.mutations)[options.worker :: options.jobs]:
        if number >= options.first:
            print(number, flush=True)
            faulthandler.dump_traceback_later(DEAD_S, exit=True)
            _run(options.seed, number)
    faulthandler.cancel_dump_traceback_later()
    return 0


def _watch(options: argparse.Namespace) -> int:
    """Start the workers, and anew after one that a case has killed; say what failed, by reason."""
    began, total = time.monotonic(), len(numbers_of(options.mutations))
    for old in KEPT.glob(f"{options.seed}-*"):
        shutil.rmtree(old)
    logs = [(KEPT / f"worker-{worker}.log").open("w+") for worker in range(options.jobs)]
    running = {worker: _started(options, worker, 0, logs[worker]) for worker in range(options.jobs)}
    while running:
        time.sleep(0.5)
        for worker, process in list(running.items()):
            if process.poll() is None:
                continue
            del running[worker]
            if process.returncode:
                logs[worker].seek(0)
                words = logs[worker].read().split("\n")
                dead = max(int(word) for word in ("-1", *words) if word.lstrip("-").isdigit())
                (KEPT / f"{options.seed}-{dead}" / "failure.txt").write_text(
                    f"exit {process.returncode} of the process\n\n" + "\n".join(words[-60:])
                )
                running[worker] = _started(options, worker, dead + 1, logs[worker])
    failed = sorted(KEPT.glob(f"{options.seed}-*/failure.txt"))
    reasons = Counter(path.read_text().split("\n", 1)[0] for path in failed)
    for reason, times in reasons.most_common():
        example = next(path.parent.name for path in failed if path.read_text().startswith(reason + "\n"))
        print(f"{times:6} {reason}  ({KEPT.name}/{example})")
    took = f"{(time.monotonic() - began) / 60:.1f} min"
    print(f"{options.mutations:,} mutations in {total:,} cases, seed {options.seed}: {len(failed)} failed, {took}")
    return int(bool(failed))


def _started(options: argparse.Namespace, worker: int, first: int, log: object) -> subprocess.Popen[bytes]:
    words = ["--mutations", options.mutations, "--seed", options.seed, "--jobs", options.jobs, "--first", first]
    command = [sys.executable, "-W", "ignore", __file__, "--worker", worker, *words]
    return subprocess.Popen(list(map(str, command)), stdout=log, stderr=log)


if __name__ == "__main__":
    sys.exit(main())
