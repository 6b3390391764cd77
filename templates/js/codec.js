// Reads the columns that render/series.py packed: base64, raw deflate, byte planes, differences.

const TYPED_ARRAYS = {
  u1: Uint8Array,
  i1: Int8Array,
  u2: Uint16Array,
  i2: Int16Array,
  u4: Uint32Array,
  i4: Int32Array,
  f8: Float64Array,
};
const HIGHEST = { u1: 255, i1: 127, u2: 65535, i2: 32767, u4: 4294967295, i4: 2147483647 };

/** Return the bytes of a base64 text. */
export function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

/** Return the bytes that `bytes` were compressed from; `format` is gzip or deflate-raw. */
export async function inflate(bytes, format) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream(format));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Put byte planes (all first bytes, then all second bytes, ...) back into one typed array. */
export function joinPlanes(planes, dtype) {
  const size = TYPED_ARRAYS[dtype].BYTES_PER_ELEMENT;
  const count = planes.length / size;
  const bytes = new Uint8Array(planes.length);
  for (let plane = 0; plane < size; plane += 1) {
    for (let i = 0; i < count; i += 1) bytes[i * size + plane] = planes[plane * count + i];
  }
  return new TYPED_ARRAYS[dtype](bytes.buffer);
}

/** A recorded column. `at(i)` is the value in its own unit, or null where the reading is missing. */
export class Column {
  constructor(raw, dtype, decimals) {
    this.raw = raw;
    this.highest = HIGHEST[dtype];
    this.divisor = 10 ** decimals;
  }

  get length() {
    return this.raw.length;
  }

  isMissing(i) {
    return this.raw[i] === this.highest || Number.isNaN(this.raw[i]);
  }

  at(i) {
    return this.isMissing(i) ? null : this.raw[i] / this.divisor;
  }

  /** Return the lowest and highest value, or null where all are missing. */
  extent() {
    let low = Infinity;
    let high = -Infinity;
    for (let i = 0; i < this.raw.length; i += 1) {
      if (this.isMissing(i)) continue;
      if (this.raw[i] < low) low = this.raw[i];
      if (this.raw[i] > high) high = this.raw[i];
    }
    return low > high ? null : [low / this.divisor, high / this.divisor];
  }
}

/** Unpack one column out of all columns' bytes; `packed` says where it lies and how it was packed. */
export async function unpackColumn(bytes, packed) {
  const deflated = bytes.subarray(packed.offset, packed.offset + packed.length);
  const raw = joinPlanes(await inflate(deflated, "deflate-raw"), packed.dtype);
  if (packed.delta) {
    for (let i = 1; i < raw.length; i += 1) raw[i] += raw[i - 1]; // a typed array wraps, as the differences did
  }
  return new Column(raw, packed.dtype, packed.decimals);
}

/** Unpack every column of one GPU or of the host: `times` in ms since the run's start, and columns by name. */
export async function unpackSeries(bytes, packed) {
  const columns = await Promise.all(packed.map((column) => unpackColumn(bytes, column)));
  const byName = new Map(packed.map((column, i) => [column.name, columns[i]]));
  const clock = byName.get("t_s");
  byName.delete("t_s");
  return {
    times: Float64Array.from({ length: clock.length }, (_, i) => Math.round(clock.at(i) * 1000)),
    columns: byName,
  };
}
