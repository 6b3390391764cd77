import assert from "node:assert/strict";
import test from "node:test";
import { Column } from "../../../templates/js/codec.js";
import { lineOf, usualStep, withTicks } from "../../../templates/js/lines.js";

const column = (values) => new Column(Float64Array.from(values), "f8", 0);

test("the driver's own readings come before those of the ticks", () => {
  const fine = { times: [1], column: column([5]) };
  const series = { times: [0], columns: new Map([["a", column([1])], ["b", column([2])]]), fine: new Map([["a", fine]]) };
  assert.equal(lineOf(series, "a"), fine);
  assert.equal(lineOf(series, "b").column.at(0), 2);
  assert.equal(lineOf(series, "c"), null);
});

test("ticks fill in where the driver kept nothing, in order of time", () => {
  const ring = { times: Float64Array.from([200, 400, 3000]), column: column([1, 2, 3]) };
  const ticks = Float64Array.from([0, 1000, 2000, 3100, 4000]);
  const line = withTicks(ring, ticks, column([90, 91, Number.NaN, 93, 94]), 500);
  assert.deepEqual([...line.times], [200, 400, 1000, 3000, 4000]);
  assert.deepEqual([...line.times].map((_, i) => line.column.at(i)), [1, 2, 91, 3, 94]);
});

test("with no tick alone the ring stays what it is", () => {
  const ring = { times: Float64Array.from([0, 1000]), column: column([1, 2]) };
  assert.equal(withTicks(ring, Float64Array.from([100]), column([9]), 500), ring);
  assert.equal(withTicks(ring, Float64Array.from([100]), undefined, 500), ring);
});

test("the usual step is the median, a second where there is none", () => {
  assert.equal(usualStep(Float64Array.from([0, 200, 400, 9000])), 200);
  assert.equal(usualStep(Float64Array.from([0])), 1000);
});
