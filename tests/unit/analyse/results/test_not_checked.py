"""What an imported log cannot show stands in `not_checked`, by rule; and what its arguments suggest is a guess."""

import csv
import json
import shutil

import pytest
from support.samples import SAMPLES, analysis_of

from gpu_report.analyse import analyse
from gpu_report.imports.import_logs import import_logs
from gpu_report.load import load_run

COARSE = {"drop", "starved", "power-cap", "thermal", "memory-near-limit"}


@pytest.fixture
def thinned(tmp_path):
    """A sample run of which every so many seconds one reading is left."""

    def make(name, interval_s):
        folder = tmp_path / name
        shutil.copytree(SAMPLES / name, folder)
        with (folder / "samples.csv").open() as file:
            rows = list(csv.DictReader(file))
        kept = [row for row in rows if float(row["mono_s"]) % interval_s < 1]
        with (folder / "samples.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(kept)
        facts = json.loads((folder / "run.json").read_text())
        (folder / "run.json").write_text(json.dumps({**facts, "interval_s": float(interval_s)}))
        return analyse(load_run(folder))

    return make


@pytest.mark.parametrize("interval_s", [15, 30])
def test_rules_that_cannot_see_so_far_apart_are_listed(thinned, interval_s):
    analysis = thinned("starved", interval_s)
    assert {each.rule for each in analysis.not_checked} >= COARSE
    (thermal,) = [each.reason for each in analysis.not_checked if each.rule == "thermal"]
    assert f"readings {interval_s} s apart" in thermal
    (drop,) = [each.reason for each in analysis.not_checked if each.rule == "drop" and "drops under" in each.reason]
    assert drop.endswith("; log every 3 s")
    assert [each.argument for each in analysis.hypotheses] == ["workers", "cache"]
    assert any(sentence.kind == "guess" for sentence in analysis.verdict.sentences)


@pytest.mark.parametrize("interval_s", [15, 30])
def test_nobody_guesses_of_a_gpu_that_was_busy(thinned, interval_s):
    analysis = thinned("healthy", interval_s)
    assert analysis.hypotheses == ()
    assert not any(finding.rule == "drop" for finding in analysis.findings)


def test_readings_a_second_apart_show_what_they_are_looked_at_for():
    analysis = analysis_of("starved")
    assert not {each.rule for each in analysis.not_checked} & COARSE


def test_a_log_without_processes_says_so_and_a_recording_does_not():
    assert "other-process" in {each.rule for each in analysis_of("starved").not_checked}
    assert "other-process" not in {each.rule for each in analysis_of("ab-workers-2").not_checked}


@pytest.mark.parametrize(("name", "placed"), [("starved", False), ("healthy", True), ("ddp", True)])
def test_epochs_that_are_hardly_placed_have_no_parts(tmp_path, name, placed):
    """The files of a YOLO run that was copied have the time of the copy: what readings show places the epochs."""
    folder = tmp_path / name
    shutil.copytree(SAMPLES / name, folder)
    facts = json.loads((folder / "run.json").read_text())
    times = dict.fromkeys(("results_mtime_s", "args_mtime_s", "weights_mtime_s"))
    yolo = [{**each, **times} for each in facts["yolo"]]
    (folder / "run.json").write_text(json.dumps({**facts, "yolo": yolo}))
    analysis = analyse(load_run(folder))
    assert any(phase.name == "validation" for phase in analysis.phases) == placed
    reasons = [each.reason for each in analysis.not_checked if each.rule == "starved"]
    assert [reason.endswith("import again with --train-start TIME") for reason in reasons] == [True] * (not placed)


@pytest.mark.parametrize(("interval_s", "said"), [(5, "Nothing to fix"), (30, "Too few readings to judge")])
def test_a_few_readings_are_no_healthy_training(tmp_path, interval_s, said):
    util = [97, 60, 80, 75, 88, 64]
    rows = [f"2026/11/21 01:{at // 60:02d}:{at % 60:02d}.000, 0, {util[at % 6]} %" for at in range(0, 180, interval_s)]
    log = tmp_path / "smi.csv"
    log.write_text("timestamp, index, utilization.gpu [%]\n" + "\n".join(rows) + "\n")
    import_logs([log], tmp_path / "run", timezone="UTC")
    verdict = analyse(load_run(tmp_path / "run")).verdict
    assert verdict.text.startswith(said)
    assert ("gaps between training steps" in verdict.text) == (said == "Nothing to fix")
