// What stood at one moment of the run: samples, processes, phase, epoch and kernel lines near it.

import { nearestIndex } from "./window.js";

const KERNEL_NEAR_MS = 60000;
const SLACK_TICKS = 1.5; // a sample further from a moment than this many ticks says nothing about it
const LEAST_SLACK_MS = 600;

/** Return how far a sample may be from a moment and still stand for it, in ms. */
export function slack(run) {
  return Math.max((run.interval_s ?? 1) * 1000 * SLACK_TICKS, LEAST_SLACK_MS);
}

/** Return the index of the sample that stands for a moment, or -1 where none is near enough. */
export function sampleAt(series, time, within) {
  const i = nearestIndex(series.times, time);
  return i >= 0 && Math.abs(series.times[i] - time) <= within ? i : -1;
}

/** Return a value by quantity at a sample's index; null where it was not recorded or is missing. */
export function valueAt(series, name, i) {
  return i < 0 ? null : (series.columns.get(name)?.at(i) ?? null);
}

/** Return the processes on any GPU at a moment, by replaying their changes up to it. */
export function processesAt(changes, time) {
  const alive = new Map();
  for (const [at, gpu, pid, name, memory, change] of changes) {
    if (at * 1000 > time) break;
    if (change === "gone") alive.delete(`${gpu}/${pid}`);
    else alive.set(`${gpu}/${pid}`, { gpu, pid, name, memory });
  }
  return [...alive.values()].sort((a, b) => a.gpu - b.gpu || (b.memory ?? 0) - (a.memory ?? 0));
}

/** Return the phase at a moment as {name, epoch, source, detail}, or null. */
export function phaseAt(run, time) {
  const found = run.phases.find(([, , start, end]) => start * 1000 <= time && time < end * 1000);
  if (!found) return null;
  const [name, epoch, , , source, detail] = found;
  return { name, epoch, source, detail: detail ?? "" };
}

/** Return the epoch at a moment, as its row of run.epochs, or null. */
export function epochAt(run, time) {
  return run.epochs.find(([, , start, end]) => start * 1000 <= time && time < end * 1000) ?? null;
}

/** Return the kernel events within a minute of a moment, nearest first. */
export function kernelNear(run, time, within = KERNEL_NEAR_MS) {
  const distance = (event) => Math.abs(event.t * 1000 - time);
  return run.kernel.filter((event) => distance(event) <= within).sort((a, b) => distance(a) - distance(b));
}

/** Return the findings in whose time a moment lies. */
export function findingsAt(run, time) {
  return run.findings.filter(({ start, end }) => start * 1000 <= time && time <= end * 1000);
}

/** Return why clocks were where they were, in words: nvmlClocksEventReason bits. */
export function reasonWords(run, bits) {
  if (bits === null) return "n/a";
  const words = run.reasons.filter(([bit]) => Math.floor(bits / bit) % 2 === 1).map(([, text]) => text);
  const unknown = run.reasons.reduce((rest, [bit]) => (Math.floor(rest / bit) % 2 === 1 ? rest - bit : rest), bits);
  if (unknown > 0) words.push(`0x${unknown.toString(16)}`);
  return words.join(", ") || "none";
}
