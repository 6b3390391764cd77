"""Which lines a finding names by a few dumps of py-spy, and what these may not decide."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.json_schema import errors
from support.runs import make_run, readings
from support.samples import run_of
from support.stacks import LOADER, LOG, LOGS, LOOP, READ, READS, RESTS, TRAINER, TRAINS, WAITS

from gpu_report.analyse import analyse
from gpu_report.analyse.results import dump_locations as room
from gpu_report.model import Frame, ProcessDumps
from gpu_report.render.redaction.redact import redact
from gpu_report.render.run.summary_json import build_summary
from gpu_report.wording import where_words

SCHEMA = json.loads((Path(__file__).parents[4] / "docs/summary.schema.json").read_text())
SAVE = (Frame("/home/me/callbacks.py", 60, "save"), TRAINER)
DROP_S = 60.0  # when the drop of `played` begins, which lasts for 30 s


def dumps(*seen, pid=1, role="main", parent=None):
    """Return the dumps of a process: (s, stack)."""
    return ProcessDumps(pid, role, np.array([at for at, _ in seen], dtype=float), tuple(s for _, s in seen), parent)


def in_drop(*stacks, **who):
    """Return a dump of each stack at the pauses of a recorder."""
    return dumps(*zip(DROP_S + np.array([3, 4, 5.5, 8, 11, 16, 24][: len(stacks)]), stacks, strict=True), **who)


def where(*processes, **changes):
    run = make_run(readings((0, 5), (90, 55), (2, 30), (90, 60)))
    analysis = analyse(dataclasses.replace(run, dumps=processes, **changes))
    (drop,) = [f for f in analysis.findings if f.rule == "drop" and not f.expected]
    return [(at.process, at.function, round(at.share, 2), at.dumps) for at in drop.where]


def test_a_drop_names_the_line_and_how_many_dumps_saw_it():
    assert where(in_drop(*[LOGS] * 5)) == [("main", "log_images", 1.0, 5)]


def test_a_dump_stands_for_the_time_around_it():
    # 3 + 0.5, 1.25, 2, 2.75: to 9.5 s into the drop; then 4, 6.5 and 8 s
    found = where(in_drop(LOGS, LOGS, LOGS, LOGS, SAVE, SAVE, SAVE))
    assert found == [("main", "save", 0.66, 7), ("main", "log_images", 0.34, 7)]


def test_two_dumps_may_be_chance():
    assert where(in_drop(LOGS, LOGS)) == []
    assert where(in_drop(LOGS, LOGS, pid=1), in_drop(LOGS, LOGS, pid=2)) == []  # of two ranks at the same moments
    assert room.LEAST_DUMPS == 3


def test_dumps_outside_of_a_finding_say_nothing_of_it():
    assert where(dumps(*[(DROP_S - 40 + n, LOGS) for n in range(20)])) == []


def test_while_the_main_process_waits_for_its_loader_the_workers_come_first():
    workers = [in_drop(*[READS] * 3, pid=2, role="worker", parent=1), in_drop(*[RESTS] * 3, pid=3, role="worker")]
    found = where(in_drop(*[WAITS] * 4), *workers)
    assert found[0] == ("workers", "read_slowly", 1.0, 3)
    assert found[1][0] == "main"


def test_while_it_is_elsewhere_its_workers_are_of_no_interest():
    assert where(in_drop(*[LOGS] * 4), in_drop(*[READS] * 4, pid=2, role="worker", parent=1))[0][1] == "log_images"
    assert LOOP in READS
    assert LOADER in WAITS
    assert READ in READS


def test_of_several_processes_those_on_the_gpu_count():
    table = pd.DataFrame(
        {"t_s": [1.0, 1.0], "gpu": [0, 1], "pid": [1, 2], "name": "python", "change": "appeared", "owner": "trainer"}
    ).assign(memory_used_mib=1.0, gpu_util_pct=np.nan)
    found = where(in_drop(*[LOGS] * 4), in_drop(*[SAVE] * 4, pid=2), processes=table)
    assert [function for _, function, *_ in found] == ["log_images"]
    assert where(in_drop(*[SAVE] * 4, pid=2), processes=table) == []  # it is on the other GPU


def test_the_summary_says_of_how_many_dumps_a_line_is():
    run = make_run(readings((0, 5), (90, 55), (2, 30), (90, 60)))
    summary = build_summary(analyse(dataclasses.replace(run, dumps=(in_drop(*[LOGS] * 5),))))
    assert errors(summary, SCHEMA) == []
    (location,) = [each for finding in summary["findings"] for each in finding["where"]]
    assert location["dumps"] == 5


def test_stacks_that_are_not_known_are_none():
    assert where(in_drop(LOGS, (), LOGS, LOGS)) == [("main", "log_images", 1.0, 3)]
    assert where(in_drop((), (), (), ())) == []


@pytest.mark.parametrize("stack", [LOGS, WAITS, TRAINS])
def test_no_cause_and_no_share_of_the_gpus_time_goes_by_dumps(stack):
    run = run_of("s-loader-stall")
    at_s = np.arange(0.0, run.duration_s, 1.0)
    with_dumps = dataclasses.replace(run, dumps=(ProcessDumps(1, "main", at_s, (stack,) * len(at_s)),))
    before, after = analyse(run), analyse(with_dumps)
    assert [(f.id, f.cause, f.severity, f.evidence) for f in after.findings] == [
        (f.id, f.cause, f.severity, f.evidence) for f in before.findings
    ]
    assert any(finding.where for finding in after.findings)
    assert after.ledger == before.ledger
    assert after.code_time == ()


def test_the_verdict_is_not_as_sure_as_with_notes():
    run = run_of("s-loader-stall")
    at_s = np.arange(0.0, run.duration_s, 1.0)
    analysis = analyse(dataclasses.replace(run, dumps=(ProcessDumps(1, "main", at_s, (LOGS,) * len(at_s)),)))
    assert "Look at `log_images` (callbacks.py:41): the GPU was probably idle for 24 s there." in analysis.verdict.text
    drop = next(finding for finding in analysis.findings if finding.where)
    assert where_words(drop.where[0]) == f"log_images (callbacks.py:41) 100 % ({drop.where[0].dumps} stack dumps)"


def test_redacted_the_lines_have_placeholders():
    run = make_run(readings((0, 5), (90, 55), (2, 30), (90, 60)))
    hidden = redact(analyse(dataclasses.replace(run, dumps=(in_drop(*[LOGS] * 5),))))
    assert hidden.run.dumps == ()
    (drop,) = [finding for finding in hidden.findings if finding.where]
    assert LOG.function not in repr(hidden)
    assert "callbacks.py" not in repr(hidden)
    assert (drop.where[0].line, drop.where[0].dumps) == (LOG.line, 5)
