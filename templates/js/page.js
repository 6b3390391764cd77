// Wires the page together: text is there already; times, theme, timeline, snapshot, links and downloads come on top.

import { leaveAddress, placeNamed, setAddress } from "./address.js";
import { fromText, inflate } from "./codec.js";
import { setUpDownloads } from "./downloads.js";
import { clearFilter, setUpFilter } from "./filter.js";
import { setUpFlame } from "./flame.js";
import { setUpKeys } from "./keys.js";
import { setUpLatency } from "./latency.js";
import { setUpCopy, setUpPrint, setUpTheme, setUpZone } from "./settings.js";
import { Snapshot } from "./snapshot.js";
import { Timeline, ZOOM_STEP } from "./timeline.js";
import { openStore } from "./store.js";
import { Zone, element } from "./words.js";

const LONGEST_WAIT_MS = 500; // for a frame of a page that may not be shown

function readRun() {
  return JSON.parse(document.getElementById("report-data").textContent);
}

async function unpackChartLibrary() {
  const bytes = await inflate(fromText(document.getElementById("chart-library").textContent), "gzip");
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
}

function runChartLibrary(text) {
  // The full bundle adds a style sheet for maps, which the policy forbids, unless an element with its id is there.
  for (const [, id] of text.matchAll(/getElementById\("([0-9a-f]{64})"\)/g))
    document.head.append(element("meta", { id }));
  document.head.append(element("script", {}, text));
}

function setUpControls(timeline, snapshot) {
  const on = (id, act) => document.getElementById(id).addEventListener("click", act);
  on("zoom-in", () => timeline.zoom(ZOOM_STEP));
  on("zoom-out", () => timeline.zoom(1 / ZOOM_STEP));
  on("zoom-reset", () => timeline.show(...timeline.full));
  for (const button of document.querySelectorAll("[data-gpu-toggle]")) {
    button.addEventListener("click", () => {
      const shown = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(shown));
      timeline.toggle(Number(button.dataset.gpuToggle), shown);
    });
    for (const begin of ["pointerenter", "focus"])
      button.addEventListener(begin, () => timeline.bringToFront(Number(button.dataset.gpuToggle)));
    for (const end of ["pointerleave", "blur"]) button.addEventListener(end, () => timeline.bringToFront(null));
  }
  for (const button of document.querySelectorAll("[data-step]"))
    button.addEventListener("click", () => timeline.step(Number(button.dataset.step)));
  for (const strip of document.querySelectorAll("[data-strip]")) {
    strip.addEventListener("click", (event) => {
      const box = strip.getBoundingClientRect();
      snapshot.open(timeline.snap(((event.clientX - box.left) / box.width) * timeline.store.run.duration_s * 1000));
    });
  }
  snapshot.panel.addEventListener("keydown", (event) => timeline.key(event));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !document.querySelector("dialog[open]")) snapshot.close();
  });
  for (const button of document.querySelectorAll("[data-show-from]")) {
    button.addEventListener("click", () => {
      leaveAddress(`#${button.closest(".finding").id}`);
      timeline.showAround(Number(button.dataset.showFrom), Number(button.dataset.showTo));
      setAddress(timeline.address);
      timeline.chart.parentElement.scrollIntoView();
    });
  }
  setUpTab(timeline.chart.parentElement, snapshot);
}

/** Have Tab lead from the timeline into the moment that it opened, and back: they stand far apart in the page. */
function setUpTab(frame, snapshot) {
  const lead = (from, to, isBack) =>
    from.addEventListener("keydown", (event) => {
      if (event.key !== "Tab" || event.shiftKey !== isBack || event.target !== from || snapshot.time === null) return;
      event.preventDefault();
      to.focus({ preventScroll: true });
    });
  lead(frame, snapshot.panel, false);
  lead(snapshot.panel, frame, true);
}

/** Show what the address names: a window, a moment, a finding; all of the run where it names nothing. */
function followAddress(timeline, snapshot) {
  const { hash } = location;
  const named = placeNamed(hash);
  if (named) timeline.chart.parentElement.scrollIntoView({ behavior: "instant" });
  if (!named || named.at === null) snapshot.close();
  if (named?.window) timeline.show(...named.window);
  else if (!hash && !timeline.isWhole) timeline.show(...timeline.full);
  if (named && named.at !== null) snapshot.open(timeline.within(timeline.snap(named.at)));
  if (hash && !named) {
    setAddress(hash);
    openTarget();
  }
}

/** Open what is folded around the address's target, and bring it into view, also one that is filtered out. */
function openTarget() {
  const target = document.querySelector(":target");
  if (!target) return;
  if (target.matches(".finding")) {
    target.tabIndex = -1; // from where j and k go on
    target.focus({ preventScroll: true });
  }
  if (target.hidden) clearFilter();
  for (let around = target.closest("details"); around; around = around.parentElement.closest("details"))
    around.open = true;
  target.scrollIntoView();
}

/** Wait until what was drawn is seen, which is a frame later; in a page that is not shown there are none. */
function seen() {
  const shown = new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))));
  return Promise.race([shown, new Promise((done) => setTimeout(done, LONGEST_WAIT_MS))]);
}

/** Draw the timeline, and all that works on it. `onBegin` is told what draws it anew, once it can be drawn at all. */
async function startTimeline(run, zone, onBegin) {
  const opening = openStore(run);
  const library = unpackChartLibrary();
  const [store, canvas] = [await opening, document.getElementById("sketch")];
  const snapshot = new Snapshot(store, zone);
  const timeline = new Timeline(document.getElementById("chart"), store, zone, (time) => {
    if (time === null) snapshot.close();
    else snapshot.open(time);
  });
  snapshot.timeline = timeline;
  document.getElementById("chart-wait").remove();
  await timeline.sketch(canvas);
  onBegin((paper) => {
    timeline.redraw(paper);
    snapshot.refresh();
  });
  document.documentElement.dataset.drawn = "sketch";
  await seen();
  runChartLibrary(await library);
  await timeline.start();
  document.documentElement.dataset.drawn = "yes";
  setUpControls(timeline, snapshot);
  await timeline.complete();
  snapshot.refresh(); // of one that was opened before all was there
  setUpDownloads(store);
  setUpFlame(run.code, store.packed, timeline);
  setUpLatency(run.latency, store, zone);
  followAddress(timeline, snapshot);
  window.addEventListener("hashchange", () => followAddress(timeline, snapshot));
}

async function main() {
  const run = readRun();
  const zone = new Zone(run.start_wall_s * 1000);
  let started = null;
  const redraw = (paper) => started?.(paper);
  setUpTheme(redraw);
  setUpZone(zone, redraw);
  setUpPrint(redraw);
  setUpCopy();
  setUpFilter();
  setUpKeys();
  openTarget();
  if (document.getElementById("chart")) {
    try {
      await startTimeline(run, zone, (drawAnew) => {
        started = drawAnew;
      });
    } catch (error) {
      started = null;
      for (const id of ["sketch", "heat", "lane-heads", "gpu-rows", "strip"]) document.getElementById(id)?.remove();
      document.getElementById("chart").style.height = "";
      const place = document.getElementById("chart-wait") ?? document.getElementById("chart");
      place.textContent =
        "The timeline could not be drawn in this browser; all other parts of the report are complete.";
      throw error;
    }
  }
  document.documentElement.dataset.ready = "yes";
}

main();
