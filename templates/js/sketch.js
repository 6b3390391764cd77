// The timeline's quick picture: a figure drawn at once, while Plotly is still being read, or while what is shown changes.

import { MARGIN, across, lanesWidth } from "./lanes.js";
import { paperOf } from "./paper.js";
import { drawNote, drawSigns } from "./signs.js";

const MOST_WIDE = 500; // points of a line: with more than that, thin ones are drawn ten times as fast
const TICK_GAP = 1; // px between a lane and the numbers at its side

/** Draw a figure (figure.js) on a canvas as Plotly will draw it in its place, over a ground of a colour. */
export function sketch(canvas, { data, layout }, ground, ratio) {
  const paper = paperOf(canvas, layout.width, layout.height, ratio);
  const place = new Place(layout);
  paper.fillStyle = ground;
  paper.fillRect(0, 0, layout.width, layout.height);
  for (const shape of layout.shapes) drawShape(paper, place, shape);
  drawGrid(paper, place, layout);
  for (const trace of data) drawTrace(paper, place, trace, layout.font);
  for (const note of layout.annotations) drawNote(paper, place, note, layout.font.family);
}

/** Where the values of a layout's axes lie, in px from the chart's upper left corner. */
class Place {
  constructor({ width, height, xaxis, ...layout }) {
    Object.assign(this, { xaxis, layout, whole: width, width: lanesWidth(width) });
    this.height = height - MARGIN.top - MARGIN.bottom;
  }

  x(value) {
    return across(value, this.xaxis.range, this.whole);
  }

  /** Return where a share of the lanes' width lies, from the left. */
  acrossShare(value) {
    return MARGIN.left + value * this.width;
  }

  /** Return the height of a share of all lanes, from below. */
  share(value) {
    return MARGIN.top + (1 - value) * this.height;
  }

  axisOf({ yaxis }) {
    return this.layout[yaxis.replace("y", "yaxis")];
  }

  y(axis, value) {
    const [low, high] = axis.range;
    const [bottom, top] = axis.domain;
    return this.share(bottom + ((value - low) / (high - low)) * (top - bottom));
  }
}

function drawGrid(paper, place, { xaxis, font }) {
  paper.fillStyle = xaxis.gridcolor;
  paper.font = `${font.size}px ${font.family}`;
  const bottom = place.share(0);
  const lanes = Object.values(place.layout).filter((axis) => axis?.domain);
  for (const lane of lanes) {
    const [low, high] = lane.domain.map((share) => place.share(share));
    for (const value of xaxis.tickvals) paper.fillRect(place.x(value) - 0.5, high, 1, low - high);
    for (const value of (lane.showgrid && lane.tickvals) || [])
      paper.fillRect(MARGIN.left, place.y(lane, value) - 0.5, place.width, 1);
  }
  for (const lane of lanes.filter(({ showticklabels }) => showticklabels)) drawSide(paper, place, lane, font);
  paper.fillStyle = xaxis.linecolor;
  paper.fillRect(MARGIN.left, bottom - 0.5, place.width, 1);
  paper.fillStyle = font.color;
  Object.assign(paper, { textAlign: "center", textBaseline: "alphabetic" });
  xaxis.ticktext.forEach((text, i) =>
    text.split("<br>").forEach((line, row) => {
      paper.fillText(line, place.x(xaxis.tickvals[i]), bottom + (row + 1.2) * font.size * 1.3);
    }),
  );
}

/** Write the numbers at a lane's side. */
function drawSide(paper, place, axis, font) {
  Object.assign(paper, { fillStyle: font.color, textAlign: "right", textBaseline: "middle" });
  axis.tickvals?.forEach((value, i) => {
    paper.fillText(axis.ticktext?.[i] ?? value, MARGIN.left - TICK_GAP, place.y(axis, value));
  });
}

/** Draw a shape of marks.js: lines over all lanes (`Mx,0V1`), or bands (`Mx,0V1HxV0Z`). */
function drawShape(paper, place, { path, fillcolor, line }) {
  paper.beginPath(); // one for all: bands that lie over each other are no darker
  for (const [, from, to] of path.matchAll(/M([^,]+),0V1(?:H([^V]+)V0Z)?/g)) {
    const left = place.x(Number(from));
    paper.rect(left, MARGIN.top, to === undefined ? line.width : place.x(Number(to)) - left, place.height);
  }
  paper.fillStyle = fillcolor ?? line.color;
  paper.fill();
}

function drawTrace(paper, place, trace, font) {
  const axis = place.axisOf(trace);
  if (trace.mode === "markers") {
    drawSigns(paper, place, axis, trace);
    return;
  }
  paper.save();
  paper.beginPath();
  const [bottom, top] = axis.domain.map((share) => place.share(share));
  paper.rect(MARGIN.left, top, place.width, bottom - top);
  paper.clip();
  paper.globalAlpha = trace.opacity ?? 1;
  if (trace.mode === "text") drawText(paper, place, axis, trace, font);
  else if (trace.mode === "lines") drawLine(paper, place, axis, trace);
  paper.restore();
}

function drawText(paper, place, axis, { x, y, text, textfont }, font) {
  Object.assign(paper, { fillStyle: textfont.color, textAlign: "center", textBaseline: "middle" });
  paper.font = `${textfont.size}px ${font.family}`;
  text.forEach((words, i) => paper.fillText(words, place.x(x[i]), place.y(axis, y[i])));
}

function drawLine(paper, place, axis, { x, y, fill, fillcolor, line }) {
  paper.beginPath();
  let before = null; // the height of the last point, null where the line begins
  for (let i = 0; i < y.length; i += 1) {
    if (y[i] === null) {
      before = null;
      continue;
    }
    const [left, height] = [place.x(x[i]), place.y(axis, y[i])];
    if (before !== null && line.shape === "hv") paper.lineTo(left, before);
    paper[before === null ? "moveTo" : "lineTo"](left, height);
    before = height;
  }
  if (fill) {
    paper.fillStyle = fillcolor;
    paper.fill();
    return;
  }
  const lineWidth = y.length > MOST_WIDE ? 1 : line.width;
  Object.assign(paper, { strokeStyle: line.color, lineWidth, lineJoin: "bevel" });
  paper.setLineDash(dashes(line.dash));
  paper.stroke();
}

/** Return a line's dashes (`6px,2px`) as lengths. */
function dashes(dash) {
  return dash && dash !== "solid" ? dash.split(",").map((part) => Number.parseFloat(part)) : [];
}
