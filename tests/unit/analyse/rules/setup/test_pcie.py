"""A PCIe link far below what it can do: found while the GPU worked, weighed by what copies take, and never at idle."""

import dataclasses

import numpy as np
import pytest
from support.runs import make_run, readings

from gpu_report.analyse import analyse
from gpu_report.model import InsideEpoch, InsideRun, Phase, YoloRun

SECONDS, TRAINED = 1400, (10.0, 1390.0)
CAN_DO = {"max_pcie_link_generation": 4.0, "max_pcie_link_width": 16.0}
IMAGES_PER_S = 100.0  # of 640 x 640: 123 MB/s
TASKS = "detect", "classify"


def link(*parts, every_s=10):
    """Return a column of the link: (value, seconds) parts, read every 10 s."""
    values = [value for value, seconds in parts for _ in range(seconds)]
    return [value if second % every_s == 0 else np.nan for second, value in enumerate(values)]


def trained(generation, lanes=((16, SECONDS),), *, util=90.0, rate=IMAGES_PER_S, can_do=CAN_DO, health=None, **columns):
    """Return a run that trained from 10 to 1390 s, two epochs, at so many images a second, on a link as given."""
    at_work = {"performance_state": [2.0] * SECONDS}
    quantities = {"pcie_link_generation": link(*generation), "pcie_link_width": link(*lanes), **at_work, **columns}
    facts = {**can_do, **(health or {})}
    run = make_run(readings((0, 10), (util, SECONDS - 20), (0, 10)), quantities=quantities, facts=facts)
    start, end = TRAINED
    middle = (start + end) / 2
    epochs = tuple(
        InsideEpoch(number, 1, begin, finish, int(rate * (finish - begin)), 100, 0.0, 0.0, 0.0)
        for number, begin, finish in ((1, start, middle), (2, middle, end))
    )
    phases = (Phase("train", 1, start, middle, "inside"), Phase("train", 2, middle, end, "inside"))
    settings = {"imgsz": 640, "batch": 16, "device": "cuda:0"}
    inside = InsideRun(1, 0, 41, "train", settings, phases, epochs, "finished", None)
    return dataclasses.replace(run, inside=(inside,))


def found(run):
    return [finding for finding in analyse(run).findings if finding.rule == "environment"]


def numbers(finding):
    return {each.text: each.value for each in finding.evidence}


def test_a_link_that_fell_is_dated_and_weighed_by_what_copies_take():
    (finding,) = found(trained([(4, 400), (1, 1000)], [(16, 400), (1, 1000)]))
    assert finding.summary == "GPU 0's PCIe link fell from gen 4 x16 to gen 1 x1 after 6 min 40 s"
    assert (finding.severity, finding.start_t_s, finding.end_t_s) == ("warning", 400.0, TRAINED[1])
    copies = numbers(finding)["copying images to the GPU, estimated, of each step"]
    assert copies == pytest.approx(100 * 3 * 640**2 * IMAGES_PER_S / 0.2e9, rel=0.02)  # gen 1 x1: 80 % of 250 MB/s
    assert finding.advice[0].short == "Reseat GPU 0 and its riser"
    assert finding.advice[0].text == "Reseat GPU 0 and its riser or cable"


def test_a_link_leads_by_what_copies_take():
    (finding,) = found(trained([(1, SECONDS)], rate=400.0))
    assert finding.advice[0].gain_at_most == pytest.approx(0.154 * (1 - 0.127), abs=0.005)  # 490 of 3,200 MB/s
    assert analyse(trained([(1, SECONDS)], rate=400.0)).verdict.text.startswith("Check the PCIe generation")


def test_a_slow_link_that_copies_hardly_notice_is_a_note():
    (finding,) = found(trained([(1, SECONDS)]))
    assert finding.severity == "info"
    assert finding.summary == "GPU 0's PCIe link ran at gen 1 x16 instead of gen 4 x16"
    assert finding.advice == ()


def test_a_low_generation_alone_is_set_in_the_bios():
    (finding,) = found(trained([(1, SECONDS)], rate=400.0))  # 490 of 3,200 MB/s
    assert finding.severity == "warning"
    assert "BIOS" in finding.advice[0].text


def test_lanes_that_are_missing_all_along():
    (finding,) = found(trained([(3, SECONDS)], [(1, SECONDS)]))
    assert (finding.severity, finding.summary) == ("warning", "GPU 0's PCIe link ran at gen 3 x1 instead of gen 4 x16")
    assert "riser" in finding.advice[0].text


def test_a_moment_at_full_speed_is_no_recovery():
    (finding,) = found(trained([(1, 400), (4, 20), (1, 980)]))
    assert finding.summary == "GPU 0's PCIe link ran at gen 1 x16 instead of gen 4 x16"


def test_what_a_link_fell_from_is_what_it_ran_at_while_it_was_sound():
    (finding,) = found(trained([(1, 400), (4, 200), (1, 800)]))
    assert finding.summary == "GPU 0's PCIe link fell from gen 4 x16 to gen 1 x16 after 10 min"


def test_a_link_that_recovered_says_for_how_long():
    (finding,) = found(trained([(4, 400), (1, 400), (4, 600)]))
    assert finding.summary == "GPU 0's PCIe link fell from gen 4 x16 to gen 1 x16 for 6 min 30 s"


def test_what_the_link_did_before_is_what_it_can_do_where_the_driver_does_not_say():
    (finding,) = found(trained([(4, 700), (1, 700)], can_do={}))
    assert "fell from gen 4 x16" in finding.summary
    assert found(trained([(1, SECONDS)], can_do={})) == []


def test_a_slot_with_few_lanes_counts_only_where_copies_take_much_of_a_step():
    slot = {"max_pcie_link_generation": 3.0, "max_pcie_link_width": 1.0}
    (finding,) = found(trained([(3, SECONDS)], [(1, SECONDS)], can_do=slot))
    assert finding.summary == "Copying images to GPU 0 over PCIe gen 3 x1 takes about 16 % of each step"
    assert finding.severity == "warning"
    assert found(trained([(3, SECONDS)], [(1, SECONDS)], can_do=slot, rate=50.0)) == []


@pytest.mark.parametrize(
    ("generation", "lanes"),
    [
        ([(4, SECONDS)], [(16, SECONDS)]),
        ([(3, SECONDS)], [(16, SECONDS)]),  # half of the bandwidth: a BIOS that is careful
        ([(4, SECONDS)], [(8, SECONDS)]),  # two GPUs share 16 lanes
        ([(4, 700), (1, 40), (4, 660)], [(16, SECONDS)]),  # a few readings
        ([(np.nan, SECONDS)], [(np.nan, SECONDS)]),  # an older recording
        ([(1, 5), (4, 1390), (1, 5)], [(16, SECONDS)]),  # idle before and after
        ([(9, SECONDS)], [(16, SECONDS)]),  # a generation of the future
        ([(4, 700), (255, 20), (4, 680)], [(16, 700), (255, 20), (16, 680)]),  # readings that cannot be
    ],
)
def test_no_word_on_a_link_that_is_as_it_should_be_or_was_not_read(generation, lanes):
    assert found(trained(generation, lanes)) == []


def test_a_gpu_with_little_to_do_lowers_its_link():
    assert found(trained([(1, SECONDS)], [(1, SECONDS)], util=10.0)) == []
    assert found(trained([(1, SECONDS)], [(1, SECONDS)], performance_state=[8.0] * SECONDS)) == []
    assert len(found(trained([(1, SECONDS)], [(1, SECONDS)], performance_state=[2.0] * SECONDS))) == 1
    assert found(trained([(1, SECONDS)], [(1, SECONDS)], performance_state=[np.nan] * SECONDS)) == []  # not read


def test_a_link_that_carried_more_than_it_can_is_not_believed():
    assert found(trained([(1, SECONDS)], [(1, SECONDS)], rate=1000.0)) == []
    assert found(trained([(1, SECONDS)], rate=10.0, pcie_rx_mib_s=[5000.0] * SECONDS)) == []


def test_replays_stand_beside_a_slow_link_and_alone_are_a_note():
    health = {"health_start": {"pcie_replays": 5}, "health_end": {"pcie_replays": 81239}}
    (finding,) = found(trained([(1, SECONDS)], [(1, SECONDS)], health=health))
    assert numbers(finding)["PCIe packets sent again"] == 81234
    assert "81,234 packets" in finding.advice[0].text
    (alone,) = found(trained([(4, SECONDS)], health=health))
    assert (alone.severity, alone.summary) == ("info", "GPU 0's PCIe link is poor: 81,234 packets were sent again")


@pytest.mark.parametrize(("before", "after"), [(5, 900), (5, 1200), (81239, 5), (None, 81239)])
def test_a_few_replays_or_a_counter_that_is_not_known_are_no_finding(before, after):
    health = {"health_start": {"pcie_replays": before}, "health_end": {"pcie_replays": after}}
    assert found(trained([(4, SECONDS)], health=health)) == []


GRADIENTS = {"world_size": 2, "parameters": 900_000_000}  # of each of 0.145 steps a second: 0.52 GB/s


def of_two(watts=220.0, received_mib_s=np.nan, **changed):
    """Return a training of two ranks, whose GPU has one lane of gen 3 (0.79 GB/s) and draws so much of 350 W."""
    columns = {"power_w": [watts] * SECONDS, "pcie_rx_mib_s": [received_mib_s] * SECONDS}
    can_do = {**changed.pop("can_do", CAN_DO), "power_limit_w": 350.0}
    run = trained([(3, SECONDS)], [(1, SECONDS)], rate=20.0, can_do=can_do, **columns)
    settings = {**run.inside[0].settings, **GRADIENTS, **changed}
    return dataclasses.replace(run, inside=(dataclasses.replace(run.inside[0], settings=settings),))


def test_gradients_that_take_most_of_a_step_over_one_lane_lead():
    """Two GPUs wait for them in NCCL: 100 % busy, at far less than their power limit."""
    (finding,) = found(of_two())
    assert (finding.severity, finding.summary) == (
        "warning",
        "GPU 0's PCIe link ran at gen 3 x1 instead of gen 4 x16, where gradients may take up to 66 % of each step",
    )
    assert finding.advice[0].gain_at_most == pytest.approx(0.66 * (1 - 1 / 32), abs=0.01)
    text = analyse(of_two()).verdict.text
    assert text.startswith("Reseat GPU 0 and its riser (at most ")
    assert "the model itself" not in text


def test_gradients_over_a_slot_of_one_lane_are_a_problem_of_the_slot():
    (finding,) = found(of_two(can_do={"max_pcie_link_generation": 3.0, "max_pcie_link_width": 1.0}))
    assert finding.summary == "Gradients over GPU 0's PCIe link, gen 3 x1, may take up to 66 % of each step"
    assert (finding.severity, finding.advice[0].short) == ("warning", "Use a wider slot")


def of_two_outside(util=100.0, watts=220.0, received_mib_s=np.nan):
    """Return the samples of two GPUs of one training without callbacks, each with one lane of gen 3."""
    columns = {"pcie_link_generation": link((3, SECONDS)), "pcie_link_width": link((1, SECONDS))}
    columns |= {"power_w": [watts] * SECONDS, "pcie_rx_mib_s": [received_mib_s] * SECONDS}
    columns |= {"performance_state": [2.0] * SECONDS}
    util_pct = readings((0, 10), (util, SECONDS - 20), (0, 10))
    facts = {**CAN_DO, "power_limit_w": 350.0}
    run = make_run([util_pct, util_pct], rows=[(1, 700.0), (2, 1380.0)], quantities=columns, facts=facts)
    return dataclasses.replace(run, yolo_runs=(YoloRun(1, None, {"device": "0,1"}, "recorded", None),))


def test_one_lane_below_two_gpus_that_wait_leads_where_nobody_counted_gradients():
    (finding,) = found(of_two_outside())
    assert finding.severity == "warning"
    assert finding.summary.endswith(" ran at gen 3 x1 instead of gen 4 x16, and gradients cross it")
    assert "the model itself" not in analyse(of_two_outside()).verdict.text


@pytest.mark.parametrize("changed", [{"util": 60.0}, {"watts": 340.0}, {"received_mib_s": 60.0}])
def test_one_lane_below_two_gpus_that_do_not_wait_for_it_is_a_note(changed):
    (finding,) = found(of_two_outside(**changed))
    assert finding.severity == "info"


@pytest.mark.parametrize(
    "changed",
    [
        {"watts": 340.0},  # it works all the time
        {"received_mib_s": 60.0},  # gradients go another way
        {"parameters": 100_000_000},  # they take 7 % of a step
        {"world_size": 1},
    ],
)
def test_a_slow_link_for_which_no_step_waits_is_a_note(changed):
    (finding,) = found(of_two(**changed))
    assert (finding.severity, finding.summary) == ("info", "GPU 0's PCIe link ran at gen 3 x1 instead of gen 4 x16")


def with_epochs(run, *epochs):
    """Return a run whose epochs are (begin, end, images)."""
    (inside,) = run.inside
    ended = tuple(
        InsideEpoch(n, 1, a, b, images, images // 16, 0.0, 0.0, 0.0) for n, (a, b, images) in enumerate(epochs, 1)
    )
    phases = tuple(Phase("train", n, a, b, "inside") for n, (a, b, _) in enumerate(epochs, 1))
    return dataclasses.replace(run, inside=(dataclasses.replace(inside, epochs=ended, phases=phases),))


def test_images_of_a_classification_cross_the_link_as_floats():
    run = trained([(1, SECONDS)], rate=400.0)
    tasks = [dataclasses.replace(run, yolo_runs=(YoloRun(1, None, {"task": of}, "recorded", None),)) for of in TASKS]
    shares = [numbers(found(each)[0])["copying images to the GPU, estimated, of each step"] for each in tasks]
    assert shares[1] == pytest.approx(4 * shares[0])


def test_what_a_fall_cost_is_measured_and_no_estimate():
    run = with_epochs(trained([(4, 700), (1, 700)], rate=400.0), (10.0, 700.0, 690 * 800), (700.0, 1390.0, 690 * 480))
    (finding,) = found(run)
    assert numbers(finding)["training without data waits got slower as the link fell"] == pytest.approx(40, abs=1)
    assert finding.advice[0].gain_at_most == pytest.approx(0.4, abs=0.01)
