// The strip under the timeline: utilisation over the whole run (of a run without a GPU that of the CPU), and which window of it is shown above.

import { drawRows, heatRows } from "./heat.js";
import { MARGIN, lanesWidth } from "./lanes.js";
import { lineOf } from "./lines.js";
import { paperOf } from "./paper.js";
import { pointsInWindow } from "./window.js";

const STRIP_HEIGHT = 38;

/** The overview: drag the window along it, or press anywhere to centre the window there. */
export class Strip {
  constructor(canvas, timeline) {
    Object.assign(this, { canvas, timeline, grip: null, width: 0, points: new Map() });
    canvas.addEventListener("pointerdown", (event) => this.press(event));
    canvas.addEventListener("pointermove", (event) => this.drag(event));
    for (const end of ["pointerup", "pointercancel"])
      canvas.addEventListener(end, () => {
        this.grip = null;
      });
  }

  draw(colours) {
    const width = Math.max(lanesWidth(this.timeline.view.width), 50);
    const paper = paperOf(this.canvas, width, STRIP_HEIGHT);
    this.canvas.style.marginLeft = `${MARGIN.left}px`;
    const { store, view, lanes } = this.timeline;
    const shown = store.gpus.filter(({ index }) => !view.hidden.has(index));
    if (lanes.some(({ heat }) => heat)) this.drawHeat(paper, shown, width, colours);
    else if (!store.gpus.length) this.drawLine(paper, { index: null, series: store.host }, width, colours.host, "cpu_pct");
    else for (const gpu of shown) this.drawLine(paper, gpu, width, colours.gpus[gpu.position % colours.gpus.length]);
    this.drawWindow(paper, width, colours);
  }

  /** Draw a row of colours for each GPU, as the heat strip of utilisation does. */
  drawHeat(paper, gpus, width, colours) {
    this.forgetOther(width);
    for (const gpu of gpus.filter(({ index }) => !this.points.has(index))) {
      const [cells] = heatRows(this.timeline.store, [gpu], "gpu_util_pct", this.timeline.full, Math.round(width));
      this.points.set(gpu.index, cells);
    }
    const rows = gpus.map(({ index }) => this.points.get(index));
    drawRows(paper, rows, colours.heat, { left: 0, top: 0, width, rowPx: STRIP_HEIGHT / rows.length, gap: 0 });
  }

  drawLine(paper, gpu, width, colour, name = "gpu_util_pct") {
    const points = this.pointsOf(gpu, width, name);
    if (!points) return;
    const [from, to] = this.timeline.full;
    Object.assign(paper, { strokeStyle: colour, globalAlpha: 0.65 });
    paper.beginPath();
    let isOpen = false;
    points.t.forEach((time, i) => {
      const [x, y] = [
        ((time - from) / (to - from)) * width,
        STRIP_HEIGHT - 3 - ((points.v[i] ?? 0) / 100) * (STRIP_HEIGHT - 6),
      ];
      if (points.v[i] !== null) paper[isOpen ? "lineTo" : "moveTo"](x, y);
      isOpen = points.v[i] !== null;
    });
    paper.stroke();
  }

  /** Return a GPU's line over the whole run, which is looked for once: a week has millions of readings. */
  pointsOf(gpu, width, name) {
    this.forgetOther(width);
    const line = lineOf(gpu.series, name);
    if (line && !this.points.has(gpu.index)) {
      const limits = { exactLimit: width, buckets: width, breaks: line.breaks };
      this.points.set(gpu.index, pointsInWindow(line.times, line.column, ...this.timeline.full, limits));
    }
    return this.points.get(gpu.index);
  }

  /** Forget what was found for another width. */
  forgetOther(width) {
    if (width !== this.width) this.points.clear();
    this.width = width;
  }

  drawWindow(paper, width, colours) {
    const [left, right] = [this.timeline.view.from, this.timeline.view.to].map((time) => this.xOf(time, width));
    paper.globalAlpha = 0.6;
    paper.fillStyle = colours.background;
    paper.fillRect(0, 0, left, STRIP_HEIGHT);
    paper.fillRect(right, 0, width - right, STRIP_HEIGHT);
    paper.globalAlpha = 1;
    paper.strokeStyle = colours.muted;
    paper.strokeRect(left + 0.5, 0.5, Math.max(right - left - 1, 2), STRIP_HEIGHT - 1);
  }

  xOf(time, width) {
    const [from, to] = this.timeline.full;
    return ((time - from) / (to - from)) * width;
  }

  timeAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const [from, to] = this.timeline.full;
    return from + ((event.clientX - box.left) / box.width) * (to - from);
  }

  press(event) {
    const { from, to } = this.timeline.view;
    const time = this.timeAt(event);
    this.canvas.setPointerCapture(event.pointerId);
    this.grip = time >= from && time <= to ? time - from : (to - from) / 2;
    this.drag(event);
  }

  drag(event) {
    if (this.grip === null) return;
    const { from, to } = this.timeline.view;
    const start = this.timeAt(event) - this.grip;
    cancelAnimationFrame(this.moving);
    this.moving = requestAnimationFrame(() => this.timeline.show(start, start + to - from));
  }
}
