"""One number a cause: what the verdict says that a cause cost is what the table of possible speed-up says."""

import re

import pytest
from conftest import REPOSITORY
from support.archives import unpacked

from gpu_report.analyse import analyse
from gpu_report.catalogue import OTHER_NODE
from gpu_report.load import load_run
from gpu_report.render.speedup_rows import shown_rows

SAMPLES = sorted(REPOSITORY.glob("sample_runs/*/run.json"))
ARCHIVES = sorted(
    path.name.removesuffix(".tar.xz")
    for pattern in ("line_faults*", "unseen_*")
    for path in (REPOSITORY / "tests" / "data").glob(f"{pattern}.tar.xz")
)
COST = re.compile(
    r"\b(?:cost|cost the training|took|waited|idle for|slowed for)(?: about| at most)? ((?:\d[\d.]* (?:s|min|h)\b ?)+)"
)
SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0}
ROUNDED, ROUNDED_S = 0.06, 0.6  # two digits, or whole seconds


def said_s(text):
    """Return each cost that a sentence names, in seconds."""
    parts = (re.findall(r"([\d.]+) (s|min|h)", words) for words in COST.findall(text))
    return [sum(float(value) * SECONDS[unit] for value, unit in each) for each in parts]


def contradictions(analysis):
    """Return the figures of the verdict that no row of the table of the same cause has, nor their sum with another."""
    found = []
    # how long a rank waited for another node is said, not what that cost
    elsewhere = {finding.id for finding in analysis.findings if finding.waited_for == OTHER_NODE}
    for row in shown_rows(analysis):
        limit = row.limit
        if not limit.is_mean or limit.costs_in_run_s is None:
            continue
        mine = [s for s in analysis.verdict.sentences if s.about == limit.cause and s.kind in {"look", "fix"}]
        mine = [s for s in mine if not elsewhere & set(s.findings)]
        figures = [figure for sentence in mine for figure in said_s(sentence.text)]
        same = [r.limit.costs_in_run_s or 0.0 for r in shown_rows(analysis) if r.limit.cause == limit.cause]
        near = [any(abs(f - s) <= ROUNDED_S + ROUNDED * s for s in same) for f in figures]
        if figures and not all(near) and not (len(mine) == 1 and _is_a_part(analysis, limit, figures)):
            found.append((limit.cause, figures, same))
    return found


def _is_a_part(analysis, limit, figures):
    """Tell whether a sentence is of one of several findings of a cause that are told apart, such as of a pause."""
    led = {
        f
        for s in analysis.verdict.sentences
        for f in s.findings
        if s.about == limit.cause and s.kind in {"look", "fix"}
    }
    others = [f for f in analysis.findings if f.cause_name == limit.cause and not f.expected and f.id not in led]
    return bool(others) and max(figures) < limit.costs_in_run_s


@pytest.fixture(scope="module")
def unseen(tmp_path_factory):
    return unpacked(tmp_path_factory.mktemp("unseen"), *ARCHIVES)


def test_the_verdict_of_no_sample_contradicts_the_table():
    assert {
        path.parent.name: found for path in SAMPLES if (found := contradictions(analyse(load_run(path.parent))))
    } == {}


def test_the_verdict_of_no_unseen_run_contradicts_the_table(unseen):
    runs = sorted(path.parent for path in unseen.glob("*/run.json"))
    assert {run.name: found for run in runs if (found := contradictions(analyse(load_run(run))))} == {}
