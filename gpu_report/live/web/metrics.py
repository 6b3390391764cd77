"""`/metrics`: the newest readings for Prometheus, in base units. What is not known of now is absent."""

from collections.abc import Callable, Iterator
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector, CollectorRegistry

MIB = 2**20
PREFIX = "gpu_report"
# A reading of a GPU: name, what it says, the field of /gpu-status, and how many base units one of it is.
GPU_GAUGES = (
    ("gpu_utilization_ratio", "Share of time in which a kernel ran", "gpu_util_pct", 0.01),
    ("gpu_sm_active_ratio", "Share of cycles in which an SM had work", "sm_active_pct", 0.01),
    ("gpu_memory_used_bytes", "Device memory in use", "memory_used_mib", MIB),
    ("gpu_memory_size_bytes", "Device memory there is", "memory_total_mib", MIB),
    ("gpu_power_watts", "Board power", "power_w", 1.0),
    ("gpu_temperature_celsius", "GPU temperature", "temperature_c", 1.0),
    ("gpu_idle_seconds", "How long the GPU has been idle, 0 while it works", "idle_s", 1.0),
    ("gpu_sample_age_seconds", "How old the newest sample is", "age_s", 1.0),
)
TRAINING_GAUGES = (
    ("training_epoch", "Epoch that goes on, from 1", "epoch"),
    ("training_epochs", "Epochs asked for", "epochs"),
    ("training_epoch_duration_seconds", "Length of an epoch, median of the last five", "epoch_s"),
    ("training_time_left_seconds", "Time left, by the last epochs", "left_s"),
)


class Status(Collector):
    """Turns what /gpu-status says into metrics. Labels are a GPU's index and UUID: bounded, whatever is recorded."""

    def __init__(self, status: Callable[[], dict[str, Any]]) -> None:
        self._status = status

    def collect(self) -> Iterator[Metric]:
        """Yield the families."""
        said = self._status()
        is_live = said["state"] == "recording"
        yield GaugeMetricFamily(f"{PREFIX}_recorder_up", "1 while the run is recorded", value=is_live)
        for name, text, field, factor in GPU_GAUGES:
            family = GaugeMetricFamily(f"{PREFIX}_{name}", text, labels=("gpu", "uuid"))
            for gpu in said["gpus"]:
                value = _value_of(gpu, field, is_live=is_live)
                if value is not None:
                    family.add_metric((str(gpu["index"]), gpu["uuid"] or ""), value * factor)
            yield family
        text = "Energy used since the recording began"
        energy = CounterMetricFamily(f"{PREFIX}_gpu_energy_joules", text, labels=("gpu", "uuid"))
        for gpu in said["gpus"]:
            energy.add_metric((str(gpu["index"]), gpu["uuid"] or ""), gpu["energy_used_j"])
        yield energy
        yield from _training(said)
        alarms = GaugeMetricFamily(f"{PREFIX}_alarms", "What goes wrong at this moment", labels=("kind",))
        for kind in ("drop", "idle", "memory", "unread", "xid"):
            alarms.add_metric((kind,), sum(alarm["kind"] == kind for alarm in said["alarms"]))
        yield alarms


def _value_of(gpu: dict[str, Any], field: str, *, is_live: bool) -> float | None:
    value = gpu[field]
    if field == "idle_s" and value is None and is_live and gpu["gpu_util_pct"] is not None:
        return 0.0
    return None if value is None else float(value)


def _training(said: dict[str, Any]) -> Iterator[Metric]:
    training = said["training"]
    if training is None:
        return
    for name, text, field in TRAINING_GAUGES:
        if training[field] is not None:
            yield GaugeMetricFamily(f"{PREFIX}_{name}", text, value=training[field])
    text = "Time that training waited for data, of whole epochs"
    waited = CounterMetricFamily(f"{PREFIX}_training_data_wait_seconds", text)
    waited.add_metric((), training["data_wait_s"])
    yield waited


def exposition(status: Callable[[], dict[str, Any]], accept: str) -> tuple[bytes, str]:
    """Return the metrics and their content type: OpenMetrics where a scraper accepts it, else the text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Status(status))
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type
