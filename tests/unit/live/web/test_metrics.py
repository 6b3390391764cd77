"""What Prometheus is given: base units, few labels, and nothing that is not known of now."""

from prometheus_client.parser import text_string_to_metric_families

from gpu_report.live.alarms import alarms
from gpu_report.live.web.metrics import exposition
from gpu_report.live.web.status import status


def families(run, now_s):
    body, content_type = exposition(lambda: status(run, now_s, alarms(run, now_s), None, None), "")
    assert content_type.startswith("text/plain")
    return {family.name: family for family in text_string_to_metric_families(body.decode())}


def value(found, name):
    (sample,) = found[name].samples
    return sample.value


def test_readings_are_in_base_units(growing, looked_at):
    growing.inside("run", 0, task="train", rank=0)
    growing.inside("settings", 0, epochs=10)
    growing.inside("phase", 0, name="train", epoch=1)
    growing.rows(0, 90, seconds=30)
    found = families(*looked_at(growing, 30))
    assert value(found, "gpu_report_gpu_utilization_ratio") == 0.9
    assert value(found, "gpu_report_gpu_memory_used_bytes") == 8000 * 2**20
    assert value(found, "gpu_report_gpu_idle_seconds") == 0
    assert value(found, "gpu_report_recorder_up") == 1
    assert value(found, "gpu_report_training_epochs") == 10
    assert found["gpu_report_gpu_energy_joules"].type == "counter"


def test_what_is_not_known_is_absent(growing, looked_at):
    growing.rows(0, 90, seconds=30)
    growing.rows(30, None)
    assert not families(*looked_at(growing, 31))["gpu_report_gpu_utilization_ratio"].samples
    gone = families(*looked_at(growing, 900))
    assert value(gone, "gpu_report_recorder_up") == 0
    assert not gone["gpu_report_gpu_power_watts"].samples
    assert "gpu_report_training_epoch" not in gone


def test_labels_are_bounded(pair, looked_at):
    pair.rows(0, 90, seconds=30)
    labels = {name for f in families(*looked_at(pair, 30)).values() for s in f.samples for name in s.labels}
    assert labels <= {"gpu", "uuid", "kind"}


def test_openmetrics_is_given_to_who_accepts_it(growing, looked_at):
    growing.rows(0, 90, seconds=30)
    run, now_s = looked_at(growing, 30)
    accept = "application/openmetrics-text; version=1.0.0"
    body, content_type = exposition(lambda: status(run, now_s, [], None, None), accept)
    assert content_type.startswith("application/openmetrics-text")
    assert body.endswith(b"# EOF\n")
