// The titles of the timeline's lanes: each is a button that folds its lane and opens it again.

import { remember, remembered } from "./settings.js";

const FOLDED_SETTING = "folded";
const SEPARATOR = "|";

/** The buttons over the chart; `folded` holds the titles of the lanes that are closed, in this report and the next. */
export class LaneHeads {
  constructor(place, onChange) {
    this.folded = new Set((remembered(FOLDED_SETTING) ?? "").split(SEPARATOR).filter(Boolean));
    Object.assign(this, { place, onChange, buttons: new Map() });
  }

  /** Put the titles over their lanes, which lie `places[i].top` px under the chart's upper edge. */
  draw(lanes, places) {
    const buttons = lanes.map(({ title }) => this.buttonOf(title));
    const isOther = buttons.length !== this.place.children.length || buttons.some((each, i) => each !== this.place.children[i]);
    if (isOther) this.place.replaceChildren(...buttons);
    buttons.forEach((button, i) => {
      button.style.top = `${places[i].top}px`;
      button.setAttribute("aria-expanded", String(!this.folded.has(lanes[i].title)));
    });
  }

  /** Return the button of a lane, which is the same as long as the page is open. */
  buttonOf(title) {
    if (!this.buttons.has(title)) this.buttons.set(title, this.made(title));
    return this.buttons.get(title);
  }

  made(title) {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", textContent: title });
    button.addEventListener("click", () => {
      if (!this.folded.delete(title)) this.folded.add(title);
      remember(FOLDED_SETTING, [...this.folded].join(SEPARATOR));
      this.onChange();
    });
    return button;
  }
}
