// Canvases as sharp as the screen.

/** Return what draws on a canvas that is so large on the page, in px of the page; `ratio` of the screen lie in each. */
export function paperOf(canvas, width, height, ratio = globalThis.devicePixelRatio || 1) {
  Object.assign(canvas, { width: width * ratio, height: height * ratio });
  Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
  const paper = canvas.getContext("2d");
  paper.scale(ratio, ratio);
  return paper;
}
