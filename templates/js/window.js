// Which samples are drawn: all of them while they fit, else the lowest and highest of each pixel.

/** Return the first index from `low` on whose time is not before `time`, or `high` where there is none before that. */
export function lowerBound(times, time, low = 0, high = times.length) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Return the index of the sample nearest to `time`, or -1 when there is none. */
export function nearestIndex(times, time) {
  const after = lowerBound(times, time);
  if (after === 0) return times.length ? 0 : -1;
  if (after === times.length) return times.length - 1;
  return time - times[after - 1] <= times[after] - time ? after - 1 : after;
}

/** Return the indexes before which a line must be broken: one for each gap (start and end in ms). */
export function breakIndexes(times, gaps) {
  const indexes = gaps.map(([start, end]) => lowerBound(times, (start + end) / 2));
  return [...new Set(indexes)].filter((i) => i > 0 && i < times.length).sort((a, b) => a - b);
}

/**
 * Return the points to draw between two times, with one sample beyond either end so that lines reach the edge.
 * Up to `exactLimit` samples every one is drawn. Beyond that, the time is cut into `buckets`, and of each the lowest
 * and the highest sample are drawn, at their own times: no single-sample dip is lost. A null breaks the line.
 */
export function pointsInWindow(times, column, from, to, { exactLimit, buckets, breaks }) {
  const first = Math.max(lowerBound(times, from) - 1, 0);
  const last = Math.min(lowerBound(times, to) + 1, times.length);
  const points = { t: [], v: [], exact: last - first <= exactLimit };
  const width = points.exact ? 0 : (to - from) / buckets;
  let nextBreak = lowerBound(breaks, first + 1);
  for (let i = first; i < last;) {
    if (breaks[nextBreak] === i) {
      points.t.push(times[i]);
      points.v.push(null);
      nextBreak += 1;
    }
    const limit = breaks[nextBreak] ?? last;
    i = points.exact
      ? addSample(points, times, column, i)
      : addBucket(points, times, column, i, Math.min(limit, last), times[i] + width);
  }
  return points;
}

function addSample(points, times, column, i) {
  points.t.push(times[i]);
  points.v.push(column.at(i));
  return i + 1;
}

function addBucket(points, times, column, start, limit, endTime) {
  const { raw, highest } = column; // read without a call for each sample: a week holds millions
  const end = firstNotBefore(times, endTime, start + 1, limit);
  let low = -1;
  let high = -1;
  let [least, most] = [Infinity, -Infinity];
  for (let i = start; i < end; i += 1) {
    const value = raw[i];
    if (value === highest || value !== value) continue; // missing, as Column.isMissing has it
    if (value < least) [low, least] = [i, value];
    if (value > most) [high, most] = [i, value];
  }
  if (low < 0) addSample(points, times, column, start);
  else if (low === high) addSample(points, times, column, low);
  else {
    addSample(points, times, column, Math.min(low, high));
    addSample(points, times, column, Math.max(low, high));
  }
  return end;
}

/** Return the first index from `first` on whose time is not before `time`, or `limit`: found in leaps, as it lies near. */
function firstNotBefore(times, time, first, limit) {
  let leap = 1;
  let low = first;
  while (low + leap < limit && times[low + leap] < time) {
    low += leap;
    leap *= 2;
  }
  return lowerBound(times, time, low, Math.min(low + leap, limit));
}

/** Return the lowest and highest value between two times, or null where there is none. */
export function rangeInWindow(times, column, from, to) {
  return column.extent(lowerBound(times, from), lowerBound(times, to));
}
