// One second as nvidia-smi would have shown it, with what else was going on.

import {
  epochAt,
  findingsAt,
  kernelNear,
  phaseAt,
  processesAt,
  reasonWords,
  sampleAt,
  slack,
  valueAt,
} from "./moment.js";
import { elapsed, element, quantity } from "./words.js";

const SMI_COLUMNS = [
  "GPU",
  "Temp",
  "Perf",
  "Power / limit",
  "Memory used / total",
  "GPU util",
  "SM clock",
  "Mem clock",
  "Clock event reasons",
];

/** Fill the snapshot's body with what stood at a moment (ms since the run's start). */
function fillSnapshot(body, store, time, zone) {
  const { run } = store;
  const within = slack(run);
  body.replaceChildren(
    element("div", { class: "snapshot-main" }, gpuTable(store, time, within), processTable(run, time)),
    element("div", { class: "snapshot-side" }, factList(store, time, within), kernelList(run, time, store, zone)),
  );
}

/** Return the snapshot's heading: the moment on the wall and since the start. */
function snapshotTitle(store, time, zone) {
  const wall = store.startWall + time;
  const tenths = Math.floor((((wall % 1000) + 1000) % 1000) / 100);
  return `${zone.dateTime(wall)}.${tenths} ${zone.name}, ${elapsed(time, true)} into the run`;
}

function gpuTable(store, time, within) {
  const head = element(
    "thead",
    {},
    element("tr", {}, ...SMI_COLUMNS.map((name) => element("th", { scope: "col" }, name))),
  );
  const rows = store.gpus.map((gpu) => gpuRow(store.run, gpu, time, within));
  const { driver, cuda } = store.run;
  const caption = element("caption", {}, `Driver ${driver ?? "n/a"}, CUDA ${cuda ?? "n/a"}`);
  return scroller(
    "GPUs at this moment",
    element("table", { class: "smi gpus-now" }, caption, head, element("tbody", {}, ...rows)),
  );
}

function gpuRow(run, gpu, time, within) {
  const i = sampleAt(gpu.series, time, within);
  const of = (name) => valueAt(gpu.series, name, i);
  const state = of("performance_state");
  const cells = {
    temperature_c: quantity(of("temperature_c"), "°C"),
    performance_state: state === null ? "n/a" : `P${state}`,
    power_w: `${quantity(of("power_w"), "W", 1)} / ${quantity(gpu.power_limit_w, "W")}`,
    memory_used_mib: `${quantity(of("memory_used_mib"), "MiB")} / ${quantity(gpu.memory_total_mib, "MiB")}`,
    gpu_util_pct: quantity(of("gpu_util_pct"), "%"),
    sm_clock_mhz: quantity(of("sm_clock_mhz"), "MHz"),
    memory_clock_mhz: quantity(of("memory_clock_mhz"), "MHz"),
    clock_event_reasons: reasonWords(run, of("clock_event_reasons")),
  };
  const name = element(
    "th",
    { scope: "row" },
    element("span", { class: `swatch gpu-${gpu.position % 8}` }),
    `${gpu.index}`,
    element("small", {}, gpu.name ?? ""),
  );
  const absent = i < 0 ? { class: "absent", title: "no sample near this moment" } : {};
  return element(
    "tr",
    { "data-gpu": String(gpu.index), ...absent },
    name,
    ...Object.entries(cells).map(([key, text], column) =>
      element("td", { "data-quantity": key, "data-label": SMI_COLUMNS[column + 1] }, text),
    ),
  );
}

const NO_PROCESS_NOW = "No process was seen on a GPU at this moment.";
const NO_PROCESS_EVER = "No process on a GPU was recorded in this run.";

function processTable(run, time) {
  const rows = processesAt(run.processes, time).map((process) =>
    element(
      "tr",
      {},
      element("td", {}, String(process.gpu ?? "n/a")),
      element("td", {}, String(process.pid ?? "n/a")),
      element("td", { class: "name" }, process.name ?? "(not visible here)"),
      element("td", {}, quantity(process.memory, "MiB")),
    ),
  );
  if (!rows.length) return element("p", { class: "quiet" }, run.processes.length ? NO_PROCESS_NOW : NO_PROCESS_EVER);
  const head = element(
    "thead",
    {},
    element("tr", {}, ...["GPU", "PID", "Process name", "Memory"].map((name) => element("th", { scope: "col" }, name))),
  );
  return scroller(
    "Processes at this moment",
    element("table", { class: "smi processes" }, head, element("tbody", {}, ...rows)),
  );
}

function factList(store, time, within) {
  const { run, host } = store;
  const i = sampleAt(host, time, within);
  const of = (name) => valueAt(host, name, i);
  const phase = phaseAt(run, time);
  const facts = [
    ["Epoch", String(epochAt(run, time) ?? "n/a")],
    ["Phase", phase?.name ?? "n/a"],
    ["Host CPU", quantity(of("cpu_pct"), "%", 1)],
    ["Busiest core", quantity(of("cpu_busiest_core_pct"), "%", 1)],
    ["I/O wait", quantity(of("iowait_pct"), "%", 1)],
    ["Host memory", quantity(gib(of("memory_used_mib")), "GiB", 1)],
  ];
  const findings = findingsAt(run, time).map((finding) => element("a", { href: `#${finding.id}` }, finding.title));
  return element(
    "dl",
    { class: "facts" },
    ...facts.flatMap(([label, value]) => [element("dt", {}, label), element("dd", {}, value)]),
    ...(findings.length
      ? [element("dt", {}, "Findings"), element("dd", {}, ...findings.flatMap((link) => [link, " "]))]
      : []),
  );
}

function gib(mib) {
  return mib === null ? null : mib / 1024;
}

function kernelList(run, time, store, zone) {
  const near = kernelNear(run, time);
  const title = element("h4", {}, "Kernel log within a minute");
  if (!near.length) {
    const statement = run.kernel_read ? "Nothing." : "Unknown: the kernel log could not be read.";
    return element("div", {}, title, element("p", { class: "quiet" }, statement));
  }
  const items = near.map((event) =>
    element(
      "li",
      { class: event.severity },
      element("strong", {}, `${zone.timeOfDay(store.startWall + event.t * 1000)} ${event.title}`),
      ` ${event.meaning}`,
      element("code", { class: "raw" }, event.text),
    ),
  );
  return element("div", {}, title, element("ul", { class: "kernel-near" }, ...items));
}

function scroller(label, table) {
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, table);
}

/** The panel that shows one moment; it keeps the moment in the address, so that it can be shared. */
export class Snapshot {
  constructor(store, zone) {
    Object.assign(this, { store, zone, time: null });
    this.panel = document.getElementById("snapshot");
    this.panel.querySelector("[data-close]").addEventListener("click", () => this.close());
  }

  open(time) {
    if (this.time === null) this.opener = document.activeElement;
    this.time = time;
    this.panel.hidden = false;
    document.documentElement.dataset.snapshot = "open";
    this.refresh();
    history.replaceState(null, "", `#t=${(time / 1000).toFixed(3)}`);
    this.timeline.setPin(time);
  }

  refresh() {
    if (this.time === null) return;
    document.getElementById("snapshot-title").textContent = snapshotTitle(this.store, this.time, this.zone);
    fillSnapshot(document.getElementById("snapshot-body"), this.store, this.time, this.zone);
  }

  close() {
    if (this.time === null) return;
    this.time = null;
    this.panel.hidden = true;
    delete document.documentElement.dataset.snapshot;
    history.replaceState(null, "", location.pathname + location.search);
    this.timeline.setPin(null);
    this.opener?.focus?.({ preventScroll: true });
  }
}
