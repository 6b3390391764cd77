// Stretches of time on the screen: which are in view, how wide they are drawn, and how many have room for a mark.

const LEAST_MARK_PX = 3; // what is shorter on the screen is drawn this wide, so that it is seen

/** Return whether a stretch (in s) touches the times in view. */
export function inView(view, start, end) {
  return end * 1000 >= view.from && start * 1000 <= view.to;
}

/** Return a stretch (in s) in ms, widened about its middle where it would be too narrow to see. */
export function widened(start, end, scale) {
  const least = LEAST_MARK_PX / scale.pxPerMs;
  const short = Math.max(least - (end - start) * 1000, 0) / 2;
  return [start * 1000 - short, end * 1000 + short];
}

/** Return 1 where every epoch has `px` on the screen, else the round number n of which every n-th one does. */
export function thinning(epochs, scale, px) {
  if (!epochs.length) return 1;
  const span = (epochs[epochs.length - 1][3] - epochs[0][2]) * 1000 * scale.pxPerMs;
  const needed = (px * epochs.length) / Math.max(span, 1);
  return [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].find((step) => step >= needed) ?? 5000;
}
