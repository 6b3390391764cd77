// The live page: what the server says of the run, put into words; the timeline grows.

import { AXES, Chart } from "./chart.js";
import { follow } from "./stream.js";
import { MISSING, clock, duration, energy, gpuNumber, memory, prose, quantity } from "./words.js";

const at = (id) => document.getElementById(id);
const SILENT_S = 15; // as long as a reading may be shown as one of now
const PHASES = { train: "training", startup: "start-up" };
const chart = new Chart(at("chart"));

function say(id, text) {
  const element = at(id);
  if (element.textContent !== text) element.textContent = text;
}

function showState(status) {
  const last = status.last_sample;
  const age = last ? (Date.parse(status.time) - Date.parse(last)) / 1000 : 0;
  const silent = status.state === "recording" && age > Math.max(SILENT_S, 3 * status.run.interval_s);
  const words = {
    waiting: "Waiting for the first sample",
    recording: silent ? `No sample for ${duration(age)}: the recorder runs, and writes nothing (is the disk full?)` : last ? `Recording, last sample ${duration(age)} ago` : "Recording",
    "recorder gone": last ? `The recorder stopped at ${clock(last)}; the training may go on` : "The recorder stopped",
    ended: status.report_ready ? "The recording has ended" : "The recording has ended; the report is being made",
    "folder gone": "The run folder is gone",
  };
  at("state").dataset.state = silent ? "lost" : status.state;
  document.body.dataset.stale = String(silent || status.state !== "recording");
  say("state-words", status.error ? `The run folder cannot be read: ${status.error}` : words[status.state]);
}

function showTraining(status) {
  const training = status.training;
  const progress = at("epoch-progress");
  progress.hidden = !training?.batches;
  if (!training || training.epoch === null) {
    say("epoch", training?.phase ? (PHASES[training.phase] ?? training.phase) : MISSING);
    say("epoch-note", training ? "no epoch has begun yet" : "no YOLO training is known");
  } else {
    say("epoch", training.epochs ? `${training.epoch} of ${training.epochs}` : String(training.epoch));
    const phase = training.ended ? endWords(training) : training.phase ? (PHASES[training.phase] ?? training.phase) : "phase unknown";
    const since = training.phase_s === null ? "" : ` for ${duration(training.phase_s)}`;
    say("epoch-note", phase + since);
    if (training.batches) progress.value = Math.min((training.batch ?? 0) / training.batches, 1);
  }
  say("left", training ? duration(training.left_s) : MISSING);
  const epochs = training?.epoch_s ? `an epoch takes ${duration(training.epoch_s)}` : "known after the first epoch";
  say("left-note", training ? epochs : " ");
  const share = training?.data_wait_share ?? null;
  say("wait", share === null ? MISSING : quantity(100 * share, "%"));
  say("wait-note", share === null ? "known after the first epoch" : "of the last epoch's training time");
}

// Of a program that calls a model: how many calls a second, and how long each took, in place of epochs.
function showCalls(calls) {
  say("epoch-title", "Calls a second");
  say("epoch", quantity(calls.per_s, "", 1));
  say("epoch-note", `${calls.calls.toLocaleString("en-US")} in the last minute`);
  say("wait-title", "Latency");
  say("wait", `${milliseconds(calls.median_ms)}`);
  say("wait-note", `median of the last minute; 95 % within ${milliseconds(calls.p95_ms)}`);
}

function milliseconds(ms) {
  return `${ms >= 100 ? ms.toFixed(0) : ms.toFixed(1)} ms`;
}

// Of a machine without a GPU: its cores and memory.
function showHost(host) {
  say("busy-title", "CPU busy");
  say("busy", host.cpu_pct === null ? MISSING : quantity(host.cpu_pct, "%"));
  const main = host.main_cpu_pct === null ? "" : `, main process ${quantity(host.main_cpu_pct, "%")} of a core`;
  say("busy-note", `all cores${main}; host memory ${memory(host.memory_used_mib, host.memory_total_mib)}`);
}

function showRest(status) {
  if (status.calls) showCalls(status.calls);
  const hasNoGpu = Boolean(status.host) && !status.gpus.length;
  if (hasNoGpu) showHost(status.host);
  at("no-gpu").hidden = !hasNoGpu;
  // what there is nothing of takes no room
  at("gpus").closest("section").hidden = hasNoGpu;
  at("spent").closest(".fact").hidden = hasNoGpu;
  at("left").closest(".fact").hidden = status.training ? status.training.task !== "train" : hasNoGpu || Boolean(status.calls);
  offerQuantities(status, hasNoGpu);
  for (const id of ["epoch", "wait"]) at(id).closest(".fact").hidden = hasNoGpu && !status.training && !status.calls;
}

const ofCalls = { calls_per_s: "per_s", latency_ms: "median_ms" };

// What can be drawn: of GPUs where there are any, of the host, and of calls once there were some.
function offerQuantities(status, hasNoGpu) {
  const quantities = [...document.querySelectorAll("[data-quantity]")];
  for (const button of quantities) {
    const name = button.dataset.quantity;
    const isKnown = name in ofCalls ? Boolean(status.calls) : Boolean(status.host);
    if (AXES[name].ofHost) button.hidden &&= !isKnown;
    else button.hidden = hasNoGpu;
  }
  if (quantities.find((button) => button.dataset.quantity === chart.quantity).hidden) quantities.find((button) => !button.hidden)?.click();
}

function endWords(training) {
  const words = { finished: "finished", "early stop": "stopped early", exception: `failed: ${training.error ?? "exception"}` };
  return words[training.ended] ?? training.ended;
}

function showGpus(status) {
  const known = status.gpus.filter((gpu) => gpu.gpu_util_pct !== null);
  const mean = known.reduce((sum, gpu) => sum + gpu.gpu_util_pct, 0) / known.length;
  say("busy", known.length ? quantity(mean, "%") : MISSING);
  const many = status.gpus.length > 1 ? `mean of ${status.gpus.length} GPUs` : "";
  say("busy-note", status.idle_s !== null ? `idle for ${duration(status.idle_s)}` : many || " ");
  const body = at("gpus").tBodies[0];
  while (body.rows.length > status.gpus.length) body.deleteRow(-1);
  for (const [row, gpu] of status.gpus.entries()) {
    const cells = (body.rows[row] ?? body.insertRow()).cells;
    const texts = [
      `${gpuNumber(gpu.index)} ${gpu.name ?? ""}`.trim(),
      gpu.gpu_util_pct === null ? MISSING : quantity(gpu.gpu_util_pct, "%"),
      memory(gpu.memory_used_mib, gpu.memory_total_mib),
      quantity(gpu.power_w, "W"),
      quantity(gpu.temperature_c, "°C"),
      quantity(gpu.sm_clock_mhz, "MHz"),
      `${duration(gpu.age_s)} ago`,
    ];
    for (const [column, text] of texts.entries()) {
      const cell = cells[column] ?? body.rows[row].insertCell();
      if (cell.textContent !== text) cell.textContent = text;
    }
  }
}

function showSpent(status) {
  const { spent } = status;
  say("spent", spent.money === null ? duration(spent.gpu_seconds) : spent.money.toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 }));
  const time = spent.money === null ? "of GPU time" : `for ${duration(spent.gpu_seconds)} of GPU time`;
  say("spent-note", `${time}, ${energy(spent.energy_j)}`);
}

function showAlarms(status) {
  const place = at("alarms");
  place.hidden = !status.alarms.length;
  const title = Object.assign(document.createElement("h2"), { textContent: "Now" });
  const lines = status.alarms.map((alarm) => {
    const line = Object.assign(document.createElement("p"), { className: `alarm ${alarm.severity}` });
    const lasts = alarm.kind === "drop" || alarm.kind === "idle";
    const when = alarm.since === null ? "" : `, at ${clock(alarm.since)}`;
    line.textContent = lasts ? `${alarm.text} for ${duration(alarm.for_s)}, since ${clock(alarm.since)}` : alarm.text + when;
    return line;
  });
  place.replaceChildren(title, ...lines);
  const until = new Date(status.time);
  chart.bands = status.alarms.filter((alarm) => alarm.kind === "drop").map((alarm) => [new Date(alarm.since), until]);
}

function showSoFar(status) {
  const said = status.so_far;
  at("so-far").hidden = !said && !status.report_error;
  if (status.report_error) say("so-far-note", `It could not be made: ${status.report_error}`);
  if (!said || at("so-far").dataset.asOf === said.as_of) return;
  at("so-far").dataset.asOf = said.as_of;
  say("so-far-note", `As of ${clock(said.as_of)}. It is updated while the recording runs, and may change.`);
  at("verdict").replaceChildren(...said.verdict.map((text) => paragraph(text)));
  at("findings").replaceChildren(
    ...said.findings.map((finding) => {
      const item = Object.assign(document.createElement("li"), { className: finding.severity });
      item.append(paragraph(finding.summary));
      const line = finding.where[0];
      const where = line ? `: \`${line.function}\` (${line.file.split("/").at(-1)}:${line.line})` : "";
      if (finding.cause) item.append(paragraph(`Cause: ${finding.cause}${where}`, "quiet"));
      for (const advice of finding.advice) item.append(paragraph(advice));
      return item;
    }),
  );
}

function paragraph(text, className = "") {
  const made = Object.assign(document.createElement("p"), { className });
  made.append(...prose(text));
  return made;
}

// The readings of the host and of calls, which come with each status.
function takeHost(status) {
  const { host, calls, time } = status;
  if (!host) return;
  const ofHost = { cpu_pct: host.cpu_pct, host_memory_mib: host.memory_used_mib };
  for (const [name, key] of Object.entries(ofCalls)) if (calls) ofHost[name] = calls[key];
  chart.addHost(Date.parse(time) / 1000, ofHost);
}

function show(status) {
  if (status.state === "ended" && status.report_ready) {
    location.reload(); // it is the report now
    return;
  }
  const parts = [status.run.host, status.training?.model, status.run.start ? `since ${new Date(status.run.start).toLocaleString([], { dateStyle: "medium", timeStyle: "short" })}` : null];
  at("subtitle").replaceChildren(...parts.filter(Boolean).map((text) => Object.assign(document.createElement("span"), { textContent: text })));
  for (const part of [showState, showTraining, showGpus, showRest, showSpent, showAlarms, showSoFar]) part(status);
  const sinceOpened = chart.quantity in ofCalls ? "Drawn since this page was opened." : " ";
  say("chart-note", status.is_behind ? "The earlier part of the run is still being read." : sinceOpened);
  document.querySelector("[data-range=all]").disabled = chart.isOfHost;
  chart.draw();
}

for (const [name, key] of [["quantity", "quantity"], ["range", "range"]]) {
  for (const button of document.querySelectorAll(`[data-${name}]`)) {
    button.addEventListener("click", () => {
      for (const other of document.querySelectorAll(`[data-${name}]`)) other.setAttribute("aria-pressed", String(other === button));
      chart[key] = button.dataset[name];
      chart.draw(true);
    });
  }
}

follow({
  everything({ status, history, recent, host }) {
    chart.begin(history, recent, host);
    show(status);
  },
  tick({ status, rows }) {
    chart.add(rows);
    takeHost(status);
    show(status);
  },
  lost(seconds) {
    at("state").dataset.state = "lost";
    document.body.dataset.stale = "true";
    say("state-words", `No connection to the server for ${duration(seconds)}. Trying again ...`);
  },
});
document.addEventListener("visibilitychange", () => chart.draw(true));
