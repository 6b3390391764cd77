// The charts of latency on the page: what each moment's calls took is read off where the pointer or the arrow keys are.

import { elapsed, quantity } from "./words.js";

const BUCKETS = 1000; // over the run, as render/page/latency_chart.py has them
const NEAR = 12; // buckets: what lies further from the pointer is not what it points at
const MS_FROM = 100; // from here on whole milliseconds say enough, and seconds from ...
const SECONDS_FROM = 10000;

/** Reads one chart: its buckets, a cursor, a line of text. */
class LatencyChart {
  constructor(figure, buckets, store, zone) {
    Object.assign(this, { figure, buckets, store, zone, shown: -1 });
    this.area = figure.querySelector(".latency-time");
    this.cursor = figure.querySelector(".latency-cursor");
    this.readout = figure.querySelector(".latency-readout");
    this.readout.hidden = false;
    this.listen();
  }

  listen() {
    this.area.addEventListener("pointermove", (event) => {
      this.readout.removeAttribute("aria-live"); // what the pointer passes over is not read out
      const box = this.area.getBoundingClientRect();
      this.show(nearest(this.buckets.place, ((event.clientX - box.left) / box.width) * BUCKETS));
    });
    this.area.addEventListener("click", () => this.open());
    this.figure.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (step === undefined && event.key !== "Enter") return;
      event.preventDefault();
      this.readout.setAttribute("aria-live", "polite");
      if (event.key === "Enter") this.open();
      else this.show(this.shown < 0 ? 0 : this.shown + step);
    });
  }

  show(i) {
    if (i < 0 || i >= this.buckets.place.length) return;
    this.shown = i;
    this.cursor.hidden = false;
    this.cursor.style.left = `${((this.buckets.place[i] + 0.5) / BUCKETS) * 100}%`;
    const time = this.time(i);
    const clock = this.zone.timeOfDay(this.store.startWall + time);
    this.readout.textContent = `${clock} ${this.zone.name}, ${elapsed(time, true)} into the run: ${wordsOf(this.buckets, i)}`;
  }

  /** Return the middle of a bucket, in ms since the run's start. */
  time(i) {
    const [start, end] = [this.figure.dataset.startS, this.figure.dataset.endS].map(Number);
    return (start + ((this.buckets.place[i] + 0.5) / BUCKETS) * (end - start)) * 1000;
  }

  /** Show the moment on the timeline, as its address does. */
  open() {
    if (this.shown >= 0) location.hash = `#t=${(this.time(this.shown) / 1000).toFixed(3)}`;
  }
}

/** Return which bucket with calls is nearest to a place, -1 where none is near. */
export function nearest(places, at) {
  let best = -1;
  for (let i = 0; i < places.length; i += 1) {
    if (best < 0 || Math.abs(places[i] + 0.5 - at) < Math.abs(places[best] + 0.5 - at)) best = i;
  }
  return best >= 0 && Math.abs(places[best] + 0.5 - at) <= NEAR ? best : -1;
}

/** Return what the calls of a bucket took, in words. */
export function wordsOf({ count, low_ms: low, median_ms: median, high_ms: high }, i) {
  if (count[i] === 1) return `1 call, ${latency(high[i])}`;
  return `${quantity(count[i])} calls, ${latency(low[i])} to ${latency(high[i])}, median ${latency(median[i])}`;
}

function latency(ms) {
  if (ms >= SECONDS_FROM) return quantity(ms / 1000, "s", 1);
  return quantity(ms, "ms", ms >= MS_FROM ? 0 : ms < 1 ? 2 : 1);
}

/** Set up the charts of the models that the page shows in full, in their order. */
export async function setUpLatency(all, store, zone) {
  for (const figure of document.querySelectorAll("[data-latency]")) {
    const packed = all?.[Number(figure.dataset.latency)] ?? [];
    const unpacked = await Promise.all(packed.map(async (of) => [of.name, (await store.packed.get(of)).values()]));
    if (unpacked.length) new LatencyChart(figure, Object.fromEntries(unpacked), store, zone);
  }
}
