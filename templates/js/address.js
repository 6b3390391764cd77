// The part of the page's address after the #: a moment or a window of the timeline, so that it can be shared.

const SETTLED_MS = 300; // browsers refuse an address that changes many times a second

/**
 * Return what an address names, in ms since the run's start: a moment (#t=12.5), or both ends of a window (#t=10,20, as
 * W3C's Media Fragments have it); null where it names something else.
 */
export function timesNamed(hash) {
  const named = /^#t=(-?\d+(?:\.\d+)?)(?:,(-?\d+(?:\.\d+)?))?$/.exec(hash);
  const times = named?.slice(1).filter(Boolean).map((seconds) => Number(seconds) * 1000);
  return times && (times.length < 2 || times[0] < times[1]) ? times : null;
}

/** Return the address of a moment, or of a window from it to another one (ms since the run's start). */
export function addressOf(...times) {
  return `#t=${times.map((time) => (time / 1000).toFixed(3)).join(",")}`;
}

let changing = null;

/** Let the page's address end with `hash`, or without one in nothing: at once, or once nothing else was said for a moment. */
export function setAddress(hash, isSettled = true) {
  clearTimeout(changing);
  const change = () => history.replaceState(null, "", hash ?? location.pathname + location.search);
  if (isSettled) change();
  else changing = setTimeout(change, SETTLED_MS);
}
