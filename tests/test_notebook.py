"""The notebook of the documentation, executed as a person would: attach, a live output, and what `show` shows."""

import json
import os
import re
from pathlib import Path

import pytest
from support.yolo import MODEL

from gpu_report.load import load_run
from tests.conftest import REPOSITORY, clean_environment

pytestmark = pytest.mark.yolo

NOTEBOOK = REPOSITORY / "docs" / "notebook.ipynb"
LARGEST_SHOWN = 300_000  # bytes that a run adds to a notebook
LARGEST_LIVE = 5_000  # bytes of an update
# What the notebook does not show: that nothing of ours is left when the training is over.
LEFT = "import os\nprint(os.environ.get('GPU_REPORT_RUN_FOLDER'), 'gpu_report' in os.environ.get('PYTHONPATH', ''))"


def executed(folder: Path, monkeypatch, environment) -> list:
    """Return the code cells of the notebook, run by a kernel in `folder`/docs, and one that looks what is left."""
    import nbformat  # noqa: PLC0415 - the other tests need no kernel
    from nbclient import NotebookClient  # noqa: PLC0415 - likewise

    for name, value in clean_environment(environment).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    monkeypatch.setenv("IPYTHONDIR", str(folder / "ipython"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(folder / "runtime"))
    notebook = nbformat.reads(NOTEBOOK.read_text().replace("yolo26n.yaml", MODEL), as_version=4)
    (folder / "docs").mkdir()
    (folder / "sample_runs").symlink_to(REPOSITORY / "sample_runs")
    notebook.cells.append(nbformat.v4.new_code_cell(LEFT))
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(folder / "docs")}}).execute()
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def keep_output_of(sample) -> None:
    """Put what the cell of the recorded training shows into the documentation."""
    import nbformat  # noqa: PLC0415 - likewise

    notebook = nbformat.read(NOTEBOOK, as_version=4)
    (kept,) = (cell for cell in notebook.cells if cell.source == sample.source)
    kept.outputs, kept.execution_count = sample.outputs, None
    for output in kept.outputs:
        output.execution_count = None
    nbformat.write(notebook, NOTEBOOK)


def html_of(cell) -> list[str]:
    return [output.data["text/html"] for output in cell.outputs if "text/html" in output.get("data", {})]


def test_the_notebook_of_the_documentation_records_shows_and_leaves_nothing(tmp_path, monkeypatch, offline):
    _, train, show, sample, left = executed(tmp_path, monkeypatch, offline)
    (live,) = html_of(train)
    assert "gpu_report.show(" in live, "the verdict did not take the place of the live output"
    assert len(live.encode()) < LARGEST_LIVE
    (folder,) = (tmp_path / "docs" / "gpu-runs").iterdir()
    run = load_run(folder)
    assert run.recording.ended_by == "signal"
    (inside,) = run.inside
    assert (inside.ended, len(inside.epochs)) == ("finished", 2)
    assert left.outputs[0].text == "None False\n"

    for cell in (show, sample):
        (html,) = html_of(cell)
        assert len(json.dumps(html)) < LARGEST_SHOWN
        assert not re.search(r"<(script|style|iframe|svg)", html)
        # the notebook's training ran on the CPU, and only others used the GPU
        assert ("Where the GPU time went" in html) == (cell is sample)
    assert 'href="report.html"' in html_of(show)[0]
    assert "<svg" in (tmp_path / "docs" / "report.html").read_text()
    assert "workers=11" in html_of(sample)[0]
    assert "workers=11" in sample.outputs[0].data["text/plain"]
    if os.environ.get("UPDATE_GOLDEN"):
        keep_output_of(sample)
    verdict = json.dumps(re.search(r"<b>.*?</b>", html_of(sample)[0])[0], ensure_ascii=False)[1:-1]
    assert verdict in NOTEBOOK.read_text(), f"its output is of an earlier version: UPDATE_GOLDEN=1 pytest {__file__}"
