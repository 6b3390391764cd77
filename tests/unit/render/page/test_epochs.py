from dataclasses import replace

import pytest

from gpu_report import model
from gpu_report.render.page.sections.epochs import (
    MOST_BARS,
    MOST_ON_A_PHONE,
    MOST_ROWS,
    MOST_TICKS,
    WITH_WAIT,
    chart,
    columns,
    known_note,
    outliers_note,
    rows,
    rows_note,
)
from gpu_report.render.run_clock import WallClock

CLOCK = WallClock(1_795_223_424.0)


def told(epoch: model.EpochSummary, **facts: object) -> model.EpochSummary:
    """Return an epoch of 36 s of training (9 of them waiting), 5 s of validation and 1.5 s of checkpoint."""
    lengths = {"train_s": 36.0, "validation_s": 5.0, "checkpoint_s": 1.5}
    counts = {"images_per_s": 111.4, "data_wait_s": 9.0, "data_wait_share": 0.25}
    return replace(epoch, **{**lengths, **counts, **facts})


@pytest.fixture
def full(analysis: model.Analysis) -> model.Analysis:
    return replace(analysis, epochs=tuple(told(epoch) for epoch in analysis.epochs))


def plain(words: str) -> str:
    return words.replace("\u00a0", " ")


def cell(analysis: model.Analysis, head: str, number: int = 0) -> str:
    place = columns(analysis).index(head) + 1
    return rows(analysis, CLOCK)[number].cells[place].replace("\u00a0", " ")


def test_the_table_gives_the_parts_of_an_epoch_and_its_wait(full: model.Analysis) -> None:
    assert [cell(full, head) for head in (WITH_WAIT, "Validation", "Checkpoint")] == ["36.0 s", "5.0 s", "1.5 s"]
    assert (cell(full, "Images/s"), cell(full, "Data wait")) == ("111", "9.0 s, 25 %")


def test_the_table_names_what_of_the_first_epoch_was_warm_up(full: model.Analysis) -> None:
    warm = replace(full, epochs=(replace(full.epochs[0], warm_up_s=5.0), replace(full.epochs[1], warm_up_s=0.0)))
    assert (cell(warm, "Warm-up", 0), cell(warm, "Warm-up", 1)) == ("5.0 s", "")
    cold = replace(full, epochs=tuple(replace(epoch, warm_up_s=0.0) for epoch in full.epochs))
    assert "Warm-up" not in columns(cold)


def test_what_no_epoch_knows_has_no_column_and_what_some_know_has(analysis: model.Analysis) -> None:
    assert {"Train", WITH_WAIT, "Images/s", "Data wait"}.isdisjoint(columns(analysis))
    unwaited = replace(analysis, epochs=tuple(replace(epoch, train_s=36.0) for epoch in analysis.epochs))
    assert "Train" in columns(unwaited)
    some = replace(analysis, epochs=(analysis.epochs[0], told(analysis.epochs[1])))
    assert (cell(some, "Data wait", 0), cell(some, "Data wait", 1)) == ("n/a", "9.0 s, 25 %")


def test_what_is_unknown_is_said_only_where_it_is(analysis: model.Analysis, full: model.Analysis) -> None:
    assert "callbacks reported them" in known_note(analysis)
    assert known_note(full) == "GPU utilisation here is of whole epochs, validation and saving included."


def test_an_epoch_that_stands_out_says_why_and_is_counted(full: model.Analysis) -> None:
    outliers = replace(full.epochs[2], outliers=(model.Outlier("train", 90.0, 36.0),), closing=True)
    analysis = replace(full, epochs=(*full.epochs[:2], outliers))
    assert [row.outliers for row in rows(analysis, CLOCK)] == [
        "",
        "",
        "Training took 1\u00a0min 30\u00a0s, typical 36\u00a0s; the mosaic was closed and the data loader restarted",
    ]
    assert outliers_note(analysis) == "1 epoch stands out: a part of it took far longer than in most others."
    assert [bar.outliers for bar in chart(analysis).bars] == [False, False, True]


def test_the_parts_of_a_bar_stand_on_each_other_and_fill_its_length(full: model.Analysis) -> None:
    bar = chart(full).bars[0]
    assert [part.kind for part in bar.parts] == ["wait", "train", "validation", "checkpoint"]
    assert bar.parts[0].y + bar.parts[0].height == pytest.approx(100)
    for below, above in zip(bar.parts, bar.parts[1:], strict=False):
        assert above.y + above.height == pytest.approx(below.y, abs=0.02)
    assert bar.parts[0].height / sum(part.height for part in bar.parts) == pytest.approx(9 / 42.5, abs=0.01)


def test_warm_up_is_drawn_so_that_a_bar_is_as_long_as_the_table_says(full: model.Analysis) -> None:
    first = told(full.epochs[0], warm_up_s=7.5)
    bar, other = chart(replace(full, epochs=(first, *full.epochs[1:]))).bars[:2]
    assert [part.kind for part in bar.parts] == ["warm-up", "wait", "train", "validation", "checkpoint"]
    assert sum(part.height for part in bar.parts) == pytest.approx(100)
    assert sum(part.height for part in other.parts) == pytest.approx(100 * 42.5 / 50, abs=0.05)
    assert "warm-up 7.5 s" in plain(bar.title)


def test_what_was_no_wait_for_data_is_a_part_of_its_own(full: model.Analysis) -> None:
    held = replace(full, epochs=(*full.epochs[:2], told(full.epochs[2], stall_s=18.0, stall_cause="trainer-blocked")))
    drawn = chart(held)
    assert [part.kind for part in drawn.bars[2].parts] == ["wait", "held", "train", "validation", "checkpoint"]
    assert drawn.bars[2].parts[1].height == pytest.approx(2 * drawn.bars[2].parts[0].height, abs=0.02)
    assert "waiting for data 9 s, blocked between steps 18 s, train 9 s" in plain(drawn.bars[2].title)
    assert "held" not in [part.kind for part in drawn.bars[0].parts]


def test_an_epoch_whose_parts_are_not_told_apart_is_all_training(analysis: model.Analysis) -> None:
    assert chart(analysis).kinds == ("train",)


def test_one_stalled_epoch_does_not_flatten_the_others(full: model.Analysis) -> None:
    stalled = told(full.epochs[3], train_s=3600.0)
    view = chart(replace(full, epochs=(*full.epochs[:3], stalled, *full.epochs[4:])))
    assert min(sum(part.height for part in bar.parts) for bar in view.bars) > 30
    assert "1 bar longer than" in view.note
    assert all(part.y >= 0 for bar in view.bars for part in bar.parts)


@pytest.mark.parametrize("count", [3, 249, 3000])
def test_any_number_of_epochs_can_be_drawn(full: model.Analysis, count: int) -> None:
    epochs = tuple(replace(full.epochs[0], epoch=number + 1) for number in range(count))
    view = chart(replace(full, epochs=epochs))
    assert 1 <= len(view.bars) <= MOST_BARS
    assert view.bars[-1].x + view.bars[-1].width <= 1000.1
    assert view.ticks[0][1] == "1"
    assert len(view.ticks) <= MOST_TICKS + 1
    assert len(view.few_ticks) <= MOST_ON_A_PHONE + 1
    assert all(0 < x < 1000 for x, _ in view.ticks)
    assert ("mean of 12 epochs" in view.note) == (count == 3000)


def test_bars_fill_the_width_and_a_name_stands_under_each_middle(full: model.Analysis) -> None:
    epochs = tuple(replace(full.epochs[0], epoch=number + 1) for number in range(60))
    view = chart(replace(full, epochs=epochs))
    assert [name for _, name in view.ticks[:3]] == ["1", "5", "10"]
    assert view.ticks[1][0] == pytest.approx(view.bars[4].x + view.bars[4].width / 2, abs=0.1)
    three = chart(replace(full, epochs=epochs[:3]))
    assert [name for _, name in three.ticks] == ["1", "2", "3"]
    assert three.bars[0].x == pytest.approx(1000 - three.bars[-1].x - three.bars[-1].width, abs=0.1)


def test_an_odd_epoch_among_thousands_still_marks_its_bar(full: model.Analysis) -> None:
    epochs = [replace(full.epochs[0], epoch=number + 1) for number in range(3000)]
    epochs[1500] = replace(epochs[1500], outliers=(model.Outlier("train", 90.0, 36.0),))
    view = chart(replace(full, epochs=tuple(epochs)))
    (bar,) = [bar for bar in view.bars if bar.outliers]
    assert "training took 1\u00a0min 30\u00a0s" in bar.title


def test_lines_break_where_a_value_is_missing_and_unknown_ones_are_left_out(full: model.Analysis) -> None:
    epochs = tuple(
        replace(epoch, lr=None, loss=None if n == 4 else 2.0 - n / 10) for n, epoch in enumerate(full.epochs)
    )
    lines = {line.kind: line for line in chart(replace(full, epochs=epochs)).lines}
    assert "lr" not in lines
    assert lines["loss"].path.count("M") == 2
    assert (lines["util"].low, lines["util"].high) == ("0 %", "100 %")


@pytest.mark.parametrize("count", [0, 1, 2])
def test_few_epochs_have_the_table_alone(analysis: model.Analysis, count: int) -> None:
    assert chart(replace(analysis, epochs=analysis.epochs[:count])) is None


def test_of_very_many_epochs_the_table_lists_the_ends_and_those_that_stand_out(full: model.Analysis) -> None:
    epochs = [replace(full.epochs[0], epoch=number + 1) for number in range(3000)]
    epochs[1500] = replace(epochs[1500], outliers=(model.Outlier("train", 90.0, 36.0),))
    many = replace(full, epochs=tuple(epochs))
    listed = [row.cells[0] for row in rows(many, CLOCK)]
    end = MOST_ROWS // 4
    assert listed == [*map(str, range(1, end + 1)), "1501", *map(str, range(3001 - end, 3001))]
    assert "251 of 3,000 epochs: the first, the last, and those that stand out." in rows_note(many)
    assert rows_note(full) == ""
    all_odd = replace(
        full, epochs=tuple(replace(epoch, outliers=(model.Outlier("train", 9.0, 1.0),)) for epoch in epochs)
    )
    assert len(rows(all_odd, CLOCK)) == MOST_ROWS


@pytest.mark.parametrize("measure", ["train_s", "data_wait_s", "validation_s", "checkpoint_s", "end_t_s"])
def test_of_too_many_that_stand_out_the_table_lists_those_that_lost_most_time(
    analysis: model.Analysis, full: model.Analysis, measure: str
) -> None:
    plain = (analysis if measure == "end_t_s" else full).epochs[0]
    usual = getattr(plain, measure)
    epochs = [replace(plain, epoch=number + 1) for number in range(2000)]
    for number in range(1, 2000, 2):  # the later, the longer
        epochs[number] = replace(
            epochs[number], outliers=(model.Outlier("train", 9.0, 1.0),), **{measure: usual + number}
        )
    many = replace(full, epochs=tuple(epochs))
    end, listed = MOST_ROWS // 4, [int(row.cells[0]) for row in rows(many, CLOCK)]
    assert listed[end:-end] == list(range(1376, 1875, 2))
    told = sum(bool(row.outliers) for row in rows(many, CLOCK))
    assert f"500 of 2,000 epochs: the first, the last, and {told} of 1,000 that stand out, the ones" in rows_note(many)
