import assert from "node:assert/strict";
import test from "node:test";
import { Column } from "../../../templates/js/codec.js";
import { cellsOf, heatScale, meanOf } from "../../../templates/js/heat.js";

const line = (times, values, more = {}) => ({
  ...{ times: Float64Array.from(times), column: new Column(Float64Array.from(values), "f8", 0), step: 1000 },
  ...more,
});
const NEAR_MS = 1500;

test("the scale goes through its stops, evenly apart, and rounds between them", () => {
  const scale = heatScale(["rgb(0, 0, 0)", "rgb(100, 0, 50)", "rgb(100, 200, 50)"]);
  assert.equal(scale.length, 101);
  assert.deepEqual([scale[0], scale[25], scale[50], scale[100]], [[0, 0, 0], [50, 0, 25], [100, 0, 50], [100, 200, 50]]);
});

test("a cell of several readings is their mean, and what is missing counts for nothing", () => {
  const cells = cellsOf(line([0, 1000, 2000, 3000, 4000, 5000], [10, 20, NaN, 40, 90, 100]), 0, 6000, 2, NEAR_MS);
  assert.deepEqual([...cells], [15, (40 + 90 + 100) / 3]);
});

test("a cell shorter than the readings is the nearest one, as where it is pointed at; far from any it is nothing", () => {
  const cells = cellsOf(line([0, 1000, 20000], [10, 90, 50]), 0, 5000, 10, NEAR_MS);
  assert.deepEqual([...cells.slice(0, 5)], [10, 90, 90, 90, 90]);
  assert.ok(cells.slice(5).every(Number.isNaN));
});

test("between the parts of an overview nothing is missing", () => {
  const overview = line([30000, 90000, 150000], [10, 20, 30], { step: 60000, isOverview: true });
  assert.deepEqual([...cellsOf(overview, 0, 180000, 6, NEAR_MS)], [10, 10, 20, 20, 30, 30]);
});

test("packed columns are read in their own unit", () => {
  const packed = { ...line([0, 1000, 2000], []), column: new Column(Uint8Array.of(0, 255, 100), "u1", 1, { least: 5 }) };
  assert.deepEqual([...cellsOf(packed, 0, 3000, 1, NEAR_MS)], [5.5]);
  const codes = new Column(Uint16Array.of(5, 1000, 1002), "u2", 0, { digits: 3 }); // 5, 1000, 1020
  assert.deepEqual([...cellsOf({ ...packed, column: codes }, 0, 3000, 1, NEAR_MS)], [675]);
});

test("the mean in view leaves out what is not known", () => {
  assert.equal(meanOf(Float32Array.of(10, NaN, 30)), 20);
  assert.ok(Number.isNaN(meanOf(Float32Array.of(NaN))));
});
