import assert from "node:assert/strict";
import test from "node:test";
import { sketch } from "../../../templates/js/sketch.js";

const RANGE = [1000, 2000];

/** Return a canvas that keeps what is drawn on it, each with the style it is drawn in. */
function canvas() {
  const calls = [];
  const state = {};
  const keep = (name) => (...all) => calls.push([name, ...all]);
  const own = {
    fill: () => calls.push(["fill", state.fillStyle]),
    stroke: () => calls.push(["stroke", state.strokeStyle, state.dash]),
    setLineDash: (dash) => (state.dash = dash),
  };
  own.measureText = (words) => ({ width: 7 * words.length });
  const paper = new Proxy(state, { get: (_, name) => own[name] ?? state[name] ?? keep(name) });
  return { style: {}, getContext: () => paper, calls };
}

function figure(data, shapes = [], annotations = []) {
  const yaxis = { domain: [0.5, 1], range: [0, 100], showgrid: true, showticklabels: true, gridcolor: "grid", tickvals: [0, 100] };
  const xaxis = { range: RANGE, tickvals: [1500], ticktext: ["10:00<br>1 Jan"], gridcolor: "grid", linecolor: "line" };
  const layout = { width: 1064, height: 282, xaxis, yaxis, shapes, annotations, font: { size: 12, family: "x", color: "text" } };
  return { data: data.map((trace) => ({ yaxis: "y", ...trace })), layout };
}

// The lanes are 1000 px wide from 50 on, and 200 px high from 42 on.
const of = (calls, ...names) => calls.filter(([name]) => names.includes(name));

test("a line lies where its axes say, and breaks where a reading is missing", () => {
  const line = { color: "red", width: 1, dash: "6px,2px" };
  const place = canvas();
  sketch(place, figure([{ mode: "lines", x: [1000, 1500, 1600, 2000], y: [0, 100, null, 50], line }]), "white", 2);
  assert.deepEqual([place.width, place.height, place.style.width], [2128, 564, "1064px"]);
  assert.deepEqual(of(place.calls, "moveTo", "lineTo"), [
    ["moveTo", 50, 142],
    ["lineTo", 550, 42],
    ["moveTo", 1050, 92],
  ]);
  assert.deepEqual(of(place.calls, "stroke"), [["stroke", "red", [6, 2]]]);
});

test("a quantity of epochs is drawn in steps", () => {
  const place = canvas();
  sketch(place, figure([{ mode: "lines", x: [1000, 2000], y: [100, 0], line: { shape: "hv" } }]));
  assert.deepEqual(of(place.calls, "moveTo", "lineTo"), [
    ["moveTo", 50, 42],
    ["lineTo", 1050, 42],
    ["lineTo", 1050, 142],
  ]);
});

test("phases are filled, and their numbers written", () => {
  const band = { mode: "lines", x: [1000, 1000, 2000, 2000, 1000], y: [0, 100, 100, 0, 0], fill: "toself", fillcolor: "blue" };
  const numbers = { mode: "text", x: [1500], y: [50], text: ["3"], textfont: { size: 11, color: "black" } };
  const place = canvas();
  sketch(place, figure([{ ...band, line: { width: 0 } }, numbers]));
  assert.deepEqual(of(place.calls, "fill"), [["fill", "blue"]]);
  assert.deepEqual(of(place.calls, "stroke"), []);
  assert.deepEqual(of(place.calls, "fillText").at(-1), ["fillText", "3", 550, 92]);
});

test("bands over all lanes are one shape, lines have their width, and times stand under them in two rows", () => {
  const shapes = [
    { path: "M1000,0V1H1100V0ZM1050,0V1H1200V0Z", fillcolor: "rgba(0, 0, 0, 0.1)", line: { width: 0 } },
    { path: "M1500,0V1M1600,0V1", line: { width: 1, color: "grey" } },
  ];
  const place = canvas();
  sketch(place, figure([], shapes));
  assert.deepEqual(of(place.calls, "rect", "fill"), [
    ["rect", 50, 42, 100, 200],
    ["rect", 100, 42, 150, 200],
    ["fill", "rgba(0, 0, 0, 0.1)"],
    ["rect", 550, 42, 1, 200],
    ["rect", 650, 42, 1, 200],
    ["fill", "grey"],
  ]);
  assert.deepEqual(
    of(place.calls, "fillText").map(([, words, x]) => [words, x]),
    [
      [0, 49],
      [100, 49],
      ["10:00", 550],
      ["1 Jan", 550],
    ],
  );
});

test("it hides what is under it", () => {
  const place = canvas();
  sketch(place, figure([]), "white");
  assert.deepEqual(of(place.calls, "fillRect")[0], ["fillRect", 0, 0, 1064, 282]);
});

test("each sign has its shape, open ones are not filled", () => {
  const line = { width: 2, color: ["white", "white", "grey"] };
  const marker = { symbol: ["square", "triangle-up", "line-ns-open"], color: ["red", "green", "grey"], size: 10, line };
  const place = canvas();
  sketch(place, figure([{ mode: "markers", x: [1000, 1500, 2000], y: [50, 50, 50], marker }]));
  assert.deepEqual(of(place.calls, "rect", "fill", "stroke").map(([name, first]) => [name, first]), [
    ["rect", 45],
    ["fill", "red"],
    ["stroke", "white"],
    ["fill", "green"],
    ["stroke", "white"],
    ["stroke", "grey"],
  ]);
  assert.deepEqual(of(place.calls, "moveTo", "lineTo").slice(-2), [
    ["moveTo", 1050, 99],
    ["lineTo", 1050, 85],
  ]);
});

test("a note stands at its anchor, on its ground where it has one", () => {
  const font = { size: 10, color: "ink" };
  const number = { text: "12", x: 1500, xref: "x", y: 1, yanchor: "top", bgcolor: "red", borderpad: 2, font };
  const zone = { text: "UTC", x: 1, xref: "paper", xanchor: "right", y: 1, yanchor: "bottom", yshift: 3, font };
  const place = canvas();
  sketch(place, figure([], [], [number, zone]));
  assert.deepEqual(of(place.calls, "fillRect").at(-1), ["fillRect", 540, 42, 20, 19]);
  assert.deepEqual(of(place.calls, "fillText").slice(-2), [
    ["fillText", "12", 550, 51.5],
    ["fillText", "UTC", 1037.5, 30.5],
  ]);
});
