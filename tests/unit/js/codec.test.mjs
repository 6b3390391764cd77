import assert from "node:assert/strict";
import test from "node:test";
import { deflateRawSync, gzipSync } from "node:zlib";
import { Column, Columns, fromText, inflate, joinPlanes, unpackRows, unpackSeries } from "../../../templates/js/codec.js";

const ESCAPES = new Map([0, 13, 60, 27].map((code, i) => [code, `<${"ABCD"[i]}`]));

/** Pack typed arrays as render/samples/column_codec.py and columns.py do: planes, deflated, one behind the other. */
function packed(...all) {
  let text = "";
  const abouts = all.map(([values, name, dtype, more = {}]) => {
    const source = more.delta ? values.map((value, i) => (i ? value - values[i - 1] : value)) : values;
    const of = new Uint8Array(source.buffer);
    const size = source.BYTES_PER_ELEMENT;
    const planes = Uint8Array.from(of, (_, i) => of[(i % source.length) * size + Math.floor(i / source.length)]);
    const data = deflateRawSync(planes);
    const [offset, dense] = [text.length, denseText(data)];
    text += dense;
    return { name, offset, length: dense.length, count: source.length, dtype, decimals: 0, ...more };
  });
  return { columns: new Columns(text), abouts };
}

/** Return bytes as dense text, bit by bit. */
function denseText(bytes) {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, "0")).join("");
  const sevens = (bits.match(/.{1,7}/g) ?? []).map((seven) => Number.parseInt(seven.padEnd(7, "0"), 2));
  return sevens.map((code) => ESCAPES.get(code) ?? String.fromCharCode(code)).join("");
}

test("dense text is read back, whatever its length and its bytes", () => {
  assert.deepEqual([...fromText("")], []);
  assert.deepEqual([...fromText("<A@ @")], [1, 1, 4]);
  const all = Uint8Array.from({ length: 1000 }, (_, i) => (i * 7919) >> 3);
  for (let length = 0; length < 40; length += 1) {
    assert.deepEqual(fromText(denseText(all.subarray(0, length))), all.subarray(0, length));
  }
  const [text, zeros] = [denseText(all), new Uint8Array(50)];
  for (const escape of ESCAPES.values()) assert.ok(text.includes(escape));
  assert.deepEqual(fromText(text), all);
  assert.deepEqual(fromText(denseText(zeros)), zeros);
});

test("both compressions are undone", async () => {
  const text = new TextEncoder().encode("täglich ".repeat(100));
  assert.deepEqual(await inflate(gzipSync(text), "gzip"), text);
  assert.deepEqual(await inflate(deflateRawSync(text), "deflate-raw"), text);
});

test("planes become numbers again, cut by bytes or by bits", () => {
  assert.deepEqual([...joinPlanes(Uint8Array.from([7, 255]), "u1")], [7, 255]);
  assert.deepEqual([...joinPlanes(Uint8Array.from([1, 2, 1, 0]), "u2")], [257, 2]);
  assert.deepEqual([...joinPlanes(Uint8Array.from([1, 2, 100, 0]), "u2", 3)], [801, 2]);
  assert.deepEqual([...joinPlanes(Uint8Array.from([1, 0, 0, 1]), "u4")], [16777217]);
});

test("a column has its unit, and the type's highest value is missing", () => {
  const column = new Column(Uint16Array.from([1234, 65535, 0]), "u2", 1);
  assert.equal(column.length, 3);
  assert.deepEqual(column.values(), [123.4, null, 0]);
  assert.deepEqual(column.extent(), [0, 123.4]);
  assert.equal(new Column(Uint8Array.from([255]), "u1", 0).extent(), null);
  assert.equal(new Column(Float64Array.from([Number.NaN]), "f8", 0).at(0), null);
});

test("a column begins at its least number, and codes of three digits stand for what they do", () => {
  assert.deepEqual(new Column(Uint8Array.from([0, 5, 255]), "u1", 1, { least: -3 }).values(), [-0.3, 0.2, null]);
  const rates = new Column(Uint16Array.from([0, 999, 1000, 1899, 1900]), "u2", 1, { digits: 3 });
  assert.deepEqual(rates.values(), [0, 99.9, 100, 999, 1000]);
  assert.deepEqual(rates.extent(), [0, 1000]);
});

test("differences that wrap around add up", async () => {
  for (const [type, dtype] of [
    [Uint8Array, "u1"],
    [Uint16Array, "u2"],
    [Uint32Array, "u4"],
  ]) {
    const values = type.from([5, 250, 3, 3, 200]);
    const { columns, abouts } = packed([values, "x", dtype, { delta: true }]);
    assert.deepEqual((await columns.get(abouts[0])).raw, values);
  }
});

test("the number that stands for missing becomes the type's highest", async () => {
  const { columns, abouts } = packed([Uint8Array.from([0, 7, 6]), "x", "u1", { gap: 7, least: 10 }]);
  assert.deepEqual((await columns.get(abouts[0])).values(), [10, null, 16]);
});

test("what was packed over a line through another column is on it again, and that is unpacked once", async () => {
  const { columns, abouts } = packed(
    [Uint8Array.from([0, 100, 9, 200]), "a", "u1", { gap: 9 }],
    [Uint8Array.from([0, 1, 2, 3]), "b", "u1"],
  );
  const line = { column: abouts[0], slope: 2097152, add: -4, dtype: "u1", gap: 2 };
  const over = await columns.get({ ...abouts[1], dtype: "u2", least: -4, line });
  assert.deepEqual(over.values(), [-4, 47, null, 99]);
  assert.equal(columns.get(abouts[0]), columns.get({ ...abouts[0] }));
});

test("what was packed over a line through the numbers of the rows is on it again", async () => {
  const { columns, abouts } = packed([Uint8Array.from([1, 0, 2, 3]), "t_s", "u1"]);
  const line = { slope: 200 * 4194304 + 1, add: -1, dtype: "u1", gap: 3 };
  const over = await columns.get({ ...abouts[0], dtype: "u2", line });
  assert.deepEqual(over.values(), [0, 199, 401, null]);
});

test("of a column that is seldom read the other rows are missing", async () => {
  const { columns, abouts } = packed([Uint8Array.from([8, 9]), "x", "u1"], [Uint8Array.from([1, 4]), "rows", "u1"]);
  const column = await columns.get({ ...abouts[0], count: 6, rows: abouts[1] });
  assert.deepEqual(column.values(), [null, 8, null, null, 9, null]);
});

test("a series has its times in whole milliseconds, and of its columns those that are wanted", async () => {
  const { columns, abouts } = packed(
    [Uint32Array.from([3, 1004, 2003]), "t_s", "u4", { delta: true, decimals: 3, least: 5 }],
    [Uint8Array.from([7, 255, 100]), "gpu_util_pct", "u1"],
    [Uint8Array.from([1, 2, 3]), "power_w", "u1"],
  );
  const some = await unpackSeries(columns, abouts, new Set(["gpu_util_pct"]));
  assert.deepEqual([...some.times], [8, 1009, 2008]);
  assert.deepEqual([...some.columns.keys()], ["gpu_util_pct"]);
  assert.deepEqual(some.columns.get("gpu_util_pct").values(), [7, null, 100]);
  assert.deepEqual([...(await unpackSeries(columns, abouts)).columns.keys()], ["gpu_util_pct", "power_w"]);
  const odd = packed([Float64Array.from([0.5, 1.25]), "t_s", "f8"]);
  assert.deepEqual([...(await unpackSeries(odd.columns, odd.abouts)).times], [500, 1250]);
  const coarse = packed([Uint8Array.from([0, 20]), "t_s", "u1", { decimals: 2, least: 3 }]);
  assert.deepEqual([...(await unpackSeries(coarse.columns, coarse.abouts)).times], [30, 230]);
});

test("a table has a row for each value of its columns", async () => {
  const { columns, abouts } = packed([Uint8Array.from([1, 255]), "a", "u1"], [Uint8Array.from([3, 4]), "b", "u1"]);
  assert.deepEqual(await unpackRows(columns, abouts), [[1, 3], [null, 4]]);
  assert.deepEqual(await unpackRows(columns, []), []);
});
