// Wires the page together: text is there already; times, theme, timeline, snapshot, links and downloads come on top.

import { fromBase64, inflate, unpackSeries } from "./codec.js";
import { setUpCopy, setUpPrint, setUpTheme, setUpZone } from "./settings.js";
import { Snapshot } from "./snapshot.js";
import { Timeline, ZOOM_STEP } from "./timeline.js";
import { breakIndexes } from "./window.js";
import { Zone, element } from "./words.js";

function readRun() {
  return JSON.parse(document.getElementById("report-data").textContent);
}

async function unpackStore(run) {
  const bytes = fromBase64(document.getElementById("report-columns").textContent.trim());
  const gpus = await Promise.all(
    run.gpus.map(async (gpu, position) => {
      const series = await unpackSeries(bytes, gpu.columns);
      const gaps = run.gaps
        .filter(([index]) => index === null || index === gpu.index)
        .map(([, start, end]) => [start * 1000, end * 1000]);
      return { ...gpu, position, series: { ...series, breaks: breakIndexes(series.times, gaps) } };
    }),
  );
  const host = await unpackSeries(bytes, run.host);
  const gaps = run.gaps.filter(([index]) => index === null).map(([, start, end]) => [start * 1000, end * 1000]);
  return { run, startWall: run.start_wall_s * 1000, gpus, host: { ...host, breaks: breakIndexes(host.times, gaps) } };
}

async function loadChartLibrary() {
  const bytes = await inflate(fromBase64(document.getElementById("chart-library").textContent.trim()), "gzip");
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
  // The full bundle adds a style sheet for maps, which the policy forbids, unless an element with its id is there.
  for (const [, id] of text.matchAll(/getElementById\("([0-9a-f]{64})"\)/g))
    document.head.append(element("meta", { id }));
  document.head.append(element("script", {}, text));
}

/** Return a series as CSV: time since the start, wall time, then every recorded quantity; missing is an empty cell. */
export function toCsv(store, series) {
  const names = [...series.columns.keys()];
  const columns = names.map((name) => series.columns.get(name));
  const lines = [["t_s", "wall_s", ...names].join(",")];
  series.times.forEach((time, i) => {
    const cells = columns.map((column) => column.at(i) ?? "");
    lines.push([(time / 1000).toFixed(3), ((store.startWall + time) / 1000).toFixed(3), ...cells].join(","));
  });
  return `${lines.join("\n")}\n`;
}

function setUpDownloads(store) {
  for (const button of document.querySelectorAll("[data-csv]")) {
    button.disabled = false;
    button.addEventListener("click", () => {
      const gpu = store.gpus.find(({ index }) => String(index) === button.dataset.csv);
      const link = element("a", { download: gpu ? `gpu-${gpu.index}.csv` : "host.csv" });
      link.href = URL.createObjectURL(new Blob([toCsv(store, gpu ? gpu.series : store.host)], { type: "text/csv" }));
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
  }
}

function setUpControls(timeline, snapshot) {
  const on = (id, act) => document.getElementById(id).addEventListener("click", act);
  on("zoom-in", () => timeline.zoom(ZOOM_STEP));
  on("zoom-out", () => timeline.zoom(1 / ZOOM_STEP));
  on("zoom-reset", () => timeline.show(...timeline.full));
  for (const button of document.querySelectorAll("[data-gpu-toggle]")) {
    button.addEventListener("click", () => {
      const shown = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(shown));
      timeline.toggle(Number(button.dataset.gpuToggle), shown);
    });
  }
  for (const button of document.querySelectorAll("[data-step]"))
    button.addEventListener("click", () => timeline.step(Number(button.dataset.step)));
  snapshot.panel.addEventListener("keydown", (event) => timeline.key(event));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") snapshot.close();
  });
  for (const button of document.querySelectorAll("[data-show-from]")) {
    button.addEventListener("click", () => {
      timeline.showAround(Number(button.dataset.showFrom), Number(button.dataset.showTo));
      timeline.chart.parentElement.scrollIntoView();
    });
  }
}

function followAddress(timeline, snapshot) {
  const moment = /^#t=(-?\d+(?:\.\d+)?)$/.exec(location.hash);
  if (moment) {
    timeline.chart.parentElement.scrollIntoView({ behavior: "instant" });
    snapshot.open(timeline.snap(Number(moment[1]) * 1000));
    return;
  }
  openTarget();
}

/** Open what is folded around the address's target, and bring it into view. */
function openTarget() {
  const target = document.querySelector(":target");
  if (!target) return;
  for (let around = target.closest("details"); around; around = around.parentElement.closest("details"))
    around.open = true;
  target.scrollIntoView();
}

async function startTimeline(run, zone) {
  const [store] = await Promise.all([unpackStore(run), loadChartLibrary()]);
  const snapshot = new Snapshot(store, zone);
  const timeline = new Timeline(document.getElementById("chart"), store, zone, (time) => snapshot.open(time));
  snapshot.timeline = timeline;
  document.getElementById("chart-wait").remove();
  await timeline.start();
  setUpControls(timeline, snapshot);
  setUpDownloads(store);
  followAddress(timeline, snapshot);
  window.addEventListener("hashchange", () => followAddress(timeline, snapshot));
  return {
    redraw: (width) => {
      timeline.draw(width);
      snapshot.refresh();
    },
  };
}

async function main() {
  const run = readRun();
  const zone = new Zone(run.start_wall_s * 1000);
  let started = null;
  const redraw = (width) => started?.redraw(width);
  setUpTheme(redraw);
  setUpZone(zone, redraw);
  setUpPrint(redraw);
  setUpCopy();
  openTarget();
  if (document.getElementById("chart")) {
    try {
      started = await startTimeline(run, zone);
    } catch (error) {
      const place = document.getElementById("chart-wait") ?? document.getElementById("chart");
      place.textContent =
        "The timeline could not be drawn in this browser; all other parts of the report are complete.";
      throw error;
    }
  }
  document.documentElement.dataset.ready = "yes";
}

main();
