// Numbers and times as a person reads them; what is not known is n/a, never zero.

export const MISSING = "n/a";
const UNITS = [
  [86400, "d"],
  [3600, "h"],
  [60, "min"],
  [1, "s"],
];

/** A length of time (s) in its two largest units. */
export function duration(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return MISSING;
  let rest = Math.max(Math.round(seconds), 0);
  const parts = [];
  for (const [size, unit] of UNITS) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count || (unit === "s" && !parts.length)) parts.push(`${count}\u00a0${unit}`);
    else if (parts.length) break;
    if (parts.length === 2) break;
  }
  return parts.join(" ");
}

/** The number of a GPU; that of a MIG device is its GPU's and its own, 0:1. */
export function gpuNumber(index) {
  const parent = Math.floor(index / 1000);
  return parent ? `${parent - 1}:${index % 1000}` : String(index);
}

/** A number with a unit. */
export function quantity(value, unit, decimals = 0) {
  if (value === null || value === undefined) return MISSING;
  const text = value.toLocaleString("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
  return `${text}\u00a0${unit}`;
}

/** Memory (MiB) in use, of all where that is known, in GiB. */
export function memory(used, total) {
  if (used === null || used === undefined) return MISSING;
  const of = total ? ` of ${(total / 1024).toFixed(1)}` : "";
  return `${(used / 1024).toFixed(1)}${of}\u00a0GiB`;
}

/** An energy (J) in a unit that suits it. */
export function energy(joules) {
  const wh = joules / 3600;
  return wh >= 1000 ? `${(wh / 1000).toFixed(2)}\u00a0kWh` : `${wh.toFixed(wh < 10 ? 1 : 0)}\u00a0Wh`;
}

/** The local time of day of an ISO time. */
export function clock(iso) {
  return new Date(iso).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
}

/** Text in which `code` is marked by backticks, as nodes. */
export function prose(text) {
  return text.split("\x60").map((part, at) => {
    if (at % 2 === 0) return document.createTextNode(part);
    const code = document.createElement("code");
    code.textContent = part;
    return code;
  });
}
