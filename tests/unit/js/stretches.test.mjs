import assert from "node:assert/strict";
import test from "node:test";
import { inView, thinning, widened } from "../../../templates/js/stretches.js";
import { roundStep, roundTicks } from "../../../templates/js/ticks.js";

test("a stretch is in view when any of it is", () => {
  const view = { from: 10_000, to: 20_000 };
  const seen = [[0, 9], [0, 10], [12, 13], [20, 30], [21, 30]].map(([start, end]) => inView(view, start, end));
  assert.deepEqual(seen, [false, true, true, true, false]);
});

test("what is too short to see is widened about its middle", () => {
  const scale = { pxPerMs: 0.001 };
  assert.deepEqual(widened(10, 20, scale), [10_000, 20_000]);
  assert.deepEqual(widened(10, 10, scale), [8500, 11_500]);
});

test("marks are thinned to round numbers once they have no room", () => {
  const epochs = Array.from({ length: 100 }, (_, i) => [1, i + 1, i, i + 1]);
  assert.equal(thinning(epochs, { pxPerMs: 0.01 }, 9), 1);
  assert.equal(thinning(epochs, { pxPerMs: 0.001 }, 9), 10);
  assert.equal(thinning([], { pxPerMs: 1 }, 9), 1);
});

test("steps and ticks are round", () => {
  assert.deepEqual([1, 0.3, 7, 80, 1234].map((span) => roundStep(span, 4)), [0.5, 0.1, 2, 20, 500]);
  assert.deepEqual(roundTicks(0, 0.00082, 3), { tickvals: [0, 0.0005], ticktext: ["0", "0.0005"] });
  assert.deepEqual(roundTicks(-1, 1, 4).tickvals, [-1, -0.5, 0, 0.5, 1]);
  assert.deepEqual(roundTicks(0, 2500, 4, 1024), { tickvals: [0, 1024, 2048], ticktext: ["0", "1", "2"] });
});
