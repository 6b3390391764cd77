// The comparison page: theme, paper, and what is read off the epoch that is pointed at.

import { setUpPrint, setUpTheme } from "./settings.js";

const WIDTH = 1000; // of the charts, in their own units

/** Show an epoch's numbers, and its place in all panels. */
function setUpEpochs(figure) {
  const columns = [...document.querySelectorAll("#epoch-columns li")].map((item) => ({
    from: Number(item.dataset.x) / WIDTH,
    width: Number(item.dataset.width) / WIDTH,
    text: item.textContent,
  }));
  const cursor = document.getElementById("epoch-cursor");
  const readout = document.getElementById("epoch-readout");
  const chart = figure.querySelector(".aligned-panels svg");
  let shown = -1;

  function show(place) {
    if (place < 0 || place >= columns.length) return;
    shown = place;
    const area = chart.getBoundingClientRect();
    const left = area.left - cursor.parentElement.getBoundingClientRect().left;
    cursor.hidden = false;
    cursor.style.left = `${left + columns[place].from * area.width}px`;
    cursor.style.width = `${Math.max(columns[place].width * area.width, 2)}px`;
    readout.textContent = columns[place].text;
  }

  figure.addEventListener("pointermove", (event) => {
    const area = chart.getBoundingClientRect();
    const share = (event.clientX - area.left) / area.width;
    show(columns.findIndex(({ from, width }) => share >= from && share < from + width));
  });
  figure.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    show(shown < 0 ? (step > 0 ? 0 : columns.length - 1) : shown + step);
  });
  addEventListener("resize", () => show(shown));
}

setUpTheme(() => {});
setUpPrint(() => {});
const figure = document.getElementById("aligned");
if (figure) setUpEpochs(figure);
document.documentElement.dataset.ready = "yes";
