// What was recorded, unpacked: first what the timeline draws, then all else.

import { Columns, unpackRows, unpackSeries } from "./codec.js";
import { usualStep, withTicks } from "./lines.js";
import { breakIndexes } from "./window.js";

/**
 * Return the store of a run: its samples by GPU and those of the host, as far as the lanes show them. `run` gets its
 * phases and epochs. `complete()` unpacks the rest: all quantities, and the processes.
 */
export async function openStore(run) {
  const columns = new Columns(document.getElementById("report-columns").textContent);
  run.processes = [];
  const drawn = new Set(run.lanes.flatMap((lane) => [...lane.drawn, ...lane.told]));
  const gapsOf = (gpu) =>
    run.gaps.filter(([of]) => of === null || of === gpu).map(([, start, end]) => [start * 1000, end * 1000]);
  const [gpus, host] = await Promise.all([
    Promise.all(run.gpus.map((gpu, position) => unpackGpu(columns, gpu, position, gapsOf(gpu.index), drawn))),
    unpackSeries(columns, run.host, drawn),
    unpackTimes(columns, run),
  ]);
  const series = [...gpus.map((gpu) => [gpu.series, gpu.columns]), [host, run.host]];
  const complete = async () => {
    await Promise.all(series.map(([each, packed]) => unpackRest(columns, packed, each)));
    run.processes = await processesOf(columns, run);
  };
  const placedHost = { ...placed(host, gapsOf(null)), fine: new Map() };
  return { run, startWall: run.start_wall_s * 1000, gpus, host: placedHost, complete };
}

/** Return a GPU's samples as `series`, and beside them the driver's `rings` by quantity, which make its finer lines. */
async function unpackGpu(columns, gpu, position, gaps, drawn) {
  const ticks = placed(await unpackSeries(columns, gpu.columns, drawn), gaps);
  const rings = new Map();
  const fine = new Map();
  for (const [name, packed] of Object.entries(gpu.rings)) {
    const ring = await unpackSeries(columns, packed);
    rings.set(name, ring);
    const line = { times: ring.times, column: ring.columns.get(name) };
    fine.set(name, placed(withTicks(line, ticks.times, ticks.columns.get(name), ticks.step / 2), gaps));
  }
  return { ...gpu, position, series: { ...ticks, fine }, rings };
}

/** Unpack the columns that a series does not have yet, and put all of them in the order of `packed`. */
async function unpackRest(columns, packed, series) {
  const whole = await unpackSeries(columns, packed);
  series.columns.clear();
  for (const [name, column] of whole.columns) series.columns.set(name, column);
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
