import assert from "node:assert/strict";
import test from "node:test";
import { addressOf, placeNamed } from "../../../templates/js/address.js";
import { Column } from "../../../templates/js/codec.js";
import { epochsCsv, samplesCsv } from "../../../templates/js/downloads.js";
import { holdsWords } from "../../../templates/js/filter.js";
import { nextPlace } from "../../../templates/js/keys.js";
import { bands, marks, numbersText } from "../../../templates/js/marks.js";
import { laneTraces } from "../../../templates/js/traces.js";

test("a filter looks for its words as they stand, whatever their case and spaces", () => {
  assert.ok(holdsWords("GPU\u00a00  fell\nfar", "gpu 0 FELL"));
  assert.ok(holdsWords("anything", " "));
  assert.ok(!holdsWords("GPU 1 fell to 0 %", "gpu 0"));
});

test("j and k step within the list, and begin from where the page stands", () => {
  const tops = [-900, -300, 40, 700];
  assert.deepEqual([nextPlace(-1, tops, 1), nextPlace(-1, tops, -1)], [2, 1]);
  assert.deepEqual([nextPlace(1, tops, 1), nextPlace(1, tops, -1)], [2, 0]);
  assert.deepEqual([nextPlace(3, tops, 1), nextPlace(0, tops, -1)], [3, 0]);
  assert.deepEqual([nextPlace(-1, [-9, -5], 1), nextPlace(-1, [-9, -5], -1)], [1, 1]);
  assert.equal(nextPlace(-1, [50, 90], -1), 0);
});

test("CSV has a column for each quantity, and an empty cell for what is missing", () => {
  const part = (times, name, values) => ({
    times: Float64Array.from(times),
    columns: new Map([[name, new Column(Float64Array.from(values), "f8", 0)]]),
  });
  const store = { startWall: 1_000_000 };
  assert.equal(
    samplesCsv(store, [part([0, 1500], "a", [1, Number.NaN])]),
    "t_s,wall_s,a\n0.000,1000.000,1\n1.500,1001.500,\n",
  );
  assert.equal(
    samplesCsv(store, [part([1000], "a", [1]), part([0], "b", [2])]),
    "t_s,wall_s,a,b\n0.000,1000.000,,2\n1.000,1001.000,1,\n",
  );
  const names = ["run", "epoch", "start_s", "length_s", "loss"];
  const run = { tables: { epochs: names.map((name) => ({ name })) }, epochs: [[1, 1, 0, 5, null], [1, 2, 5, 9, 2.5]] };
  assert.equal(epochsCsv(run), "run,epoch,start_s,end_s,loss\n1,1,0,5,\n1,2,5,9,2.5\n");
});

test("an address names a moment, a window of time, or something else", () => {
  assert.deepEqual(placeNamed("#t=12.5"), { window: null, at: 12_500 });
  assert.deepEqual(placeNamed("#t=0"), { window: null, at: 0 });
  assert.deepEqual(placeNamed("#t=-1.25,20"), { window: [-1250, 20_000], at: null });
  for (const place of [{ window: [1, 61_000], at: 5000 }, { window: [1, 61_000], at: null }, { window: null, at: 7 }])
    assert.deepEqual(placeNamed(addressOf(place.window, place.at)), place);
  assert.equal(addressOf(null, null), null);
  const others = ["", "#drop-3", "#t=20,10", "#t=5,5", "#t=1e9", "#t=1,2,3", "#t=1,", "#t=1&at=2", "#t=1,2&at="];
  for (const other of others) assert.equal(placeNamed(other), null);
});

const COLOURS = {
  ...{ gpus: ["g0", "g1", "g2"], tones: ["t0", "t1", "t2"], lines: {}, phases: {}, host: "h", low: "l" },
  ...{ gap: "gap", line: "line", expected: "e", drop: "d", epoch: "ep", onLow: "ol", muted: "m" },
};
const VIEW = { from: 0, to: 100_000, width: 1000, hidden: new Set(), opened: new Set(), front: null };
const SCALE = { base: 0, pxPerMs: 0.01 };

function utilisation(count) {
  const series = {
    times: Float64Array.from([0, 50_000, 100_000]),
    columns: new Map([["gpu_util_pct", new Column(Uint8Array.from([80, 80, 80]), "u1", 0)]]),
    ...{ fine: new Map(), breaks: [] },
  };
  const gpus = Array.from({ length: count }, (_, index) => ({ index, position: index, series }));
  const quantities = [{ name: "gpu_util_pct", label: "GPU utilisation", unit: "%", decimals: 0 }];
  return { store: { gpus, run: { low: [], findings: [] } }, lane: { kind: "gpu", quantities, sources: gpus } };
}

test("of equal lines each is seen: dashes leave those below in the gaps of those above", () => {
  const { store, lane } = utilisation(3);
  const dashes = laneTraces(store, lane, VIEW, COLOURS, SCALE).filter((t) => t.meta.quantity).map((t) => t.line.dash);
  assert.deepEqual(dashes, ["solid", "10px,5px", "5px,10px"]);
});

test("the GPU at the front is drawn last and solid, the others pale; a hidden one is not there", () => {
  const { store, lane } = utilisation(3);
  const looks = (view) =>
    laneTraces(store, lane, view, COLOURS, SCALE)
      .filter(({ meta }) => meta.quantity)
      .map(({ meta, opacity }) => [meta.gpu, opacity]);
  assert.deepEqual(looks({ ...VIEW, front: 0 }), [[1, 0.25], [2, 0.25], [0, 1]]);
  assert.deepEqual(looks({ ...VIEW, front: 0, hidden: new Set([0]) }), [[1, 1], [2, 1]]);
});

test("of readings that are too many for the pixels the range is pale, and their mean lies over it", () => {
  const { store, lane } = utilisation(1);
  const count = 10_000;
  const values = Uint8Array.from({ length: count }, (_, i) => (i % 2 ? 90 : 70));
  Object.assign(store.gpus[0].series, { times: Float64Array.from({ length: count }, (_, i) => i * 10), step: 10 });
  store.gpus[0].series.columns.set("gpu_util_pct", new Column(values, "u1", 0));
  const [range, mean] = laneTraces(store, lane, VIEW, COLOURS, SCALE);
  assert.deepEqual([range.meta.quantity, range.opacity < 0.5, mean.meta.mean, mean.opacity], ["gpu_util_pct", true, "gpu_util_pct", 1]);
  assert.deepEqual([Math.min(...range.y), Math.max(...range.y)], [70, 90]);
  assert.ok(mean.y.every((value) => value === 80));
  const near = laneTraces(store, lane, { ...VIEW, from: 0, to: 1000 }, COLOURS, SCALE);
  assert.deepEqual(near.filter(({ meta }) => meta.mean), []);
});

test("numbers are written as ranges, and what is too much is counted", () => {
  assert.equal(numbersText([4]), "4");
  assert.equal(numbersText([2, 1, 3, 7, 7]), "1–3, 7"); // one that recurs
  assert.equal(numbersText([1, 2, 4, 5, 7, 9, 10, 12]), "1, 2, 4, 5, 7 +3");
  assert.equal(numbersText(["2.3", "2.1", "2.2", "1", "10.1"]), "1, 2.1–2.3, 10.1"); // one that happened three times
});

test("of many GPUs those that are opened have their colour, all others are grey", () => {
  const { store, lane } = utilisation(6);
  const view = { ...VIEW, opened: new Set([2]) };
  const colours = laneTraces(store, lane, view, COLOURS, SCALE).filter(({ meta }) => meta.quantity).map(({ line }) => line.color);
  assert.deepEqual(colours, ["h", "h", "h", "h", "h", "g2"]);
});

test("bands lie over each other without cancelling out, and end at the edge of the view", () => {
  const [band] = bands([[10, 20], [10, 20]], {}, VIEW, SCALE);
  assert.equal(band.fillrule, "nonzero");
  assert.deepEqual(bands([], {}, VIEW, SCALE), []);
  const [cut] = bands([[-50, 500]], {}, VIEW, SCALE);
  assert.equal(cut.path, "M0,0V1H100000V0Z");
});

test("drops whose numbers do not fit beside each other share a label, and one of several GPUs is there once", () => {
  const finding = (id, start, end) => ({ id, start, end, number: id.slice(5), severity: "warning", drop: true, expected: false, gpu: 0 });
  const run = { gaps: [], epochs: [], findings: [finding("drop-1", 10, 11), finding("drop-2", 11, 13), finding("drop-3", 60, 61), finding("drop-3", 60, 61)] };
  const lane = { ...utilisation(1).lane, domain: [0, 1] };
  const { annotations } = marks({ run }, VIEW, COLOURS, SCALE, [lane]);
  assert.deepEqual(annotations.map(({ text }) => text).sort(), ["1, 2", "3"]);
  assert.deepEqual(marks({ run }, VIEW, COLOURS, SCALE, []).annotations, []);
});
