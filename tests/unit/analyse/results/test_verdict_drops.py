"""Drops in the verdict: what several GPUs felt at once is one, and who waited for it is told with it."""

import pytest

from gpu_report.analyse.results.verdict.drops import drop_sentences, merged_drops, waiting_sentence
from gpu_report.model import Cause, Finding


def drop(gpu, start_s, end_s, cause="input-stalled", **others):
    return Finding(f"drop-{gpu}", "drop", "warning", gpu, start_s, end_s, "", cause=Cause(cause, 0.8, ""), **others)


def wait(gpu, start_s, end_s):
    return Finding("waiting-1", "waiting-for-peer", "warning", gpu, start_s, end_s, "")


def said(*drops):
    return " ".join(drop_sentences(merged_drops(drops), several_gpus=True))


def test_one_drop_that_two_gpus_felt_is_one_and_takes_its_time_once():
    (merged,) = merged_drops([drop(0, 40.0, 52.0), drop(1, 40.5, 53.0)])
    assert (merged.gpus, merged.span, merged.seconds) == ((0, 1), (40.0, 53.0), 13.0)
    assert said(drop(0, 40.0, 52.0), drop(1, 40.5, 53.0)).startswith(
        "1 unexpected drop lasted 13 s on 2 GPUs at once: "
    )


@pytest.mark.parametrize(
    "other",
    [drop(1, 52.0, 60.0), drop(1, 40.0, 52.0, "thermal"), drop(0, 41.0, 51.0)],
    ids=["later", "of another cause", "on the same GPU"],
)
def test_other_drops_are_counted_apart(other):
    assert len(merged_drops([drop(0, 40.0, 52.0), other])) == 2


def test_expected_drops_and_other_findings_are_none():
    assert merged_drops([drop(0, 40.0, 52.0, expected=True), wait(1, 40.0, 52.0)]) == []


def test_where_drops_were_is_told_only_with_several_gpus():
    assert said(drop(1, 40.0, 52.0)) == ("1 unexpected drop lasted 12 s on GPU 1: waiting for data (workers blocked).")
    (one,) = drop_sentences(merged_drops([drop(0, 40.0, 52.0)]), several_gpus=False)
    assert one == "1 unexpected drop lasted 12 s: waiting for data (workers blocked)."
    assert " lasted 22 s on 2 GPUs: " in said(drop(0, 40.0, 52.0), drop(1, 70.0, 80.0))


def test_who_waited_is_told_with_the_one_drop_that_it_waited_for():
    merged = merged_drops([drop(1, 40.0, 52.0)])
    assert waiting_sentence(merged, [wait(0, 40.2, 52.0)]).startswith("Meanwhile GPU 0 waited for GPU 1")
    assert waiting_sentence(merged, [wait(0, 40.2, 52.0), wait(2, 40.1, 52.0)]).startswith("Meanwhile 2 GPUs waited")
    assert waiting_sentence(merged, [wait(0, 60.0, 72.0)]) == ""  # at another time
    assert waiting_sentence(merged, [wait(1, 40.2, 52.0)]) == ""  # for another GPU than itself
    assert waiting_sentence(merged_drops([drop(1, 40.0, 52.0), drop(1, 70.0, 82.0)]), [wait(0, 40.0, 52.0)]) == ""
