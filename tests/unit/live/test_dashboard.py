"""The dashboard of docs/: what Grafana's own schema knows, and no metric that is not there."""

import json
import re
from pathlib import Path

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from gpu_report.live.alarms import alarms
from gpu_report.live.web.metrics import GPU_GAUGES, PREFIX, TRAINING_GAUGES, exposition
from gpu_report.live.web.status import status

DASHBOARD = json.loads((Path(__file__).parents[3] / "docs" / "grafana" / "dashboard.json").read_text())


def lost(of, kept, path=""):
    """Yield what is in one JSON value and not in the other."""
    if isinstance(of, dict):
        for name, value in of.items():
            yield from lost(value, kept.get(name), f"{path}/{name}") if isinstance(kept, dict) else [path]
    elif isinstance(of, list) and isinstance(kept, list) and len(of) == len(kept):
        for at, (one, other) in enumerate(zip(of, kept, strict=True)):
            yield from lost(one, other, f"{path}/{at}")
    elif of != kept:
        yield f"{path}: {of}"


def test_grafana_knows_every_field():
    register_default_plugins()
    read = Dashboard.from_json(DASHBOARD)
    assert list(lost(DASHBOARD, json.loads(JSONEncoder(sort_keys=True).encode(read)))) == []


def test_every_metric_that_it_asks_for_is_one(growing, looked_at):
    growing.inside("run", 0, task="train", rank=0)
    growing.rows(0, 90, seconds=3)
    run, now_s = looked_at(growing, 3)
    body, _ = exposition(lambda: status(run, now_s, alarms(run, now_s), None, None), "")
    there = set(re.findall(rf"^{PREFIX}\w+", body.decode(), re.MULTILINE))
    there |= {f"{PREFIX}_{name}" for name, *_ in (*GPU_GAUGES, *TRAINING_GAUGES)}
    asked = set(re.findall(rf"{PREFIX}_\w+", json.dumps(DASHBOARD["panels"])))
    assert asked - there == set()
    assert len(asked) > 10
