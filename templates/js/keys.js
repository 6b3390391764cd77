// Single keys for the whole page: j and k between findings, / to filter them, ? for help. They can be turned off.

import { setAddress } from "./address.js";
import { seenFindings } from "./filter.js";
import { remember, remembered } from "./settings.js";

const KEYS_SETTING = "single-keys";
const OFF = "off";

/** Return the place in a list from which a step leads to its next: `tops` are the items' distances from the screen's top. */
export function nextPlace(current, tops, step) {
  if (current >= 0) return Math.min(Math.max(current + step, 0), tops.length - 1);
  const below = tops.findIndex((top) => top >= -1);
  if (step > 0) return below < 0 ? tops.length - 1 : below;
  return Math.max(below < 0 ? tops.length - 1 : below - 1, 0);
}

/** Return whether a key belongs to where the focus is: a field that is typed into, or a dialog. */
function isTakenBy(target) {
  return target.closest?.("input, textarea, select, [contenteditable], dialog") !== null;
}

function goToFinding(step) {
  const seen = seenFindings();
  if (!seen.length) return;
  const current = seen.findIndex((finding) => finding.contains(document.activeElement));
  const tops = seen.map((finding) => finding.getBoundingClientRect().top);
  showFinding(seen[nextPlace(current, tops, step)]);
}

/** Bring a finding into view, with the focus on it, and its link into the address. */
function showFinding(finding) {
  finding.tabIndex = -1;
  finding.focus({ preventScroll: true });
  finding.scrollIntoView();
  setAddress(`#${finding.id}`);
}

function goToFilter() {
  const field = document.getElementById("filter")?.elements.words;
  if (!field) return;
  field.focus({ preventScroll: true });
  field.closest("section").scrollIntoView();
}

/** Listen for the keys, and for the button and the switch that stand beside them in the help. */
export function setUpKeys() {
  const help = document.getElementById("help");
  const switched = document.getElementById("single-keys");
  const acts = { j: () => goToFinding(1), k: () => goToFinding(-1), "/": goToFilter, "?": () => help.showModal() };
  switched.checked = remembered(KEYS_SETTING) !== OFF;
  switched.addEventListener("change", () => remember(KEYS_SETTING, switched.checked ? "on" : OFF));
  document.getElementById("show-help").addEventListener("click", acts["?"]);
  help.addEventListener("click", (event) => {
    if (event.target === help || event.target.closest("[data-close]")) help.close();
  });
  document.addEventListener("keydown", (event) => {
    const isPlain = !(event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || event.isComposing);
    if (!isPlain || !switched.checked || !(event.key in acts) || isTakenBy(event.target)) return;
    event.preventDefault();
    acts[event.key]();
  });
}
