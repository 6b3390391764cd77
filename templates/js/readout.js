// The box beside the cursor: every value at that moment, exact however far out the timeline is zoomed.

import { happeningsNear } from "./events.js";
import { laneUnit } from "./lanes.js";
import { learningText, ofEpoch } from "./learning.js";
import { lineOf } from "./lines.js";
import { epochAt, findingsAt, kernelNear, phaseAt, sampleAt, slack, valueAt } from "./moment.js";
import { rangeInWindow } from "./window.js";
import { elapsed, element, gpuNumber, phaseWords, prose, quantity } from "./words.js";

const STEPS_IN_PIXEL = 1.5; // from how many steps of a line on a pixel gives their range instead of one reading
const FINE_MS = 50; // on a pixel: then its tenths of a second tell moments apart
const NEAR_PX = 8; // how close to a mark of the lane of events tells what it is
const GPUS_SHOWN = 8; // columns; more would cover the chart

/** Fill the box with what stood at a moment; `pixelMs` is the time one pixel covers. */
export function fillReadout(box, store, lanes, time, view, zone, pixelMs) {
  const { run } = store;
  const gpus = store.gpus.filter((gpu) => !view.hidden.has(gpu.index));
  const phase = phaseAt(run, time);
  const epoch = epochAt(run, time)?.[1] ?? null;
  const doing = phase ? `${phaseWords(phase.name)}${phase.detail ? ` (${phase.detail})` : ""}` : "";
  const place = [epoch === null ? "" : `epoch ${epoch}`, doing].filter(Boolean).join(", ");
  box.replaceChildren(
    element(
      "p",
      { class: "readout-time" },
      element("strong", {}, zone.timeOfDay(store.startWall + time)),
      ` ${elapsed(time, pixelMs < FINE_MS)}`,
    ),
    place ? element("p", { class: "readout-phase" }, place) : "",
    phase ? element("p", { class: "readout-source" }, `phase from ${phase.source}`) : "",
    valueTable(store, lanes, gpusNear(gpus, view.pointed), time, pixelMs, view.pointed),
    gpus.length > GPUS_SHOWN ? element("p", {}, `and ${gpus.length - GPUS_SHOWN} more GPUs: click for all`) : "",
    ...noteLines(run, time, pixelMs),
  );
}

/** Return as many GPUs as have room, about the one that is pointed at. */
function gpusNear(gpus, pointed) {
  const place = gpus.findIndex(({ index }) => index === pointed);
  const first = Math.min(Math.max(place - GPUS_SHOWN / 2, 0), Math.max(gpus.length - GPUS_SHOWN, 0));
  return gpus.slice(first, first + GPUS_SHOWN);
}

function valueTable(store, lanes, gpus, time, pixelMs, pointed) {
  const head = element(
    "tr",
    {},
    element("td"),
    ...gpus.map((gpu) =>
      element("th", { scope: "col", class: gpu.index === pointed ? "pointed" : "" }, element("span", { class: `swatch gpu-${gpu.position % 8}` }), `GPU ${gpuNumber(gpu.index)}`),
    ),
  );
  const across = { colspan: String(Math.max(gpus.length, 1)) }; // a value of the whole machine stands under no one GPU
  const row = (lane, about) => {
    const texts = textsOf(store, lane, gpus, about, time, pixelMs);
    const cells = texts.map((text) => element("td", lane.kind === "gpu" ? {} : across, text));
    const unit = laneUnit(about);
    const fine = readingOf(lane, gpus, about);
    const label = about.label + (unit && `, ${unit}`);
    const line = (words, tds) => element("tr", {}, element("th", { scope: "row" }, words), ...tds);
    return [line(label + fine, cells), ...(fine ? [line(`${label} (nvidia-smi)`, sampledCells(store, gpus, about, time))] : [])];
  };
  const rows = lanes
    .filter((lane) => lane.quantities)
    .flatMap((lane) => [...lane.quantities, ...lane.told].flatMap((about) => row(lane, about)));
  return element("table", {}, ...(gpus.length > 1 ? [head] : []), ...rows);
}

/** Return what a click on the moment shows: the sample, where a line is finer than that. */
function sampledCells({ run }, gpus, about, time) {
  return gpus.map(({ series }) => {
    const value = valueAt(series, about.name, sampleAt(series, time, slack(run)));
    return element("td", {}, inLaneUnit(value, about));
  });
}

/** Return which reading a line shows where it is finer than the samples, which a click shows; empty elsewhere. */
function readingOf(lane, gpus, about) {
  const fine = lane.kind === "gpu" ? gpus.map(({ series }) => series.fine.get(about.name)).find(Boolean) : null;
  return fine?.step ? ` (${(fine.step / 1000).toFixed(1)} s readings)` : "";
}

/** Return a quantity at a moment in words: one of each GPU, or one of the host or of the epoch. */
function textsOf({ run, host }, lane, gpus, about, time, pixelMs) {
  if (lane.kind === "epoch") return [learningText(ofEpoch(run, epochAt(run, time), about.name))];
  const sources = lane.kind === "host" ? [host] : gpus.map(({ series }) => series);
  return sources.map((series) => valueText(run, series, about, time, pixelMs));
}

/** Return the value at a moment, or where one pixel covers several samples, the lowest to the highest of them. */
function valueText(run, series, about, time, pixelMs) {
  const line = lineOf(series, about.name);
  if (!line) return inLaneUnit(null, about);
  const range =
    pixelMs > line.step * STEPS_IN_PIXEL
      ? rangeInWindow(line.times, line.column, time - pixelMs / 2, time + pixelMs / 2)
      : null;
  if (range && range[0] !== range[1]) return `${inLaneUnit(range[0], about)}–${inLaneUnit(range[1], about)}`;
  const i = sampleAt(line, time, slack(run));
  return inLaneUnit(i < 0 ? null : line.column.at(i), about);
}

function inLaneUnit(value, about) {
  return about.unit === "MiB" && value !== null ? quantity(value / 1024, "", 1) : quantity(value, "", about.decimals);
}

function noteLines(run, time, pixelMs) {
  const within = Math.max(pixelMs * NEAR_PX, 1000);
  const near = kernelNear(run, time, within).slice(0, 3);
  const findings = findingsAt(run, time)
    .filter((finding) => finding.drop)
    .slice(0, 3);
  return [
    ...findings.map((finding) =>
      element(
        "p",
        { class: finding.expected ? "" : "readout-drop" },
        `${finding.number ?? ""} ${finding.title}${finding.expected ? " (expected)" : ""}`.trim(),
      ),
    ),
    ...happeningsNear(run, time, within)
      .slice(0, 3)
      .map(([, what, detail]) => element("p", { class: "readout-kernel" }, element("strong", {}, what), " ", ...prose(detail))),
    ...near.map((event) =>
      element(
        "p",
        { class: `readout-kernel ${event.severity}` },
        element("strong", {}, event.title),
        " ",
        ...prose(event.meaning),
        element("code", { class: "whole" }, event.text),
      ),
    ),
  ];
}
