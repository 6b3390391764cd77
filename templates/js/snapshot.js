// One second as nvidia-smi would have shown it, with what else was going on.

import { learningText, ofEpoch } from "./learning.js";
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
import { elapsed, element, gpuNumber, phaseWords, prose, quantity } from "./words.js";

const SMI_COLUMNS = {
  temperature_c: "Temp",
  performance_state: "Perf",
  power_w: "Power / limit",
  memory_used_mib: "Memory used / total",
  gpu_util_pct: "GPU util",
  sm_clock_mhz: "SM clock",
  memory_clock_mhz: "Mem clock",
  clock_event_reasons: "Clock event reasons",
};
// Shown where anything of them was recorded in this run: what nvidia-smi alone does not say.
const INSIDE = [
  "sm_active_pct",
  "sm_occupancy_pct",
  "tensor_active_pct",
  "dram_active_pct",
  "memory_temperature_c",
  "pcie_tx_mib_s",
  "pcie_rx_mib_s",
  "nvlink_tx_mib_s",
  "nvlink_rx_mib_s",
];

/** Fill the snapshot's body with what stood at a moment (ms since the run's start). */
function fillSnapshot(body, store, time, zone) {
  const { run } = store;
  const within = slack(run);
  body.replaceChildren(
    element(
      "div",
      { class: "snapshot-main" },
      smiTable(store, time, within),
      insideTable(store, time, within),
      processTable(run, time),
      hostList(store, time, within),
    ),
    element("div", { class: "snapshot-side" }, placeList(run, time), kernelList(run, time, store, zone)),
  );
}

/** Return the snapshot's heading: the moment on the wall and since the start. */
function snapshotTitle(store, time, zone) {
  const wall = store.startWall + time;
  const tenths = Math.floor((((wall % 1000) + 1000) % 1000) / 100);
  return `${zone.dateTime(wall)}.${tenths} ${zone.name}, ${elapsed(time, true)} into the run`;
}

function smiTable(store, time, within) {
  const { driver, cuda } = store.run;
  const rows = store.gpus.map((gpu) => {
    const i = sampleAt(gpu.series, time, within);
    return gpuRow(gpu, i, gpu.name ?? "", SMI_COLUMNS, smiCells(store.run, gpu, i));
  });
  return gpuTable("GPUs at this moment", `Driver ${driver ?? "n/a"}, CUDA ${cuda ?? "n/a"}`, SMI_COLUMNS, rows);
}

function insideTable(store, time, within) {
  const { gpus, run } = store;
  const recorded = INSIDE.filter((name) => gpus.some((gpu) => gpu.series.columns.has(name)));
  if (!recorded.length) return null;
  const abouts = recorded.map((name) => run.quantities.find((about) => about.name === name));
  const labels = Object.fromEntries(abouts.map((about) => [about.name, about.label]));
  const rows = gpus.map((gpu) => {
    const i = sampleAt(gpu.series, time, within);
    const texts = abouts.map((about) => [about.name, inWords(valueAt(gpu.series, about.name, i), about)]);
    return gpuRow(gpu, i, "", labels, Object.fromEntries(texts));
  });
  return gpuTable("Inside the GPUs", "Inside the GPU, since the sample before", labels, rows, " inside");
}

function gpuTable(label, caption, labels, rows, kind = "") {
  return scroller(
    label,
    element(
      "table",
      { class: `smi gpus-now${kind}` },
      element("caption", {}, caption),
      tableHead(["GPU", ...Object.values(labels)]),
      element("tbody", {}, ...rows),
    ),
  );
}

function tableHead(names) {
  return element("thead", {}, element("tr", {}, ...names.map((name) => element("th", { scope: "col" }, name))));
}

function inWords(value, { unit, decimals }) {
  return quantity(value, unit, decimals);
}

function smiCells(run, gpu, i) {
  const of = (name) => valueAt(gpu.series, name, i);
  const state = of("performance_state");
  return {
    temperature_c: quantity(of("temperature_c"), "°C"),
    performance_state: state === null ? "n/a" : `P${state}`,
    power_w: `${quantity(of("power_w"), "W", 1)} / ${quantity(gpu.power_limit_w, "W")}`,
    memory_used_mib: `${quantity(of("memory_used_mib"), "MiB")} / ${quantity(gpu.memory_total_mib, "MiB")}`,
    gpu_util_pct: quantity(of("gpu_util_pct"), "%"),
    sm_clock_mhz: quantity(of("sm_clock_mhz"), "MHz"),
    memory_clock_mhz: quantity(of("memory_clock_mhz"), "MHz"),
    clock_event_reasons: reasonWords(run, of("clock_event_reasons")),
  };
}

/** Return a GPU's row: the text of each quantity by its name, as it stood at sample `i` (-1: there is none). */
function gpuRow(gpu, i, note, labels, texts) {
  const name = element(
    "th",
    { scope: "row" },
    element("span", { class: `swatch gpu-${gpu.position % 8}` }),
    gpuNumber(gpu.index),
    element("small", {}, note),
  );
  const absent = i < 0 ? { class: "absent", title: "no sample near this moment" } : {};
  return element(
    "tr",
    { "data-gpu": String(gpu.index), ...absent },
    name,
    ...Object.entries(texts).map(([key, text]) =>
      element("td", { "data-quantity": key, "data-label": labels[key] }, text),
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
  const head = tableHead(["GPU", "PID", "Process name", "Memory"]);
  return scroller(
    "Processes at this moment",
    element("table", { class: "smi processes" }, head, element("tbody", {}, ...rows)),
  );
}

function placeList(run, time) {
  const findings = findingsAt(run, time).map((finding) => element("a", { href: `#${finding.id}` }, `${finding.number ?? ""} ${finding.title}`.trim()));
  const epoch = epochAt(run, time);
  const learned = run.epoch_quantities
    .map(({ name, label }) => [label, ofEpoch(run, epoch, name)])
    .filter(([, value]) => value !== null);
  return factList("facts", [
    ...(run.epochs.length ? [["Epoch", String(epoch?.[1] ?? "n/a")]] : []),
    ...learned.map(([label, value]) => [label, learningText(value)]),
    ["Phase", phaseWords(phaseAt(run, time)?.name ?? "n/a")],
    ...(findings.length ? [["Findings", ...findings.flatMap((link) => [link, " "])]] : []),
  ]);
}

/** Return everything that was recorded of the host in this run, as it stood at a moment. */
function hostList({ run, host }, time, within) {
  const i = sampleAt(host, time, within);
  const recorded = run.host_quantities.filter(({ name }) => host.columns.has(name));
  if (!recorded.length) return null;
  const facts = recorded.map((about) => [about.label, inWords(valueAt(host, about.name, i), about)]);
  return element("div", {}, element("h3", {}, "Host"), factList("facts host-now", facts));
}

function factList(name, facts) {
  const pairs = facts.map(([label, ...values]) =>
    element("div", {}, element("dt", {}, label), element("dd", {}, ...values)),
  );
  return element("dl", { class: name }, ...pairs);
}

function kernelList(run, time, store, zone) {
  const near = kernelNear(run, time);
  const title = element("h3", {}, "Kernel log within a minute");
  if (!near.length) {
    const statement = run.kernel_read ? "Nothing was logged." : "Unknown: the kernel log could not be read.";
    return element("div", {}, title, element("p", { class: "quiet" }, statement));
  }
  const items = near.map((event) =>
    element(
      "li",
      { class: event.severity },
      element("strong", {}, `${zone.timeOfDay(store.startWall + event.t * 1000)} ${event.title}`),
      " ",
      ...prose(event.meaning),
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
    this.timeline.setPin(null);
    this.opener?.focus?.({ preventScroll: true });
  }
}
