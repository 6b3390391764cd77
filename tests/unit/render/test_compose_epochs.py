from dataclasses import replace

import pytest

from gpu_report import model
from gpu_report.render.compose_epochs import MOST_BARS, chart, columns, odd_note, rows, unknown_note
from gpu_report.render.moments import Clock

CLOCK = Clock(1_795_223_424.0)


def told(epoch: model.EpochSummary, **facts: object) -> model.EpochSummary:
    """Return an epoch of 36 s of training (9 of them waiting), 5 s of validation and 1.5 s of checkpoint."""
    lengths = {"train_s": 36.0, "validation_s": 5.0, "checkpoint_s": 1.5}
    counts = {"images_per_s": 111.4, "data_wait_s": 9.0, "data_wait_share": 0.25}
    return replace(epoch, **{**lengths, **counts, **facts})


@pytest.fixture
def full(analysis: model.Analysis) -> model.Analysis:
    return replace(analysis, epochs=tuple(told(epoch) for epoch in analysis.epochs))


def cell(analysis: model.Analysis, head: str, number: int = 0) -> str:
    place = columns(analysis).index(head) + 1
    return rows(analysis, CLOCK)[number].cells[place].replace("\u00a0", " ")


def test_the_table_gives_the_parts_of_an_epoch_and_its_wait(full: model.Analysis) -> None:
    assert [cell(full, head) for head in ("Train", "Validation", "Checkpoint")] == ["36 s", "5 s", "1.5 s"]
    assert (cell(full, "Images/s"), cell(full, "Data wait")) == ("111", "9 s, 25 %")


def test_what_no_epoch_knows_has_no_column_and_what_some_know_has(analysis: model.Analysis) -> None:
    assert {"Train", "Images/s", "Data wait"}.isdisjoint(columns(analysis))
    some = replace(analysis, epochs=(analysis.epochs[0], told(analysis.epochs[1])))
    assert (cell(some, "Data wait", 0), cell(some, "Data wait", 1)) == ("n/a", "9 s, 25 %")


def test_what_is_unknown_is_said_only_where_it_is(analysis: model.Analysis, full: model.Analysis) -> None:
    assert "from inside" in unknown_note(analysis)
    assert unknown_note(full) == ""


def test_an_epoch_that_stands_out_says_why_and_is_counted(full: model.Analysis) -> None:
    odd = replace(full.epochs[2], odd=("training took 90 s, usually 36 s", "the mosaic was closed"))
    analysis = replace(full, epochs=(*full.epochs[:2], odd))
    assert [row.odd for row in rows(analysis, CLOCK)] == [
        "",
        "",
        "training took 90 s, usually 36 s; the mosaic was closed",
    ]
    assert odd_note(analysis) == "1 epoch stands out: a part took far longer than in most others."
    assert [bar.odd for bar in chart(analysis).bars] == [False, False, True]


def test_the_parts_of_a_bar_stand_on_each_other_and_fill_its_length(full: model.Analysis) -> None:
    bar = chart(full).bars[0]
    assert [part.kind for part in bar.parts] == ["wait", "train", "validation", "checkpoint"]
    assert bar.parts[0].y + bar.parts[0].height == pytest.approx(100)
    for below, above in zip(bar.parts, bar.parts[1:], strict=False):
        assert above.y + above.height == pytest.approx(below.y, abs=0.02)
    assert bar.parts[0].height / sum(part.height for part in bar.parts) == pytest.approx(9 / 42.5, abs=0.01)


def test_an_epoch_whose_parts_are_not_told_apart_is_all_training(analysis: model.Analysis) -> None:
    assert chart(analysis).kinds == ("train",)


def test_one_stalled_epoch_does_not_flatten_the_others(full: model.Analysis) -> None:
    stalled = told(full.epochs[3], train_s=3600.0)
    view = chart(replace(full, epochs=(*full.epochs[:3], stalled, *full.epochs[4:])))
    assert min(sum(part.height for part in bar.parts) for bar in view.bars) > 30
    assert "1 bar longer than" in view.note
    assert all(part.y >= 0 for bar in view.bars for part in bar.parts)


@pytest.mark.parametrize("count", [1, 3, 249, 3000])
def test_any_number_of_epochs_can_be_drawn(full: model.Analysis, count: int) -> None:
    epochs = tuple(replace(full.epochs[0], epoch=number + 1) for number in range(count))
    view = chart(replace(full, epochs=epochs))
    assert 1 <= len(view.bars) <= MOST_BARS
    assert view.bars[-1].x + view.bars[-1].width <= 1000.1
    assert (view.first, view.last) == ("1", str(count) if count > 1 else "")
    assert ("mean of 12 epochs" in view.note) == (count == 3000)


def test_an_odd_epoch_among_thousands_still_marks_its_bar(full: model.Analysis) -> None:
    epochs = [replace(full.epochs[0], epoch=number + 1) for number in range(3000)]
    epochs[1500] = replace(epochs[1500], odd=("training took 90 s, usually 36 s",))
    view = chart(replace(full, epochs=tuple(epochs)))
    (bar,) = [bar for bar in view.bars if bar.odd]
    assert "training took 90 s" in bar.title


def test_lines_break_where_a_value_is_missing_and_unknown_ones_are_left_out(full: model.Analysis) -> None:
    epochs = tuple(
        replace(epoch, lr=None, loss=None if n == 4 else 2.0 - n / 10) for n, epoch in enumerate(full.epochs)
    )
    lines = {line.kind: line for line in chart(replace(full, epochs=epochs)).lines}
    assert "lr" not in lines
    assert lines["loss"].path.count("M") == 2
    assert (lines["util"].low, lines["util"].high) == ("0 %", "100 %")


def test_without_epochs_there_is_no_chart(analysis: model.Analysis) -> None:
    assert chart(replace(analysis, epochs=())) is None
