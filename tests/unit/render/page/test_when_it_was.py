"""A card says in which epochs of which training a finding was: all epochs that it took a good part of."""

from dataclasses import replace

import pytest

from gpu_report import model
from gpu_report.render.page.compose import compose

FELL = model.Finding(
    *("slowdown-1", "slowdown", "warning", 0, 0.0, 1.0, "It fell."),
    cause=model.Cause("input-storage", 0.9, "the data loader waited for storage"),
    evidence=(model.Evidence("idle", 50.0, "%"),),
)


def cause_and_length(analysis: model.Analysis, finding: model.Finding) -> str:
    (card,) = compose(replace(analysis, findings=(finding,))).findings.cards
    return card.cause_and_length.replace("\u00a0", " ")


@pytest.mark.parametrize(("last", "until", "said"), [(2, 1.0, "in epoch 3"), (4, 0.5, "in epochs 3 to 5")])
def test_what_lasts_over_several_epochs_names_the_last_one(
    analysis: model.Analysis, last: int, until: float, said: str
) -> None:
    begin, end = analysis.epochs[2], analysis.epochs[last]
    end_s = end.start_t_s + until * (end.end_t_s - end.start_t_s)
    finding = replace(FELL, start_t_s=begin.start_t_s, end_t_s=end_s, epoch=3)
    assert cause_and_length(analysis, finding).endswith(said)
    just_begun = replace(finding, end_t_s=end.end_t_s + 0.05 * (end.end_t_s - end.start_t_s))
    assert cause_and_length(analysis, just_begun).endswith(said)
    of_two = replace(finding, which_training="training 1 of 2")
    assert cause_and_length(analysis, of_two).endswith(f"{said}, training 1 of 2")


def test_what_lasts_all_through_one_of_several_trainings_names_it(analysis: model.Analysis) -> None:
    lasts = replace(FELL, rule="starved", end_t_s=1000.0)
    assert cause_and_length(analysis, lasts).endswith("all through training")
    assert cause_and_length(analysis, replace(lasts, which_training="training 2 of 2")).endswith(
        "all through training 2 of 2"
    )


def test_what_ends_of_epochs_take_is_so_in_each_epoch(analysis: model.Analysis) -> None:
    ends = replace(FELL, rule="long-epoch-ends", end_t_s=1000.0, summary="Validation takes 40 % of each training.")
    assert cause_and_length(analysis, ends).endswith("each epoch")
    assert cause_and_length(analysis, replace(ends, which_training="training 2 of 2")).endswith(
        "each epoch of training 2 of 2"
    )
