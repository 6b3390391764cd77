"""What `make report` runs: a report of this machine's GPU, or of a shipped real run where there is none."""

import subprocess
import sys
from pathlib import Path

from gpu_report.errors import NothingToRecordError

LIVE_SECONDS = 20  # long enough to see something, short enough to wait for


def main(folder: Path) -> int:
    """Record and render, say which run it is and where the HTML lies; return the exit code."""
    folder.mkdir(parents=True, exist_ok=True)
    live, output = folder / "live", folder / "report.html"
    _say(f"recording this machine's GPU for {LIVE_SECONDS} s ...")
    recorded = _gpu_report("record", "--duration", str(LIVE_SECONDS), "--output", str(live))
    if recorded == NothingToRecordError.exit_code:
        _say("no GPU here: rendering a real YOLO26 training on an H200 instead, which comes with gpu-report")
        code = _gpu_report("demo", str(output))
    else:
        code = recorded or _gpu_report("render", str(output), "--run", str(live))
    if code == 0:
        _say(f"open {output.resolve()} in a browser")
    return code


def _say(line: str) -> None:
    """Print a line before the next command prints its own."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _gpu_report(*arguments: str) -> int:
    return subprocess.run([sys.executable, "-m", "gpu_report", *arguments], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
