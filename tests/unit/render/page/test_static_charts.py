import re
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest

from gpu_report.model import Analysis, Occurrence
from gpu_report.render.page.sections.static_charts import MOST_POINTS, paths, shared, strip, surroundings
from gpu_report.render.run_clock import WallClock
from gpu_report.render.samples.quantity_series import QuantitySeries, series_of_each_gpu

CLOCK = WallClock(1_795_223_424.286)


def points(path: str) -> list[tuple[str, float, float]]:
    """Return where a path begins a line (M) or goes on with it (L)."""
    found: list[tuple[str, float, float]] = []
    for begin, steps in re.findall(r"M([^Ml]+)(?:l([^M]+))?", path):
        numbers = [float(number) for number in re.findall(r"-?[\d.]+", f"{begin} {steps}")]
        x = np.cumsum(numbers[::2]).round(1)
        y = np.cumsum(numbers[1::2]).round(2)
        found += zip("M" + "L" * (len(x) - 1), x.tolist(), y.tolist(), strict=True)
    return found


def test_a_finding_is_drawn_with_every_sample_around_it(analysis: Analysis) -> None:
    finding = next(f for f in analysis.findings if f.id == "drop-2")
    by_gpu = series_of_each_gpu(analysis.run)
    chart = surroundings(finding, analysis, by_gpu, CLOCK)
    own = chart.lines[-1]
    t_s = by_gpu[finding.gpu].t_s
    inside = (t_s >= chart.start.t_s) & (t_s <= chart.end.t_s)
    assert (own.is_own, own.colour) == (True, "gpu-1")
    assert [line.is_own for line in chart.lines] == [False, True]
    scale = 1000 / (chart.end.t_s - chart.start.t_s)
    _, x, y = zip(*points(own.path), strict=True)
    assert len(set(x)) == len(x)  # one a second, so that each sample is read off where it lies
    drawn = np.interp(np.rint((t_s[inside] - chart.start.t_s) * scale), x, 100 - np.array(y))
    assert drawn.tolist() == by_gpu[1].values[inside].tolist()
    ((band_x, band_width),) = chart.bands
    assert band_x == pytest.approx((finding.start_t_s - chart.start.t_s) * scale, abs=0.1)
    assert band_width == pytest.approx(finding.duration_s * scale, abs=0.1)


@pytest.mark.parametrize(
    ("gpus", "own"),
    [((), ["gpu-1"]), ((0,), ["gpu-0"]), ((0, 1), ["gpu-0", "gpu-1"])],
    ids=["of the run as a whole: the GPU it used", "of one that it names", "of several that it names"],
)
def test_what_no_single_gpu_felt_is_drawn_of_the_gpus_that_it_is_about(
    analysis: Analysis, gpus: tuple[int, ...], own: list[str]
) -> None:
    used = replace(analysis, gpus=tuple(replace(each, used=each.gpu.index == 1) for each in analysis.gpus))
    finding = replace(analysis.findings[0], gpu=None, gpus=gpus, occurrences=())
    chart = surroundings(finding, used, series_of_each_gpu(analysis.run), CLOCK)
    assert [line.colour for line in chart.lines if line.is_own] == own


def test_what_happened_several_times_is_shaded_each_time(analysis: Analysis) -> None:
    times = tuple(Occurrence(start, start + 9.0, (0,), 9.0) for start in (120.0, 240.0, 360.0))
    finding = replace(analysis.findings[0], start_t_s=120.0, end_t_s=369.0, occurrences=times)
    by_gpu = series_of_each_gpu(analysis.run)
    chart = surroundings(finding, analysis, by_gpu, CLOCK)
    assert len(chart.bands) == 3
    assert chart.start.t_s <= finding.start_t_s
    assert chart.end.t_s >= finding.end_t_s
    often = replace(finding, occurrences=times * 5)
    assert len(surroundings(often, analysis, by_gpu, CLOCK).bands) == 1  # the longest alone


def test_a_gap_and_a_missing_reading_break_the_line(builder: ModuleType, analysis: Analysis) -> None:
    finding = replace(analysis.findings[0], start_t_s=builder.GAP[0], end_t_s=builder.GAP[1])
    path = surroundings(finding, analysis, series_of_each_gpu(analysis.run), CLOCK).lines[-1].path
    assert [kind for kind, _, _ in points(path)].count("M") == 2
    track = {0: QuantitySeries(np.arange(5.0), np.array([50, np.nan, 60, 70, 80]))}
    finding = replace(finding, start_t_s=1.0, end_t_s=2.0)
    run = replace(analysis.run, duration_s=4.0)
    line = surroundings(finding, replace(analysis, run=run), track, CLOCK).lines[0]
    assert [kind for kind, _, _ in points(line.path)] == ["M", "M", "L", "L"]


def test_a_single_dip_in_a_long_finding_is_drawn(analysis: Analysis) -> None:
    t_s = np.arange(50_000.0)
    track = {0: QuantitySeries(t_s, np.where(t_s == 30_001, 7.0, 90.0))}
    finding = replace(analysis.findings[0], gpu=0, start_t_s=20_000.0, end_t_s=40_000.0)
    run = replace(analysis.run, duration_s=50_000.0)
    (line,) = surroundings(finding, replace(analysis, run=run), track, CLOCK).lines
    mean, band = points(line.path), points(line.band)
    assert len(mean) + len(band) <= MOST_POINTS
    assert [y for _, _, y in band].count(93) == 1
    assert {y for _, _, y in mean} <= {10.0, 10.5}  # one of a few hundred readings


def test_what_is_missing_parts_the_area_from_the_lowest_to_the_highest(analysis: Analysis) -> None:
    t_s = np.arange(50_000.0)
    track = {0: QuantitySeries(t_s, np.where((t_s > 10_000) & (t_s < 30_000), np.nan, t_s % 100))}
    finding = replace(analysis.findings[0], gpu=0, start_t_s=20_000.0, end_t_s=40_000.0)
    (line,) = surroundings(
        finding, replace(analysis, run=replace(analysis.run, duration_s=50_000.0)), track, CLOCK
    ).lines
    assert line.band.count("M") == line.band.count("z") == 2
    assert [kind for kind, _, _ in points(line.path)].count("M") == 2
    assert max(x for _, x, _ in points(line.band.split("z")[0])) == pytest.approx(200, abs=2)


def test_of_several_short_times_far_apart_the_longest_is_shown_alone(analysis: Analysis) -> None:
    times = [Occurrence(start, start + 60.0, (0,), None) for start in (1_000.0, 50_000.0, 90_000.0)]
    finding = replace(analysis.findings[0], gpu=0, start_t_s=1_000.0, end_t_s=90_060.0, occurrences=tuple(times))
    track = {0: QuantitySeries(np.arange(100_000.0), np.full(100_000, 90.0))}
    chart = surroundings(finding, replace(analysis, run=replace(analysis.run, duration_s=100_000.0)), track, CLOCK)
    assert len(chart.bands) == 1
    assert chart.bands[0][1] > 200


def test_without_samples_there_is_no_chart(analysis: Analysis) -> None:
    assert surroundings(analysis.findings[0], analysis, {}, CLOCK) is None


def test_a_strip_has_a_cell_for_each_level_and_none_where_nothing_is_known() -> None:
    util = np.concatenate([np.full(50, 5.0), np.full(50, 95.0), np.full(50, np.nan), np.full(50, 100.0)])
    cells = strip(QuantitySeries(np.arange(200.0) + 0.5, util), 200.0)
    assert [(cell.x, cell.level) for cell in cells] == [(0.0, 0), (250.0, 4), (750.0, 4)]
    assert strip(None, 200.0) == ()
    assert strip(QuantitySeries(np.array([]), np.array([])), 200.0) == ()


def test_a_strip_has_no_reading_from_outside_the_run_and_none_where_a_cell_has_no_reading() -> None:
    times, util = np.array([-9.0, 0, 10, 30, 60, 100, 101, 102]), np.array([0, 90.0, 90, 10, 10, 90, 0, 0])
    cells = strip(QuantitySeries(times, util), 100.0)  # four cells of 25 s
    assert [(cell.x, cell.width, cell.level) for cell in cells] == [(0, 250, 4), (250, 500, 0), (750, 250, 4)]
    gap = strip(QuantitySeries(np.delete(times, 4), np.delete(util, 4)), 100.0)  # three cells
    assert [(cell.x, cell.level) for cell in gap] == [(0, 3), (666.7, 4)]
    assert strip(QuantitySeries(times[-2:], util[-2:]), 100.0) == ()


def test_the_drivers_own_readings_are_drawn_and_ticks_where_it_kept_none(builder: ModuleType) -> None:
    analysis = builder.build_detailed_analysis()
    ring = analysis.run.ring.dropna(subset="gpu_util_pct")
    track = series_of_each_gpu(analysis.run)[0]
    kept = np.isin(track.t_s, ring["t_s"])
    assert track.values[kept].tolist() == ring["gpu_util_pct"].tolist()
    start, end = builder.RINGLESS
    assert ((track.t_s[~kept] > start) & (track.t_s[~kept] < end)).all()
    assert 18 <= (~kept).sum() <= 20
    finding = replace(analysis.findings[0], start_t_s=start, end_t_s=end)
    drawn = points(surroundings(finding, analysis, {0: track}, CLOCK).lines[-1].path)
    assert [kind for kind, _, _ in drawn].count("M") == 1
    assert 2 in (
        100 - y
        for _, _, y in points(
            surroundings(replace(finding, start_t_s=205.0, end_t_s=215.0), analysis, {0: track}, CLOCK).lines[-1].path
        )
    )
    assert series_of_each_gpu(analysis.run)[1].t_s.tolist() == analysis.run.samples.query("gpu == 1")["t_s"].tolist()


@pytest.mark.parametrize(
    ("rule", "quantity", "column"),
    [
        ("memory-growth", "Memory used", "memory_used_mib"),
        ("thermal", "SM clock", "sm_clock_mhz"),
        ("drop", "GPU utilisation", "gpu_util_pct"),
    ],
)
def test_a_chart_shows_what_its_finding_is_about(analysis: Analysis, rule: str, quantity: str, column: str) -> None:
    finding = replace(analysis.findings[0], rule=rule)
    by_gpu = series_of_each_gpu(analysis.run, column)
    chart = surroundings(finding, analysis, by_gpu, CLOCK)
    assert chart.quantity == quantity
    highest = analysis.run.samples[column].max()
    words = {"memory_used_mib": f"{highest / 1024:.1f} GiB", "sm_clock_mhz": f"{highest:,.0f} MHz"}
    assert chart.top.replace("\u00a0", " ") == words.get(column, "100 %")
    own = analysis.run.samples[analysis.run.samples["gpu"] == finding.gpu]
    inside = own[own["t_s"].between(finding.start_t_s - 24, finding.end_t_s + 24)][column]
    heights = [y for _, _, y in points(chart.lines[-1].path)]
    top = 100 if column == "gpu_util_pct" else highest
    assert max(heights) == pytest.approx(100 * (1 - inside.min() / top), abs=1)
    assert 0 <= min(heights) <= 100 * (1 - inside.max() / top) + 1


def test_a_level_is_one_step_of_its_line(analysis: Analysis) -> None:
    t_s = np.arange(100.0)
    track = {0: QuantitySeries(t_s, np.where((t_s >= 40) & (t_s < 60), 5.0, 90.0))}
    finding = replace(analysis.findings[0], gpu=0, start_t_s=40.0, end_t_s=60.0)
    run = replace(analysis.run, duration_s=100.0)
    drawn = points(surroundings(finding, replace(analysis, run=run), track, CLOCK).lines[0].path)
    assert [(kind, y) for kind, _, y in drawn] == [("M", 10), ("L", 10), ("L", 95), ("L", 95), ("L", 10), ("L", 10)]


def test_what_befell_several_gpus_at_once_is_drawn_from_the_same_lines(analysis: Analysis) -> None:
    t_s = np.arange(200.0)
    by_gpu = {gpu: QuantitySeries(t_s, 90 - gpu + np.where((t_s >= 60) & (t_s < 80), -80.0, 0.0)) for gpu in (0, 1)}
    of_200_s = replace(analysis, run=replace(analysis.run, duration_s=200.0))
    found = [replace(analysis.findings[0], gpu=gpu, start_t_s=61.0 + gpu, end_t_s=81.0 + gpu) for gpu in (0, 1)]
    path = paths()
    one, other = shared([*(surroundings(f, of_200_s, by_gpu, CLOCK, path) for f in found)])
    assert (one.start.t_s, one.end.t_s) == (other.start.t_s, other.end.t_s) == (30.0, 115.0)
    assert {line.id for line in one.lines} == {line.id for line in other.lines} == {"l1", "l2"}
    assert all(line.path for line in one.lines)
    assert not any(line.path for line in other.lines)
    assert one.bands < other.bands
    alone, none = shared([surroundings(found[0], of_200_s, by_gpu, CLOCK), None])
    assert none is None
    assert not any(line.id for line in alone.lines)


@pytest.mark.parametrize(("length_s", "end_s", "window"), [(10, 3600.4, (3575, 3600.4)), (300, 9000.0, (2850, 4050))])
def test_the_window_of_a_finding_lies_on_whole_steps_but_at_the_runs_end(
    analysis: Analysis, length_s: float, end_s: float, window: tuple[float, float]
) -> None:
    track = {0: QuantitySeries(np.arange(0.0, end_s), np.full(int(end_s) + (end_s % 1 > 0), 50.0))}
    at = 3590.0 if length_s == 10 else 3300.0
    finding = replace(analysis.findings[0], gpu=0, start_t_s=at, end_t_s=at + length_s)
    chart = surroundings(finding, replace(analysis, run=replace(analysis.run, duration_s=end_s)), track, CLOCK)
    assert (chart.start.t_s, chart.end.t_s) == window


def many(count: int) -> dict[int, QuantitySeries]:
    """Return a GPU at 10 %, one at 20 % and so on, the first with four times as many readings."""
    t_s = [np.arange(0.0, 600.0, 0.25 if gpu == 0 else 1.0) for gpu in range(count)]
    return {gpu: QuantitySeries(each, np.full(len(each), 10.0 * (gpu + 1))) for gpu, each in enumerate(t_s)}


def of_many(analysis: Analysis, count: int) -> Analysis:
    """Return an analysis of a run that used so many GPUs."""
    each = analysis.gpus[0]
    return replace(analysis, gpus=tuple(replace(each, gpu=replace(each.gpu, index=gpu)) for gpu in range(count)))


@pytest.mark.parametrize(("gpu", "own", "others"), [(None, [8], []), (2, [1], [7])])
def test_many_gpus_are_one_line_of_their_mean_with_their_range(
    analysis: Analysis, gpu: int | None, own: list[int], others: list[int]
) -> None:
    finding = replace(analysis.findings[0], gpu=gpu, start_t_s=200.0, end_t_s=230.0)
    chart = surroundings(finding, of_many(analysis, 8), many(8), CLOCK)
    assert [line.gpus for line in chart.lines if line.is_own] == own
    assert [line.gpus for line in chart.lines if not line.is_own] == others
    crowd = chart.lines[0]
    mean = 45.0 if gpu is None else (360 - 30) / 7  # each GPU counts alike, however often it was read
    assert {y for _, _, y in points(crowd.path)} == {round(100 - mean, 2)}
    assert {y for _, _, y in points(crowd.band)} == {20.0, 90.0}


def test_three_gpus_keep_their_lines(analysis: Analysis) -> None:
    finding = replace(analysis.findings[0], gpu=None, start_t_s=200.0, end_t_s=230.0)
    assert [line.gpus for line in surroundings(finding, analysis, many(3), CLOCK).lines] == [1, 1, 1]


def test_many_gpus_without_a_reading_draw_nothing(analysis: Analysis) -> None:
    unread = {gpu: QuantitySeries(each.t_s, np.full(len(each.t_s), np.nan)) for gpu, each in many(8).items()}
    finding = replace(analysis.findings[0], gpu=None, start_t_s=200.0, end_t_s=230.0)
    assert surroundings(finding, analysis, unread, CLOCK) is None
