from dataclasses import replace
from types import ModuleType

import pytest

from gpu_report import model, schema
from gpu_report.render import happenings
from gpu_report.render.chart import chart_data


def test_epochs_bring_their_loss_and_learning_rate_and_null_where_not_known(analysis: model.Analysis) -> None:
    first, *others = analysis.epochs
    odd = replace(first, loss=float("nan"), lr=None)
    data, _ = chart_data(replace(analysis, epochs=(odd, *others)))
    assert [quantity["name"] for quantity in data["epoch_quantities"]] == ["loss", "lr"]
    assert data["epochs"][0] == [1, 1, 22.0, 66.0, None, None]
    assert data["epochs"][1] == [1, 2, 66.0, 110.0, 1.625, 0.0098]


def test_a_loss_keeps_the_digits_that_an_eye_can_tell(analysis: model.Analysis) -> None:
    epoch = replace(analysis.epochs[0], loss=1.23456789, lr=3.33333333e-7)
    data, _ = chart_data(replace(analysis, epochs=(epoch,)))
    assert data["epochs"][0][4:] == [1.2346, 3.3333e-7]


def test_the_timeline_marks_what_bears_on_the_readings(analysis: model.Analysis, builder: ModuleType) -> None:
    data, _ = chart_data(analysis)
    assert data["happenings"] == [
        [150.0, "Reading failed", f"GPU 0, quantity power_w, GPU is lost {builder.HOSTILE}"],
        [200.0, "Marker", "changed the fan curve"],
    ]


@pytest.mark.parametrize("kind", sorted(schema.EVENT_KINDS))
def test_every_kind_of_event_that_is_marked_has_words(kind: str) -> None:
    (event, *_) = happenings.marked([model.RecordedEvent(1.0, kind, None, {})]) or [None]
    assert event is None or kind in happenings.WHAT
