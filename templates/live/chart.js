// The timeline of one quantity: the last ten minutes reading by reading, or the whole run by least, mean and most.

import { gpuNumber } from "./words.js";

const RECENT_S = 600;
const SHORTEST_S = 20; // of the time that is shown
const WHOLE_EVERY_MS = 5000; // the whole run looks the same for longer
const COLOURS = 8;
export const AXES = {
  gpu_util_pct: { unit: "%", range: [0, 103], scale: 1, name: "utilisation" },
  memory_used_mib: { unit: "GiB", scale: 1 / 1024, name: "memory in use" },
  power_w: { unit: "W", scale: 1, name: "power" },
  temperature_c: { unit: "°C", scale: 1, name: "temperature" },
  cpu_pct: { unit: "%", range: [0, 103], scale: 1, name: "CPU", ofHost: true },
  host_memory_mib: { unit: "GiB", scale: 1 / 1024, name: "host memory", ofHost: true },
  calls_per_s: { unit: "calls/s", scale: 1, name: "calls", ofHost: true },
  latency_ms: { unit: "ms", scale: 1, name: "median latency", ofHost: true },
};

export class Chart {
  constructor(place) {
    this.place = place;
    this.quantity = "gpu_util_pct";
    this.range = "recent";
    this.recent = new Map();
    this.history = new Map();
    this.host = []; // of ten minutes: [time (s), readings]
    this.bands = [];
    this.drawnAt = 0;
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw(true));
  }

  /** Take everything that is known so far. */
  begin(history, recent, host) {
    this.host = host;
    this.history = new Map(Object.entries(history));
    this.recent = new Map(Object.entries(recent));
    this.draw(true);
  }

  /** Take new rows: [GPU, time (s), readings]. */
  add(rows) {
    for (const [gpu, at, values] of rows) {
      const key = String(gpu);
      if (!this.recent.has(key)) this.recent.set(key, []);
      const mine = this.recent.get(key);
      mine.push([at, values]);
      while (mine.length && mine[0][0] < at - RECENT_S) mine.shift();
      this.#extend(key, at, values);
    }
  }

  /** Take readings of the host and of calls at a time (s). */
  addHost(at, values) {
    this.host.push([at, values]);
    while (this.host[0][0] < at - RECENT_S) this.host.shift();
  }

  /** Whether the quantity that is drawn is of the host, of which ten minutes are known. */
  get isOfHost() {
    return Boolean(AXES[this.quantity].ofHost);
  }

  /** Add a reading to the whole run: to its last bucket, or to a new one as long as those before. */
  #extend(key, at, values) {
    if (!this.history.has(key)) this.history.set(key, {});
    const mine = this.history.get(key);
    for (const [name, value] of Object.entries(values)) {
      const rows = (mine[name] ??= []);
      const width = rows.length > 1 ? Math.min(...rows.slice(-3).map((row, i, all) => (i ? row[0] - all[i - 1][0] : Infinity))) : 1;
      const last = rows.at(-1);
      if (last && at - last[0] < width) {
        last[1] = Math.min(last[1], value);
        last[2] = value;
        last[3] = Math.max(last[3], value);
      } else rows.push([at, value, value, value]);
    }
  }

  /** Draw what is there; the whole run only every few seconds unless `now`. */
  draw(now = false) {
    if (!window.Plotly || document.hidden) return;
    const whole = this.range === "all" && !this.isOfHost;
    if (whole && !now && performance.now() - this.drawnAt < WHOLE_EVERY_MS) return;
    this.drawnAt = performance.now();
    const traces = this.isOfHost ? this.#ofHost() : [...(whole ? this.history : this.recent).keys()]
      .sort((a, b) => a - b)
      .flatMap((gpu) => (whole ? this.#whole(gpu) : this.#lines(gpu)));
    window.Plotly.react(this.place, traces, this.#layout(whole), { displayModeBar: false, responsive: true, staticPlot: false, scrollZoom: false });
  }

  #ofHost() {
    const { scale, unit, name } = AXES[this.quantity];
    const known = this.host.filter(([, values]) => values[this.quantity] !== undefined && values[this.quantity] !== null);
    const line = { ...this.#line(0), name, hovertemplate: `%{y:.1f} ${unit}<extra>${name}</extra>`, showlegend: false };
    return [{ ...line, x: known.map(([at]) => new Date(at * 1000)), y: known.map(([, values]) => values[this.quantity] * scale) }];
  }

  #lines(gpu) {
    const { scale } = AXES[this.quantity];
    const rows = this.recent.get(gpu);
    const y = rows.map(([, values]) => (values[this.quantity] === undefined ? null : values[this.quantity] * scale));
    return [{ ...this.#line(gpu), x: rows.map(([at]) => new Date(at * 1000)), y }];
  }

  #whole(gpu) {
    const { scale } = AXES[this.quantity];
    const rows = this.history.get(gpu)[this.quantity] ?? [];
    const x = rows.map(([at]) => new Date(at * 1000));
    const edge = { x, mode: "lines", line: { width: 0 }, hoverinfo: "skip", showlegend: false };
    const colour = this.#colour(gpu);
    return [
      { ...edge, y: rows.map((row) => row[1] * scale) },
      { ...edge, y: rows.map((row) => row[3] * scale), fill: "tonexty", fillcolor: translucent(colour) },
      { ...this.#line(gpu), x, y: rows.map((row) => row[2] * scale) },
    ];
  }

  #line(gpu) {
    const { unit } = AXES[this.quantity];
    return {
      type: "scatter",
      mode: "lines",
      name: `GPU ${gpuNumber(gpu)}`,
      line: { color: this.#colour(gpu), width: 1.6 },
      hovertemplate: `%{y:.1f} ${unit}<extra>GPU ${gpuNumber(gpu)}</extra>`,
      showlegend: this.recent.size > 1,
    };
  }

  #colour(gpu) {
    return colour(`--gpu-${Number(gpu) % COLOURS}`);
  }

  /** Where the last ten minutes begin: in a run that is younger with its first reading, but a minute ago at least. */
  #recentFrom(now) {
    const drawn = this.isOfHost ? [this.host] : [...this.recent.values()];
    const first = Math.min(...drawn.filter((rows) => rows.length).map((rows) => rows[0][0] * 1000));
    return Math.max(now - RECENT_S * 1000, Math.min(first, now - SHORTEST_S * 1000));
  }

  #layout(whole) {
    const { unit, range } = AXES[this.quantity];
    const axis = { gridcolor: colour("--grid"), linecolor: colour("--line"), zeroline: false, fixedrange: true };
    const now = Date.now();
    return {
      margin: { l: 52, r: 14, t: 8, b: 34 },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: colour("--muted"), size: 12, family: getComputedStyle(document.body).fontFamily },
      xaxis: { ...axis, type: "date", nticks: Math.max(Math.floor(this.place.clientWidth / 110), 2), tickangle: 0, range: whole ? undefined : [this.#recentFrom(now), now] },
      yaxis: { ...axis, ticksuffix: ` ${unit}`, rangemode: "tozero", range },
      legend: { orientation: "h", y: -0.16, yanchor: "top" },
      hovermode: "x unified",
      hoverlabel: { bgcolor: colour("--surface"), bordercolor: colour("--line"), font: { color: colour("--text") } },
      shapes: this.bands.map(([from, to]) => ({
        type: "rect", xref: "x", yref: "paper", x0: from, x1: to, y0: 0, y1: 1, line: { width: 0 }, fillcolor: colour("--drop-band"), layer: "below",
      })),
    };
  }
}

/** What a variable of the style is at present, in the theme that is on. */
function colour(name) {
  const probe = document.getElementById("colour-probe");
  probe.style.color = `var(${name})`;
  return getComputedStyle(probe).color;
}

function translucent(rgb) {
  const [r, g, b] = rgb.match(/[\d.]+/g);
  return `rgba(${r},${g},${b},0.22)`;
}
