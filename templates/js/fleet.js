// The page of a fleet: runs grouped, searched, chosen by a click on a group, sorted; rows are drawn as they are asked for.

import { fromText, inflate } from "./codec.js";
import { holdsWords } from "./filter.js";
import { setUpPrint, setUpTheme } from "./settings.js";

const FIRST_GROUPS = 12;
const FIRST_ROWS = 25;
const MORE_ROWS = 200;
const CAUSE = "cause";
const HOUR = 36_000; // tenths of a second, in which the page has GPU time
const SUMS = ["hours", "work", "lost", "idle", "noProcess", "saves"];
const TITLES = { user: "User", project: "Project", cause: "Cause", gpu: "GPU", week: "Week of", host: "Host", model: "Model" };

/** Return GPU hours as text, as the page's other tables have them. */
export function hoursWords(tenths) {
  if (tenths === null) return "n/a";
  const hours = tenths / HOUR;
  if (hours > 0 && hours < 0.005) return "< 0.01";
  const digits = hours >= 99.5 ? 0 : hours >= 9.95 ? 1 : 2;
  return hours.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** Return a sum in which what is not known is not counted, null where nothing is. */
export function plus(sum, more) {
  return sum === null || more === null ? (sum ?? more) : sum + more;
}

/** Return an amount of money for GPU time. */
export function moneyWords(tenths, price) {
  if (tenths === null) return "n/a";
  const amount = (tenths / HOUR) * price;
  if (amount > 0 && amount < 0.005) return "< 0.01";
  const digits = amount < 1000 ? 2 : 0;
  return amount.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** Return a part of a whole as a percentage. */
export function shareWords(part, whole) {
  if (!(whole > 0) || part === null) return "n/a";
  const share = part / whole;
  return share > 0 && share < 0.005 ? "<\u00a01\u00a0%" : `${Math.round(100 * share)}\u00a0%`;
}

/** The runs of a fleet, as the page has them packed: a column a quantity, texts as numbers into lists. */
export class Runs {
  constructor(packed) {
    Object.assign(this, packed, packed.spent, { length: packed.names.length });
    this.needles = this.names.map((_, run) => this.needle(run));
  }

  text(name, run) {
    const { list, of } = this.texts[name];
    return list[of[run]];
  }

  path(run) {
    return this.text("folder", run) + this.names[run];
  }

  /** Return the address of a run's report, else of its folder; null where there is neither. */
  link(run) {
    const { folders, suffixes, of } = this.links;
    if (of[run] === null) return null;
    return folders[this.texts.folder.of[run]] + encodeURIComponent(this.names[run]) + suffixes[of[run]];
  }

  /** Return the change that helps a run, empty where there is none, or only against other causes than the chosen ones. */
  fix(run) {
    return this.against && !this.against.includes(this.text("fixCause", run)) ? "" : this.text("fix", run);
  }

  /** Return the runs with what these causes alone took as their lost time (as --cause does); all of it without one. */
  lostTo(names) {
    const { causes } = this;
    const chosen = names.filter((name) => causes.lost[causes.names.indexOf(name)]);
    if (!chosen.length) return this;
    const lost = Array(this.length).fill(0);
    causes.run.forEach((run, place) => {
      if (chosen.includes(causes.names[causes.cause[place]])) lost[run] += causes.spent[place] ?? 0;
    });
    const saves = this.saves.map((saved, run) => (chosen.includes(this.text("fixCause", run)) ? saved : null));
    return Object.assign(Object.create(this), { lost, saves, against: chosen });
  }

  needle(run) {
    const words = ["user", "project", "host", "model", "gpu", "week", "fix", "ending"].map((name) => this.text(name, run));
    return [this.path(run), ...words].join(" ");
  }

  /** Return the numbers of the runs that hold some words and lie in all chosen groups. */
  chosen(words, groups) {
    const ofCause = new Map(groups.filter(({ by }) => by === CAUSE).map(({ name }) => [name, this.runsOfCause(name)]));
    const fits = (run) =>
      groups.every(({ by, name }) => (by === CAUSE ? ofCause.get(name).has(run) : this.text(by, run) === name)) &&
      (!words.trim() || holdsWords(this.needles[run], words));
    return [...Array(this.length).keys()].filter(fits);
  }

  runsOfCause(name) {
    const { names, run, cause, spent } = this.causes;
    const wanted = names.indexOf(name);
    return new Set(run.filter((_, place) => cause[place] === wanted && spent[place] > 0));
  }

  /** Return sums by group of some runs, those with most GPU hours first, weeks by time: {name, runs, hours ...} in tenths of seconds. */
  groups(by, runs) {
    return by === CAUSE ? this.byCause(runs) : this.byText(by, runs);
  }

  byText(by, runs) {
    const { list, of } = this.texts[by];
    const sums = new Map();
    for (const run of runs) {
      if (!sums.has(of[run])) sums.set(of[run], { name: list[of[run]], runs: 0, ...Object.fromEntries(SUMS.map((key) => [key, null])) });
      const group = sums.get(of[run]);
      group.runs += 1;
      for (const key of SUMS) group[key] = plus(group[key], this[key][run]);
    }
    const order = by === "week" ? (a, b) => (a.name < b.name ? 1 : -1) : (a, b) => b.hours - a.hours;
    return [...sums.values()].sort(order);
  }

  byCause(runs) {
    const { names, lost, run, cause, spent } = this.causes;
    const wanted = new Uint8Array(this.length);
    for (const each of runs) wanted[each] = 1;
    const sums = names.map((name, place) => ({ name, runs: 0, hours: 0, isLost: lost[place] }));
    run.forEach((each, place) => {
      if (!wanted[each]) return;
      sums[cause[place]].hours += spent[place] ?? 0;
      sums[cause[place]].runs += 1;
    });
    return sums.filter(({ runs }) => runs).sort((a, b) => b.hours - a.hours);
  }
}

function cell(tag, text, { label, number } = {}) {
  const made = document.createElement(tag);
  if (text instanceof Node) made.append(text);
  else made.textContent = text;
  if (tag === "th") made.scope = "row";
  if (number) made.className = "number";
  if (label) made.dataset.label = label;
  return made;
}

function linked(text, address) {
  if (address === null) return text;
  const made = document.createElement("a");
  Object.assign(made, { href: address, textContent: text });
  return made;
}

function button(text, act, className = "link") {
  const made = document.createElement("button");
  Object.assign(made, { type: "button", textContent: text, className });
  made.addEventListener("click", act);
  return made;
}

/** A table whose rows are made as they come into sight; `columns` are {title, number, make(row), sort}. */
function fill(table, columns, rows, first, more, sorting) {
  const head = document.createElement("tr");
  for (const column of columns) {
    const th = cell("th", column.sort ? button(column.title, () => sorting.by(column), "") : column.title, column);
    th.scope = "col";
    delete th.dataset.label;
    if (sorting?.title === column.title) th.setAttribute("aria-sort", sorting.up ? "ascending" : "descending");
    head.append(th);
  }
  const thead = document.createElement("thead");
  thead.append(head);
  const body = document.createElement("tbody");
  table.replaceChildren(thead, body);
  let shown = 0;
  const add = (count) => {
    const made = rows.slice(shown, shown + count).map((row) => {
      const line = document.createElement("tr");
      line.append(...columns.map((column, place) => cell(place ? "td" : "th", column.make(row), { label: place ? column.title : "", number: column.number })));
      return line;
    });
    body.append(...made);
    shown += made.length;
    const left = rows.length - shown;
    more.replaceChildren(...(left > 0 ? [button(`Show ${Math.min(left, MORE_ROWS).toLocaleString("en-US")} more of ${left.toLocaleString("en-US")}`, () => add(MORE_ROWS), "")] : []));
  };
  add(first);
}

class Explorer {
  constructor(runs) {
    Object.assign(this, { all: runs, runs, groups: [], sorted: { title: "Lost", key: (run) => this.runs.lost[run], up: false } });
    this.form = document.getElementById("choose");
    this.form.hidden = false;
    this.form.addEventListener("input", () => this.draw());
    this.form.addEventListener("submit", (event) => event.preventDefault());
    this.draw();
  }

  get by() {
    return this.form.elements.by.value;
  }

  draw() {
    this.runs = this.all.lostTo(this.groups.filter(({ by }) => by === CAUSE).map(({ name }) => name));
    this.chosen = this.runs.chosen(this.form.elements.words.value, this.groups);
    this.drawChips();
    this.drawSum();
    this.drawGroups();
    this.drawRuns();
  }

  drawChips() {
    const chips = this.groups.map((group) => {
      const chip = button(`${TITLES[group.by]}: ${group.name} \u00d7`, () => this.drop(group), "");
      chip.setAttribute("aria-label", `Leave out the choice ${group.name}`);
      return chip;
    });
    document.getElementById("chips").replaceChildren(...chips);
  }

  drop(group) {
    this.groups = this.groups.filter((each) => each !== group);
    this.draw();
  }

  choose(by, name) {
    if (!this.groups.some((group) => group.by === by && group.name === name)) this.groups.push({ by, name });
    this.draw();
  }

  sum(key) {
    return this.chosen.reduce((sum, run) => plus(sum, this.runs[key][run]), null);
  }

  drawSum() {
    const hours = this.sum("hours");
    const count = `${this.chosen.length.toLocaleString("en-US")} of ${this.runs.length.toLocaleString("en-US")} runs`;
    const parts = [`${hoursWords(hours)} GPU hours`];
    if (this.runs.price !== null) parts.push(`cost ${moneyWords(hours, this.runs.price)}`);
    parts.push(`${shareWords(this.sum("work"), hours)} work`, `${hoursWords(this.sum("lost"))} h lost`, `${hoursWords(this.sum("idle"))} h idle`);
    document.getElementById("chosen-runs").textContent = this.chosen.length ? `${count}: ${parts.join(", ")}` : "No run matches.";
  }

  cost(make) {
    return this.runs.price === null ? [] : [{ title: "Cost", number: true, make: (row) => moneyWords(make(row), this.runs.price) }];
  }

  drawGroups() {
    const { by } = this;
    const total = this.sum("hours");
    const name = { title: TITLES[by], make: (row) => button(row.name, () => this.choose(by, row.name)) };
    const counted = { title: "Runs", number: true, make: (row) => row.runs.toLocaleString("en-US") };
    const hours = { title: "GPU hours", number: true, make: (row) => hoursWords(row.hours) };
    const figures = [["Lost", "lost"], ["Idle", "idle"], ["No process", "noProcess"], ["Fixes save", "saves"]];
    const rest =
      by === CAUSE
        ? [
            { title: "Share", number: true, make: (row) => shareWords(row.hours, total) },
            { title: "Lost time", make: (row) => (row.isLost ? "yes" : "") },
          ]
        : [
            { title: "Work", number: true, make: (row) => shareWords(row.work, row.hours) },
            ...figures.map(([title, key]) => ({ title, number: true, make: (row) => hoursWords(row[key]) })),
          ];
    const columns = [name, counted, hours, ...this.cost((row) => row.hours), ...rest];
    fill(document.getElementById("groups"), columns, this.runs.groups(by, this.chosen), FIRST_GROUPS, document.getElementById("groups-more"));
  }

  drawRuns() {
    const { runs } = this;
    const sort = (title, key) => ({ title, sort: key });
    const figure = (title, key) => ({ ...sort(title, (run) => this.runs[key][run]), number: true, make: (run) => hoursWords(runs[key][run]) });
    const columns = [
      { ...sort("Run", (run) => runs.path(run)), make: (run) => linked(runs.path(run), runs.link(run)) },
      { ...sort("User", (run) => runs.text("user", run)), make: (run) => runs.text("user", run) },
      { ...sort("Start", (run) => runs.starts[run]), make: (run) => startWords(runs.starts[run]) },
      { ...sort("Ending", (run) => runs.text("ending", run)), make: (run) => runs.text("ending", run) },
      figure("GPU hours", "hours"),
      ...this.cost((run) => runs.hours[run]),
      figure("Lost", "lost"),
      figure("Idle", "idle"),
      { title: "Change", make: (run) => runs.fix(run) },
    ];
    fill(document.getElementById("list"), columns, this.inOrder(), FIRST_ROWS, document.getElementById("list-more"), {
      title: this.sorted.title,
      up: this.sorted.up,
      by: ({ title, sort: key }) => {
        this.sorted = { title, key, up: this.sorted.title === title ? !this.sorted.up : title === "Run" || title === "User" };
        this.drawRuns();
      },
    });
  }

  inOrder() {
    const { key, up } = this.sorted;
    const keys = new Map(this.chosen.map((run) => [run, key(run)]));
    const compare = (a, b) => {
      const [x, y] = [keys.get(a), keys.get(b)];
      if (x === y) return a - b;
      if (x === null) return 1;
      if (y === null) return -1;
      return (x < y ? -1 : 1) * (up ? 1 : -1);
    };
    return [...this.chosen].sort(compare);
  }
}

function startWords(minutes) {
  return minutes === null ? "n/a" : new Date(minutes * 60_000).toISOString().slice(0, 16).replace("T", " ");
}

/** Return the runs that the page holds. */
export async function readRuns(text) {
  return new Runs(JSON.parse(new TextDecoder().decode(await inflate(fromText(text), "gzip"))));
}

async function open() {
  setUpTheme(() => {});
  setUpPrint(() => {});
  new Explorer(await readRuns(document.getElementById("fleet-runs").textContent));
  document.documentElement.dataset.ready = "yes";
}

if (typeof document !== "undefined" && document.getElementById("fleet-runs")) open();
