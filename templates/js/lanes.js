// The timeline's lanes from top to bottom: what stands in each, how high it is, and its range.

import { lineOf } from "./lines.js";

const LANE_GAP = 34;
const PHASE_HEIGHT = 22;
const KERNEL_HEIGHT = 26;
export const MARGIN = { top: 26, right: 14, bottom: 40, left: 50 };
const MIB_PER_GIB = 1024;

/** Return the lanes of a run from top to bottom: what stands in each, how high it is, and its range. */
export function lanesOf(store) {
  const { run } = store;
  const lanes = [];
  if (run.phases.length || run.epochs.length)
    lanes.push({ kind: "phases", title: "Phase and epoch", height: PHASE_HEIGHT, range: [0, 1] });
  if (run.kernel.length) lanes.push({ kind: "kernel", title: "Kernel events", height: KERNEL_HEIGHT, range: [0, 1] });
  return [...lanes, ...run.lanes.map((lane) => quantityLane(store, lane)).filter(Boolean)];
}

/** Return a lane of quantities, as far as they were recorded; null without any. */
function quantityLane({ run, gpus, host }, { kind, title, drawn, told }) {
  const sources = kind === "host" ? [{ index: null, series: host }] : gpus;
  const known = kind === "host" ? run.host_quantities : run.quantities;
  const recorded = (names) =>
    known.filter(({ name }) => names.includes(name) && sources.some(({ series }) => lineOf(series, name)));
  const quantities = recorded(drawn);
  if (!quantities.length) return null;
  const [main] = quantities;
  const height = kind === "host" ? 70 : main.name === "gpu_util_pct" ? 180 : 92;
  const lane = { kind, quantities, told: recorded(told), sources, unit: main.unit, height };
  return { ...lane, title: `${title}, ${laneUnit(main)}`, ...laneRange(main, sources) };
}

/** Return the unit in which a quantity is given beside the timeline. */
export function laneUnit({ unit }) {
  return unit === "MiB" ? "GiB" : unit;
}

/** Return whether a lane is the one of utilisation, which drops and low intervals are marked in. */
export function isUtilisation(lane) {
  return lane.quantities?.[0].name === "gpu_util_pct";
}

function laneRange(quantity, sources) {
  if (quantity.unit === "%") return { range: [-3, 103] };
  const extents = sources.map(({ series }) => lineOf(series, quantity.name)?.column.extent()).filter(Boolean);
  const low = Math.min(...extents.map(([least]) => least));
  const high = Math.max(...extents.map(([, most]) => most));
  if (quantity.unit === "°C") return { range: [low - 5, high + 5] };
  if (quantity.unit === "MiB") return memoryRange(high);
  return { range: [-high * 0.04, Math.max(high * 1.06, 1)] };
}

function memoryRange(high) {
  const top = Math.max(high / MIB_PER_GIB, 0.1) * 1.06;
  const step = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500].find((size) => top / size <= 4) ?? 1000;
  const ticks = Array.from({ length: Math.floor(top / step) + 1 }, (_, i) => Number((i * step).toFixed(1)));
  return {
    range: [-top * 0.04 * MIB_PER_GIB, top * MIB_PER_GIB],
    tickvals: ticks.map((t) => t * MIB_PER_GIB),
    ticktext: ticks.map(String),
  };
}

/** Return the lanes' places on the chart, as fractions of its inner height from below, and the whole height in px. */
export function placeLanes(lanes) {
  const inner = lanes.reduce((sum, lane) => sum + lane.height, 0) + LANE_GAP * (lanes.length - 1);
  let top = inner;
  const domains = lanes.map((lane) => {
    const domain = [Math.max((top - lane.height) / inner, 0), Math.min(top / inner, 1)];
    top -= lane.height + LANE_GAP;
    return domain;
  });
  return { domains, height: inner + MARGIN.top + MARGIN.bottom };
}
