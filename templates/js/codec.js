// Reads the columns that render/samples/column_codec.py packed: dense text (render/samples/base128.py), raw deflate, planes, differences, and lines through others.

const TYPED_ARRAYS = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, f8: Float64Array };
const HIGHEST = { u1: 255, u2: 65535, u4: 4294967295 }; // what stands for missing once a column is unpacked
const SLOPE_ONE = 4194304;
const TIME_COLUMN = "t_s";
const ESCAPE = 60; // "<"
const FIRST_LETTER = 65; // "A"
const ESCAPED = [0, 13, 60, 27];

/** Return the bytes of a dense text: seven bits a character, the highest first; four characters are escaped. */
export function fromText(text) {
  const bytes = new Uint8Array((text.length * 7) >> 3);
  let [bits, count, end] = [0, 0, 0];
  for (let i = 0; i < text.length; i += 1) {
    let code = text.charCodeAt(i);
    if (code === ESCAPE) {
      i += 1;
      code = ESCAPED[text.charCodeAt(i) - FIRST_LETTER];
    }
    bits = (bits << 7) | code;
    count += 7;
    if (count < 8) continue;
    count -= 8;
    bytes[end] = bits >> count; // what is over eight bits is cut off
    end += 1;
  }
  return bytes.subarray(0, end);
}

/** Return the bytes that `bytes` were compressed from; `format` is gzip or deflate-raw. */
export async function inflate(bytes, format) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream(format));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Put planes back into one typed array: the `low` bits and the rest, or without `low` the bytes from the lowest on. */
export function joinPlanes(planes, dtype, low = 0) {
  const Typed = TYPED_ARRAYS[dtype];
  const size = Typed.BYTES_PER_ELEMENT;
  const count = planes.length / size;
  if (size === 1) return planes;
  if (size === 2) {
    const joined = new Typed(count);
    for (let i = 0; i < count; i += 1) joined[i] = planes[i] | (planes[count + i] << (low || 8));
    return joined;
  }
  if (size === 4) {
    const joined = new Typed(count);
    const [second, third, fourth] = [count, 2 * count, 3 * count];
    for (let i = 0; i < count; i += 1)
      joined[i] = planes[i] | (planes[second + i] << 8) | (planes[third + i] << 16) | (planes[fourth + i] << 24);
    return joined;
  }
  const bytes = new Uint8Array(planes.length);
  for (let plane = 0; plane < size; plane += 1) {
    for (let i = 0; i < count; i += 1) bytes[i * size + plane] = planes[plane * count + i];
  }
  return new Typed(bytes.buffer);
}

/**
 * A recorded column. `raw` are its whole numbers from `least` up, the type's highest value where the reading is missing;
 * `at(i)` is the value in its own unit, or null there. With `digits` the whole numbers are codes of so many significant
 * digits, which come in the order of what they stand for.
 */
export class Column {
  constructor(raw, dtype, decimals, { digits = 0, least = 0 } = {}) {
    Object.assign(this, { raw, digits, least, highest: HIGHEST[dtype], divisor: 10 ** decimals });
  }

  get length() {
    return this.raw.length;
  }

  isMissing(i) {
    return this.raw[i] === this.highest || Number.isNaN(this.raw[i]);
  }

  at(i) {
    return this.isMissing(i) ? null : this.valueOf(this.raw[i]);
  }

  /** Return what a number in `raw` stands for. */
  valueOf(number) {
    const whole = number + this.least;
    return (this.digits ? fromDigits(whole, this.digits) : whole) / this.divisor;
  }

  /** Return the lowest and highest value of the rows from `first` to before `end`, or null where all are missing. */
  extent(first = 0, end = this.raw.length) {
    const { raw, highest } = this;
    let low = Infinity;
    let high = -Infinity;
    for (let i = first; i < end; i += 1) {
      const number = raw[i];
      if (number === highest || number !== number) continue;
      if (number < low) low = number;
      if (number > high) high = number;
    }
    return low > high ? null : [this.valueOf(low), this.valueOf(high)];
  }

  /** Return all values as an array, null where one is missing. */
  values() {
    return Array.from(this.raw, (_, i) => this.at(i));
  }
}

/** Return the whole number that a code of so many significant digits stands for: each decade beyond them has its codes. */
function fromDigits(code, digits) {
  const [full, least] = [10 ** digits, 10 ** (digits - 1)];
  if (code < full) return code;
  const decade = Math.floor((code - full) / (9 * least));
  return (least + ((code - full) % (9 * least))) * 10 ** (decade + 1);
}

/** All packed columns of a page, each unpacked when it is first asked for. */
export class Columns {
  /** Take them as one text: its beginning, and a promise of what comes after that. */
  constructor(first, rest = null) {
    Object.assign(this, { first, rest, unpacked: new Map() });
  }

  /** Return a column; `packed` says where it lies and how it was packed. */
  get(packed) {
    if (!this.unpacked.has(packed.offset)) this.unpacked.set(packed.offset, this.unpack(packed));
    return this.unpacked.get(packed.offset);
  }

  async unpack(packed) {
    const { dtype, decimals, digits, least } = packed;
    const numbers = packed.line ? await this.overLine(packed) : await this.numbers(packed, dtype, packed.gap);
    const raw = packed.rows ? await this.inTheirRows(numbers, packed) : numbers;
    return new Column(raw, dtype, decimals, { digits, least });
  }

  /** Return what was packed, its gaps as the type's highest value. */
  async numbers({ offset, length, low, delta }, dtype, gap) {
    const isFirst = offset < this.first.length || !this.rest;
    const [text, begin] = isFirst ? [this.first, offset] : [await this.rest, offset - this.first.length];
    const raw = joinPlanes(await inflate(fromText(text.slice(begin, begin + length)), "deflate-raw"), dtype, low);
    if (delta) for (let i = 1; i < raw.length; i += 1) raw[i] += raw[i - 1]; // wraps, as the differences did
    if (gap === undefined || gap === null || gap === HIGHEST[dtype]) return raw;
    for (let i = 0; i < raw.length; i += 1) if (raw[i] === gap) raw[i] = HIGHEST[dtype];
    return raw;
  }

  /** Return the numbers of a column that was packed as what it is over a line, through another one or through the rows. */
  async overLine({ line, ...packed }) {
    const [over, other] = await Promise.all([
      this.numbers(packed, line.dtype, line.gap),
      line.column ? this.get(line.column) : null,
    ]);
    const raw = new TYPED_ARRAYS[packed.dtype](over.length);
    const [add, slope] = [line.add - (packed.least ?? 0), line.slope / SLOPE_ONE]; // a power of two: exact
    const [isGap, gap] = [HIGHEST[line.dtype], HIGHEST[packed.dtype]];
    const { raw: under, least, highest } = other ?? { raw: null, least: 0, highest: 0 };
    for (let i = 0; i < raw.length; i += 1) {
      const below = under === null ? i : under[i] === highest || under[i] !== under[i] ? 0 : under[i] + least;
      raw[i] = over[i] === isGap ? gap : over[i] + add + Math.floor(below * slope + 0.5);
    }
    return raw;
  }

  /** Return numbers of a few rows as a column of all rows. */
  async inTheirRows(numbers, { rows, count, dtype }) {
    const places = await this.get(rows);
    const raw = new TYPED_ARRAYS[dtype](count).fill(HIGHEST[dtype]);
    for (let i = 0; i < numbers.length; i += 1) raw[places.at(i)] = numbers[i];
    return raw;
  }
}

/** Unpack columns, those of `names` or without them all: `times` in ms since the run's start, and the others by name. */
export async function unpackSeries(columns, packed, names = null) {
  const wanted = packed.filter(({ name }) => name === TIME_COLUMN || !names || names.has(name));
  const unpacked = await Promise.all(wanted.map((column) => columns.get(column)));
  const byName = new Map(wanted.map(({ name }, i) => [name, unpacked[i]]));
  const clock = byName.get(TIME_COLUMN);
  byName.delete(TIME_COLUMN);
  return { times: timesOf(clock), columns: byName };
}

/** Return a column of seconds as ms, which is what it counts. */
function timesOf({ raw, least, divisor, highest }) {
  const times = new Float64Array(raw.length);
  const isWhole = highest !== undefined; // which they all are but for absurd ones
  const each = 1000 / divisor;
  for (let i = 0; i < times.length; i += 1) times[i] = isWhole ? (raw[i] + least) * each : Math.round(raw[i] * 1000);
  return times;
}

/** Unpack a table as rows, each with a value of every column in turn. */
export async function unpackRows(columns, packed) {
  const values = (await Promise.all(packed.map((column) => columns.get(column)))).map((column) => column.values());
  return Array.from(values[0] ?? [], (_, i) => values.map((column) => column[i]));
}
