import assert from "node:assert/strict";
import test from "node:test";
import { Column } from "../../../templates/js/codec.js";
import { breakIndexes, lowerBound, nearestIndex, pointsInWindow, rangeInWindow } from "../../../templates/js/window.js";

const MISSING = 255;
const column = (values) => new Column(Uint8Array.from(values), "u1", 0);
const seconds = (count) => Float64Array.from({ length: count }, (_, i) => i * 1000);
const limits = (more) => ({ exactLimit: 100, buckets: 10, breaks: [], ...more });

test("the first time that is not before another", () => {
  const times = [10, 20, 20, 30];
  assert.deepEqual([5, 10, 15, 20, 31].map((time) => lowerBound(times, time)), [0, 0, 1, 1, 4]);
  assert.equal(lowerBound([], 1), 0);
});

test("the nearest sample, on a tie the earlier one, and none of none", () => {
  assert.deepEqual([0, 14, 15, 16, 99].map((time) => nearestIndex([10, 20], time)), [0, 0, 0, 1, 1]);
  assert.equal(nearestIndex([], 1), -1);
});

test("a gap breaks the line once, where readings stand on both sides of it", () => {
  assert.deepEqual(breakIndexes([0, 1000, 9000, 10000], [[1500, 8500], [1600, 8400]]), [2]);
  assert.deepEqual(breakIndexes([0, 1000], [[-500, -100], [5000, 9000]]), []);
});

test("while they fit every sample in view is drawn, and one beyond either end", () => {
  const points = pointsInWindow(seconds(50), column([...seconds(50)].map((t) => t / 1000)), 10_000, 12_000, limits());
  assert.equal(points.exact, true);
  assert.deepEqual(points.v, [9, 10, 11, 12, 13].slice(0, points.v.length));
  assert.ok(points.v.length >= 4);
});

test("from afar no dip and no peak of a single sample is lost, at its own time", () => {
  const values = Array.from({ length: 5000 }, (_, i) => 50 + (i % 3));
  [values[1234], values[4321]] = [1, 99];
  const points = pointsInWindow(seconds(5000), column(values), 0, 5_000_000, limits());
  assert.equal(points.exact, false);
  assert.ok(points.t.length <= 2 * (10 + 1) + 2);
  assert.equal(points.v[points.t.indexOf(1_234_000)], 1);
  assert.equal(points.v[points.t.indexOf(4_321_000)], 99);
  assert.deepEqual(points.t, [...points.t].sort((a, b) => a - b));
});

test("a missing sample is a hole where all are drawn, and no zero where they are gathered", () => {
  const values = Array.from({ length: 300 }, () => 80);
  values[150] = MISSING;
  const near = pointsInWindow(seconds(300), column(values), 149_000, 151_000, limits());
  assert.equal(near.v[near.t.indexOf(150_000)], null);
  const far = pointsInWindow(seconds(300), column(values), 0, 300_000, limits());
  assert.deepEqual([...new Set(far.v)], [80]);
});

test("a break of the line is a null between its sides, near and far", () => {
  for (const exactLimit of [10, 1000]) {
    const points = pointsInWindow(seconds(200), column(Array(200).fill(70)), 0, 200_000, limits({ exactLimit, breaks: [90] }));
    const at = points.v.indexOf(null);
    assert.ok(at > 0);
    assert.ok(points.t[at - 1] < 90_000 && points.t[at + 1] >= 90_000);
  }
});

test("the range over some time, and null where nothing was read", () => {
  const values = column([5, MISSING, 9, 1]);
  assert.deepEqual(rangeInWindow(seconds(4), values, 0, 3000), [5, 9]);
  assert.equal(rangeInWindow(seconds(4), values, 1000, 2000), null);
});
