// The timeline's lanes from top to bottom: what stands in each, how high it is, and its range.

import { hasEvents } from "./events.js";
import { learningLane } from "./learning.js";
import { lineOf } from "./lines.js";
import { roundTicks } from "./ticks.js";
import { gpuNumber, quantity } from "./words.js";

const LANE_GAP = 34; // px between two lanes, where the title of the lower one stands
const CLOSE_GAP = 24; // where they have to share a given height
const FOLDED_STEP = 24; // px that the title of a folded lane takes
const LEAST_INNER = 40; // px that are left where all lanes are folded
const PHASE_HEIGHT = 22;
const EVENTS_HEIGHT = 26;
const NEXT_TO_NOTHING = { "%": 5, "MiB/s": 1 }; // of a host's quantity: of pressure and CPU a twentieth, of reads what a log takes
const OPENED_HEIGHT = 92;
const NUMBERS_HEIGHT = 18; // over the rows of utilisation, where the numbers of drops stand
const STRIP_PX = 144; // that a heat strip's rows take together, as far as each has between the two of HEAT_ROW_PX
const HEAT_ROW_PX = [13, 24];
const FINGER_ROW_PX = [24, 24]; // where names of rows are touched (WCAG 2.2, 2.5.8)
const PAPER_STRIP_PX = 60; // on paper, where all lanes have to fit on a page, and not every row has its name
const PAPER_ROW_PX = [6, 15];
const NAME_PX = 9; // room that a row's name needs at least
const MIB_PER_GIB = 1024;
export const MARGIN = { top: 42, right: 14, bottom: 40, left: 50 };

/** Return how wide the lanes of a chart are, in px. */
export function lanesWidth(width) {
  return width - MARGIN.left - MARGIN.right;
}

/** Return where a time lies in a chart that shows [from, to], in px from its left edge. */
export function across(time, [from, to], width) {
  return MARGIN.left + ((time - from) / (to - from)) * lanesWidth(width);
}

/** Return the lanes of a run from top to bottom: what stands in each, how high it is, and its range. */
export function lanesOf(store) {
  const { run } = store;
  const lanes = [];
  if (run.phases.length || run.epochs.length)
    lanes.push({ kind: "phases", key: "phases", title: run.epochs.length ? "Phase and epoch" : "Phase", height: PHASE_HEIGHT, range: [0, 1] });
  if (hasEvents(run)) lanes.push({ kind: "events", key: "events", title: "Events", height: EVENTS_HEIGHT, range: [0, 1] });
  const measured = run.lanes.map((lane) =>
    lane.kind === "epoch" ? learningLane(run, lane) : quantityLane(store, lane),
  );
  return [...lanes, ...measured.filter(Boolean)];
}

/**
 * Return the lanes as a view shows them: heat strips have a row for each GPU that is not hidden, and under them lies a lane with
 * the lines of each GPU that is opened.
 */
export function lanesInView(lanes, { hidden, opened }) {
  const strips = lanes.filter(({ heat }) => heat);
  if (!strips.length) return lanes;
  const shown = strips[0].sources.filter(({ index }) => !hidden.has(index));
  const openedLanes = shown.filter(({ index }) => opened.has(index)).map((source) => openedLane(strips, source));
  const last = lanes.indexOf(strips.at(-1));
  const drawn = lanes.map((lane) => (lane.heat ? heatLane(lane, shown) : lane));
  return [...drawn.slice(0, last + 1), ...openedLanes, ...drawn.slice(last + 1)];
}

function heatLane(lane, rows) {
  const headroom = isUtilisation(lane) ? NUMBERS_HEIGHT : 0;
  const isTouched = globalThis.matchMedia?.("(pointer: coarse)").matches;
  const high = (strip, limits) => headroom + Math.max(rows.length, 1) * rowHeight(rows.length, strip, limits);
  const height = high(STRIP_PX, isTouched ? FINGER_ROW_PX : HEAT_ROW_PX);
  return { ...lane, rows, headroom, height, onPaper: Math.min(high(PAPER_STRIP_PX, PAPER_ROW_PX), height) };
}

function rowHeight(count, strip, [least, most]) {
  return Math.min(Math.max(Math.floor(strip / Math.max(count, 1)), least), most);
}

/** Return where the rows of a heat strip's lane lie in its place: from `top` px on, each `rowPx` high, each `named`-th with a name. */
export function rowsIn({ rows, headroom }, place) {
  const rowPx = (place.height - headroom) / Math.max(rows.length, 1);
  return { top: place.top + headroom, rowPx, named: Math.ceil(NAME_PX / rowPx) };
}

/** Return the lane of an opened GPU: what all strips show of it, as lines. */
function openedLane(strips, source) {
  const quantities = strips.flatMap((strip) => strip.quantities);
  const title = `GPU ${gpuNumber(source.index)}: ${quantities.map(({ label }) => label).join(", ")}, %`;
  return { ...strips[0], heat: false, title, quantities, told: [], sources: [source], height: OPENED_HEIGHT };
}

/** Return a lane of quantities, as far as they were recorded; null without any. */
function quantityLane({ run, gpus, host }, { kind, title, drawn, told, heat = false }) {
  const sources = kind === "host" ? [{ index: null, series: host }] : gpus;
  const known = kind === "host" ? run.host_quantities : run.quantities;
  const recorded = (names) =>
    known.filter(({ name }) => names.includes(name) && sources.some(({ series }) => lineOf(series, name)));
  const quantities = recorded(drawn);
  if (!quantities.length) return null;
  const [main] = quantities;
  const isMain = main.name === "gpu_util_pct" || heat;
  const height = kind === "host" ? 70 : isMain ? 180 : 92;
  const lane = { kind, key: title, heat, quantities, told: recorded(told), sources, unit: main.unit, height };
  const flat = isMain ? "" : flatWords(extentOf(quantities, sources), main, kind);
  return { ...lane, isFlat: flat !== "", title: `${title}, ${laneUnit(main)}${flat && `: ${flat}`}`, ...laneRange(main, sources) };
}

/** Return the lowest and highest of all lines of a lane; null where nothing was read. */
function extentOf(quantities, sources) {
  const extents = quantities.flatMap(({ name }) => sources.map(({ series }) => lineOf(series, name)?.column.extent())).filter(Boolean);
  return extents.length ? [Math.min(...extents.map(([low]) => low)), Math.max(...extents.map(([, high]) => high))] : null;
}

/** Return what a lane says in place of its lines where these show nothing: always the same, or of the host next to nothing. */
function flatWords(extent, { unit, decimals }, kind) {
  if (!extent) return "";
  const [low, high] = extent;
  const value = quantity(unit === "MiB" ? high / MIB_PER_GIB : high, "", high && unit === "MiB" ? 1 : Number.isInteger(high) ? 0 : decimals);
  if (low === high) return `${value} throughout`;
  return kind === "host" && high <= (NEXT_TO_NOTHING[unit] ?? -1) ? `at most ${value}` : "";
}

/** Return the unit in which a quantity is given beside the timeline. */
export function laneUnit({ unit }) {
  return unit === "MiB" ? "GiB" : unit;
}

/** Return whether a lane is the one of utilisation, which drops and low intervals are marked in. */
export function isUtilisation(lane) {
  return lane.quantities?.[0].name === "gpu_util_pct";
}

/** Return whether a lane has no scale, for it is one of marks without values. */
export function isBand({ kind }) {
  return kind === "phases" || kind === "events";
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
  const top = Math.max(high, 0.1 * MIB_PER_GIB) * 1.06;
  return { range: [-top * 0.04, top], ...roundTicks(0, top, 4, MIB_PER_GIB) };
}

/**
 * Return where the lanes lie, the folded ones closed to their titles: for each lane its `domain`, as fractions of the
 * chart's inner height from below (null where folded), its `top` in px within the chart and its `height`; and the chart's `height`,
 * which is no more than `most` px: the lanes of lines are lower then, and heat strips as low as can be. `signs` are the px
 * that a lane's legend takes under its title, by title.
 */
export function placeLanes(lanes, folded, most = Infinity, signs = new Map()) {
  const isOpen = (lane) => !folded.has(lane.title);
  const gap = most === Infinity ? LANE_GAP : CLOSE_GAP;
  const heightOf = (lane) => (most === Infinity ? lane.height : (lane.onPaper ?? lane.height));
  const signsOf = (lane) => (isOpen(lane) ? (signs.get(lane.title) ?? 0) : 0);
  const between =
    lanes.slice(0, -1).reduce((sum, lane) => sum + (isOpen(lane) ? gap : FOLDED_STEP), 0) +
    lanes.reduce((sum, lane) => sum + signsOf(lane), 0);
  const sum = (of) => of.filter(isOpen).reduce((px, lane) => px + heightOf(lane), 0);
  const isSet = (lane) => isBand(lane) || lane.heat; // bands are as low as can be already
  const bands = sum(lanes.filter(isSet));
  const lines = sum(lanes.filter((lane) => !isSet(lane)));
  const squeeze = Math.min(1, (most - between - bands - MARGIN.top - MARGIN.bottom) / lines);
  const inner = Math.max(between + bands + lines * squeeze, LEAST_INNER);
  let bottom = 0;
  const places = lanes.map((lane) => {
    bottom += signsOf(lane);
    const top = bottom;
    const height = heightOf(lane) * (isSet(lane) ? 1 : squeeze);
    bottom += isOpen(lane) ? height + gap : FOLDED_STEP;
    const domain = [1 - (top + height) / inner, 1 - top / inner].map((end) => Math.max(end, 0));
    return { domain: isOpen(lane) ? domain : null, top: MARGIN.top + top, height };
  });
  return { places, height: inner + MARGIN.top + MARGIN.bottom };
}
