"""The live output in words: small, escaped, and never old figures as if they were of now."""

from dataclasses import replace

from gpu_report.notebook.live_state import GpuNow, LastEpoch, LiveState
from gpu_report.notebook.live_view import bundle, final_bundle

LARGEST = 5_000  # bytes of an update
NOON = 1_795_262_400.0  # 12:00 UTC
GPU = GpuNow(0, 87.4, 20_480.0, None)
STATE = LiveState(
    NOON, True, NOON - 1, gpus=(GPU,), phase="train", epoch=3, epochs=100, last_epoch=LastEpoch(2, 13.0, 10.3)
)


def test_it_says_epoch_phase_busy_and_data_wait():
    assert bundle(STATE)["text/plain"].splitlines() == [
        "Epoch 3 of 100 · train · at 12:00:00 UTC",
        "Epoch 2: 10.3 s of 13.0 s waiting for data (79 %)",
        "GPU 0 87 % █████████ 20.0 GiB",
    ]


def test_since_when_a_gpu_is_idle_stands_in_its_row():
    idle = replace(STATE, gpus=(GpuNow(1, 2.0, None, NOON - 65),))
    assert "GPU 1 2 % n/a under 20 % since 11:58:55 UTC (65 s)" in bundle(idle)["text/plain"]


def test_figures_of_some_time_ago_are_not_said_as_of_now():
    for gone in (replace(STATE, is_recorded=False), replace(STATE, is_old=True, read_wall_s=NOON - 70)):
        text = bundle(gone)["text/plain"]
        assert "87 %" not in text
        assert "GPU 0 n/a n/a" in text
    assert "No reading since 11:58:50 UTC." in text
    assert "The recorder has ended" in bundle(replace(STATE, is_recorded=False))["text/html"]


def test_without_a_gpu_it_says_why():
    assert "No GPU is read: no <driver>" in bundle(replace(STATE, gpus=(), no_gpu="no <driver>"))["text/plain"]
    assert "no &lt;driver&gt;" in bundle(replace(STATE, gpus=(), no_gpu="no <driver>"))["text/html"]
    assert "No GPU reading yet" in bundle(LiveState(NOON, True))["text/plain"]


def test_an_update_is_small_with_any_number_of_gpus():
    many = replace(STATE, gpus=tuple(GpuNow(index, 100.0, 81_000.0, NOON - 999) for index in range(128)))
    made = bundle(many)
    assert sum(len(text.encode()) for text in made.values()) < LARGEST
    assert "The first 16 of 128 GPUs" in made["text/plain"]


def test_the_last_one_has_the_verdict_and_how_to_see_more():
    made = final_bundle("gpu-runs/it's", ["Set `workers=11` <now>.", "More."])
    assert "<b>Set <code>workers=11</code> &lt;now&gt;.</b>" in made["text/html"]
    assert made["text/plain"].splitlines()[-1] == 'gpu_report.show("gpu-runs/it\'s")'
    assert "The training is over. No row." in final_bundle("x", [], "No row.")["text/plain"]
