"""Does recording slow the training? Interleaved: the recorder is stopped and continued (SIGSTOP, SIGCONT) in turn.

    python benchmarks/slowdown.py --seconds 240 --json out.json --interval 1

Trains a convolution net for blocks of BLOCK_S with the recorder running and with it stopped, in alternating order, and
compares steps a second pairwise: the mean difference of neighbouring blocks and its standard error are the answer.
"""

import argparse
import json
import math
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BLOCK_S = 3.0


def training_step():
    import torch  # noqa: PLC0415 - the benchmark explains itself without it

    net = torch.nn.Sequential(*[torch.nn.Conv2d(64, 64, 3, padding=1) for _ in range(4)]).cuda()
    images = torch.randn(32, 64, 160, 160, device="cuda")
    optimiser = torch.optim.SGD(net.parameters(), lr=1e-4)

    def step():
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = net(images).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        torch.cuda.synchronize()

    return step


def rate(step) -> float:
    steps, began = 0, time.perf_counter()
    while time.perf_counter() - began < BLOCK_S:
        step()
        steps += 1
    return steps / (time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--interval", default="1")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    step = training_step()
    rate(step)
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "gpu_report",
            "record",
            "--interval",
            options.interval,
            "--detail",
            "--output",
            folder + "/run",
        ]
        recorder = subprocess.Popen(command)
        time.sleep(3)
        pairs = []
        for number in range(int(options.seconds / (2 * BLOCK_S))):
            block = {}
            for on in (True, False) if number % 2 else (False, True):
                os.kill(recorder.pid, signal.SIGCONT if on else signal.SIGSTOP)
                block[on] = rate(step)
            pairs.append(100 * (1 - block[True] / block[False]))
        os.kill(recorder.pid, signal.SIGCONT)
        recorder.terminate()
        recorder.wait(20)
    error = statistics.stdev(pairs) / math.sqrt(len(pairs))
    result = {
        "interval_s": options.interval,
        "pairs": len(pairs),
        "slower_pct": statistics.mean(pairs),
        "standard_error_pct": error,
    }
    print(
        f"at {options.interval} s: {result['slower_pct']:+.3f} % slower, standard error {error:.3f} %, "
        f"{len(pairs)} pairs of {BLOCK_S} s"
    )
    if options.json:
        options.json.write_text(json.dumps(result))


if __name__ == "__main__":
    main()
