from dataclasses import fields

import pytest

from gpu_report import schema
from gpu_report.model import EpochSummary
from gpu_report.render.quantity_labels import (
    EPOCH_QUANTITIES,
    LANES,
    THROTTLE_COUNTERS,
    gpu_quantities,
    host_quantities,
    label,
    lanes,
)

QUANTITIES = {q.name: q for q in (*host_quantities(), *gpu_quantities())}


def test_every_column_has_a_label_of_its_own_words() -> None:
    columns = [*schema.GPU_QUANTITIES, *schema.RING_QUANTITIES, *schema.HOST_QUANTITIES]
    made_up = [c.name for c in columns if label(c.name) == c.name.replace("_", " ").capitalize()]
    plain_already = {"memory_used_mib", "workers", "workers_blocked", "performance_state", "clock_event_reasons"}
    assert set(made_up) <= plain_already
    for quantities in (gpu_quantities(), host_quantities()):
        labels = [q.label for q in quantities]
        assert len(labels) == len(set(labels))


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("pcie_tx_mib_s", "MiB/s"),
        ("power_cap_s", "s"),
        ("memory_temperature_c", "°C"),
        ("sm_active_pct", "%"),
        ("main_cpu_pct", "% of one core"),
        ("shm_free_mib", "MiB"),
        ("workers", ""),
        ("clock_event_reasons", ""),
    ],
)
def test_a_unit_is_what_the_name_ends_in(name: str, unit: str) -> None:
    assert QUANTITIES[name].unit == unit


def test_from_four_gpus_on_utilisation_is_a_heat_strip() -> None:
    assert lanes(3) == LANES
    assert [(lane.title, lane.heat) for lane in lanes(4)[:3]] == [
        ("GPU utilisation", True),
        ("SM activity", True),
        ("Memory used", False),
    ]
    drawn = [{name for lane in lanes(gpus) for name in lane.drawn} for gpus in (1, 4)]
    assert drawn[0] == drawn[1]


def test_lanes_and_counters_name_columns_that_exist() -> None:
    of_epochs = {quantity.name for quantity in EPOCH_QUANTITIES}
    drawn = {name for lane in LANES for name in (*lane.drawn, *lane.told)}
    assert drawn | set(THROTTLE_COUNTERS) <= set(QUANTITIES) | of_epochs
    assert of_epochs <= {field.name for field in fields(EpochSummary)}
