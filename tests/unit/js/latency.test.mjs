// What the charts of latency say of the moment that is pointed at.

import assert from "node:assert/strict";
import { test } from "node:test";

import { nearest, wordsOf } from "../../../templates/js/latency.js";

test("the nearest bucket with calls is read, and none far from all of them", () => {
  const places = [10, 11, 500];
  assert.equal(nearest(places, 10.2), 0);
  assert.equal(nearest(places, 11.9), 1);
  assert.equal(nearest(places, 490), 2);
  assert.equal(nearest(places, 300), -1);
  assert.equal(nearest([], 300), -1);
});

test("one call is its latency, several are a range with a median", () => {
  const buckets = { count: [1, 1200], low_ms: [13.91, 0.52], median_ms: [13.91, 240.4], high_ms: [13.91, 12345.6] };
  assert.equal(wordsOf(buckets, 0), "1 call, 13.9\u00a0ms");
  assert.equal(wordsOf(buckets, 1), "1,200 calls, 0.52\u00a0ms to 12.3\u00a0s, median 240\u00a0ms");
});
