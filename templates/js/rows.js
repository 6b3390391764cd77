// The names of a heat strip's rows: each is a button that opens the lines of its GPU under the strips, and closes them again.

import { rowsIn } from "./lanes.js";
import { gpuNumber } from "./words.js";

const MOST_FONT_PX = 11.5; // the widest that leaves three digits of an index room
const NAME_HEIGHT = 1.1;

/** The buttons beside the first strip; one of them is reached by Tab, the others from it by the up and down arrows. */
export class GpuRows {
  /** `onToggle(gpu)` opens or closes a GPU's lines, `onPoint(gpu)` is told which one is pointed at, null for none. */
  constructor(place, gpus, onToggle, onPoint) {
    this.buttons = new Map(gpus.map(({ index }) => [index, rowButton(index, onToggle, onPoint)]));
    this.place = place;
    place.append(...this.buttons.values());
    place.addEventListener("keydown", (event) => this.key(event));
  }

  /** Put the names beside the rows of a strip (null: there is none in view), `means` are their GPUs' in view. */
  draw(lane, place, { opened }, means) {
    const rows = lane && place.domain ? lane.rows : [];
    const { top, rowPx, named } = rows.length ? rowsIn(lane, place) : {};
    const isNamed = (_, row) => row % named === 0;
    this.shown = rows.filter(isNamed).map(({ index }) => this.buttons.get(index));
    for (const button of this.buttons.values()) button.hidden = !this.shown.includes(button); // one that has the focus keeps it
    if (!rows.length) return;
    rows.forEach(({ index }, row) => {
      if (!isNamed(null, row)) return;
      const button = this.buttons.get(index);
      button.style.top = `${top + row * rowPx - ((named - 1) * rowPx) / 2}px`;
      button.style.height = `${named * rowPx}px`;
      button.style.fontSize = `${Math.min((named * rowPx) / NAME_HEIGHT, MOST_FONT_PX)}px`;
      button.setAttribute("aria-expanded", String(opened.has(index)));
      button.setAttribute("aria-label", `Lines of GPU ${gpuNumber(index)}${meanWords(means.get(index))}`);
    });
    if (!this.shown.some((button) => button.tabIndex === 0)) this.makeStop(this.shown[0]);
  }

  /** Show which GPU's row is pointed at, null for none. */
  point(gpu) {
    for (const [index, button] of this.buttons) button.classList.toggle("pointed", index === gpu);
  }

  makeStop(button) {
    for (const each of this.buttons.values()) each.tabIndex = each === button ? 0 : -1;
  }

  key(event) {
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    const next = this.shown[this.shown.indexOf(event.target) + step];
    if (step === undefined) return;
    event.preventDefault();
    if (!next) return;
    this.makeStop(next);
    next.focus();
  }
}

function rowButton(index, onToggle, onPoint) {
  const button = document.createElement("button");
  Object.assign(button, { type: "button", textContent: `GPU ${gpuNumber(index)}`, tabIndex: -1 });
  button.dataset.row = String(index);
  button.addEventListener("click", () => onToggle(index));
  for (const begin of ["pointerenter", "focus"]) button.addEventListener(begin, () => onPoint(index));
  for (const end of ["pointerleave", "blur"]) button.addEventListener(end, () => onPoint(null));
  return button;
}

function meanWords(mean) {
  return mean === undefined || Number.isNaN(mean) ? "" : `, ${Math.round(mean)} % on average in view`;
}
