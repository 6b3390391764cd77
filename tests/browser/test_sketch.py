"""The timeline's first picture, drawn before Plotly is there, lies where Plotly draws it, and does not stay."""

from io import BytesIO

import pytest
from PIL import Image, ImageChops
from support.browser import settled_screen, show_timeline, wait_for_plotly, wait_until

from gpu_report.model import Analysis

# Keeps the sketch when it is drawn, before Plotly is read; its pixels, and whether Plotly was there.
KEEP = """
new MutationObserver(() => {
  if (document.documentElement?.dataset.drawn !== "sketch" || window.sketched) return;
  const canvas = document.getElementById("sketch");
  const { top, left } = canvas.getBoundingClientRect();
  const chart = document.getElementById("chart").getBoundingClientRect();
  const { width, height } = canvas;
  window.sketched = {
    image: canvas.getContext("2d").getImageData(0, 0, width, height),
    ratio: devicePixelRatio,
    offset: [left - chart.left, top - chart.top],
    before: typeof Plotly === "undefined",
  };
}).observe(document, { subtree: true, attributeFilter: ["data-drawn"] });
"""
# Folds a lane as soon as the sketch stands.
TOGGLE = """
new MutationObserver(() => {
  if (document.documentElement?.dataset.drawn !== "sketch" || window.toggled) return;
  const heads = [...document.querySelectorAll("#lane-heads button")];
  const power = heads.find((head) => head.textContent.startsWith("Power"));
  const before = document.getElementById("sketch").height;
  power.click();
  window.toggled = [typeof Plotly === "undefined", document.getElementById("sketch").height < before];
}).observe(document, { subtree: true, attributeFilter: ["data-drawn"] });
"""
# The share of a line's points, by Plotly's own axes, at which the sketch has something within a pixel.
SHARES = """
() => {
  const { image, ratio } = window.sketched;
  const chart = document.getElementById("chart");
  const isGround = (at) => [0, 1, 2].every((part) => Math.abs(image.data[at + part] - image.data[part]) < 20);
  const isDrawn = (x, y) => {
    for (let row = -1; row <= 1; row += 1)
      for (let column = -1; column <= 1; column += 1) {
        const at = (Math.round(y * ratio) + row) * image.width + Math.round(x * ratio) + column;
        if (!isGround(at * 4)) return true;
      }
    return false;
  };
  return chart.data.filter((trace) => trace.mode === "lines").map((trace) => {
    const [across, up] = [chart._fullLayout.xaxis, chart._fullLayout[trace.yaxis.replace("y", "yaxis")]];
    const points = Array.from(trace.y, (y, i) => [trace.x[i], y])
      .filter(([x, y]) => y !== null && x >= across.range[0] && x <= across.range[1])
      .map(([x, y]) => [across._offset + across.d2p(x), up._offset + up.d2p(y)]);
    const isSolid = (trace.line.dash ?? "solid") === "solid";
    return [isSolid, points.filter(([x, y]) => isDrawn(x, y)).length / Math.max(points.length, 1)];
  });
}
"""


@pytest.mark.parametrize("settings", [{}, {"viewport": {"width": 390, "height": 800}, "device_scale_factor": 2}])
def test_the_sketch_lies_where_plotly_draws(open_report, analysis: Analysis, settings: dict[str, object]) -> None:
    opened = open_report(analysis, script=KEEP, **settings)
    page = opened.page
    kept = page.evaluate("(({ offset, before }) => ({ offset, before }))(window.sketched)")
    assert kept == {"offset": [0, 0], "before": True}
    shares = page.evaluate(SHARES)
    assert len(shares) > 10
    assert min(share for is_solid, share in shares if is_solid) > 0.99, shares
    assert min(share for is_solid, share in shares) > 0.6, shares  # of a dashed line, as far as it has no gaps
    assert page.locator("#sketch").is_hidden()
    assert opened.errors == []


def test_without_plotly_no_sketch_stays_and_that_is_said(open_report, analysis: Analysis) -> None:
    none = "Object.defineProperty(window, 'Plotly', { get() { throw new Error('none'); } });"
    page = open_report(analysis, script=none, complete="#chart").page
    wait_until(page, "() => document.getElementById('chart')?.textContent.includes('could not be drawn')")
    assert page.locator("#sketch").count() == 0
    assert page.locator("#lane-heads, #strip").count() == 0
    assert page.locator("#chart").bounding_box()["height"] < 100


def test_what_changes_before_plotly_is_there_changes_the_sketch(open_report, analysis: Analysis) -> None:
    page = open_report(analysis, script=KEEP + TOGGLE).page
    assert page.evaluate("window.toggled") == [True, True]
    folded = page.locator("#lane-heads button[aria-expanded=false]").all_text_contents()
    assert [words.partition(":")[0] for words in folded] == ["Power, W", "Learning rate"]
    first, second = page.evaluate("[window.sketched.image.height, document.getElementById('chart').clientHeight]")
    assert second < first


def test_a_sketch_that_fails_costs_nothing_but_itself(open_report, analysis: Analysis) -> None:
    fails = "CanvasRenderingContext2D.prototype.setLineDash = () => { throw new Error('no'); };"
    opened = open_report(analysis, script=fails)
    page = opened.page
    assert page.evaluate("document.documentElement.dataset.drawn") == "yes"
    assert page.evaluate("document.querySelector('.js-plotly-plot').data.length") > 10
    assert page.locator("#sketch").is_hidden()
    assert opened.errors == []


def test_while_the_window_moves_a_canvas_shows_it_and_plotly_draws_it_once(open_report, analysis: Analysis) -> None:
    opened = open_report(analysis)
    page = opened.page
    page.evaluate("document.getElementById('zoom-in').click()")
    wait_for_plotly(page)
    page.evaluate(
        "window.plots = 0; document.getElementById('chart').on('plotly_afterplot', () => (window.plots += 1))"
    )
    moved = page.evaluate("""async () => {
      const canvas = document.getElementById("sketch");
      const pictures = new Set();
      for (let i = 0; i < 6; i += 1) {
        document.getElementById(i % 2 ? "zoom-out" : "zoom-in").click();
        pictures.add(canvas.toDataURL());
        await new Promise((done) => requestAnimationFrame(done));
      }
      return [canvas.hidden, pictures.size, window.plots];
    }""")
    assert moved == [False, 2, 0]
    wait_for_plotly(page)
    assert page.evaluate("window.plots") == 1
    assert opened.errors == []


@pytest.mark.parametrize("theme", [pytest.param("light", marks=pytest.mark.long), "dark"])
def test_the_canvas_looks_as_what_plotly_draws_in_its_place(open_report, analysis: Analysis, theme: str) -> None:
    """Signs, numbers and notes, too: of the pixels few are others, and those by the smoothing of edges."""
    # To take a picture of what is higher than the window, Playwright resizes that: the page draws anew, canvas first.
    page = open_report(analysis, color_scheme=theme, viewport={"width": 1400, "height": 1300}).page
    show_timeline(page)
    page.mouse.move(5, 5)
    page.evaluate("document.getElementById('zoom-in').click()")
    wait_for_plotly(page)
    by_plotly = picture_of(settled_screen(page, "#chart"))
    page.evaluate("document.getElementById('sketch').hidden = false")
    by_canvas = picture_of(settled_screen(page, "#chart"))
    assert by_canvas.size == by_plotly.size
    assert by_canvas.tobytes() != by_plotly.tobytes()
    small = [
        picture.resize((picture.width // 8, picture.height // 8), Image.Resampling.BOX)
        for picture in (by_canvas, by_plotly)
    ]
    apart = ImageChops.difference(*small).convert("L")
    assert sum(apart.histogram()[48:]) / (apart.width * apart.height) < 0.01


def picture_of(png: bytes) -> Image.Image:
    return Image.open(BytesIO(png)).convert("RGB")
