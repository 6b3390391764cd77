from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest
from support.packed import Reader
from support.samples import analysis_of, run_of

from gpu_report import model, schema
from gpu_report.render import recorder_events
from gpu_report.render.page.script_data import chart_data

RATES = {"pcie_tx_mib_s", "pcie_rx_mib_s", "nvlink_tx_mib_s", "nvlink_rx_mib_s"}


def tables(analysis: model.Analysis) -> tuple[dict, dict[str, list[list[float | None]]]]:
    """Return the page's data, and its packed tables as rows."""
    data, *texts = chart_data(analysis)
    reader = Reader("".join(texts))
    return data, {name: reader.rows(table) for name, table in data["tables"].items()}


def test_epochs_bring_their_loss_and_learning_rate_and_null_where_not_known(analysis: model.Analysis) -> None:
    first, *others = analysis.epochs
    odd = replace(first, loss=float("nan"), lr=None)
    data, rows = tables(replace(analysis, epochs=(odd, *others)))
    assert [quantity["name"] for quantity in data["epoch_quantities"]] == ["loss", "lr"]
    assert rows["epochs"][0][:6] == [1, 1, 22.0, 44.0, None, None]
    assert rows["epochs"][1][:6] == [1, 2, 66.0, 44.0, 1.625, 0.0098]


def test_a_loss_keeps_the_digits_that_an_eye_can_tell(analysis: model.Analysis) -> None:
    epoch = replace(analysis.epochs[0], loss=1.23456789, lr=3.33333333e-7)
    _, rows = tables(replace(analysis, epochs=(epoch,)))
    assert rows["epochs"][0][4:6] == [1.2346, 3.3333e-7]


def test_epochs_bring_what_else_is_known_of_them(analysis: model.Analysis) -> None:
    first, *others = analysis.epochs
    data, rows = tables(replace(analysis, epochs=(replace(first, train_s=36.1234), *others)))
    names = [column["name"] for column in data["tables"]["epochs"]]
    assert names == [
        *("run", "epoch", "start_s", "length_s", "loss", "lr"),
        *("train_s", "gpu_util_pct", "memory_peak_mib", "energy_j"),
    ]
    assert rows["epochs"][0][6:] == [36.123, 74.0, 41_230, 36_100]
    assert rows["epochs"][9][6:] == [None, 65.0, 41_230 + 9 * 312, None]


def test_phases_and_processes_come_as_packed_tables(analysis: model.Analysis, builder: ModuleType) -> None:
    data, rows = tables(analysis)
    words = data["words"]
    for row, phase in zip(rows["phases"], analysis.phases, strict=True):
        name, epoch, start_s, length_s, source, detail = row
        assert (words[int(name)], epoch, words[int(source)]) == (phase.name, phase.epoch, phase.source)
        assert (start_s, start_s + length_s) == pytest.approx((phase.start_t_s, phase.end_t_s), abs=1e-6)
        assert detail is None
    assert len(rows["processes"]) == len(analysis.run.processes)
    assert rows["processes"][-1][4] is None  # a process that is gone holds no memory
    names = {words[int(row[3])] for row in rows["processes"] if row[3] is not None}
    assert names == {name for name in analysis.run.processes["name"].dropna() if name}


def test_a_real_run_comes_as_it_was_recorded_and_byte_rates_with_three_digits() -> None:
    run = run_of("m-ddp")
    data, *texts = chart_data(analysis_of("m-ddp"))
    reader = Reader("".join(texts))
    for gpu in data["gpus"]:
        samples = run.samples[run.samples["gpu"] == gpu["index"]]
        for about in gpu["columns"]:
            recorded = samples[about["name"]].to_numpy(dtype=float)
            exact = about["name"] not in RATES
            # A reading is kept in 32 bits where that gives its decimals back: the page has the decimals.
            tolerance = {"rtol": 2**-24, "atol": 1e-9} if exact else {"rtol": 0.005, "atol": 0.051}
            np.testing.assert_allclose(reader.values(about), recorded, **tolerance)
            assert about.get("digits", 0) == (0 if exact else 3)
    assert {about["name"] for about in data["gpus"][0]["columns"]} >= {*RATES, "t_s", "energy_j", "power_cap_s"}


def test_the_timeline_marks_what_bears_on_the_readings(analysis: model.Analysis, builder: ModuleType) -> None:
    data, *_ = chart_data(analysis)
    assert data["happenings"] == [
        [150.0, "Reading failed", f"GPU 0, quantity power_w, GPU is lost {builder.HOSTILE}"],
        [200.0, "Marker", "changed the fan curve"],
    ]


@pytest.mark.parametrize("kind", sorted(schema.EVENT_KINDS))
def test_every_kind_of_event_that_is_marked_has_words(kind: str) -> None:
    (event, *_) = recorder_events.marked([model.RecordedEvent(1.0, kind, None, {})]) or [None]
    assert event is None or kind in recorder_events.WHAT


def test_what_an_event_carries_is_in_words() -> None:
    ended = {"exit_code": 1, "asked": "SIGINT", "asked_before_s": 2.19, "signal": None}
    assert recorder_events.detail(model.RecordedEvent(60.0, "command_ended", None, ended)) == (
        "exit code 1, stopped by SIGINT, seconds from then to its end 2.19"
    )
    begun = model.RecordedEvent(0.0, "command_started", 1, {"command": ["python3", "train.py"], "text": "mine"})
    assert recorder_events.detail(begun) == "GPU 1, command python3 train.py, mine"
