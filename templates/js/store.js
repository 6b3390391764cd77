// What was recorded, unpacked: first what the timeline draws from afar, then all of it.

import { Columns, unpackRows, unpackSeries } from "./codec.js";
import { usualStep, withTicks } from "./lines.js";
import { breakIndexes } from "./window.js";

/**
 * Return the store of a run: the samples of its GPUs and those of the host, as far as the lanes show them, long lines as
 * their overview (`hasOverview`). `run` gets its phases and epochs. `complete()` unpacks all else: every reading of every quantity, and
 * the processes; `isWhole` tells whether it has. `packed` unpacks what else the page holds.
 */
export async function openStore(run) {
  const textOf = (id) => document.getElementById(id).textContent;
  const columns = new Columns(textOf("report-first"), wholePage().then(() => textOf("report-columns")));
  run.processes = [];
  const drawn = new Set(run.lanes.flatMap((lane) => [...lane.drawn, ...lane.told]));
  const gapsOf = (gpu) =>
    run.gaps.filter(([of]) => of === null || of === gpu).map(([, start, end]) => [start * 1000, end * 1000]);
  const host = { columns: run.host, rings: {}, overview: run.host_overview };
  const sources = [...run.gpus.map((gpu) => [gpu, gapsOf(gpu.index)]), [host, gapsOf(null)]];
  const [first] = await Promise.all([
    Promise.all(sources.map(([source, gaps]) => firstLook(columns, source, gaps, drawn, run.span))),
    unpackTimes(columns, run),
  ]);
  const gpus = run.gpus.map((gpu, position) => ({ ...gpu, position, ...first[position] }));
  const hasOverview = sources.some(([source]) => source.overview.length > 0);
  const base = { run, packed: columns, startWall: run.start_wall_s * 1000, hasOverview, isWhole: false };
  const store = { ...base, gpus, host: first.at(-1).series };
  store.complete = async () => {
    for (const [i, [source, gaps]] of sources.entries()) {
      const { series, rings } = await unpackSource(columns, source, gaps);
      Object.assign(first[i].series, series);
      if (gpus[i]) gpus[i].rings = rings;
    }
    run.processes = await processesOf(columns, run);
    store.isWhole = true;
  };
  return store;
}

/** Wait until all of the page was read: the script begins before. */
function wholePage() {
  if (document.readyState !== "loading") return Promise.resolve();
  return new Promise((done) => document.addEventListener("DOMContentLoaded", done, { once: true }));
}

/** Return what the first picture of a GPU or the host is drawn from: the overview of its long lines, all of the others. */
async function firstLook(columns, source, gaps, drawn, span) {
  const fine = new Map();
  for (const packed of source.overview) fine.set(packed.name, overviewLine(await columns.get(packed), span, gaps));
  const rest = new Set([...drawn].filter((name) => !fine.has(name)));
  const isLeft = source.columns.some(({ name }) => rest.has(name));
  const { series, rings } = isLeft || !fine.size ? await unpackSource(columns, source, gaps, rest) : emptySource();
  for (const [name, line] of fine) series.fine.set(name, line);
  return { series, rings };
}

function emptySource() {
  return { series: { times: new Float64Array(), columns: new Map(), breaks: [], step: 1000, fine: new Map() }, rings: new Map() };
}

/** Return a line of the lowest and highest reading of one bucket after the other, as if each were taken within its half. */
function overviewLine(column, [from, to], gaps) {
  const half = ((to - from) * 1000) / column.length;
  const times = Float64Array.from({ length: column.length }, (_, i) => from * 1000 + (i + 0.5) * half);
  return { ...placed({ times, column }, gaps), isOverview: true };
}

/**
 * Return the samples of a GPU or the host as `series`, and beside them the driver's `rings` by quantity, which make its
 * finer lines: of the quantities in `names`, or all.
 */
async function unpackSource(columns, source, gaps, names = null) {
  const ticks = placed(await unpackSeries(columns, source.columns, names), gaps);
  const rings = new Map();
  const fine = new Map();
  for (const [name, packed] of Object.entries(source.rings).filter(([name]) => names?.has(name) ?? true)) {
    const ring = await unpackSeries(columns, packed);
    rings.set(name, ring);
    const line = { times: ring.times, column: ring.columns.get(name) };
    fine.set(name, placed(withTicks(line, ticks.times, ticks.columns.get(name), ticks.step / 2), gaps));
  }
  return { series: { ...ticks, fine }, rings };
}

/** Return a series or line with where it breaks and how far apart its readings are. */
function placed(series, gaps) {
  return { ...series, breaks: breakIndexes(series.times, gaps), step: usualStep(series.times) };
}

/** Give a run its phases (name, epoch, start, end, source, detail) and epochs (run, epoch, start, end, quantities). */
async function unpackTimes(columns, run) {
  const [phases, epochs] = await Promise.all(
    [run.tables.phases, run.tables.epochs].map((packed) => unpackRows(columns, packed)),
  );
  const word = (place) => (place === null ? "" : run.words[place]);
  const end = (start, length) => Math.round((start + length) * 1000) / 1000;
  run.phases = phases.map(([name, epoch, start, length, source, detail]) => {
    return [word(name), epoch, start, end(start, length), word(source), word(detail)];
  });
  run.epochs = epochs.map(([number, epoch, start, length, ...known]) => [number, epoch, start, end(start, length), ...known]);
}

/** Return the changes of processes in order of time: time, GPU, process id, name, memory, change. */
async function processesOf(columns, run) {
  const word = (place) => (place === null ? null : run.words[place]);
  const rows = await unpackRows(columns, run.tables.processes);
  return rows.map(([time, gpu, pid, name, memory, change]) => [time, gpu, pid, word(name), memory, word(change)]);
}
