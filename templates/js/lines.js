// Which readings a line is drawn from: the driver's own where it kept them, else those of the ticks.

import { Column } from "./codec.js";

const STEPS_LOOKED_AT = 1000;

/** Return the readings of a quantity as {times, column, breaks, step}, the finest there are; null without any. */
export function lineOf(series, name) {
  const column = series.columns.get(name);
  return series.fine.get(name) ?? (column ? { ...series, column } : null);
}

/** Return the driver's readings, with the ticks that no such reading lies near (as render/page/static_charts.py does). */
export function withTicks(ring, ticks, column, near) {
  const alone = column ? aloneTicks(ring.times, ticks, column, near) : [];
  if (!alone.length) return ring;
  const times = new Float64Array(ring.times.length + alone.length);
  const values = new Float64Array(times.length);
  let next = 0;
  for (let i = 0, at = 0; at < times.length; at += 1) {
    const tick = alone[next];
    if (tick !== undefined && !(ring.times[i] <= ticks[tick])) {
      [times[at], values[at]] = [ticks[tick], column.at(tick)];
      next += 1;
    } else {
      [times[at], values[at]] = [ring.times[i], ring.column.at(i)];
      i += 1;
    }
  }
  return { times, column: new Column(values, "f8", 0) };
}

/** Return the indexes of the ticks with a reading that no time of `times` lies near; both go up, so one pass finds them. */
function aloneTicks(times, ticks, { raw, highest }, near) {
  const alone = [];
  let after = 0; // the first of `times` that is not before the tick
  for (let i = 0; i < ticks.length; i += 1) {
    const tick = ticks[i];
    while (after < times.length && times[after] < tick) after += 1;
    const isNear = times[after] - tick <= near || tick - times[after - 1] <= near; // beyond either end: NaN, not near
    if (!isNear && raw[i] !== highest && raw[i] === raw[i]) alone.push(i);
  }
  return alone;
}

/** Return the usual distance of two readings in ms. */
export function usualStep(times) {
  const steps = Array.from(times.slice(1, STEPS_LOOKED_AT), (time, i) => time - times[i]).sort((a, b) => a - b);
  return steps[steps.length >> 1] ?? 1000;
}
