// Heat strips: a quantity of many GPUs, a row for each, whose colour is how high it is. On a canvas of their own over the chart.

import { MARGIN, across, lanesWidth, rowsIn } from "./lanes.js";
import { lineOf } from "./lines.js";
import { sampleAt, slack } from "./moment.js";
import { paperOf } from "./paper.js";
import { inView, widened } from "./stretches.js";
import { lowerBound } from "./window.js";

const STEPS_IN_CELL = 1.5; // from how many readings in a cell on it is their mean; below, the nearest one, as the read-out has it
const ROW_GAP = 1; // px under each row, where the lane's own ground shows
const MARK_OF_ROW = 0.15; // how thick a mark is in a row, as a share of its height
const MOST_MARK_PX = 2;
const PERCENT = 100;

/** Return the colours of 0 to 100 % as [red, green, blue]; `stops` are colours that lie evenly apart, as rgb(). */
export function heatScale(stops) {
  const parts = stops.map((colour) => colour.match(/[\d.]+/g).slice(0, 3).map(Number));
  return Array.from({ length: PERCENT + 1 }, (_, percent) => {
    const place = (percent / PERCENT) * (parts.length - 1);
    const below = Math.min(Math.floor(place), parts.length - 2);
    return parts[below].map((part, i) => Math.round(part + (place - below) * (parts[below + 1][i] - part)));
  });
}

/** Return what a line is on average in each of `count` equal parts of a time; NaN without a reading within `near` ms. */
export function cellsOf(line, from, to, count, near) {
  const part = (to - from) / count;
  const reach = Math.max(near, line.isOverview ? line.step : 0); // an overview has a reading for each of its own parts
  const nearest = (cell) => {
    const i = sampleAt(line, from + (cell + 0.5) * part, reach);
    return i < 0 ? NaN : (line.column.at(i) ?? NaN);
  };
  if (part <= line.step * STEPS_IN_CELL) return Float32Array.from({ length: count }, (_, cell) => nearest(cell));
  const { sums, counts } = sumsOfCells(line, from, part, count);
  return sums.map((sum, cell) => (counts[cell] ? sum / counts[cell] : nearest(cell)));
}

function sumsOfCells({ times, column }, from, part, count) {
  const { raw, highest, digits } = column;
  const [sums, counts] = [new Float64Array(count), new Uint32Array(count)];
  const end = lowerBound(times, from + count * part);
  for (let i = lowerBound(times, from); i < end; i += 1) {
    const value = raw[i];
    if (value === highest || value !== value) continue; // missing, as Column.isMissing has it
    const cell = Math.min(Math.floor((times[i] - from) / part), count - 1);
    sums[cell] += digits ? column.valueOf(value) : value; // codes of digits are no numbers; of all others that can wait
    counts[cell] += 1;
  }
  return { sums: digits ? sums : sums.map((sum, cell) => column.valueOf(sum / counts[cell]) * counts[cell]), counts };
}

/** Return the mean of cells, NaN where all are without a value. */
export function meanOf(cells) {
  const known = cells.filter((value) => !Number.isNaN(value));
  return known.reduce((sum, value) => sum + value, 0) / known.length;
}

/** Return the rows of a strip, an array of cells for each of `gpus`. */
export function heatRows({ run }, gpus, name, [from, to], count) {
  return gpus.map(({ series }) => {
    const line = lineOf(series, name);
    return line ? cellsOf(line, from, to, count, slack(run)) : new Float32Array(count).fill(NaN);
  });
}

/** Draw rows of cells from (left, top) on, each `rowPx` high with its gap. */
export function drawRows(paper, rows, scale, { left, top, width, rowPx, gap = ROW_GAP }) {
  if (!rows.length) return;
  const picture = document.createElement("canvas");
  Object.assign(picture, { width: rows[0].length, height: rows.length });
  const ink = picture.getContext("2d");
  const pixels = ink.createImageData(picture.width, picture.height);
  rows.forEach((cells, row) => {
    cells.forEach((value, i) => {
      if (Number.isNaN(value)) return;
      const level = Math.round(Math.min(Math.max(value, 0), PERCENT));
      pixels.data.set([...scale[level], 255], (row * picture.width + i) * 4);
    });
  });
  ink.putImageData(pixels, 0, 0);
  paper.imageSmoothingEnabled = false;
  rows.forEach((cells, row) => {
    paper.drawImage(picture, 0, row, cells.length, 1, left, top + row * rowPx, width, Math.max(rowPx - gap, 1));
  });
}

/** The strips of a timeline's lanes. */
export class Heat {
  constructor(canvas, store) {
    Object.assign(this, { canvas, store, means: new Map() });
  }

  /** Draw the strips among `lanes`, which lie at `places`; `means` are then those of the first one's GPUs in view. */
  draw(lanes, places, view, colours) {
    const strips = lanes.map((lane, i) => ({ lane, ...places[i] })).filter(({ lane, domain }) => lane.heat && domain);
    this.canvas.hidden = !strips.length;
    this.means.clear();
    if (!strips.length) return;
    const top = strips[0].top;
    const { top: lowest, height } = strips.at(-1);
    const paper = paperOf(this.canvas, view.width, lowest + height - top);
    for (const strip of strips) this.drawStrip(paper, { ...strip, top: strip.top - top }, view, colours);
    this.top = top;
  }

  drawStrip(paper, { lane, ...strip }, view, colours) {
    const width = lanesWidth(view.width);
    const gpus = lane.rows;
    const place = { left: MARGIN.left, width, ...rowsIn(lane, strip) };
    const [{ name }] = lane.quantities;
    const rows = heatRows(this.store, gpus, name, [view.from, view.to], Math.round(width));
    drawRows(paper, rows, colours.heat, place);
    gpus.forEach((gpu, row) => {
      if (!this.means.has(gpu.index)) this.means.set(gpu.index, meanOf(rows[row]));
      this.drawMarks(paper, gpu, { ...place, top: place.top + row * place.rowPx }, view, colours);
    });
  }

  /** Draw what is marked in a GPU's row: a frame around each of its drops, a line where it was under 20 % for long. */
  drawMarks(paper, { index }, { top, rowPx }, view, colours) {
    const { run } = this.store;
    const scale = { pxPerMs: lanesWidth(view.width) / (view.to - view.from) };
    const ends = (start, end) =>
      widened(start, end, scale).map((time) =>
        across(Math.min(Math.max(time, view.from), view.to), [view.from, view.to], view.width),
      );
    const height = rowPx - ROW_GAP;
    const lineWidth = Math.min(MARK_OF_ROW * rowPx, MOST_MARK_PX);
    Object.assign(paper, { strokeStyle: colours.low, lineWidth });
    const drops = run.findings.filter((f) => f.drop && !f.expected && f.gpu === index && inView(view, f.start, f.end));
    paper.setLineDash([]);
    for (const { start, end } of drops) {
      const [left, right] = ends(start, end);
      paper.strokeRect(left, top + lineWidth / 2, right - left, height - lineWidth);
    }
    for (const [, start, end] of run.low.filter(([gpu, start, end]) => gpu === index && inView(view, start, end))) {
      const [left, right] = ends(start, end);
      paper.beginPath();
      paper.moveTo(left, top + height - lineWidth / 2);
      paper.lineTo(right, top + height - lineWidth / 2);
      paper.stroke();
    }
  }
}
