// The page of a job: theme, paper, and what is read off the strip that is pointed at.

import { setUpPrint, setUpTheme } from "./settings.js";

const LEVELS = 8; // classes of utilisation, as in render/job/strips.py

/** Return a span of seconds as a clock: 1:02:03. */
function clock(seconds) {
  const whole = Math.floor(seconds);
  const parts = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  return parts.map((part, place) => (place ? String(part).padStart(2, "0") : part)).join(":");
}

/** Return what a strip's colour says. */
function levelWords(target) {
  const path = target.closest("path");
  if (!path) return "not measured";
  const level = Number(path.getAttribute("class").slice(1));
  return `${Math.round((100 * level) / LEVELS)} to ${Math.round((100 * (level + 1)) / LEVELS)} % busy`;
}

/** Show the time under the pointer in all rows, and how busy the row's GPU was then. */
function setUpStrips(figure) {
  const cursor = document.getElementById("strip-cursor");
  const readout = document.getElementById("strip-readout");
  const start = Number(figure.dataset.startWall);
  const length = Number(figure.dataset.length);

  figure.addEventListener("pointermove", (event) => {
    const strip = event.target.closest(".strip");
    cursor.hidden = !strip;
    if (!strip) return;
    const area = strip.getBoundingClientRect();
    const share = (event.clientX - area.left) / area.width;
    cursor.style.left = `${event.clientX - figure.getBoundingClientRect().left}px`;
    const wall = new Date((start + share * length) * 1000).toISOString().slice(11, 19);
    const row = strip.getAttribute("aria-label").replace("Utilisation of ", "");
    readout.textContent = `${clock(share * length)} (${wall} UTC), ${row}: ${levelWords(event.target)}`;
  });
  figure.addEventListener("pointerleave", () => {
    cursor.hidden = true;
    readout.textContent = "";
  });
}

setUpTheme(() => {});
setUpPrint(() => {});
const strips = document.getElementById("strips");
if (strips) setUpStrips(strips);
document.documentElement.dataset.ready = "yes";
