import pytest

from gpu_report.model import Gpu
from gpu_report.render.page.sections.gpu_health import alarms, health_counters

SOUND = {
    "recovery_action": "none",
    "ecc_volatile_corrected": 0,
    "ecc_volatile_uncorrected": 0,
    "ecc_aggregate_corrected": 7,
    "ecc_aggregate_uncorrected": 1,
    "remapped_rows_correctable": 1,
    "remapped_rows_uncorrectable": 1,
    "row_remap_pending": 0,
    "row_remap_failed": 0,
    "pcie_replays": 12,
}


def gpu(**changes):
    return Gpu(0, health_start=SOUND, health_end={**SOUND, **changes})


def test_what_stood_before_the_run_is_no_alarm():
    assert alarms(gpu()) == ()
    assert health_counters(gpu()) == (
        "At the end of the run: no memory errors since the driver was loaded, "
        "7 corrected and 1 uncorrected in the GPU's life, 2 remapped rows, 12 PCIe replays."
    )


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"ecc_volatile_uncorrected": 2, "ecc_aggregate_uncorrected": 3},
            "2 uncorrected memory errors during the run.",
        ),
        ({"ecc_aggregate_corrected": 8}, "1 corrected memory error during the run."),
        ({"remapped_rows_uncorrectable": 2}, "1 row of memory remapped during the run."),
        (
            {"row_remap_pending": 1},
            "A row of memory waits to be remapped at the next reset of the GPU; that came up during the run.",
        ),
        ({"row_remap_failed": 1}, "A row of memory could not be remapped; that came up during the run."),
        ({"recovery_action": "reset the GPU"}, "The driver asks for recovery of this GPU: reset the GPU."),
        ({"pcie_replays": 1012}, "1,000 PCIe replays during the run: packets that had to be sent again."),
    ],
)
def test_what_changed_during_the_run_is_said(changes, sentence):
    assert alarms(gpu(**changes)) == (sentence,)


def test_a_state_from_before_says_so():
    before = {**SOUND, "row_remap_pending": 1}
    assert alarms(Gpu(0, health_start=before, health_end=before)) == (
        "A row of memory waits to be remapped at the next reset of the GPU; that was so before the run.",
    )


def test_a_counter_that_went_back_is_a_loaded_driver_not_a_change():
    assert alarms(gpu(pcie_replays=0)) == ()


def test_a_recorder_that_was_killed_leaves_how_it_stood_at_the_start():
    killed = Gpu(0, health_start=SOUND)
    assert alarms(killed) == ()
    assert health_counters(killed).startswith("At the start of the run: ")


def test_nothing_known_says_nothing():
    assert (alarms(Gpu(0)), health_counters(Gpu(0)), health_counters(Gpu(0, health_start={}, health_end={}))) == (
        (),
        "",
        "",
    )
