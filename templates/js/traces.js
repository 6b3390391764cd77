// What is drawn within a lane: lines, phases, low intervals.

import { eventTraces } from "./events.js";
import { cellsOf, heatRows, meanOf } from "./heat.js";
import { isUtilisation } from "./lanes.js";
import { learningTrace } from "./learning.js";
import { lineOf } from "./lines.js";
import { inView, thinning, widened } from "./stretches.js";
import { lowerBound, pointsInWindow, rangeInWindow } from "./window.js";
import { gpuNumber } from "./words.js";

const EXACT_LIMIT = 2000; // samples of one line in view up to which every one is drawn
const LOW_PERCENT = 20; // where the marks of low intervals stand: the limit they fell under
const PHASE_PIXEL = 3; // phases shorter than this on average are drawn as the longest of each so many pixels
const OVERLAID_OPACITY = 0.6;
const MANY_LINES_PX = 2; // of lines that lie over each other, the lowest and highest of so many pixels are as much as is seen
const ENVELOPE_OPACITY = 0.32; // of what a line's readings range over, under the line of their means
const CROWDED = 4; // readings to a pixel from which on they are a range and a mean: one line through them is a slab
const MEAN_PX = 2; // from one mean to the next
const BEHIND_OPACITY = 0.25;
const MOST_STAIRS = 4; // lines up to which dashes let each be seen under the others
const STAIR_PX = 5;
const NARROW_PX = 600; // of a chart under which the lines of many GPUs run into one: their mean and range are drawn instead
const DASHES = ["solid", "6px,2px", "2px,2px", "8px,2px,2px,2px"];
export const PHASES = ["startup", "train", "validation", "checkpoint", "final evaluation", "idle", "predict", "export"];

export function laneTraces(store, lane, view, colours, scale) {
  if (lane.kind === "phases") return phaseTraces(store.run, view, colours, scale);
  if (lane.kind === "events") return eventTraces(store.run, view, colours, scale);
  if (lane.kind === "epoch")
    return lane.quantities.map((about) => learningTrace(store.run, about, view, colours, scale));
  if (lane.heat) return []; // heat.js draws them
  const seen = lane.sources.filter(({ index }) => !view.hidden.has(index));
  const front = new Set([view.front, ...view.opened].filter((gpu) => seen.some(({ index }) => index === gpu)));
  const shown = inDrawingOrder(seen, front);
  const style = lane.kind === "host" ? hostStyle : gpuStyle;
  const crowd = view.width < NARROW_PX && shown.length > MOST_STAIRS ? shown.filter(({ index }) => !front.has(index)) : [];
  const traces = lane.quantities.flatMap((quantity, place) => [
    ...(crowd.length ? crowdTraces(store, crowd, quantity, view, colours, scale) : []),
    ...shown
      .filter((source) => !crowd.includes(source))
      .map((source) => [lineOf(source.series, quantity.name), style(colours, quantity, place, source, shown, front)])
      .filter(([line]) => line)
      .flatMap(([line, look]) => lineTraces(line, quantity, view, scale, look, shown.length > MOST_STAIRS ? MANY_LINES_PX : 1)),
  ]);
  return isUtilisation(lane)
    ? [...traces, lowTrace(store, lane, view, colours, scale), floorTrace(store, view, colours, scale)]
    : traces;
}

/** Return sources so that those brought to the front are drawn last, over all others. */
function inDrawingOrder(sources, front) {
  return [...sources.filter(({ index }) => !front.has(index)), ...sources.filter(({ index }) => front.has(index))];
}

function hostStyle(colours, quantity) {
  return { color: colours.lines[quantity.name] ?? colours.host, dash: "solid", gpu: null };
}

/**
 * Return how a GPU's line looks: each GPU has its colour, and of that a second quantity in a lane has a thin tone. Of many
 * GPUs only those at the front have it: so many colours are none, while what is grey shows the range of all.
 */
function gpuStyle(colours, quantity, place, source, shown, front) {
  const colour = source.position % colours.gpus.length;
  const isFront = front.has(source.index);
  const many = shown.length > 1 ? OVERLAID_OPACITY : 1; // so that bands of lowest to highest do not hide each other
  const opacity = front.size ? (isFront ? 1 : BEHIND_OPACITY) : many;
  const look = { gpu: source.index, opacity, pales: front.size > 0 && !isFront };
  if (shown.length > MOST_STAIRS && !isFront) return { ...look, opacity: OVERLAID_OPACITY, color: colours.host, dash: "solid", width: 1, isGround: true };
  const dash = isFront ? turnOf(source, colours) : dashOf(shown, source);
  if (place) return { ...look, color: colours.tones[colour], dash, width: 1.1 };
  return { ...look, color: colours.gpus[colour], dash };
}

/** Return the dashes of a GPU at the front: with more GPUs than colours, those that have one for the second time are dashed. */
function turnOf({ position }, { gpus }) {
  return DASHES[Math.floor(position / gpus.length) % DASHES.length];
}

/** Return a line's dashes: of a few equal lines each shows in the gaps of those drawn over it. */
function dashOf(shown, source) {
  const place = shown.indexOf(source);
  return place ? `${(shown.length - place) * STAIR_PX}px,${place * STAIR_PX}px` : "solid";
}

/** Return a line as it is drawn: readings that are too many for its pixels as their range, and a line of their means. */
function lineTraces(line, quantity, view, scale, look, bucketPx) {
  const count = lowerBound(line.times, view.to) - lowerBound(line.times, view.from);
  const isCrowded = !look.isGround && (line.isOverview || count > CROWDED * view.width);
  if (!isCrowded) return [lineTrace(line, quantity, view, scale, look, bucketPx)];
  const opacity = ENVELOPE_OPACITY * (look.pales ? BEHIND_OPACITY : 1);
  const range = lineTrace(line, quantity, view, scale, { ...look, opacity }, bucketPx);
  range.meta.range = true;
  return line.isOverview ? [range] : [range, meanTrace(line, quantity, view, scale, look)];
}

/** Return the range of many GPUs' readings at each moment, and a line of their mean. */
function crowdTraces(store, sources, quantity, view, colours, scale) {
  const rows = heatRows(store, sources, quantity.name, [view.from, view.to], Math.round(view.width / MEAN_PX));
  const part = (view.to - view.from) / rows[0].length;
  const lines = sources.map(({ series }) => lineOf(series, quantity.name)).filter(Boolean);
  const cells = Array.from(rows[0], (_, i) => {
    const known = rows.map((row) => row[i]).filter((value) => !Number.isNaN(value));
    const [from, to] = [view.from + i * part, view.from + (i + 1) * part];
    const extents = lines.map(({ times, column }) => rangeInWindow(times, column, from, to)).filter(Boolean);
    return { at: scale.base + (from + to) / 2, known, all: [...extents.flat(), ...known] };
  });
  const edges = stretchesOf(cells).flatMap((stretch) => [
    ...stretch.map(({ at, all }) => [at, Math.max(...all)]),
    ...[...stretch].reverse().map(({ at, all }) => [at, Math.min(...all)]),
    [null, null],
  ]);
  const look = { type: "scatter", mode: "lines", connectgaps: false };
  const area = { fill: "toself", fillcolor: colours.host, opacity: ENVELOPE_OPACITY, line: { width: 0, color: colours.host } };
  return [
    { ...look, ...area, name: `${quantity.label}, range`, meta: { gpu: null, range: true }, x: edges.map(([x]) => x), y: edges.map(([, y]) => y) },
    {
      ...look,
      name: `${quantity.label}, mean`,
      meta: { gpu: null, mean: quantity.name },
      x: cells.map(({ at }) => at),
      y: cells.map(({ known }) => (known.length ? meanOf(known) : null)),
      line: { color: colours.host, width: 1.4, dash: "solid" },
    },
  ];
}

/** Return the cells with any value, those next to each other together. */
function stretchesOf(cells) {
  const stretches = [[]];
  for (const cell of cells) {
    if (cell.known.length) stretches.at(-1).push(cell);
    else if (stretches.at(-1).length) stretches.push([]);
  }
  return stretches.filter((stretch) => stretch.length);
}

function meanTrace(line, quantity, view, scale, { color, gpu, width = 1.4, pales = false }) {
  const cells = cellsOf(line, view.from, view.to, Math.round(view.width / MEAN_PX), 0);
  const part = (view.to - view.from) / cells.length;
  return {
    type: "scatter",
    mode: "lines",
    name: `${quantity.label}, mean`,
    meta: { gpu, mean: quantity.name },
    connectgaps: false,
    opacity: pales ? BEHIND_OPACITY : 1,
    x: Array.from(cells, (_, i) => scale.base + view.from + (i + 0.5) * part),
    y: Array.from(cells, (value) => (Number.isNaN(value) ? null : value)),
    line: { color, width, dash: "solid" },
  };
}

function lineTrace(line, quantity, view, scale, look, bucketPx) {
  const { color, dash, gpu, width = 1.4, opacity = 1, pales = false } = look;
  const buckets = Math.max(Math.round(view.width / bucketPx), 200);
  const limits = { exactLimit: EXACT_LIMIT, buckets, breaks: line.breaks };
  const points = pointsInWindow(line.times, line.column, view.from, view.to, limits);
  const isExact = points.exact && !line.isOverview;
  return {
    type: "scatter",
    mode: "lines",
    name: gpu === null ? quantity.label : `GPU ${gpuNumber(gpu)} ${quantity.label}`,
    meta: { gpu, quantity: quantity.name, exact: isExact },
    connectgaps: false,
    opacity: isExact && !pales ? 1 : opacity,
    x: points.t.map((time) => scale.base + time),
    y: points.v,
    line: { color, width, dash: isExact ? dash : "solid" },
  };
}

function lowTrace(store, { sources }, view, colours, scale) {
  const x = [];
  const y = [];
  for (const [gpu, start, end] of store.run.low) {
    if (!sources.some(({ index }) => index === gpu) || view.hidden.has(gpu) || !inView(view, start, end)) continue;
    const [from, to] = widened(start, end, scale);
    x.push(scale.base + from, scale.base + to, null);
    y.push(LOW_PERCENT, LOW_PERCENT, null);
  }
  return {
    type: "scatter",
    mode: "lines",
    name: "low",
    meta: { marks: "low" },
    x,
    y,
    line: { color: colours.low, width: 3, dash: "solid" },
  };
}

/** Return the line below which utilisation fell, over each drop. */
function floorTrace({ run }, view, colours, scale) {
  const drops = run.findings.filter((f) => f.floor !== undefined && !view.hidden.has(f.gpu) && inView(view, f.start, f.end));
  return {
    type: "scatter",
    mode: "lines",
    name: "drop threshold",
    meta: { marks: "floor" },
    x: drops.flatMap(({ start, end }) => [...widened(start, end, scale).map((time) => scale.base + time), null]),
    y: drops.flatMap(({ floor }) => [floor, floor, null]),
    line: { color: colours.low, width: 1, dash: "solid" },
  };
}

function phaseTraces(run, view, colours, scale) {
  const visible = run.phases.filter(([, , start, end]) => inView(view, start, end));
  const fits = visible.length * PHASE_PIXEL < (view.to - view.from) * scale.pxPerMs;
  const stretches = fits
    ? visible.map(([name, , start, end]) => [name, start * 1000, end * 1000])
    : longestPhases(visible, view, scale);
  const drawn = PHASES.map((name) =>
    phaseBand(
      name,
      stretches.filter(([phase]) => phase === name),
      view,
      colours,
      scale,
    ),
  );
  return [...drawn.filter((band) => band.x.length), epochLabels(run, view, colours, scale)];
}

function phaseBand(name, stretches, view, colours, scale) {
  const x = stretches.flatMap(([, start, end]) => {
    const [from, to] = [scale.base + Math.max(start, view.from), scale.base + Math.min(end, view.to)];
    return [from, from, to, to, from, null];
  });
  const y = stretches.flatMap(() => [0, 1, 1, 0, 0, null]);
  return {
    type: "scatter",
    mode: "lines",
    name,
    meta: { phase: name },
    x,
    y,
    fill: "toself",
    fillcolor: colours.phases[name],
    line: { width: 0, color: colours.phases[name] },
  };
}

/** Return, where phases are too many to draw, the phase that took most of each few pixels, as stretches in ms. */
function longestPhases(phases, view, scale) {
  const width = PHASE_PIXEL / scale.pxPerMs;
  const buckets = Array.from({ length: Math.ceil((view.to - view.from) / width) }, () => ({}));
  for (const [name, , start, end] of phases) {
    const first = Math.max(Math.floor((start * 1000 - view.from) / width), 0);
    for (let i = first; i < buckets.length && view.from + i * width < end * 1000; i += 1) {
      const from = view.from + i * width;
      buckets[i][name] = (buckets[i][name] ?? 0) + Math.min(end * 1000, from + width) - Math.max(start * 1000, from);
    }
  }
  const stretches = [];
  buckets.forEach((times, i) => {
    const [name] = Object.entries(times).sort(([, a], [, b]) => b - a)[0] ?? [null];
    const before = stretches.at(-1);
    if (before?.[0] === name) before[2] = view.from + (i + 1) * width;
    else stretches.push([name, view.from + i * width, view.from + (i + 1) * width]);
  });
  return stretches.filter(([name]) => name !== null);
}

function epochLabels(run, view, colours, scale) {
  const visible = run.epochs.filter(([, , start, end]) => inView(view, start, end));
  const step = thinning(visible, scale, visible.at(-1)?.[1] >= 1000 ? 40 : 28);
  const shown = visible.filter(([, epoch]) => epoch % step === 0 || step === 1);
  const trains = trainSpans(run, view);
  const middle = (epoch) => {
    const [start, end] = trains.get(epochKey(epoch)) ?? epoch.slice(2);
    return (Math.max(start * 1000, view.from) + Math.min(end * 1000, view.to)) / 2;
  };
  return {
    type: "scatter",
    mode: "text",
    name: "epochs",
    meta: { marks: "epochs" },
    x: shown.map((epoch) => scale.base + middle(epoch)),
    y: shown.map(() => 0.5),
    text: shown.map(([, epoch]) => String(epoch)),
    textfont: { size: 11, color: colours.onPhase },
    cliponaxis: true,
  };
}

/** Return the longest stretch of training within each epoch in view, on which its number stands. */
function trainSpans(run, view) {
  const spans = new Map();
  let at = 0;
  for (const [name, number, start, end] of run.phases) {
    if (name !== "train" || !inView(view, start, end)) continue;
    while (at < run.epochs.length && run.epochs[at][3] <= start) at += 1;
    const epoch = run.epochs[at];
    if (epoch?.[1] !== number) continue;
    const [from, to] = spans.get(epochKey(epoch)) ?? [0, 0];
    if (end - start > to - from) spans.set(epochKey(epoch), [start, end]);
  }
  return spans;
}

function epochKey([run, epoch, start]) {
  return `${run}/${epoch}/${start}`;
}
