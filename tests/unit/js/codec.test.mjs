import assert from "node:assert/strict";
import test from "node:test";
import { deflateRawSync, gzipSync } from "node:zlib";
import { Column, fromBase64, inflate, joinPlanes, unpackColumn, unpackSeries } from "../../../templates/js/codec.js";

/** Pack a typed array as render/series.py does: byte planes, deflated. */
function packed(values, name, dtype, { delta = false, decimals = 0 } = {}) {
  const source = delta ? values.map((value, i) => (i ? value - values[i - 1] : value)) : values;
  const bytes = new Uint8Array(source.buffer);
  const size = source.BYTES_PER_ELEMENT;
  const planes = Uint8Array.from(bytes, (_, i) => bytes[(i % source.length) * size + Math.floor(i / source.length)]);
  const data = deflateRawSync(planes);
  return { data, about: { name, offset: 0, length: data.length, count: source.length, dtype, delta, decimals } };
}

test("base64 is read with and without the browser's own reader", () => {
  assert.deepEqual([...fromBase64("AAH/")], [0, 1, 255]);
  const own = Uint8Array.fromBase64;
  Uint8Array.fromBase64 = (text) => Uint8Array.from(Buffer.from(text, "base64"));
  assert.deepEqual([...fromBase64("AAH/")], [0, 1, 255]);
  Uint8Array.fromBase64 = own;
});

test("both compressions are undone", async () => {
  const text = new TextEncoder().encode("täglich ".repeat(100));
  assert.deepEqual(await inflate(gzipSync(text), "gzip"), text);
  assert.deepEqual(await inflate(deflateRawSync(text), "deflate-raw"), text);
});

test("byte planes become numbers again", () => {
  assert.deepEqual([...joinPlanes(Uint8Array.from([1, 2, 1, 0]), "u2")], [257, 2]);
  assert.deepEqual([...joinPlanes(Uint8Array.from([255, 1]), "i1")], [-1, 1]);
});

test("a column has its unit, and the type's highest value is missing", () => {
  const column = new Column(Uint16Array.from([1234, 65535, 0]), "u2", 1);
  assert.equal(column.length, 3);
  assert.deepEqual([0, 1, 2].map((i) => column.at(i)), [123.4, null, 0]);
  assert.deepEqual(column.extent(), [0, 123.4]);
  assert.equal(new Column(Uint8Array.from([255]), "u1", 0).extent(), null);
  assert.equal(new Column(Float64Array.from([Number.NaN]), "f8", 0).at(0), null);
});

test("differences that wrap around add up", async () => {
  for (const [type, dtype] of [
    [Uint8Array, "u1"],
    [Uint16Array, "u2"],
    [Int32Array, "i4"],
  ]) {
    const values = type.from([5, 250, 3, 3, 200]);
    const { data, about } = packed(values, "x", dtype, { delta: true });
    assert.deepEqual((await unpackColumn(data, about)).raw, values);
  }
});

test("a series has its times in whole milliseconds, and its columns by name", async () => {
  const clock = packed(Uint32Array.from([3, 1004, 2003]), "t_s", "u4", { delta: true, decimals: 3 });
  const util = packed(Uint8Array.from([7, 255, 100]), "gpu_util_pct", "u1");
  const bytes = Buffer.concat([clock.data, util.data]);
  const series = await unpackSeries(bytes, [clock.about, { ...util.about, offset: clock.data.length }]);
  assert.deepEqual([...series.times], [3, 1004, 2003]);
  assert.deepEqual([...series.columns.keys()], ["gpu_util_pct"]);
  assert.deepEqual([0, 1, 2].map((i) => series.columns.get("gpu_util_pct").at(i)), [7, null, 100]);
});
