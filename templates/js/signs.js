// What a figure holds besides lines, on a canvas: signs of the lane of events, and notes over the lanes.

const LINE_HEIGHT = 1.3; // of a note, times its size
const FRAME_PX = 1; // that Plotly puts around a note, beyond its pad

/** How a sign of Plotly's is drawn about (x, y), as far from it as `r`: its own shapes and sizes. */
const SIGNS = {
  circle: (paper, x, y, r) => paper.arc(x, y, r, 0, 2 * Math.PI),
  square: (paper, x, y, r) => paper.rect(x - r, y - r, 2 * r, 2 * r),
  diamond: (paper, x, y, r) => drawPath(paper, [x + 1.3 * r, y], [x, y - 1.3 * r], [x - 1.3 * r, y], [x, y + 1.3 * r]),
  "triangle-up": (paper, x, y, r) => {
    const half = (2 * r) / Math.sqrt(3);
    drawPath(paper, [x - half, y + r / 2], [x + half, y + r / 2], [x, y - r]);
  },
  "line-ns-open": (paper, x, y, r) => drawPath(paper, [x, y + 1.4 * r], [x, y - 1.4 * r]),
  "x-thin-open": (paper, x, y, r) => {
    drawPath(paper, [x + r, y + r], [x - r, y - r]);
    drawPath(paper, [x + r, y - r], [x - r, y + r]);
  },
};

/** Draw a trace of signs; symbol and colour are of all of them, or of each. */
export function drawSigns(paper, place, axis, { x, y, marker }) {
  const { symbol, color, size, line } = marker;
  const of = (value, i) => (Array.isArray(value) ? value[i] : value);
  x.forEach((value, i) => {
    const name = of(symbol, i);
    paper.beginPath();
    SIGNS[name](paper, place.x(value), place.y(axis, y[i]), size / 2);
    if (!name.endsWith("-open")) {
      paper.fillStyle = of(color, i);
      paper.fill();
    }
    Object.assign(paper, { strokeStyle: of(line.color, i), lineWidth: line.width });
    paper.stroke();
  });
}

/** Draw a note of the layout (Plotly's annotation without an arrow). */
export function drawNote(paper, place, note, family) {
  const { text, xref, xanchor, yanchor, yshift = 0, bgcolor, borderpad = 1, font } = note;
  paper.font = `${font.weight ?? 400} ${font.size}px ${family}`;
  const pad = borderpad + FRAME_PX;
  const [width, height] = [paper.measureText(text).width + 2 * pad, font.size * LINE_HEIGHT + 2 * pad];
  const at = xref === "x" ? place.x(note.x) : place.acrossShare(note.x);
  const middle = at - (xanchor === "right" ? width / 2 : 0);
  const above = { top: 0, bottom: height }[yanchor] ?? height / 2;
  const top = place.share(note.y) - yshift - above;
  if (bgcolor) {
    paper.fillStyle = bgcolor;
    paper.fillRect(middle - width / 2, top, width, height);
  }
  Object.assign(paper, { fillStyle: font.color, textAlign: "center", textBaseline: "middle" });
  paper.fillText(text, middle, top + height / 2);
}

/** Draw a path through some points, back to the first of them where there are more than two. */
function drawPath(paper, [first, firstDown], ...rest) {
  paper.moveTo(first, firstDown);
  for (const [x, y] of rest) paper.lineTo(x, y);
  if (rest.length > 1) paper.closePath();
}
