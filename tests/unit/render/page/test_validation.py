"""The table of where the time of validations went."""

from dataclasses import replace

from gpu_report.model import Analysis, InsideRun, Phase, Validation
from gpu_report.render.page.sections.validation import MOST_COLUMNS, validation_table


def seen(start: float, inference_s: float, **more: float) -> Phase:
    parts = {"data": 0.5, "inference": inference_s, "plots": 0.0, **more}
    end = start + sum(parts.values())
    validated = Validation(start, end, None, 60, 4, parts)
    return Phase("validation", None, start, end, "callbacks", validated=validated)


def process(*phases: Phase, task: str = "train") -> InsideRun:
    return InsideRun(1, 0, 41, task, {}, phases, ())


def table(analysis: Analysis, *processes: InsideRun) -> dict[str, tuple[str, ...]]:
    found = validation_table(replace(analysis, run=replace(analysis.run, inside=processes)))
    plain = [tuple(cell.replace("\u00a0", " ") for cell in row) for row in (found.columns, *found.rows) if row]
    return {name: cells for name, *cells in plain}


def test_a_training_has_a_column_for_its_epochs_and_one_for_the_final_evaluation(analysis: Analysis) -> None:
    last = replace(seen(60.0, 0.5, plots=2.0), name="final evaluation")
    assert table(analysis, process(seen(10.0, 1.0), seen(20.0, 1.5), seen(30.0, 9.5), last)) == {
        "Part": ["In an epoch (median of 3)", "Final evaluation"],
        "Waiting for data": ["0.50 s, 25 %", "0.50 s, 17 %"],
        "Inference": ["1.50 s, 75 %", "0.50 s, 17 %"],
        "Plots": ["0 s, 0 %", "2.00 s, 67 %"],
        "All of it": ["2.00 s", "3.00 s"],
        "Images/s": ["30", "20"],
    }


def test_a_validation_by_itself_has_them_too(analysis: Analysis) -> None:
    assert table(analysis, process(seen(10.0, 1.0), task="val"))["Part"] == ["Validation"]


def test_what_nobody_counted_is_missing(analysis: Analysis) -> None:
    phase = seen(10.0, 1.0)
    less = replace(phase, validated=replace(phase.validated, images=None, seconds={"data": 0.5, "other": 1.0}))
    found = table(analysis, process(phase), process(less))
    assert found["Part"] == ["1: in an epoch", "2: in an epoch"]
    assert found["Inference"] == ["1.00 s, 67 %", "n/a"]
    assert found["Images/s"] == ["40", "n/a"]


def test_of_many_processes_as_many_are_shown_as_there_is_room_for(analysis: Analysis) -> None:
    found = table(analysis, *(process(seen(10.0 * number, 1.0)) for number in range(9)))
    assert len(found["Part"]) == MOST_COLUMNS


def test_without_parts_there_is_no_table(analysis: Analysis) -> None:
    bare = Phase("validation", 1, 5.0, 6.0, "callbacks")
    nothing = replace(bare, validated=Validation(5.0, 5.0, 1, 0, 0, {}))
    assert table(analysis) == table(analysis, process(bare)) == table(analysis, process(nothing)) == {}
