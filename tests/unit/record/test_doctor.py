"""`examine` in a subprocess, since the fake library must be there when Python starts."""

import json
import subprocess
import sys

from gpu_report import schema
from tests.conftest import clean_environment

SCRIPT = """
import dataclasses, json
from gpu_report.record import examine
print(json.dumps([dataclasses.asdict(check) for check in examine()]))
"""


def examine(env):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=clean_environment(env),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return {check["name"]: check for check in json.loads(done.stdout)}


def test_a_healthy_machine(fake_nvml):
    fake_nvml.write("count=2\ngpm=1\n")
    checks = examine(fake_nvml.env())
    assert checks["NVIDIA driver"]["ok"]
    assert "2 GPUs" in checks["NVIDIA driver"]["finding"]
    assert f"{len(schema.GPU_QUANTITIES)} of {len(schema.GPU_QUANTITIES)}" in checks["GPU 1"]["finding"]
    assert checks["Xid events"]["ok"]
    assert {"kernel log", "pressure stall information (PSI)", "ultralytics", "torch"} <= set(checks)
    assert all(check["remedy"] for check in checks.values() if not check["ok"])


def test_what_cannot_be_read_is_named_with_its_reason(fake_nvml):
    fake_nvml.write(
        "count=2\nmig=1\nerror.nvmlDeviceGetUtilizationRates=3\ngpu1.error.nvmlDeviceGetUtilizationRates=15\n"
        "error.nvmlEventSetCreate=4\n"
    )
    checks = examine(fake_nvml.env())
    assert not checks["GPU 0"]["ok"]
    assert "gpu_util_pct (Not Supported)" in checks["GPU 0"]["finding"]
    assert "MIG" in checks["GPU 0"]["remedy"]
    assert "GPU is lost" in checks["GPU 1"]["finding"]
    assert not checks["Xid events"]["ok"]
    assert "Insufficient Permissions" in checks["Xid events"]["finding"]


def test_no_driver(tmp_path):
    checks = examine({"LD_LIBRARY_PATH": str(tmp_path)})
    assert not checks["NVIDIA driver"]["ok"]
    assert checks["NVIDIA driver"]["remedy"]
    assert not any(name.startswith("GPU") for name in checks)
