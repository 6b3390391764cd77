// Times and numbers as a person reads them, and elements made of text that is never parsed as HTML.

const MISSING = "n/a";
export const LAST_DATE_MS = 8.64e15; // beyond, a Date is invalid

/** Return a number with its unit; a missing one reads n/a, never 0. */
export function quantity(value, unit = "", decimals = 0) {
  if (value === null || value === undefined || Number.isNaN(value)) return MISSING;
  const text = formatOf(decimals).format(value);
  return unit ? `${text}\u00a0${unit}` : text;
}

const formats = new Map(); // by decimals: to make one takes far longer than to use it

function formatOf(decimals) {
  const digits = { minimumFractionDigits: decimals, maximumFractionDigits: decimals };
  if (!formats.has(decimals)) formats.set(decimals, new Intl.NumberFormat("en-US", digits));
  return formats.get(decimals);
}

/** Return the number of a GPU; that of a MIG device is its GPU's and its own, 0:1 (gpu_words.py says the same). */
export function gpuNumber(index) {
  const parent = Math.floor(index / 1000);
  return parent ? `${parent - 1}:${index % 1000}` : String(index);
}

/** Return ms since the run's start as 1:02:03, with tenths where `tenths` is asked for. */
export function elapsed(time, tenths = false) {
  const step = tenths ? 100 : 1000;
  const whole = Math.round(Math.abs(time) / step) * step;
  const seconds = Math.floor(whole / 1000);
  const clock = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  const text = clock.map((part, i) => (i ? String(part).padStart(2, "0") : String(part))).join(":");
  return (time < 0 && whole > 0 ? "-" : "") + text + (tenths ? `.${Math.floor((whole % 1000) / 100)}` : "");
}

/** The zone in which times are shown: the viewer's own at the run's start, or UTC; a run keeps one offset throughout. */
export class Zone {
  constructor(startWall) {
    this.startWall = startWall;
    this.localOffset = -new Date(startWall).getTimezoneOffset() * 60000;
    this.useUtc = false;
  }

  get offset() {
    return this.useUtc ? 0 : this.localOffset;
  }

  get name() {
    if (this.offset === 0) return "UTC";
    const minutes = Math.abs(this.offset) / 60000;
    const clock = `${String(Math.floor(minutes / 60)).padStart(2, "0")}:${String(minutes % 60).padStart(2, "0")}`;
    return `UTC${this.offset < 0 ? "−" : "+"}${clock}`;
  }

  /** Return a wall time (ms since 1970) as date and time in this zone. */
  dateTime(wall) {
    if (Math.abs(wall + this.offset) > LAST_DATE_MS) return MISSING;
    return new Date(wall + this.offset).toISOString().slice(0, 19).replace("T", " ");
  }

  /** Return a wall time as the time of day alone. */
  timeOfDay(wall) {
    return this.dateTime(wall).slice(-8);
  }
}

/** Return a phase's name as people write it. */
export function phaseWords(name) {
  return name === "startup" ? "start-up" : name;
}

/** Make an element: attributes by name (class, type, ...), then children, each an element or plain text. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children.filter((child) => child !== null && child !== ""));
  return made;
}

/** Return text in whose sentences code stands between backticks, as text and code; one without a partner stays as it is. */
export function prose(text) {
  const parts = text.split("\x60");
  if (parts.length % 2 === 0) return [text];
  return parts.map((part, at) => (at % 2 ? element("code", {}, part) : part)).filter((part) => part !== "");
}
