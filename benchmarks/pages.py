"""How long a report takes to make and to open, and how large it is, beside plain Plotly's (docs/performance.md).

    python benchmarks/pages.py --work DIR [--runs hour,fine,day,week] [--repeats 5] [--write]

Runs come from benchmarks/tiles.py, and stay in DIR, as do results: what was measured already is not measured again
(delete DIR/results.json to begin anew). --write puts the table into the document. Needs Chromium.
Each process imports only what it measures: that is part of what is measured.
"""

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
from support.chromium import find_chromium  # noqa: E402 - the path is set above

DOCUMENT = ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- measured: begin (benchmarks/pages.py --write) -->", "<!-- measured: end -->"
MEMORY_LIMIT_MB = 9_000  # of plain Plotly: a week of everything would take the machine down
TIME_LIMIT_S = 900
OPEN_LIMIT_S = 90
ZOOM_SHARE = 0.01  # of the run
QUIET_MS = 400  # nothing was drawn for so long: the zoom is done
SIX = ("gpu_util_pct", "memory_util_pct", "memory_used_mib", "power_w", "temperature_c", "sm_clock_mhz")
SEEN = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")
VIEWPORT = {"width": 1400, "height": 1000}
MEGA = 1e6
REAL_RECORDING = ROOT / "benchmarks" / "m-ddp4-10hz.tar.xz"  # of the training of sample_runs/m-ddp4
REAL = "real-10hz"  # among the results
REAL_WORDS = "An hour of eight GPUs at 10 Hz by the columns of a real recording (330 s of four GPUs)"

Json = dict[str, Any]


@dataclass(frozen=True)
class Shape:
    """A run of the table, and what the report of it may take (issue 6): s, MB of memory, MB, s, ms."""

    name: str
    words: str
    hours: float
    gpus: int
    interval_s: float
    goals: tuple[str, str, str, str, str]
    epoch_s: float | None = None  # of training; None: the 5 s of the real recordings


SHAPES = (
    Shape("hour", "1 h, 1 GPU, 1 Hz", 1, 1, 1.0, ("", "", "0.9 over the library", "0.5", "")),
    Shape("day", "24 h, 8 GPUs, 1 Hz", 24, 8, 1.0, ("2", "400", "10", "0.8", "120"), 300.0),
    Shape("many", "the same with 15,000 epochs of 5 s", 24, 8, 1.0, ("", "", "", "", "")),
    Shape("fine", "1 h, 8 GPUs, 10 Hz", 1, 8, 0.1, ("", "", "4", "0.8", "")),
    Shape("week", "7 days, 8 GPUs, 1 Hz", 168, 8, 1.0, ("12", "1500", "65", "1.3", "300"), 300.0),
)
WAYS = {
    "ours": "ours: all that was recorded",
    "bare": "ours, without the driver's readings between ticks",
    "plain": "plain Plotly: all of it",
    "six": "plain Plotly: six quantities",
}


# --- what is measured, each in a process of its own ---------------------------------------------------------------


def ours(folder: Path, output: Path) -> int:
    """Write our report as `gpu-report render` does, and return the bytes that the chart library takes in it."""
    from gpu_report.pandas_without_arrow import import_pandas_without_arrow  # noqa: PLC0415 - see the module docstring
    from gpu_report.release_memory import give_back_memory, keep_one_heap  # noqa: PLC0415 - see the module docstring

    keep_one_heap()
    import_pandas_without_arrow()
    from gpu_report.analyse import analyse  # noqa: PLC0415 - see the module docstring
    from gpu_report.load import load_run  # noqa: PLC0415 - see the module docstring
    from gpu_report.render import Packing, begin_blank_page, page_texts  # noqa: PLC0415 - see the module docstring
    from gpu_report.usable_cores import threads  # noqa: PLC0415 - see the module docstring

    blank = begin_blank_page()
    run = load_run(folder)
    meanwhile = threads("meanwhile", spared=1)
    packing = Packing(run, meanwhile)
    analysis = analyse(run, meanwhile=meanwhile)
    give_back_memory()
    with output.open("w", encoding="utf-8") as file:
        file.writelines(page_texts(analysis, packing, blank.result()))
    return len(blank.result().library)


def plain(folder: Path, output: Path, names: Sequence[str] | None) -> int:
    """Write what anybody would write first: a trace for each column of each GPU, and `write_html`."""
    import pandas as pd  # noqa: PLC0415 - see the module docstring
    import plotly.graph_objects as go  # noqa: PLC0415 - see the module docstring
    from plotly.offline import get_plotlyjs  # noqa: PLC0415 - see the module docstring

    limit = MEMORY_LIMIT_MB * 1024 * 1024
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    figure = go.Figure()
    for file in ("samples.csv",) if names else ("samples.csv", "ring.csv", "host.csv"):
        frame = pd.read_csv(folder / file)
        times = pd.to_datetime(frame["wall_s"], unit="s")
        groups = frame.groupby("gpu").groups if "gpu" in frame else {"host": frame.index}
        columns = [c for c in names or frame.columns if c not in {"wall_s", "mono_s", "gpu"} and frame[c].notna().any()]
        for gpu, rows in groups.items():
            for name in columns:
                figure.add_scatter(x=times[rows], y=frame.loc[rows, name], name=f"{gpu} {name}", mode="lines")
    figure.write_html(output)
    return len(get_plotlyjs())


def make(way: str, folder: Path, output: Path) -> None:
    """Write one page, as a process of its own that is measured, and print its library's bytes."""
    print(ours(folder, output) if way in {"ours", "bare"} else plain(folder, output, SIX if way == "six" else None))


def made(way: str, folder: Path, output: Path) -> Json:
    """Return seconds, CPU seconds, MB of memory at most and bytes of a page that is written by a fresh process."""
    output.unlink(missing_ok=True)
    began = time.perf_counter()
    command = [sys.executable, __file__, "--make", way, str(folder), str(output)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=_env()) as process:
        try:
            out, error = process.communicate(timeout=TIME_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            return {"failed": f"not done after {TIME_LIMIT_S} s"}
    if process.returncode:
        last = (error.strip().splitlines() or ["killed"])[-1]
        return {"failed": f"more than {MEMORY_LIMIT_MB / 1000:g} GB" if "Memory" in last or "alloc" in last else last}
    return {"seconds": time.perf_counter() - began, "library": int(out), "bytes": output.stat().st_size}


def _env() -> dict[str, str]:
    """Return this process's environment, but that modules stay compiled, as those of any installed package are."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def measured_make(way: str, folder: Path, output: Path) -> Json:
    """Return `made`, with the process's CPU seconds and peak memory: those of the only child since the call."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        found = made(way, folder, output)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        found |= {"cpu_s": used.ru_utime + used.ru_stime, "rss_mb": used.ru_maxrss * 1024 / MEGA}
        os.write(writer, json.dumps(found).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return json.loads(text)


# --- the browser --------------------------------------------------------------------------------------------------

# "Painted": from the beginning of the navigation until the first chart is drawn, plus two frames.
# Ours is drawn on a canvas first (js/sketch.js): it is seen then, and again by Plotly ("by Plotly"). So is a zoom.
WATCH = """
(() => {
  const painted = () => (window.paintedAt ??= performance.now());
  const twoFrames = (act) => requestAnimationFrame(() => requestAnimationFrame(act));
  const observe = () => {
    const { drawn } = document.documentElement?.dataset ?? {};
    if (drawn === "sketch") twoFrames(painted);
    if (drawn === "yes") twoFrames(() => (window.plottedAt ??= performance.now()));
  };
  new MutationObserver(observe).observe(document, { subtree: true, attributeFilter: ["data-drawn"] });
  const afterwards = (chart) => (twoFrames(painted), chart);
  let library;
  Object.defineProperty(window, "Plotly", {
    configurable: true,
    get: () => library,
    set: (found) => {
      const drawing = (name) => (...all) => found[name](...all).then(afterwards);
      const own = { newPlot: drawing("newPlot"), react: drawing("react") };
      library = new Proxy(own, { get: (_, name) => own[name] ?? found[name] });
    },
  });
})();
"""
ZOOM = """
async ([from, to, quiet]) => {
  const chart = document.querySelector(".js-plotly-plot");
  let last = performance.now();
  const drawn = () => requestAnimationFrame(() => requestAnimationFrame(() => (last = performance.now())));
  chart.on("plotly_afterplot", drawn);
  const axis = chart._fullLayout.xaxis;
  const [first, end] = axis.range.map((each) => axis.r2l(each));
  const began = performance.now();
  if (document.querySelector(".chart-frame")) {
    const box = chart.getBoundingClientRect();
    const at = (share) => box.left + axis._offset + share * axis._length;
    const point = (name, share) => {
      const place = { clientX: at(share), clientY: box.top + 100, bubbles: true, button: 0, buttons: 1 };
      chart.dispatchEvent(new PointerEvent(name, { ...place, pointerType: "mouse" }));
    };
    point("pointerdown", from);
    point("pointermove", to);
    point("pointerup", to);
  } else {
    const at = (share) => new Date(first + share * (end - first)).toISOString().replace("Z", "");
    await Plotly.relayout(chart, { "xaxis.range[0]": at(from), "xaxis.range[1]": at(to) });
  }
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  last = performance.now();
  const seen = document.getElementById("sketch")?.hidden === false ? last - began : null;
  while (performance.now() - last < quiet) await new Promise((done) => setTimeout(done, 20));
  chart.removeListener("plotly_afterplot", drawn);
  return [seen ?? last - began, last - began];
}
"""


def opened(page_file: Path, repeats: int) -> Json:
    """Return the median seconds until a page is painted, and ms of a zoom to 1 %, each time in a fresh browser."""
    from playwright.sync_api import Error, sync_playwright  # noqa: PLC0415 - see the module docstring

    painted, plotted, zoomed = [], [], []
    for number in range(repeats):
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=find_chromium(), args=list(SEEN))
            page = browser.new_page(viewport=VIEWPORT)
            page.add_init_script(WATCH)
            try:
                page.goto(page_file.as_uri(), timeout=OPEN_LIMIT_S * 1000, wait_until="commit")
                painted.append(_when(page, "paintedAt") / 1000)
                if page.locator(".chart-frame").count():  # ours: all readings are unpacked after the first picture
                    plotted.append(_when(page, "plottedAt") / 1000)
                    page.locator("html[data-ready=yes]").wait_for(state="attached", timeout=OPEN_LIMIT_S * 1000)
                begin = 0.2 + 0.15 * number
                zoomed.append(page.evaluate(ZOOM, [begin, begin + ZOOM_SHARE, QUIET_MS]))
            except (Error, TimeoutError):
                return {"not_opened": True}
            finally:
                browser.close()
    times = {"painted_s": median(painted), "plotted_s": median(plotted or painted)}
    seen, by_plotly = zip(*zoomed, strict=True)
    return {**times, "zoom_ms": median(seen), "zoom_plotly_ms": median(by_plotly), "opened": repeats}


def _when(page: Any, name: str) -> float:
    until = time.monotonic() + OPEN_LIMIT_S
    while time.monotonic() < until:
        found = page.evaluate(f"window.{name} ?? null")
        if found is not None:
            return float(found)
        page.wait_for_timeout(20)
    raise TimeoutError


# --- all of it, and the table -------------------------------------------------------------------------------------


def measure(work: Path, shape: Shape, way: str, repeats: int) -> Json:
    """Return what one way of showing a run takes."""
    folder = _run_folder(work, shape, way)
    output = work / f"{shape.name}-{way}.html"
    times = 1 if shape.name == "week" or way == "plain" else min(repeats, 3)
    load = os.getloadavg()[0]
    each = [measured_make(way, folder, output) for _ in range(times)]
    failed = next((found for found in each if "failed" in found), None)
    if failed:
        return {**failed, "load": load}
    typical = sorted(each, key=lambda found: found["cpu_s"])[times // 2]
    load = max(load, os.getloadavg()[0])
    return {**typical, "made": times, **opened(output, repeats), "load": max(load, os.getloadavg()[0])}


def _run_folder(work: Path, shape: Shape, way: str) -> Path:
    folder = work / shape.name
    if not (folder / "run.json").exists():  # written last
        shutil.rmtree(folder, ignore_errors=True)
        tiles = [sys.executable, str(ROOT / "benchmarks" / "tiles.py"), "--ring", "--hours", str(shape.hours)]
        tiles += [] if shape.epoch_s is None else ["--epoch-s", str(shape.epoch_s)]
        subprocess.run([*tiles, "--gpus", str(shape.gpus), "--interval", str(shape.interval_s), folder], check=True)
    if way != "bare":
        return folder
    bare = work / f"{shape.name}-bare"
    if not bare.exists():
        # a run folder is not read through links that lead out of it; hard ones take no room
        shutil.copytree(folder, bare, ignore=shutil.ignore_patterns("ring.csv"), copy_function=os.link)
    return bare


def table(results: Json) -> str:
    """Return the Markdown table."""
    head = (
        "| run | page | seconds (CPU) | memory MB | HTML MB | over the library MB "
        "| painted s | by Plotly s | zoom ms | by Plotly ms |"
    )
    lines = [head, "|---|---|---|---|---|---|---|---|---|---|"]
    for shape in SHAPES:
        if not any(f"{shape.name}-{way}" in results for way in WAYS):
            continue
        seconds, memory, size, painted, zoom = (goal or "-" for goal in shape.goals)
        lines.append(f"| **{shape.words}** | *goal* | {seconds} | {memory} | {size} | | {painted} | | {zoom} | |")
        for way, words in WAYS.items():
            if found := results.get(f"{shape.name}-{way}"):
                lines.append(f"| | {words} | {_cells(found)} |")
    real = f"{REAL_WORDS}: {results[REAL]['mb']:.1f} MB." if REAL in results else ""
    loads = [found["load"] for found in results.values() if "load" in found]
    of_loads = f"{min(loads, default=0.0):.1f} to {max(loads, default=0.0):.1f} on {os.cpu_count()} cores"
    when = f"Load average of the machine meanwhile: {of_loads}." if loads else ""
    return "\n".join([*lines, "", *filter(None, [real, when])])


def real_size(work: Path) -> Json:
    """Return the MB that an hour of eight GPUs at 10 Hz would take, by the columns of a real recording of less.

    A made run draws its rows at random, so that a reading which the driver has not renewed since the last one is none.
    """
    with tarfile.open(REAL_RECORDING) as archive:
        archive.extractall(work, filter="data")
    folder, output = work / REAL_RECORDING.name.partition(".")[0], work / "real.html"
    ours(folder, output)
    html = output.read_text(encoding="utf-8")
    columns = len(re.search(r'id="report-columns">(.*?)</script>', html, re.DOTALL)[1])
    info = json.loads((folder / "run.json").read_text())
    gpu_hours = len(info["gpus"]) * (info["end"]["mono_s"] - info["start"]["mono_s"]) / 3600
    return {"mb": (len(html.encode()) - columns + columns * 8 / gpu_hours) / MEGA}


def _cells(found: Json) -> str:
    if "failed" in found:
        return f"{found['failed']} | | | | | | | "
    cells = [
        f"{found['seconds']:.1f} ({found['cpu_s']:.1f})",
        f"{found['rss_mb']:.0f}",
        f"{found['bytes'] / MEGA:.1f}",
        f"{(found['bytes'] - found['library']) / MEGA:.2f}",
    ]
    opening = (
        ["does not open", "", "", ""]
        if "not_opened" in found
        else [
            f"{found['painted_s']:.2f}",
            f"{found.get('plotted_s', found['painted_s']):.2f}",
            f"{found['zoom_ms']:.0f}",
            f"{found['zoom_plotly_ms']:.0f}",
        ]
    )
    return " | ".join([*cells, *opening])


def main() -> None:
    """Measure what is not measured yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--runs", default=",".join(shape.name for shape in SHAPES))
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--make", nargs=3, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.make:
        way, folder, output = asked.make
        make(way, Path(folder), Path(output))
        return
    asked.work.mkdir(parents=True, exist_ok=True)
    kept = asked.work / "results.json"
    results: Json = json.loads(kept.read_text()) if kept.exists() else {}
    for shape in SHAPES:
        for way in asked.ways.split(","):
            key = f"{shape.name}-{way}"
            if shape.name in asked.runs.split(",") and key not in results:
                results[key] = measure(asked.work.resolve(), shape, way, asked.repeats)
                kept.write_text(json.dumps(results, indent=1))
                print(key, results[key], flush=True)
    if REAL not in results:
        results[REAL] = real_size(asked.work.resolve())
        kept.write_text(json.dumps(results, indent=1))
    text = table(results)
    print(text)
    if asked.write:
        head, rest = DOCUMENT.read_text(encoding="utf-8").split(BEGIN)
        DOCUMENT.write_text(f"{head}{BEGIN}\n\n{text}\n\n{END}{rest.split(END)[1]}", encoding="utf-8")


if __name__ == "__main__":
    main()
