"""Utilisation of each GPU over the run as one SVG image: no script, no style sheet, legible on light and on dark.

Notebooks show it by an `<img>` whose source is the image itself. GitHub and an untrusted JupyterLab drop an inline
`<svg>`, and keep this.
"""

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gpu_report.catalogue import phase_words
from gpu_report.gpu_words import gpu_words
from gpu_report.model import Analysis, Interval, Phase
from gpu_report.render.formatting import elapsed
from gpu_report.render.samples.coarse_timeline import envelope
from gpu_report.render.samples.quantity_series import QuantitySeries, series_of_each_gpu

Floats = NDArray[np.float64]

WIDTH, LEFT, RIGHT = 860, 56, 6  # pixels: of the image, and what its labels take on either side
PLOT = WIDTH - LEFT - RIGHT
MOST_ROWS = 32  # GPUs: more are no picture of a page's height
TALL_UP_TO, MIDDLE_UP_TO = 2, 8  # GPUs whose rows have so much room
TALL, MIDDLE, LOW = 90, 44, 18  # pixels of a row
GAP = 12  # pixels between rows
MOST_BUCKETS = 400  # of a row: two pixels each
BUCKETS_OF_ALL = 3200  # of all rows: an image of 8 GPUs has 80 kB, of 32 no more
LEAST_IN_BUCKET = 2  # readings, so that one that came late leaves no hole
TICKS = 6  # times under the rows
STRIP = 10  # pixels of the phases' strip
# Colours that are legible on white and on black: the image does not know what it lies on.
INK, FAINT = "#7b8893", "#8a97a2"
RANGE, LINE, ALARM = "#5aa2dc", "#2f86cc", "#e0443a"
PHASES = {
    "startup": "#92a2a7",
    "train": "#6fb1e0",
    "validation": "#d9a92b",
    "checkpoint": "#b06ac4",
    "final evaluation": "#3fa76b",
    "idle": "#c3c9ce",
    "predict": "#8fb27f",
    "export": "#a58fd6",
}
LEVELS = "▁▂▃▄▅▆▇█"
UNKNOWN = "·"
SPARKS = 16  # characters of a row in text


@dataclass(frozen=True)
class Picture:
    """An image as the source of an `<img>`, its width in pixels, and what it shows in words."""

    source: str
    width: int
    words: str


def picture(analysis: Analysis) -> Picture | None:
    """Return utilisation over the run, None where no GPU has a reading or the run has no length."""
    tracks = {gpu: track for gpu, track in series_of_each_gpu(analysis.run).items() if np.isfinite(track.values).any()}
    duration_s = analysis.run.duration_s
    if not tracks or duration_s <= 0:
        return None
    shown = dict(list(tracks.items())[:MOST_ROWS])
    left_out = f", the first {len(shown)} of {len(tracks)}" if len(shown) < len(tracks) else ""
    source = base64.b64encode(_svg(analysis, shown).encode()).decode("ascii")
    words = f"Utilisation of {'each GPU' if len(tracks) > 1 else 'the GPU'} over time, 0 to 100 %{left_out}"
    return Picture(f"data:image/svg+xml;base64,{source}", WIDTH, words)


def sparks(analysis: Analysis) -> dict[int, str]:
    """Return mean utilisation of each GPU over the run in a row of characters, for where no image is shown."""
    edges = np.linspace(0.0, max(analysis.run.duration_s, 1e-9), SPARKS + 1)
    return {gpu: "".join(map(_spark, _means(track, edges))) for gpu, track in series_of_each_gpu(analysis.run).items()}


def _spark(pct: float) -> str:
    if not np.isfinite(pct):
        return UNKNOWN
    return LEVELS[int(np.clip(pct * len(LEVELS) / 100, 0, len(LEVELS) - 1))]


def _svg(analysis: Analysis, tracks: dict[int, QuantitySeries]) -> str:
    height = TALL if len(tracks) <= TALL_UP_TO else MIDDLE if len(tracks) <= MIDDLE_UP_TO else LOW
    duration_s, y, parts = analysis.run.duration_s, float(GAP), []
    most = min(MOST_BUCKETS, BUCKETS_OF_ALL // len(tracks))
    for gpu, track in tracks.items():
        low = [each for each in analysis.low_intervals if each.gpu == gpu]
        parts += _row(gpu_words(gpu), track, (y, height), duration_s, most)
        parts += _alarms(low, y + height, duration_s)
        y += height + GAP
    strip = _phase_strip(analysis.phases, y, duration_s)
    y += STRIP + GAP if strip else 0
    parts += [*strip, *_ticks(y, duration_s)]
    legend = _legend(analysis)
    bottom = y + (40 if legend else 18)
    parts += _legend_items(legend, y + 34)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{bottom:.0f}" '
        f'viewBox="0 0 {WIDTH} {bottom:.0f}" font-family="system-ui,sans-serif" font-size="12">{"".join(parts)}</svg>'
    )


def _row(name: str, track: QuantitySeries, place: tuple[float, float], duration_s: float, most: int) -> list[str]:
    """Return a GPU's name, its grid, and of each part of the run the range of its readings and their mean."""
    y, height = place
    count = max(min(most, len(track.t_s) // LEAST_IN_BUCKET), 1)
    edges = np.linspace(0.0, duration_s, count + 1)
    x = LEFT + PLOT * (edges[:-1] + edges[1:]) / 2 / duration_s
    lowest, highest = (y + height * (1 - side / 100) for side in envelope(track, edges).reshape(-1, 2).T)
    mean = y + height * (1 - _means(track, edges) / 100)
    grid = "".join(f"M{LEFT},{y + height * part:.0f}H{WIDTH - RIGHT}" for part in (0.0, 0.5, 1.0))
    ranges = "".join(
        f"M{at:.1f},{low + 0.5:.1f}V{high - 0.5:.1f}"
        for at, low, high in zip(x, lowest, highest, strict=True)
        if np.isfinite(low)
    )
    percent = [("100", y + 4), ("0 %", y + height + 4)] if height >= MIDDLE else []
    return [
        f'<path d="{grid}" stroke="{FAINT}" stroke-opacity=".3" fill="none"/>',
        f'<path d="{ranges}" stroke="{RANGE}" stroke-opacity=".45" stroke-width="{PLOT / count:.1f}" fill="none"/>',
        f'<path d="{_line(x, mean)}" stroke="{LINE}" stroke-width="1.3" fill="none"/>',
        _text(0, y + height / 2 + 4, name),
        *(_text(LEFT - 4, at, words, anchor="end", size=9) for words, at in percent),
    ]


def _line(x: Floats, y: Floats) -> str:
    """Return a line through points, which breaks where one is missing; a point alone is a short dash."""
    path, joined = [], False
    for across, down in zip(x, y, strict=True):
        if np.isfinite(down):
            path.append(f"L{across:.1f},{down:.1f}" if joined else f"M{across - 1:.1f},{down:.1f}h1")
        joined = bool(np.isfinite(down))
    return "".join(path)


def _means(track: QuantitySeries, edges: Floats) -> Floats:
    """Return the mean of the readings between each two edges, NaN where there is none."""
    known = np.isfinite(track.values) & (track.t_s >= edges[0]) & (track.t_s < edges[-1])
    place = np.searchsorted(edges, track.t_s[known], side="right") - 1
    count = np.bincount(place, minlength=len(edges) - 1)
    total = np.bincount(place, track.values[known], minlength=len(edges) - 1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _alarms(low: Iterable[Interval], y: float, duration_s: float) -> list[str]:
    """Return the times under 20 % as a line under the row, one path of all."""
    spans = ((PLOT * each.start_t_s / duration_s, PLOT * each.end_t_s / duration_s) for each in low)
    path = "".join(f"M{LEFT + a:.1f},{y + 3:.1f}h{max(b - a, 1):.1f}" for a, b in spans)
    return [f'<path d="{path}" stroke="{ALARM}" stroke-width="3" fill="none"/>'] if path else []


def _phase_strip(phases: Sequence[Phase], y: float, duration_s: float) -> list[str]:
    """Return what YOLO did when: of each pixel the phase in its middle, a path a kind of phase."""
    if not phases:
        return []
    phases = sorted(phases, key=lambda phase: phase.start_t_s)
    starts = np.array([phase.start_t_s for phase in phases])
    middles = (np.arange(PLOT) + 0.5) * duration_s / PLOT
    at = np.searchsorted(starts, middles, side="right") - 1
    names = [
        phases[place].name if place >= 0 and middles[n] <= phases[place].end_t_s else "" for n, place in enumerate(at)
    ]
    edges = [0, *(n for n in range(1, PLOT) if names[n] != names[n - 1]), PLOT]
    drawn: dict[str, list[str]] = {}
    for a, b in pairwise(edges):
        if names[a]:
            drawn.setdefault(names[a], []).append(f"M{LEFT + a},{y:.0f}h{b - a}v{STRIP}h{a - b}z")
    return [f'<path d="{"".join(boxes)}" fill="{PHASES.get(name, FAINT)}"/>' for name, boxes in drawn.items()]


def _ticks(y: float, duration_s: float) -> list[str]:
    anchors = ["start", *["middle"] * (TICKS - 2), "end"]
    parts = [n / (TICKS - 1) for n in range(TICKS)]
    return [
        _text(LEFT + PLOT * part, y + 10, elapsed(part * duration_s), anchor=anchor, size=11)
        for part, anchor in zip(parts, anchors, strict=True)
    ]


def _legend(analysis: Analysis) -> list[tuple[str, str]]:
    """Return the colours of phases and alarms that the picture has, with their names."""
    names = dict.fromkeys(phase.name for phase in analysis.phases)
    items = [(PHASES.get(name, FAINT), phase_words(name)) for name in names]
    return [*items, *([(ALARM, "GPU under 20 %")] if analysis.low_intervals else [])]


def _legend_items(items: Sequence[tuple[str, str]], y: float) -> list[str]:
    parts, x = [], float(LEFT)
    for colour, words in items:
        parts.append(f'<rect x="{x:.0f}" y="{y - 9:.0f}" width="10" height="10" fill="{colour}"/>')
        parts.append(_text(x + 14, y, words, size=11))
        x += 30 + 6.2 * len(words)
    return parts


def _text(x: float, y: float, words: str, *, anchor: str = "start", size: int = 12) -> str:
    """Return a label; all of them are our own words and numbers."""
    return f'<text x="{x:.0f}" y="{y:.0f}" fill="{INK}" font-size="{size}" text-anchor="{anchor}">{words}</text>'
