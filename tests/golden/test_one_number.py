"""What a reader takes for the same thing has one number: in the verdict, tiles, tables, findings and the terminal."""

import re

import pytest
from support.archives import unpacked
from support.line_faults import analysed
from support.samples import NAMES, analysis_of

from gpu_report.catalogue import RULES, rule_words
from gpu_report.model import Analysis, epoch_now_s
from gpu_report.render.formatting import duration
from gpu_report.render.page.sections.overview import tiles
from gpu_report.render.page.sections.speedup_limits import limits
from gpu_report.render.run.terminal import render_text

BUSY = re.compile(r"busy (?:only )?(\d+) % of training time")
ENDS = re.compile(r"Waiting at the ends of epochs took (\d+) % of the epochs' time")
# Trainings of which each epoch's end waits for something, on one GPU and on two.
HELD_ENDS = [("line_faults", "cb-disk"), ("line_faults", "val-sleep"), ("line_faults_h100_pair", "ranks-cb-disk")]
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


@pytest.mark.parametrize("name", NAMES)
def test_what_the_verdict_says_of_a_finding_is_what_the_finding_says(name):
    """How long and how often it happened, or how much was lost: a reader compares both."""
    analysis = analysis_of(name)
    by_id = {finding.id: finding for finding in analysis.findings}
    for sentence in analysis.verdict.sentences:
        if sentence.kind in {"slowdown", "throttled", "slow-epoch"}:
            (finding,) = (by_id[found] for found in sentence.findings)
            assert sentence.text.startswith(finding.summary), (sentence.text, finding.summary)


@pytest.mark.parametrize("name", NAMES)
def test_where_code_between_calls_has_another_share_than_its_line_the_sentence_says_so(name):
    for finding in (each for each in analysis_of(name).findings if each.rule == "slow-between-calls" and each.where):
        share = re.search(r"(\d+) % of the time for all calls(: |, mostly in )", finding.summary)
        saves = round(100 * (finding.advice[0].gain_at_most or 0.0))
        assert share is not None
        assert share[2] == ", mostly in " or int(share[1]) == saves
        assert int(share[1]) >= saves


def test_a_clock_that_was_lower_has_one_length_and_one_loss():
    checked = 0
    for analysis in map(analysis_of, NAMES):
        for finding in (each for each in analysis.findings if each.rule in {"power-cap", "thermal"}):
            lost = [each.value for each in finding.evidence if each.text == "time of work lost, at most"]
            assert finding.lost_gpu_s is None or len(finding.gpus) > 1 or lost == [pytest.approx(finding.lost_gpu_s)]
            checked += finding.lost_gpu_s is not None
    assert checked > 2


def test_the_ends_of_epochs_have_one_share(tmp_path):
    """That of their findings adds up to what the verdict says: both are of the epochs, not of training steps."""
    checked = 0
    for archive, name in HELD_ENDS:
        analysis = analysed(unpacked(tmp_path / archive, archive) / name)
        shares = [each.share_of_training or 0.0 for each in analysis.findings if RULES[each.rule].at_epoch_ends]
        for said in ENDS.findall(analysis.verdict.text):
            assert int(said) == pytest.approx(100 * sum(shares), abs=1), (archive, name)
            checked += 1
    assert checked > 1
