// What is drawn within a lane: lines, phases, low intervals, kernel events.

import { isUtilisation } from "./lanes.js";
import { lineOf } from "./lines.js";
import { pointsInWindow } from "./window.js";

const EXACT_LIMIT = 2000; // samples of one line in view up to which every one is drawn
const LEAST_MARK_PX = 3; // what is shorter on the screen is drawn this wide, so that it is seen
const LOW_PERCENT = 20; // where the dashed marks of low intervals stand: the limit they fell under
const PHASE_PIXEL = 3; // phases shorter than this on average are drawn as the longest of each so many pixels
const DASHES = ["solid", "6px,2px", "2px,2px", "8px,2px,2px,2px"];
const SYMBOLS = { critical: "diamond", warning: "triangle-up", info: "circle" };
export const PHASES = ["startup", "train", "validation", "checkpoint", "final evaluation", "idle", "predict", "export"];

export function laneTraces(store, lane, view, colours, scale) {
  if (lane.kind === "phases") return phaseTraces(store.run, view, colours, scale);
  if (lane.kind === "kernel") return kernelTraces(store.run, colours, scale);
  const shown = lane.sources.filter((source) => !view.hidden.has(source.index));
  const style = lane.kind === "host" ? hostStyle : gpuStyle;
  const traces = lane.quantities.flatMap((quantity, place) =>
    shown
      .map((source) => [lineOf(source.series, quantity.name), style(colours, quantity, place, source, shown.length)])
      .filter(([line]) => line)
      .map(([line, look]) => lineTrace(line, quantity, view, scale, look)),
  );
  return isUtilisation(lane) ? [...traces, lowTrace(store, view, colours, scale)] : traces;
}

function hostStyle(colours, quantity, place) {
  return { color: colours.lines[quantity.name] ?? colours.host, dash: DASHES[place], gpu: null };
}

/** Return how a GPU's line looks: each GPU has its colour, and of that a second quantity in a lane has a thin tone. */
function gpuStyle(colours, quantity, place, { index, position }, count) {
  const opacity = count > 2 ? 0.6 : 1; // so that the bands of many GPUs do not hide each other
  const colour = position % colours.gpus.length;
  if (place) return { color: colours.tones[colour], dash: "solid", width: 1.1, gpu: index, opacity };
  return { color: colours.gpus[colour], dash: DASHES[position % DASHES.length], gpu: index, opacity };
}

function lineTrace(line, quantity, view, scale, { color, dash, gpu, width = 1.4, opacity = 1 }) {
  const limits = { exactLimit: EXACT_LIMIT, buckets: Math.max(Math.round(view.width), 200), breaks: line.breaks };
  const points = pointsInWindow(line.times, line.column, view.from, view.to, limits);
  return {
    type: "scatter",
    mode: "lines",
    name: gpu === null ? quantity.label : `GPU ${gpu} ${quantity.label}`,
    meta: { gpu, quantity: quantity.name, exact: points.exact },
    connectgaps: false,
    opacity: points.exact ? 1 : opacity,
    x: points.t.map((time) => scale.base + time),
    y: points.v,
    line: { color, width, dash: points.exact ? dash : "solid" },
  };
}

export function inView(view, start, end) {
  return end * 1000 >= view.from && start * 1000 <= view.to;
}

/** Return a stretch (in s) in ms, widened about its middle where it would be too narrow to see. */
export function widened(start, end, scale) {
  const least = LEAST_MARK_PX / scale.pxPerMs;
  const short = Math.max(least - (end - start) * 1000, 0) / 2;
  return [start * 1000 - short, end * 1000 + short];
}

function lowTrace(store, view, colours, scale) {
  const x = [];
  const y = [];
  for (const [gpu, start, end] of store.run.low) {
    const shown = store.gpus.find((each) => each.index === gpu);
    if (!shown || view.hidden.has(gpu) || !inView(view, start, end)) continue;
    const level = Math.max(LOW_PERCENT - 4 * shown.position, 2);
    const [from, to] = widened(start, end, scale);
    x.push(scale.base + from, scale.base + to, null);
    y.push(level, level, null);
  }
  return {
    type: "scatter",
    mode: "lines",
    name: "low",
    meta: { marks: "low" },
    x,
    y,
    line: { color: colours.low, width: 2.5, dash: "4px,3px" },
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

/** Return 1 where every epoch has `px` on the screen, else the round number n of which every n-th one does. */
export function thinning(epochs, scale, px) {
  if (!epochs.length) return 1;
  const span = (epochs[epochs.length - 1][3] - epochs[0][2]) * 1000 * scale.pxPerMs;
  const needed = (px * epochs.length) / Math.max(span, 1);
  return [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].find((step) => step >= needed) ?? 5000;
}

function kernelTraces(run, colours, scale) {
  const of = (value) => run.kernel.map(value);
  return [
    {
      type: "scatter",
      mode: "markers",
      name: "kernel",
      meta: { marks: "kernel" },
      x: of((e) => scale.base + e.t * 1000),
      y: of(() => 0.5),
      cliponaxis: false,
      marker: {
        size: 12,
        symbol: of((e) => SYMBOLS[e.severity]),
        color: of((e) => colours[e.severity]),
        line: { width: 1, color: colours.background },
      },
    },
  ];
}
