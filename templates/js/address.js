// The part of the page's address after the #: a moment and a window of the timeline, so that they can be shared.

const SETTLED_MS = 300; // browsers refuse an address that changes many times a second

/**
 * Return what an address names, in ms since the run's start: both ends of a `window` (#t=10,20, as W3C's Media Fragments
 * have it), a moment `at` (#t=12.5), or a moment with the window around it (#t=10,20&at=12.5); what it does not name is
 * null, and all of it where it names something else.
 */
export function placeNamed(hash) {
  const number = "(-?\\d+(?:\\.\\d+)?)";
  const named = new RegExp(`^#t=${number}(?:,${number}(?:&at=${number})?)?$`).exec(hash);
  if (!named) return null;
  const [first, last, at] = named.slice(1).map((seconds) => (seconds === undefined ? null : Number(seconds) * 1000));
  if (last === null) return { window: null, at: first };
  return first < last ? { window: [first, last], at } : null;
}

/** Return the address of a window, of a moment, or of both (ms since the run's start); null without any. */
export function addressOf(window, at) {
  const words = (...times) => times.map((time) => (time / 1000).toFixed(3)).join(",");
  if (window === null) return at === null ? null : `#t=${words(at)}`;
  return `#t=${words(...window)}${at === null ? "" : `&at=${words(at)}`}`;
}

let changing = null;

/** Let the page's address end with `hash`, or without one in nothing: at once, or once nothing else was said for a moment. */
export function setAddress(hash, isSettled = true) {
  clearTimeout(changing);
  const change = () => keep("replaceState", hash);
  if (isSettled) change();
  else changing = setTimeout(change, SETTLED_MS);
}

/** Begin a new address, so that the browser's way back leads to `hash`. */
export function leaveAddress(hash) {
  setAddress(hash);
  keep("pushState", hash);
}

/** Keep an address, where the page has one: one that is shown within another page (srcdoc) has none to change. */
function keep(how, hash) {
  try {
    history[how](null, "", hash ?? location.pathname + location.search);
  } catch {
    // what is shown is shown all the same
  }
}
