// The flame graph of idle GPU time on the page: which line of code the training stood in while a GPU had nothing to do.

import { above, boxesOf, matched, sumsOf, treeOf } from "./icicle.js";
import { element, quantity } from "./words.js";

const ROW_PX = 21;
const LEAST_PX = 2; // of a box: a narrower one can be neither read nor met
const LETTER_PX = 6.4; // of a name in a box, on average
const PAD_PX = 5;
const LATER = "later"; // the choice of all phases but start-up
const SVG = "http://www.w3.org/2000/svg";
const MEASURES = { idle_gpu_s: "idle GPU time", seconds: "time" };

/** Draws what is chosen: a role's processes, a measure, a phase, a part of the timeline; one box may be zoomed to. */
class FlameGraph {
  constructor(section, data, columns, timeline) {
    Object.assign(this, { section, data, columns, timeline, root: 0, focus: 0, query: "" });
    this.svg = section.querySelector("svg");
    this.detail = section.querySelector("[data-flame-detail]");
    this.roles = new Map();
    this.listen();
  }

  field(name) {
    return this.section.querySelector(`[data-flame="${name}"]`);
  }

  listen() {
    for (const name of ["role", "measure", "phase", "window"])
      this.field(name).addEventListener("change", () => this.choose());
    this.field("search").addEventListener("input", (event) => {
      this.query = event.target.value.trim().toLowerCase();
      this.draw();
    });
    this.field("whole").addEventListener("click", () => this.zoom(0));
    this.svg.addEventListener("click", (event) => this.onBox(event, (node) => this.zoom(node)));
    this.svg.addEventListener("pointermove", (event) => this.onBox(event, (node) => this.tell(node)));
    this.svg.addEventListener("pointerleave", () => this.tell(this.focus));
    this.svg.addEventListener("keydown", (event) => {
      this.detail.setAttribute("aria-live", "polite"); // what the pointer passes over is not read out
      this.key(event);
    });
    this.svg.addEventListener("pointerenter", () => this.detail.removeAttribute("aria-live"));
    this.svg.addEventListener("focus", () => this.tell(this.focus));
    let width = 0;
    new ResizeObserver(() => {
      if (Math.abs(this.svg.clientWidth - width) < 2) return;
      width = this.svg.clientWidth;
      this.draw();
    }).observe(this.svg);
    document.addEventListener("windowshown", () => this.field("window").checked && this.choose());
  }

  onBox(event, act) {
    const box = event.target.closest("[data-node]");
    if (box) act(Number(box.dataset.node));
  }

  /** Sum up what is chosen, and draw it from the top. */
  async choose() {
    this.turn = (this.turn ?? 0) + 1;
    const { turn } = this;
    const role = await this.opened(Number(this.field("role").value));
    if (turn !== this.turn) return; // something else was chosen meanwhile
    if (role !== this.shown) [this.root, this.focus] = [0, 0];
    this.shown = role;
    const phase = this.field("phase").value;
    const { from, to } = this.timeline.view;
    this.measure = this.field("measure").value;
    this.sums = sumsOf(role.tree, role.rows, {
      bucket_s: role.bucket_s,
      measure: this.measure,
      phase: phase && phase !== LATER ? role.phases.indexOf(phase) : null,
      without: phase === LATER ? role.phases.indexOf("startup") : null,
      window: this.field("window").checked ? [from / 1000, to / 1000] : null,
    });
    if (!this.sums[this.root]) this.root = 0;
    if (!this.sums[this.focus]) this.focus = this.root;
    this.draw();
  }

  /** Return a role with its tree and columns, unpacked when it is first asked for. */
  async opened(number) {
    if (!this.roles.has(number)) {
      const role = this.data.roles[number];
      const unpacked = await Promise.all(
        role.columns.map(async (column) => [column.name, (await this.columns.get(column)).values()]),
      );
      this.roles.set(number, { ...role, tree: treeOf(role.stacks), rows: Object.fromEntries(unpacked) });
    }
    return this.roles.get(number);
  }

  draw() {
    if (!this.sums) return;
    const width = Math.max(this.svg.clientWidth, 100);
    const boxes = this.sums[0] > 0 ? boxesOf(this.shown.tree, this.sums, this.root, LEAST_PX / width) : [];
    const rows = Math.max(...boxes.map((box) => box.row), 0) + 1;
    this.svg.setAttribute("height", rows * ROW_PX);
    this.svg.setAttribute("viewBox", `0 0 ${width} ${rows * ROW_PX}`);
    this.svg.replaceChildren(...boxes.map((box) => this.box(box, width)));
    this.field("whole").disabled = this.root === 0;
    this.section.querySelector("[data-flame-none]").hidden = boxes.length > 0;
    this.boxes = boxes;
    this.tell(this.focus);
  }

  box({ node, row, x, width }, all) {
    const [px, left] = [width * all, x * all];
    const group = shape("g", { "data-node": node, class: this.classOf(node), transform: `translate(${left} ${row * ROW_PX})` });
    group.append(shape("rect", { width: Math.max(px - 1, 1), height: ROW_PX - 1, rx: 2 }));
    const name = shortened(this.nameOf(node), px - 2 * PAD_PX);
    if (name) {
      const text = shape("text", { x: PAD_PX, y: ROW_PX - 7 });
      text.textContent = name;
      group.append(text);
    }
    return group;
  }

  classOf(node) {
    const kind = node ? this.data.frames[this.shown.tree.frame[node]][4] : "all";
    const faded = node !== this.root && above(this.shown.tree, this.root).includes(node);
    return `flame-${kind}${faded ? " faded" : ""}${this.isMatch(node) ? " match" : ""}${node === this.focus ? " focus" : ""}`;
  }

  isMatch(node) {
    if (!this.query || !node) return false;
    const [name, , line, file] = this.data.frames[this.shown.tree.frame[node]];
    return `${name} ${file}:${line}`.toLowerCase().includes(this.query);
  }

  nameOf(node) {
    if (!node) return `All ${MEASURES[this.measure]}`;
    const [name, file, line] = this.data.frames[this.shown.tree.frame[node]];
    return `${name} (${file}:${line})`;
  }

  /** Say what a box is: its line, its file, its time and share; and how much a search found. */
  tell(node) {
    if (!this.sums) return;
    const [seconds, all] = [this.sums[node], this.sums[0]];
    const share = (of) => quantity(all ? (100 * of) / all : 0, "%", of / all < 0.1 ? 1 : 0);
    const parts = [element("strong", {}, this.nameOf(node)), ` ${quantity(seconds, "s", 1)}, ${share(seconds)}`];
    if (node) parts.push(element("span", { class: "quiet" }, ` ${this.data.frames[this.shown.tree.frame[node]][3]}`));
    if (this.query) {
      const found = matched(this.shown.tree, this.sums, (at) => this.isMatch(at));
      parts.push(element("span", { class: "quiet" }, ` · “${this.query}”: ${quantity(found, "s", 1)}, ${share(found)}`));
    }
    this.detail.replaceChildren(...parts);
  }

  zoom(node) {
    [this.root, this.focus] = [node, node];
    this.draw();
  }

  key(event) {
    const at = this.boxes?.find((box) => box.node === this.focus);
    if (!at || event.ctrlKey || event.metaKey || event.altKey) return;
    const beside = (row, side) =>
      this.boxes
        .filter((box) => box.row === row && side(box))
        .sort((a, b) => Math.abs(a.x - at.x) - Math.abs(b.x - at.x))[0];
    const moves = {
      ArrowUp: () => this.boxes.find((box) => box.node === this.shown.tree.parent[at.node]),
      ArrowDown: () => this.boxes.find((box) => this.shown.tree.parent[box.node] === at.node),
      ArrowLeft: () => beside(at.row, (box) => box.x < at.x),
      ArrowRight: () => beside(at.row, (box) => box.x > at.x),
    };
    if (event.key in moves) {
      this.focus = moves[event.key]()?.node ?? this.focus;
      this.draw();
    } else if (event.key === "Enter") this.zoom(this.focus);
    else if (event.key === "Escape" && this.root) this.zoom(0);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

/** Set up the flame graph where the run has one. */
export function setUpFlame(data, columns, timeline) {
  const section = document.getElementById("code");
  if (!section || !data) return;
  const graph = new FlameGraph(section, data, columns, timeline);
  graph.choose();
}

function shape(tag, attributes) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

/** Return what of a name fits into so many px, empty where that says nothing. */
function shortened(name, px) {
  const letters = Math.floor(px / LETTER_PX);
  if (name.length <= letters) return name;
  return letters > 3 ? `${name.slice(0, letters - 1)}…` : "";
}
