// The flame graph's tree: sums that count each second once, and boxes that lie within their parents.

import assert from "node:assert/strict";
import test from "node:test";

import { above, boxesOf, matched, sumsOf, treeOf } from "../../../templates/js/icicle.js";

const [MAIN, TRAIN, LOG, LOAD] = [0, 1, 2, 3];
const tree = treeOf([[MAIN, TRAIN, LOG], [MAIN, TRAIN], [MAIN, LOAD], [MAIN, TRAIN, LOG, LOG]]);
const rows = {
  bucket: [0, 0, 1, 1, 2],
  phase: [0, 1, 1, 1, 1],
  stack: [0, 1, 2, 0, 3],
  seconds: [1, 2, 3, 4, 5],
  idle_gpu_s: [0.5, 0, 3, 4, 1],
};
const all = { bucket_s: 10, measure: "seconds", phase: null, window: null };
const nodeOf = (...frames) => {
  let node = 0;
  for (const frame of frames) node = tree.frame.findIndex((each, at) => each === frame && tree.parent[at] === node);
  return node;
};

test("frames in common are one node", () => {
  assert.deepEqual(tree.frame, [-1, MAIN, TRAIN, LOG, LOAD, LOG]);
  assert.deepEqual(tree.leaf, [3, 2, 4, 5]);
  assert.deepEqual(above(tree, 5), [0, 1, 2, 3]);
});

test("each node has the time of all below it, in the measure, phase and window that are asked for", () => {
  const at = (sums, ...frames) => sums[nodeOf(...frames)];
  const sums = sumsOf(tree, rows, all);
  assert.equal(sums[0], 15);
  assert.equal(at(sums, MAIN, TRAIN), 12);
  assert.equal(at(sums, MAIN, TRAIN, LOG), 10);
  assert.equal(sumsOf(tree, rows, { ...all, measure: "idle_gpu_s" })[0], 8.5);
  assert.equal(sumsOf(tree, rows, { ...all, phase: 0 })[0], 1);
  assert.equal(sumsOf(tree, rows, { ...all, without: 0 })[0], 14);
  assert.equal(sumsOf(tree, rows, { ...all, window: [10, 20] })[0], 7);
  assert.equal(sumsOf(tree, rows, { ...all, window: [15, 20] })[0], 3.5);
  assert.equal(sumsOf(tree, rows, { ...all, window: [90, 99] })[0], 0);
});

test("boxes lie within their parents, the largest first, and those too narrow are left out", () => {
  const sums = sumsOf(tree, rows, all);
  const boxes = boxesOf(tree, sums, 0, 0);
  assert.equal(boxes.length, 6);
  for (const { node, row, x, width } of boxes.filter((box) => box.node)) {
    const parent = boxes.find((box) => box.node === tree.parent[node]);
    assert.equal(row, parent.row + 1);
    assert.ok(x >= parent.x - 1e-12 && x + width <= parent.x + parent.width + 1e-12);
    assert.ok(Math.abs(width - sums[node] / 15) < 1e-12);
  }
  const [first, second] = boxes.filter((box) => box.row === 2);
  assert.deepEqual([tree.frame[first.node], tree.frame[second.node]], [TRAIN, LOAD]);
  assert.equal(boxesOf(tree, sums, 0, 0.25).length, 5);
});

test("a box that is zoomed to is as wide as all, and what lies above it stays", () => {
  const boxes = boxesOf(tree, sumsOf(tree, rows, all), nodeOf(MAIN, TRAIN), 0);
  assert.deepEqual(boxes.filter((box) => box.row <= 2).map((box) => [box.node, box.width]), [[0, 1], [1, 1], [2, 1]]);
  assert.ok(!boxes.some((box) => tree.frame[box.node] === LOAD));
});

test("what is found counts once, also where it called itself", () => {
  const sums = sumsOf(tree, rows, all);
  assert.equal(matched(tree, sums, (node) => tree.frame[node] === LOG), 10);
  assert.equal(matched(tree, sums, () => false), 0);
});
