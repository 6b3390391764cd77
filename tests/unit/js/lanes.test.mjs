import assert from "node:assert/strict";
import test from "node:test";
import { Column } from "../../../templates/js/codec.js";
import { MARGIN, isBand, isUtilisation, laneUnit, lanesInView, lanesOf, placeLanes } from "../../../templates/js/lanes.js";

const about = (name, unit) => ({ name, label: name, unit, decimals: 0 });
const QUANTITIES = [about("gpu_util_pct", "%"), about("memory_used_mib", "MiB"), about("temperature_c", "°C")];
const LANES = [
  { kind: "gpu", title: "GPU utilisation", drawn: ["gpu_util_pct"], told: [] },
  { kind: "epoch", title: "Loss", drawn: ["loss"], told: [] },
  { kind: "gpu", title: "Memory used", drawn: ["memory_used_mib"], told: [] },
  { kind: "gpu", title: "Temperature", drawn: ["temperature_c"], told: [] },
  { kind: "host", title: "Host CPU", drawn: ["cpu_pct"], told: [] },
];

function store({ columns, epochs = [], kernel = [] }) {
  const made = Object.entries(columns).map(([name, values]) => [name, new Column(Float64Array.from(values), "f8", 0)]);
  const series = { times: [0, 1000], columns: new Map(made), fine: new Map() };
  const run = {
    ...{ lanes: LANES, quantities: QUANTITIES, host_quantities: [about("cpu_pct", "%")], kernel, epochs },
    ...{ epoch_quantities: [about("loss", ""), about("lr", "")], phases: [], gaps: [], happenings: [] },
  };
  return { run, gpus: [{ index: 0, position: 0, series }], host: { times: [], columns: new Map(), fine: new Map() } };
}

test("a lane stands there for what was recorded, and for nothing else", () => {
  const titles = (made) => lanesOf(made).map(({ title }) => title);
  assert.deepEqual(titles(store({ columns: { gpu_util_pct: [1, 2] } })), ["GPU utilisation, %"]);
  const more = store({ columns: { gpu_util_pct: [1, 2] }, epochs: [[1, 1, 0, 9, 2.5, null]], kernel: [{ t: 1 }] });
  assert.deepEqual(titles(more), ["Phase and epoch", "Events", "GPU utilisation, %", "Loss: 2.5 (one value)"]);
});

test("ranges: percent whole, memory from 0 in GiB, temperature about what was read", () => {
  const columns = { gpu_util_pct: [0, 50], memory_used_mib: [1024, 3 * 1024], temperature_c: [40, 60] };
  const [util, memory, heat] = lanesOf(store({ columns }));
  assert.deepEqual(util.range, [-3, 103]);
  assert.ok(isUtilisation(util) && !isUtilisation(memory));
  assert.deepEqual(memory.ticktext, ["0", "1", "2", "3"]);
  assert.deepEqual(memory.tickvals, [0, 1024, 2048, 3072]);
  assert.ok(memory.range[0] < 0 && memory.range[1] > 3072);
  assert.deepEqual(heat.range, [35, 65]);
  assert.equal(laneUnit(QUANTITIES[1]), "GiB");
});

test("a lane of the host in which next to nothing was read says so, and is flat; one without readings does not say it", () => {
  const made = (reads) => {
    const host = { times: Float64Array.of(0, 1000), columns: new Map([["read", new Column(Float64Array.from(reads), "f8", 0)]]), fine: new Map() };
    const lanes = [{ kind: "host", title: "Reads", drawn: ["read"], told: [] }];
    const run = { ...store({ columns: {} }).run, lanes, host_quantities: [{ ...about("read", "MiB/s"), decimals: 1 }] };
    const { title, isFlat } = lanesOf({ run, gpus: [], host })[0];
    return [title, isFlat];
  };
  assert.deepEqual(made([0, 0]), ["Reads, MiB/s: 0 throughout", true]);
  assert.deepEqual(made([0, 0.4]), ["Reads, MiB/s: at most 0.4", true]);
  assert.deepEqual(made([0, 3]), ["Reads, MiB/s", false]);
  assert.deepEqual(made([NaN, NaN]), ["Reads, MiB/s", false]);
});

test("a lane of a GPU is flat where it never changed, that of utilisation never", () => {
  const columns = { gpu_util_pct: [0, 0], memory_used_mib: [1536, 1536], temperature_c: [40, 41] };
  const lanes = lanesOf(store({ columns })).map(({ title, isFlat }) => [title, isFlat]);
  assert.deepEqual(lanes, [["GPU utilisation, %", false], ["Memory used, GiB: 1.5 throughout", true], ["Temperature, °C", false]]);
});

test("a legend under a lane's title moves what follows down", () => {
  const [bare, signed] = [placeLanes(STACK, new Set()), placeLanes(STACK, new Set(), Infinity, new Map([["power", 20]]))];
  assert.deepEqual(signed.places.map(({ top }, i) => top - bare.places[i].top), [0, 0, 20, 20]);
  assert.equal(signed.height, bare.height + 20);
  assert.equal(placeLanes(STACK, new Set(["power"]), Infinity, new Map([["power", 20]])).height, placeLanes(STACK, new Set(["power"])).height);
});

test("a heat strip has a row for each GPU that is shown, and opened GPUs a lane of lines under it", () => {
  const { run, gpus, host } = store({ columns: { gpu_util_pct: [1, 2], memory_used_mib: [1, 2] } });
  const heat = { ...run, lanes: LANES.map((lane) => (lane.title === "GPU utilisation" ? { ...lane, heat: true } : lane)) };
  const many = Array.from({ length: 16 }, (_, index) => ({ ...gpus[0], index, position: index }));
  const lanes = lanesOf({ run: heat, gpus: many, host });
  const view = (hidden, opened) => lanesInView(lanes, { hidden: new Set(hidden), opened: new Set(opened) });
  const [strip, memory] = view([], []);
  assert.deepEqual([strip.rows.length, strip.heat, memory.title], [16, true, "Memory used, GiB"]);
  const titles = view([2], [5, 2]).map(({ title }) => title);
  assert.deepEqual(titles, ["GPU utilisation, %", "GPU 5: gpu_util_pct, %", "Memory used, GiB"]);
  assert.ok(view([2], [])[0].height < strip.height);
  assert.equal(view(many.map(({ index }) => index), [])[0].rows.length, 0);
  assert.deepEqual(lanesInView(lanes.slice(1), { hidden: new Set(), opened: new Set([1]) }), lanes.slice(1));
});

const lane = (title, height, kind = "gpu") => ({ title, height, kind });
const STACK = [lane("phases", 22, "phases"), lane("util", 180), lane("power", 92), lane("heat", 92)];

test("lanes lie from the top down without touching", () => {
  const { places, height } = placeLanes(STACK, new Set());
  assert.equal(places[0].domain[1], 1);
  assert.equal(places[3].domain[0], 0);
  assert.equal(places[0].top, MARGIN.top);
  for (const [i, place] of places.entries()) {
    assert.equal(place.height, STACK[i].height);
    if (i) assert.ok(place.domain[1] < places[i - 1].domain[0]);
  }
  assert.ok(height > 22 + 180 + 92 + 92);
});

test("a folded lane leaves its title, and those below move up", () => {
  const open = placeLanes(STACK, new Set());
  const folded = placeLanes(STACK, new Set(["util"]));
  assert.equal(folded.places[1].domain, null);
  assert.ok(folded.places[2].top < open.places[2].top);
  assert.ok(folded.places[2].top - folded.places[1].top >= 20);
  assert.ok(folded.height < open.height - 150);
  assert.ok(placeLanes(STACK, new Set(STACK.map(({ title }) => title))).height > 0);
});

test("on paper lanes are lower, but not the bands", () => {
  const { places, height } = placeLanes(STACK, new Set(), 300);
  assert.ok(Math.abs(height - 300) < 1e-6);
  assert.equal(places[0].height, 22);
  assert.ok(isBand(STACK[0]) && places[1].height < 180);
  assert.ok(Math.abs(places[1].height / places[2].height - 180 / 92) < 1e-6);
  assert.equal(placeLanes(STACK, new Set(), 5000).places[1].height, 180);
});
