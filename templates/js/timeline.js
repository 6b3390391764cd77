// The timeline on the page: draws the figure, and turns pointer and keys into a moment or a window of time.

import { addressOf, setAddress } from "./address.js";
import { Drag } from "./drag.js";
import { buildFigure } from "./figure.js";
import { LaneHeads } from "./heads.js";
import { Heat, heatScale } from "./heat.js";
import { MARGIN, across, lanesInView, lanesWidth, lanesOf, placeLanes, rowsIn } from "./lanes.js";
import { slack } from "./moment.js";
import { fillReadout } from "./readout.js";
import { GpuRows } from "./rows.js";
import { sketch } from "./sketch.js";
import { Strip } from "./strip.js";
import { PHASES } from "./traces.js";
import { nearestIndex } from "./window.js";

const RESTING_MS = 150; // Plotly takes as long for a day of eight GPUs: a window that is dragged along would stick
const DOUBLE_CLICK_MS = 500; // what most systems take for one
const READOUT_OFFSET_PX = 16; // from the pointer, so that it does not hide what is pointed at
export const ZOOM_STEP = 2;
// Quantities whose lines have a colour of their own, as the style sheet names them.
const COLOURED_LINES = [
  ...["cpu_pressure_pct", "io_pressure_pct", "memory_pressure_pct"],
  ...["disk_read_mib_s", "trainer_read_mib_s", "loss", "lr"],
];
const HEAT_STOPS = 5; // colours of the style sheet, heat-0 to heat-4
const OWN_TONE = 0.25; // of a GPU's colour in that of its SM activity, as the style sheet has it: .line.sm-activity
const LEAST_WINDOW_MS = 2000;
const FINDING_CONTEXT = 1.5; // how many lengths of a finding are shown on either side of it
const LEAST_CONTEXT_MS = 15000;

/** The interactive timeline. `onMoment(time)` is called with ms since the run's start when a moment is picked, null for none. */
export class Timeline {
  constructor(chart, store, zone, onMoment) {
    Object.assign(this, { chart, store, zone, onMoment });
    this.lanes = lanesOf(store);
    const [first, last] = store.run.span.map((seconds) => seconds * 1000);
    this.full = [Math.min(0, first), Math.max(store.run.duration_s * 1000, last, 1000)];
    this.view = {
      from: this.full[0],
      to: this.full[1],
      width: 0,
      hidden: new Set(),
      opened: new Set(), // GPUs of heat strips whose lines are shown
      front: null,
    };
    this.cursor = document.getElementById("cursor");
    this.pin = document.getElementById("pin");
    this.readout = document.getElementById("readout");
    this.heads = new LaneHeads(document.getElementById("lane-heads"), () => this.draw());
    this.heat = new Heat(document.getElementById("heat"), store);
    const pointed = (gpu) => this.bringToFront(gpu);
    this.rows = new GpuRows(document.getElementById("gpu-rows"), store.gpus, (gpu) => this.openLines(gpu), pointed);
    this.strip = new Strip(document.getElementById("strip"), this);
    this.pinned = null;
    [this.clickedAt, this.pinnedBefore] = [-Infinity, null];
  }

  /** Draw on a canvas what Plotly will draw, without waiting for it. */
  sketch(canvas) {
    this.canvas = canvas;
    return this.redraw();
  }

  /** Have Plotly draw what was sketched, and listen. */
  async start() {
    this.hasPlotly = true;
    await this.plot();
    this.drag = new Drag(
      this.chart,
      document.getElementById("chosen"),
      (event) => this.clicked(event),
      (left, right) => this.show(this.timeAt(left), this.timeAt(right)),
    );
    this.chart.addEventListener("dblclick", (event) => {
      // what its first click picked was not meant
      if (event.timeStamp - this.clickedAt <= DOUBLE_CLICK_MS) this.onMoment(this.pinnedBefore);
      this.show(...this.full);
    });
    this.chart.addEventListener("pointermove", (event) => this.moved(event));
    this.chart.addEventListener("pointerleave", () => this.leave());
    this.chart.parentElement.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.resized()).observe(this.chart);
  }

  /** Draw in the colours and the zone of the moment, as large as its place or as a sheet of `paper`. */
  redraw(paper = null) {
    this.colours = readColours();
    return this.draw(paper);
  }

  /** Draw the window that is shown: at once on the canvas, and by Plotly when nothing has changed for a moment. */
  async draw(paper = null) {
    this.lay(paper);
    this.strip.draw(this.colours);
    this.placePin();
    if (paper === null || !this.hasPlotly) this.fillCanvas();
    if (this.hasPlotly) await (paper === null ? this.plotSoon() : this.plot());
  }

  /** Fill the canvas over the chart; where that fails, nothing new is to be seen until Plotly has drawn. */
  fillCanvas() {
    const { canvas, chart } = this;
    try {
      Object.assign(canvas.style, { left: `${chart.offsetLeft}px`, top: `${chart.offsetTop}px` });
      sketch(canvas, this.figure, this.colours.background);
      canvas.hidden = false;
    } catch (error) {
      canvas.hidden = true;
      console.warn("gpu-report: no sketch of the timeline", error);
    }
  }

  /** Lay out what is to be drawn, and give it its room. */
  lay(paper = null) {
    const { width } = paper ?? { width: this.chart.clientWidth };
    this.isOnPaper = paper !== null;
    Object.assign(this.view, { width: Math.max(width, 200), isWhole: this.isWhole });
    const { colours } = this;
    this.shown = lanesInView(this.lanes, this.view);
    const height = paper && (this.shown.some(({ heat }) => heat) ? paper.full : paper.height); // strips take more than lines
    const signs = this.heads.measure(this.shown, this.view);
    this.placed = placeLanes(this.shown, this.heads.foldedOf(this.shown), height ?? Infinity, signs);
    this.figure = buildFigure(this.store, this.shown, this.placed, this.view, colours, this.zone);
    this.chart.style.height = `${this.placed.height}px`;
    this.heads.draw(this.shown, this.placed.places, rangedIn(this.figure, this.shown, this.placed));
    this.drawHeat();
  }

  /** Draw the heat strips, of a run that has any, and the names of their rows. */
  drawHeat() {
    const { shown, view, colours, heat, chart } = this;
    const { places } = this.placed;
    heat.draw(shown, places, view, colours);
    Object.assign(heat.canvas.style, { left: `${chart.offsetLeft}px`, top: `${chart.offsetTop + heat.top}px` });
    this.rows.place.style.top = `${chart.offsetTop}px`;
    const first = shown.findIndex((lane) => lane.heat);
    this.rows.draw(shown[first] ?? null, places[first], view, heat.means);
  }

  /** Have Plotly draw once nothing has changed for a moment; all that wait for it wait for the same. */
  plotSoon() {
    clearTimeout(this.resting);
    this.waiting ??= waiting();
    this.resting = setTimeout(() => {
      const { done, fail } = this.waiting;
      this.waiting = null;
      this.plot().then(done, fail);
    }, RESTING_MS);
    return this.waiting.promise;
  }

  /** Have Plotly draw what was laid out, in place of the canvas. */
  async plot() {
    const { figure } = this;
    await Plotly.react(this.chart, figure.data, figure.layout, {
      staticPlot: true, // clicks and drags are drag.js's: Plotly's own would draw twice, first without the window's points
    });
    if (figure === this.figure) this.canvas.hidden = true;
  }

  /** Draw from every reading what was drawn from the overview of long lines. */
  async complete() {
    await this.store.complete();
    this.strip.points.clear();
    if (this.store.hasOverview) await this.draw();
  }

  /** Show the times between two moments (ms since the run's start), within what was recorded. */
  show(from, to) {
    const length = Math.min(Math.max(to - from, LEAST_WINDOW_MS), this.full[1] - this.full[0]);
    const start = Math.min(Math.max((from + to - length) / 2, this.full[0]), this.full[1] - length);
    Object.assign(this.view, { from: start, to: start + length });
    document.getElementById("zoom-reset").disabled = this.isWhole;
    setAddress(this.address, false);
    document.dispatchEvent(new CustomEvent("windowshown"));
    return this.draw();
  }

  /** Whether all times of the run are in view. */
  get isWhole() {
    return this.view.to - this.view.from >= this.full[1] - this.full[0];
  }

  /** The address of what is shown: the window, where it is not all of the run, and the picked moment. */
  get address() {
    return addressOf(this.isWhole ? null : [this.view.from, this.view.to], this.pinned);
  }

  /** Show a stretch (in s) with what lies around it. */
  showAround(start, end) {
    const around = Math.max((end - start) * 1000 * FINDING_CONTEXT, LEAST_CONTEXT_MS);
    return this.show(start * 1000 - around, end * 1000 + around);
  }

  /** Zoom in (factor above 1) or out about the picked moment, or else the middle. */
  zoom(factor) {
    const { from, to } = this.view;
    const middle = this.pinned !== null && this.pinned > from && this.pinned < to ? this.pinned : (from + to) / 2;
    const half = (to - from) / factor / 2;
    return this.show(middle - half, middle + half);
  }

  /** Mark a moment on the chart, or none. */
  setPin(time) {
    this.pinned = time;
    if (time !== null && (time < this.view.from || time > this.view.to)) {
      const half = (this.view.to - this.view.from) / 2;
      this.show(time - half, time + half);
    } else this.placePin();
    setAddress(this.address);
  }

  /** Return the nearest time that is in the run. */
  within(time) {
    return Math.min(Math.max(time, this.full[0]), this.full[1]);
  }

  /** Show or hide a GPU's lines. */
  toggle(gpu, shown) {
    if (shown) this.view.hidden.delete(gpu);
    else this.view.hidden.add(gpu);
    return this.draw();
  }

  /** Open the lines of a GPU of the heat strips under them, or close them again. */
  openLines(gpu) {
    const { opened } = this.view;
    if (!opened.delete(gpu)) opened.add(gpu);
    return this.draw();
  }

  /** Return the GPU in whose row of a heat strip a y of the page lies, or null. */
  gpuAt(clientY) {
    const y = clientY - this.chart.getBoundingClientRect().top;
    for (const [i, lane] of this.shown.entries()) {
      const place = this.placed.places[i];
      if (!lane.heat || !place.domain || y >= place.top + place.height) continue;
      const { top, rowPx } = rowsIn(lane, place);
      return lane.rows[Math.floor((y - top) / rowPx)]?.index ?? null;
    }
    return null;
  }

  /** Bring a GPU's lines to the front and let the others pale; null ends that. */
  bringToFront(gpu) {
    this.view.front = gpu;
    cancelAnimationFrame(this.fronting);
    this.fronting = requestAnimationFrame(() => this.draw());
  }

  resized() {
    if (this.isOnPaper || Math.abs(this.chart.clientWidth - this.view.width) < 2) return;
    cancelAnimationFrame(this.resizing);
    this.resizing = requestAnimationFrame(() => this.draw());
  }

  /** Return the moment that is drawn at an x of the page in px: that of the nearest edge where it lies beside the lanes. */
  timeAt(clientX) {
    return this.view.from + Math.min(Math.max(this.shareAt(clientX), 0), 1) * (this.view.to - this.view.from);
  }

  /** Return how far along the lanes an x of the page lies, from 0 to 1 within them. */
  shareAt(clientX) {
    const box = this.chart.getBoundingClientRect();
    return (clientX - box.left - MARGIN.left) / lanesWidth(box.width);
  }

  isOnLanes({ clientX }) {
    const share = this.shareAt(clientX);
    return share >= 0 && share <= 1;
  }

  xOf(time) {
    return across(time, [this.view.from, this.view.to], this.view.width);
  }

  placePin() {
    const visible = this.pinned !== null && this.pinned >= this.view.from && this.pinned <= this.view.to;
    this.pin.hidden = !visible;
    if (visible) this.pin.style.left = `${this.xOf(this.pinned)}px`;
  }

  clicked(event) {
    if (!this.isOnLanes(event)) return;
    if (event.timeStamp - this.clickedAt > DOUBLE_CLICK_MS) this.pinnedBefore = this.pinned;
    this.clickedAt = event.timeStamp;
    this.leave();
    this.onMoment(this.snap(this.timeAt(event.clientX)));
  }

  /** Return the time of the sample nearest to a moment, so that a click picks what was measured. */
  snap(time) {
    const near = this.store.gpus
      .map((gpu) => gpu.series.times[nearestIndex(gpu.series.times, time)])
      .filter((t) => t !== undefined);
    const nearest = near.sort((a, b) => Math.abs(a - time) - Math.abs(b - time))[0];
    return nearest !== undefined && Math.abs(nearest - time) <= slack(this.store.run) ? nearest : Math.round(time);
  }

  moved(event) {
    if (!this.store.isWhole || !this.isOnLanes(event) || event.buttons || event.pointerType === "touch") {
      this.leave();
      return;
    }
    const time = this.timeAt(event.clientX);
    cancelAnimationFrame(this.moving);
    this.moving = requestAnimationFrame(() => this.hover(time, event.clientX, event.clientY));
  }

  hover(time, clientX, clientY) {
    const pixelMs = (this.view.to - this.view.from) / lanesWidth(this.view.width);
    this.cursor.hidden = false;
    this.cursor.style.left = `${this.xOf(time)}px`;
    this.readout.hidden = false;
    const pointed = this.gpuAt(clientY);
    this.rows.point(pointed);
    fillReadout(this.readout, this.store, this.lanes, time, { ...this.view, pointed }, this.zone, pixelMs);
    const box = this.chart.getBoundingClientRect();
    const { offsetHeight: height } = this.readout;
    const lowest = box.bottom - height - MARGIN.bottom;
    const top = Math.min(clientY + READOUT_OFFSET_PX, lowest, innerHeight - height); // a tall chart reaches below the window
    this.readout.style.top = `${Math.max(top, box.top, 0) - box.top + this.chart.offsetTop}px`;
    const width = this.readout.offsetWidth;
    const beside =
      clientX - box.left > box.width / 2
        ? this.xOf(time) - READOUT_OFFSET_PX - width
        : this.xOf(time) + READOUT_OFFSET_PX;
    this.readout.style.left = `${Math.max(Math.min(beside, box.width - width), 0)}px`;
  }

  leave() {
    cancelAnimationFrame(this.moving);
    this.cursor.hidden = true;
    this.readout.hidden = true;
    this.rows.point(null);
  }

  key(event) {
    const { from, to } = this.view;
    const steps = { ArrowLeft: -1, ArrowRight: 1 };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in steps) this.step(steps[event.key] * (event.shiftKey ? 10 : 1));
    else if (event.key === "Home") this.onMoment(this.snap(from));
    else if (event.key === "End") this.onMoment(this.snap(to));
    else if (event.key === "Enter" && event.target === this.chart.parentElement)
      this.onMoment(this.snap((from + to) / 2));
    else if (event.key === "+" || event.key === "=") this.zoom(ZOOM_STEP);
    else if (event.key === "-") this.zoom(1 / ZOOM_STEP);
    else if (event.key === "0") this.show(...this.full);
    else return;
    event.preventDefault();
  }

  /** Move the picked moment by so many samples of the first GPU that has any. */
  step(count) {
    const { times } = (this.store.gpus.find((gpu) => gpu.series.times.length) ?? this.store.gpus[0]).series;
    if (!times.length) return;
    const start = nearestIndex(times, this.pinned ?? (this.view.from + this.view.to) / 2);
    this.onMoment(times[Math.min(Math.max(start + count, 0), times.length - 1)]);
  }
}

/** Return a promise, and what keeps or breaks it. */
function waiting() {
  const kept = {};
  kept.promise = new Promise((done, fail) => Object.assign(kept, { done, fail }));
  return kept;
}

/** Return the open lanes in whose lines readings are drawn as a pale range. */
function rangedIn({ data }, lanes, { places }) {
  const open = lanes.filter((_, i) => places[i].domain);
  const axes = new Set(data.filter(({ meta }) => meta.range).map(({ yaxis }) => Number(yaxis.slice(1) || 1) - 1));
  return new Set(open.filter((_, i) => axes.has(i)));
}

/** Return a colour (as rgb()) with so much of another one that a line of it is told from one without. */
function mixed(one, other) {
  const [a, b] = [one, other].map((colour) => colour.match(/[\d.]+/g).map(Number));
  return `rgb(${a.map((part, i) => Math.round(part * OWN_TONE + b[i] * (1 - OWN_TONE))).join(", ")})`;
}

/** Return the chart's colours as the style sheet has them at the moment, light or dark. */
export function readColours() {
  const probe = document.getElementById("colour-probe");
  const of = (name) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const gpus = Array.from({ length: 8 }, (_, i) => of(`gpu-${i}`));
  return {
    font: getComputedStyle(document.body).fontFamily,
    text: of("text"),
    muted: of("muted"),
    grid: of("grid"),
    line: of("line"),
    background: of("surface"),
    low: of("low"),
    onLow: of("on-low"),
    drop: of("drop-band"),
    expected: of("expected-band"),
    gap: of("gap-band"),
    epoch: of("epoch-line"),
    host: of("host"),
    critical: of("critical"),
    warning: of("warning"),
    info: of("info"),
    onPhase: of("on-phase"),
    checkpoint: of("checkpoint-mark"),
    lines: Object.fromEntries(COLOURED_LINES.map((name) => [name, of(name)])),
    gpus,
    tones: gpus.map((colour) => mixed(colour, of("text"))),
    heat: heatScale(Array.from({ length: HEAT_STOPS }, (_, i) => of(`heat-${i}`))),
    phases: Object.fromEntries(PHASES.map((name) => [name, of(`phase-${name.replace(" ", "-")}`)])),
  };
}
