"""`render` of several nodes: which folders are nodes of a job, and what is said where they are not."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.samples import analysis_of

from gpu_report.analyse.job import node_run
from gpu_report.cli import cli, job_folders
from gpu_report.cli.job_folders import nodes_of, refuse_job
from gpu_report.errors import InputError

NODES = Path(__file__).parents[2] / "data" / "two_nodes"
SAMPLES = Path(__file__).parents[3] / "sample_runs"


def invoked(*arguments):
    return CliRunner().invoke(cli, ["render", *map(str, arguments)])


def said(done):
    """Return what was printed, or the error that the command line prints, on one line."""
    return " ".join(f"{done.output} {done.exception or ''}".split())


def of_job(folder, job, nodes=2):
    """Write the beginnings of a run folder."""
    folder.mkdir(parents=True)
    (folder / "samples.csv").write_text("t_s\n")
    (folder / "run.json").write_text(json.dumps({"job": {"id": job, "nodes": nodes}}))
    return folder


def test_a_folder_of_nodes_is_a_job_and_one_of_any_runs_is_none(tmp_path):
    nodes = [of_job(tmp_path / "job" / f"node-{number}", "a") for number in (0, 1)]
    (tmp_path / "job" / "notes").mkdir()
    assert nodes_of([tmp_path / "job"]) == nodes
    assert nodes_of([nodes[0]]) == nodes_of([nodes[0], nodes[0]]) == nodes_of([]) == []
    assert nodes_of(nodes) == nodes
    for number in (0, 1):
        of_job(tmp_path / "runs" / f"run-{number}", None, nodes=1)
    assert nodes_of([tmp_path / "runs"]) == []


def test_two_nodes_become_one_report(tmp_path):
    done = invoked(tmp_path / "job.html", NODES, "--json", tmp_path / "job.json")
    assert done.exit_code == 0, done.output
    assert "rank 1 on node 1: look at" in said(done)
    assert "node 0: node-0, NVIDIA H200" in done.output
    summary = json.loads((tmp_path / "job.json").read_text())
    assert [node["host"] for node in summary["nodes"]] == ["node-0", "node-1"]
    assert "Slowest rank" in (tmp_path / "job.html").read_text()


def test_a_node_by_itself_that_only_waits_is_not_called_fine():
    said = analysis_of("two-nodes-0")
    assert said.verdict.text.startswith("GPU 0 waited 58 s for a rank on another node")
    assert said.verdict.busy_pct < 10
    shares = {row.name: row.share for row in said.ledger}
    assert shares["waiting-for-peer"] > 0.5 > 10 * shares["work"]
    assert "render job.html" not in node_run(said).verdict  # on the job's page that is what one reads
    assert not any(finding.rule == "waiting-for-peer" for finding in analysis_of("two-nodes-1").findings)


def test_processes_of_their_own_read_the_same(tmp_path, monkeypatch):
    assert invoked(tmp_path / "one.html", NODES).exit_code == 0
    monkeypatch.setattr(job_folders, "WORTH_A_PROCESS", 0)
    monkeypatch.setattr(job_folders, "usable_cores", lambda: 2)
    assert invoked(tmp_path / "two.html", NODES).exit_code == 0
    assert (tmp_path / "one.html").read_text() == (tmp_path / "two.html").read_text()


def test_a_node_that_cannot_be_read_is_a_note(tmp_path):
    shutil.copytree(NODES / "node-1", tmp_path / "node-1")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "samples.csv").touch()
    done = invoked(tmp_path / "job.html", tmp_path / "node-1", tmp_path / "broken", "--redact")
    assert done.exit_code == 0, done.output
    assert "node 0: could not be read: " in said(done)
    assert "1 node of 2 could not be read: node 0" in said(done)
    assert str(tmp_path) not in (tmp_path / "job.html").read_text()
    assert "slow_set.py" not in (tmp_path / "job.html").read_text()


def test_one_node_left_in_a_folder_is_a_job_and_its_own_folder_a_run(tmp_path):
    node = of_job(tmp_path / "job" / "node-1", "a")
    assert nodes_of([tmp_path / "job"]) == [node]
    assert nodes_of([node]) == []
    other = of_job(tmp_path / "job" / "node-0", "a")
    assert nodes_of([tmp_path / "job", node]) == [other, node]


def test_a_folder_named_twice_is_said_and_one_that_does_not_exist_is_refused(tmp_path, capsys):
    node = of_job(tmp_path / "job" / "node-1", "a")
    assert nodes_of([node, node]) == []
    assert "node-1 is named twice: it counts once" in capsys.readouterr().err
    with pytest.raises(InputError, match="gone does not exist"):
        nodes_of([node, tmp_path / "gone"])


def test_a_folder_of_nodes_is_no_single_run(tmp_path):
    for number in (0, 1):
        of_job(tmp_path / "job" / f"node-{number}", "a")
    with pytest.raises(InputError, match=r"\(node-0, node-1\): name one of them, or .*gpu-report render job.html"):
        refuse_job(tmp_path / "job")
    for words in (["summary"], ["check"], ["serve"], ["export", "--to", "tensorboard", str(tmp_path / "tb")]):
        done = CliRunner().invoke(cli, [*words, str(tmp_path / "job")])
        assert isinstance(done.exception, InputError)
        assert "name one of them, or to see them together" in said(done)
    of_job(tmp_path / "job" / "other", None, nodes=1)
    with pytest.raises(InputError, match=r"nodes of a job \(node-0, node-1\) and runs that are none \(other\)"):
        nodes_of([tmp_path / "job"])


@pytest.mark.parametrize("as_folder", [True, False])
def test_nodes_of_two_jobs_are_an_error_that_says_so(tmp_path, as_folder):
    nodes = [of_job(tmp_path / "runs" / job, job) for job in "ab"]
    done = invoked(tmp_path / "x.html", *([tmp_path / "runs"] if as_folder else nodes))
    assert done.exit_code != 0
    assert "a is of job a," in said(done)
    assert "render each job by itself" in said(done)
    assert not (tmp_path / "x.html").exists()


def test_what_is_no_job_is_refused(tmp_path):
    done = invoked(tmp_path / "x.html", tmp_path / "gone", tmp_path / "away")
    assert (done.exit_code != 0, "gone" in said(done)) == (True, True)
    done = invoked(tmp_path / "x.html", NODES, "--run", SAMPLES / "healthy")
    assert "two runs are named" in said(done)
