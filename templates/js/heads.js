// The heads of the timeline's lanes: a title, which is a button that folds its lane and opens it again, and the lane's legend.

import { remember, remembered } from "./settings.js";
import { element } from "./words.js";

const FOLDED_SETTING = "folded";
const SEPARATOR = "|";
const LEFT_PX = 34; // where a title begins, as the style sheet has it
const ZONE_PX = 110; // room beside the first title for the name of the time zone
const WINDOW_PX = 320; // and for which part of the run is in view
const SAYS_WINDOW_PX = 500; // of a chart that says the latter

/** The heads over the chart. A lane of lines that show nothing is folded until it is opened; others as the reader chose, in this report and the next. */
export class LaneHeads {
  constructor(place, onChange) {
    this.folded = new Set((remembered(FOLDED_SETTING) ?? "").split(SEPARATOR).filter(Boolean));
    this.legends = new Map([...place.children].map((list) => [list.dataset.lane, list]));
    Object.assign(this, { place, onChange, opened: new Set(), heads: new Map(), measured: "" });
    place.replaceChildren();
  }

  /** Return the titles of the lanes that are folded. */
  foldedOf(lanes) {
    return new Set(lanes.filter((lane) => this.isFolded(lane)).map(({ title }) => title));
  }

  isFolded({ title, isFlat }) {
    return isFlat ? !this.opened.has(title) : this.folded.has(title);
  }

  /** Put the heads of lanes into the page, and return how many px the legend of each takes under its title, by title. */
  measure(lanes, { width, isWhole }) {
    const heads = lanes.map((lane) => this.headOf(lane));
    const key = [width, isWhole, ...lanes.map((lane) => `${lane.title}${this.isFolded(lane)}`)].join(SEPARATOR);
    if (key === this.measured) return this.signs;
    this.measured = key;
    const isOther = heads.length !== this.place.children.length || heads.some((each, i) => each !== this.place.children[i]);
    if (isOther) this.place.replaceChildren(...heads);
    heads.forEach((head, i) => {
      const beside = i ? 0 : isWhole || width < SAYS_WINDOW_PX ? ZONE_PX : WINDOW_PX;
      head.style.width = `${width - LEFT_PX - beside}px`;
      head.firstChild.setAttribute("aria-expanded", String(!this.isFolded(lanes[i])));
    });
    this.signs = new Map(heads.map((head, i) => [lanes[i].title, head.offsetHeight - head.firstChild.offsetHeight]));
    return this.signs;
  }

  /** Put the heads over their lanes, which lie `places[i].top` px under the chart's upper edge; `ranged` lanes say what is pale in them. */
  draw(lanes, places, ranged) {
    lanes.forEach((lane, i) => {
      const head = this.headOf(lane);
      head.style.top = `${places[i].top}px`;
      head.classList.toggle("has-ranges", ranged.has(lane));
    });
  }

  /** Return the head of a lane, which is the same as long as the page is open. */
  headOf(lane) {
    if (!this.heads.has(lane.title)) this.heads.set(lane.title, this.made(lane));
    return this.heads.get(lane.title);
  }

  made(lane) {
    const button = element("button", { type: "button" }, lane.title);
    button.addEventListener("click", () => {
      const [set, isIn] = lane.isFlat ? [this.opened, !this.isFolded(lane)] : [this.folded, this.isFolded(lane)];
      if (isIn) set.delete(lane.title);
      else set.add(lane.title);
      remember(FOLDED_SETTING, [...this.folded].join(SEPARATOR));
      this.onChange();
    });
    const list = this.legends.get(lane.key) ?? element("ul", { class: "legend" });
    if (lane.quantities && !lane.heat && !this.saysRanges) { // once: it is the same in all lanes
      list.append(element("li", { class: "ranges" }, element("span", { class: "swatch" }), "pale: lowest to highest"));
      this.saysRanges = true;
    }
    this.legends.delete(lane.key); // that of an opened GPU has no list of its own
    return element("div", { class: "lane-head" }, button, ...(list.children.length ? [list] : []));
  }
}
