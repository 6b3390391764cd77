"""What a reader takes for the same thing has one number: in the verdict, tiles, tables, findings and the terminal."""

import re

import pytest
from support.samples import NAMES, analysis_of

from gpu_report.catalogue import rule_words
from gpu_report.model import Analysis, epoch_now_s
from gpu_report.render.formatting import duration
from gpu_report.render.page.sections.overview import tiles
from gpu_report.render.page.sections.speedup_limits import limits
from gpu_report.render.run.terminal import render_text

BUSY = re.compile(r"busy (?:only )?(\d+) % of training time")
DROPS_FROM = re.compile(r"epochs drop from (.+?) to ")


def now_of(analysis: Analysis) -> str:
    assert analysis.epoch_now is not None
    return duration(analysis.epoch_now.seconds, aligned=True)


@pytest.mark.parametrize("name", NAMES)
def test_the_length_of_an_epoch_is_the_same_everywhere(name):
    analysis = analysis_of(name)
    if analysis.epoch_now is None:
        assert [epoch for epoch in analysis.epochs if not epoch.first] == []
        assert analysis.speedup_limits == ()
        return
    now = now_of(analysis)
    tile = next(fact for fact in tiles(analysis) if fact.label == "Epochs completed")
    assert not analysis.epochs or re.search(rf"(^|; ){now} (each|for a later one|for a full one) \(", tile.note)
    assert {row[1] for row in limits(analysis).rows} <= {now}
    assert [said for said in DROPS_FROM.findall(analysis.verdict.text) if said != now.replace("\u00a0", " ")] == []
    if analysis.speedup_limits:
        assert analysis.epoch_now.seconds == epoch_now_s(analysis.speedup_limits)
    printed = " ".join(render_text(analysis, width=400).split())
    assert not analysis.epochs or f" {now.replace(chr(160), ' ')} " in printed[printed.index(" Epochs: ") :]


@pytest.mark.parametrize("name", NAMES)
def test_the_parts_of_an_epoch_come_to_its_length(name):
    now = analysis_of(name).epoch_now
    parts = (now.train_s, now.validation_s, now.checkpoint_s) if now else (None,)
    if None not in parts:
        assert sum(parts) == pytest.approx(now.seconds, rel=0.07)


def test_a_finding_about_the_only_gpu_says_the_share_of_the_verdict():
    checked = 0
    for analysis in map(analysis_of, NAMES):
        mine = [finding for finding in analysis.findings if finding.rule == "starved"]
        if len(analysis.gpus) == len(mine) == 1:
            said = {int(each) for each in BUSY.findall(f"{analysis.verdict.text} {mine[0].summary}")}
            assert said in (set(), {round(analysis.verdict.busy_pct)}), (analysis.run.path, rule_words("starved"))
            checked += len(said)
    assert checked > 5
