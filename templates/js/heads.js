// The titles of the timeline's lanes: each is a button that folds its lane and opens it again.

import { remember, remembered } from "./settings.js";

const FOLDED_SETTING = "folded";
const SEPARATOR = "|";

/** The buttons over the chart; `folded` holds the titles of the lanes that are closed, in this report and the next. */
export class LaneHeads {
  constructor(place, lanes, onChange) {
    this.folded = new Set((remembered(FOLDED_SETTING) ?? "").split(SEPARATOR).filter(Boolean));
    this.buttons = lanes.map((lane) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = lane.title;
      button.addEventListener("click", () => {
        if (!this.folded.delete(lane.title)) this.folded.add(lane.title);
        remember(FOLDED_SETTING, [...this.folded].join(SEPARATOR));
        onChange();
      });
      place.append(button);
      return button;
    });
    this.lanes = lanes;
  }

  /** Put the titles over their lanes, which lie `places[i].top` px under the chart's upper edge. */
  draw(places) {
    this.buttons.forEach((button, i) => {
      button.style.top = `${places[i].top}px`;
      button.setAttribute("aria-expanded", String(!this.folded.has(this.lanes[i].title)));
    });
  }
}
