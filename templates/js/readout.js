// The box beside the cursor: every value at that moment, exact however far out the timeline is zoomed.

import { epochAt, findingsAt, kernelNear, phaseAt, sampleAt, slack, valueAt } from "./moment.js";
import { rangeInWindow } from "./window.js";
import { elapsed, element, quantity } from "./words.js";

const GPUS_SHOWN = 8; // columns; more would cover the chart

/** Fill the box with what stood at a moment; `pixelMs` is the time one pixel covers. */
export function fillReadout(box, store, lanes, time, view, zone, pixelMs) {
  const { run } = store;
  const gpus = store.gpus.filter((gpu) => !view.hidden.has(gpu.index));
  const phase = phaseAt(run, time);
  const epoch = epochAt(run, time);
  const place = [epoch === null ? "" : `epoch ${epoch}`, phase ? phase.name : ""].filter(Boolean).join(", ");
  box.replaceChildren(
    element(
      "p",
      { class: "readout-time" },
      element("strong", {}, zone.timeOfDay(store.startWall + time)),
      ` ${elapsed(time)}`,
    ),
    place ? element("p", {}, place) : "",
    valueTable(store, lanes, gpus.slice(0, GPUS_SHOWN), time, pixelMs),
    gpus.length > GPUS_SHOWN ? element("p", {}, `and ${gpus.length - GPUS_SHOWN} more GPUs: click for all`) : "",
    ...noteLines(run, time, pixelMs),
  );
}

function valueTable(store, lanes, gpus, time, pixelMs) {
  const head = element(
    "tr",
    {},
    element("td"),
    ...gpus.map((gpu) => element("th", { scope: "col", class: `gpu-${gpu.position % 8}` }, `GPU ${gpu.index}`)),
  );
  const rows = lanes
    .filter((lane) => lane.quantity)
    .map((lane) => {
      const series = lane.kind === "host" ? [store.host] : gpus.map((gpu) => gpu.series);
      const cells = series.map((each) => element("td", {}, valueText(store, each, lane.quantity, time, pixelMs)));
      return element("tr", {}, element("th", { scope: "row" }, lane.title), ...cells);
    });
  return element("table", {}, ...(gpus.length > 1 ? [head] : []), ...rows);
}

/** Return the value at a moment, or where one pixel covers several samples, the lowest to the highest of them. */
function valueText(store, series, about, time, pixelMs) {
  const column = series.columns.get(about.name);
  const range =
    column && pixelMs > slack(store.run)
      ? rangeInWindow(series.times, column, time - pixelMs / 2, time + pixelMs / 2)
      : null;
  if (range && range[0] !== range[1]) return `${inLaneUnit(range[0], about)}–${inLaneUnit(range[1], about)}`;
  return inLaneUnit(valueAt(series, about.name, sampleAt(series, time, slack(store.run))), about);
}

function inLaneUnit(value, about) {
  return about.unit === "MiB" && value !== null ? quantity(value / 1024, "", 1) : quantity(value, "", about.decimals);
}

function noteLines(run, time, pixelMs) {
  const near = kernelNear(run, time, Math.max(pixelMs * 8, 1000)).slice(0, 3);
  const findings = findingsAt(run, time)
    .filter((finding) => finding.drop)
    .slice(0, 3);
  return [
    ...findings.map((finding) =>
      element(
        "p",
        { class: finding.expected ? "" : "readout-drop" },
        `${finding.title}${finding.expected ? " (expected)" : ""}`,
      ),
    ),
    ...near.map((event) =>
      element(
        "p",
        { class: `readout-kernel ${event.severity}` },
        element("strong", {}, event.title),
        ` ${event.meaning}`,
        element("code", {}, event.text),
      ),
    ),
  ];
}
