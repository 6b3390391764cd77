import assert from "node:assert/strict";
import test from "node:test";
import { eventTraces, happeningsNear, hasEvents } from "../../../templates/js/events.js";
import { learningLane, learningText, learningTrace, ofEpoch } from "../../../templates/js/learning.js";

const ABOUT = [{ name: "loss", label: "Loss" }, { name: "lr", label: "Learning rate" }];
const EPOCHS = [
  [1, 1, 0, 10, 4, null],
  [1, 2, 10, 20, 3, null],
  [1, 3, 20, 30, null, null],
  [1, 4, 30, 40, 2, null],
  [2, 1, 40, 50, 5, null],
];
const RUN = { epochs: EPOCHS, epoch_quantities: ABOUT };
const ALL = { from: 0, to: 60_000 };
const SCALE = { base: 1e6, pxPerMs: 0.02 };
const COLOURS = { lines: {}, checkpoint: "c", muted: "m", background: "b", critical: "r", warning: "y", info: "i" };

test("what is not known of an epoch is null", () => {
  assert.equal(ofEpoch(RUN, EPOCHS[0], "loss"), 4);
  assert.equal(ofEpoch(RUN, EPOCHS[0], "lr"), null);
  assert.equal(ofEpoch(RUN, null, "loss"), null);
  assert.equal(learningText(null), "n/a");
  assert.equal(learningText(0.000123456), "0.0001235");
});

test("a lane begins at 0, and there is none of what nobody told", () => {
  const lane = learningLane(RUN, { kind: "epoch", title: "Loss", drawn: ["loss"] });
  assert.ok(lane.range[0] < 0 && lane.range[1] > 5);
  assert.equal(learningLane(RUN, { kind: "epoch", title: "Learning rate", drawn: ["lr"] }), null);
  const below = { ...RUN, epochs: [[1, 1, 0, 10, -2, null]] };
  assert.ok(learningLane(below, { kind: "epoch", title: "Loss", drawn: ["loss"] }).range[0] < -2);
});

test("steps break where an epoch tells nothing and where another run begins", () => {
  const { x, y } = learningTrace(RUN, ABOUT[0], ALL, COLOURS, SCALE);
  assert.deepEqual(y, [4, 4, 3, 3, null, 2, 2, null, 5, 5]);
  assert.equal(x[0], 1e6);
  const part = learningTrace(RUN, ABOUT[0], { from: 12_000, to: 15_000 }, COLOURS, SCALE);
  assert.deepEqual(part.y, [3, 3]);
});

const NOTHING = { phases: [], kernel: [], gaps: [], happenings: [] };

test("the lane of events has a mark for each kind that there is", () => {
  assert.equal(hasEvents(NOTHING), false);
  const run = {
    phases: [["checkpoint", 1, 9, 10, 0], ["train", 1, 0, 9, 0]],
    kernel: [{ t: 5, severity: "critical" }],
    gaps: [[null, 20, 30]],
    happenings: [[7, "Marker", "note"]],
  };
  assert.equal(hasEvents(run), true);
  const traces = eventTraces(run, ALL, COLOURS, SCALE);
  const seen = traces.map(({ meta, x }) => [meta.marks, (x[0] - SCALE.base) / 1000]);
  assert.deepEqual(seen, [["checkpoint", 10], ["gap", 25], ["happening", 7], ["kernel", 5]]);
  assert.deepEqual(traces.at(-1).marker.symbol, ["diamond"]);
  assert.deepEqual(eventTraces(NOTHING, ALL, COLOURS, SCALE), []);
});

test("what happened is told nearest first", () => {
  const run = { happenings: [[1, "a", ""], [5, "b", ""], [60, "c", ""]] };
  assert.deepEqual(happeningsNear(run, 4_500, 10_000).map(([, what]) => what), ["b", "a"]);
});
