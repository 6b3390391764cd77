// Round numbers for the side of a lane, and round times for the axis under them.

import { LAST_DATE_MS } from "./words.js";

const [SECOND, MINUTE, HOUR, DAY] = [1000, 60_000, 3_600_000, 86_400_000];
const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");
const TIME_STEPS = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 15, 30].map((n) => n * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((n) => n * MINUTE),
  ...[1, 2, 3, 6, 12].map((n) => n * HOUR),
  ...[1, 2, 7, 14, 28].map((n) => n * DAY),
];

/** Return the least of 1, 2, 5, 10, 20, ... times a power of ten that parts `span` into at most `most` steps. */
export function roundStep(span, most) {
  const power = 10 ** Math.floor(Math.log10(span / most));
  return [1, 2, 5, 10].map((digit) => digit * power).find((step) => span / step <= most * (1 + 1e-9));
}

/** Return the multiples of a round step within a range, as values and as they are written; the unit is `size` of them. */
export function roundTicks(low, high, most, size = 1) {
  const step = roundStep((high - low) / size, most);
  const first = Math.ceil(low / size / step);
  const count = Math.floor(high / size / step) - first + 1;
  const values = Array.from({ length: count }, (_, i) => Number(((first + i) * step).toPrecision(12)));
  return { tickvals: values.map((value) => value * size), ticktext: values.map(String) };
}

const EDGE_SHARE = 0.07; // of the times shown: a time written so near their end may have no room

/**
 * Return at most about `most` round times between two (ms since 1970, on the clock that is shown), as values and as they
 * are written: as exact as the step needs, the day beneath where it is the first or another than before. One alone says
 * not how long anything took: a finer step is taken then.
 */
export function timeTicks(from, to, most) {
  const place = TIME_STEPS.findIndex((each) => (to - from) / each <= most);
  const usual = TIME_STEPS[place] ?? roundStep((to - from) / DAY, most) * DAY;
  const latest = to - (to - from) * EDGE_SHARE;
  const isAlone = Math.floor(latest / usual) - Math.ceil(from / usual) < 1;
  const step = (isAlone && TIME_STEPS[place - 1]) || usual;
  const first = Math.ceil(from / step);
  const values = Array.from({ length: Math.floor(to / step) - first + 1 }, (_, i) => (first + i) * step);
  return { tickvals: values, ticktext: values.map((time, i) => timeText(time, step, values[i - 1])) };
}

function timeText(time, step, before) {
  if (Math.abs(time) > LAST_DATE_MS) return "";
  const date = new Date(time);
  const day = `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}`;
  if (step >= DAY) return day;
  const clock = date.toISOString().slice(11, step < SECOND ? 23 : step < MINUTE ? 19 : 16);
  const isNewDay = before === undefined || Math.floor(before / DAY) !== Math.floor(time / DAY);
  return isNewDay ? `${clock}<br>${day}` : clock;
}
