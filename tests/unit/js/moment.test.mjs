import assert from "node:assert/strict";
import test from "node:test";
import {
  epochAt,
  findingsAt,
  kernelNear,
  phaseAt,
  processesAt,
  reasonWords,
  sampleAt,
  slack,
  valueAt,
} from "../../../templates/js/moment.js";

const CHANGES = [
  [1, 0, 11, "python", 100, "appeared"],
  [2, 1, 12, null, null, "appeared"],
  [3, 0, 11, "python", 300, "changed"],
  [4, 0, 13, "other", 900, "appeared"],
  [5, 0, 11, "python", null, "gone"],
];

test("processes are those that had appeared and not gone, the largest of a GPU first", () => {
  const pids = (time) => processesAt(CHANGES, time).map(({ pid }) => pid);
  assert.deepEqual([500, 1000, 2500, 4500, 9000].map(pids), [[], [11], [11, 12], [13, 11, 12], [13, 12]]);
  assert.equal(processesAt(CHANGES, 3500)[0].memory, 300);
  assert.equal(processesAt(CHANGES, 2500)[1].name, null);
});

test("a sample stands for a moment only while it is near", () => {
  const series = { times: [0, 1000, 5000], columns: new Map([["x", { at: (i) => [7, null, 9][i] }]]) };
  assert.deepEqual([400, 1400, 3000, 4800].map((time) => sampleAt(series, time, 1500)), [0, 1, -1, 2]);
  assert.deepEqual([valueAt(series, "x", 0), valueAt(series, "x", 1), valueAt(series, "x", -1)], [7, null, null]);
  assert.equal(valueAt(series, "unknown", 0), null);
  assert.deepEqual([slack({ interval_s: 2 }), slack({ interval_s: 0.1 }), slack({})], [3000, 600, 1500]);
});

test("phase, epoch, findings and kernel lines at a moment", () => {
  const run = {
    phases: [["train", 1, 0, 10, "callbacks", ""], ["validation", 1, 10, 12, "callbacks", "part"]],
    epochs: [[1, 1, 0, 12], [1, 2, 12, 20]],
    findings: [{ id: "drop-1", start: 3, end: 5 }],
    kernel: [{ t: 70 }, { t: 11 }, { t: 500 }],
  };
  assert.deepEqual(phaseAt(run, 10_000), { name: "validation", epoch: 1, source: "callbacks", detail: "part" });
  assert.equal(phaseAt(run, 12_000), null);
  assert.equal(epochAt(run, 12_000)[1], 2);
  assert.equal(epochAt(run, 20_000), null);
  assert.deepEqual([2999, 3000, 5000, 5001].map((time) => findingsAt(run, time).length), [0, 1, 1, 0]);
  assert.deepEqual(kernelNear(run, 20_000).map(({ t }) => t), [11, 70]);
});

test("clock event reasons are named, and bits that nobody knows are shown as they are", () => {
  const run = { reasons: [[1, "GPU idle"], [4, "software power cap"]] };
  assert.equal(reasonWords(run, null), "n/a");
  assert.equal(reasonWords(run, 0), "none");
  assert.equal(reasonWords(run, 5), "GPU idle, software power cap");
  assert.equal(reasonWords(run, 4 + 2 ** 40), "software power cap, 0x10000000000");
});
