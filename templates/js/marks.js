// What is drawn over all lanes: drops, gaps, the ends of epochs, and their labels.

import { isUtilisation } from "./lanes.js";
import { inView, thinning, widened } from "./stretches.js";

const LABEL_PX = 12; // room that numbers of drops need beside their digits
const DIGIT_PX = 8;
const MOST_PARTS = 3; // of numbers and ranges in one label; those beyond are only counted

/** Return the shapes and annotations over the open lanes. */
export function marks(store, view, colours, scale, lanes) {
  const { run } = store;
  const gaps = run.gaps.filter(([, start, end]) => inView(view, start, end)).map(([, start, end]) => [start, end]);
  const drops = run.findings.filter((f) => f.drop && inView(view, f.start, f.end) && !view.hidden.has(f.gpu));
  const alarms = drops.filter((f) => !f.expected).sort((a, b) => b.end - b.start - (a.end - a.start));
  const span = ({ start, end }) => [start, end];
  const shapes = [
    ...bands(gaps, { fillcolor: colours.gap, line: { width: 1, dash: "dot", color: colours.line } }, view, scale),
    ...bands(
      drops.filter((f) => f.expected).map(span),
      { fillcolor: colours.expected, line: { width: 0 } },
      view,
      scale,
    ),
    ...bands(alarms.map(span), { fillcolor: colours.drop, line: { width: 0 } }, view, scale),
    ...bands(epochEnds(run, view, scale), { line: { width: 1, color: colours.epoch } }, view, scale),
  ];
  const util = lanes.find(isUtilisation);
  const numbered = util
    ? labelled(alarms, view, scale).map((label) => dropLabel(label, colours, scale, util.domain[1]))
    : [];
  return { shapes, annotations: [...numbered, ...gaps.flatMap((gap) => gapLabel(gap, view, colours, scale))] };
}

/** Return stretches (in s) as one shape over all lanes, since each shape costs redraw time; a stretch of no length is a line. */
export function bands(stretches, style, view, scale) {
  if (!stretches.length) return [];
  const path = stretches
    .map(([start, end]) => {
      if (start === end) return `M${scale.base + start * 1000},0V1`;
      const [from, to] = widened(start, end, scale);
      const [left, right] = [Math.max(from, view.from), Math.min(to, view.to)].map((time) => scale.base + time);
      return `M${left},0V1H${right}V0Z`;
    })
    .join("");
  // nonzero: drops of several GPUs lie over each other, and by Plotly's own rule an even number of them would cancel out
  return [{ type: "path", path, fillrule: "nonzero", xref: "x", yref: "paper", layer: "below", ...style }];
}

function epochEnds(run, view, scale) {
  const visible = run.epochs.filter(([, , , end]) => inView(view, end, end));
  const step = thinning(visible, scale, 9);
  return visible.filter(([, epoch]) => epoch % step === 0).map(([, , , end]) => [end, end]);
}

/** Return labels as {text, time}: a number for each drop, and those that would lie over each other as one label. */
function labelled(findings, view, scale) {
  const drops = [...new Map(findings.map((each) => [`${each.id} ${each.start}`, each])).values()]; // of several GPUs one is there for each
  const single = drops.map((each) => ({
    numbers: [Number(each.id.split("-").pop())],
    middle: visibleMiddle(each.start, each.end, view),
  }));
  const labels = [];
  for (const next of single.sort((a, b) => a.middle - b.middle)) {
    const before = labels.at(-1);
    if (before && isTooNear(before, next, scale)) labels[labels.length - 1] = joined(before, next);
    else labels.push(next);
  }
  return labels.map(({ numbers, middle }) => {
    const text = numbersText(numbers);
    const half = labelWidth(text) / 2 / scale.pxPerMs;
    return { text, time: Math.min(Math.max(middle, view.from + half), view.to - half) }; // within the chart
  });
}

function isTooNear(before, next, scale) {
  const room = (labelWidth(numbersText(before.numbers)) + labelWidth(numbersText(next.numbers))) / 2;
  return (next.middle - before.middle) * scale.pxPerMs < room;
}

function joined(one, other) {
  const [a, b] = [one.numbers.length, other.numbers.length];
  return { numbers: [...one.numbers, ...other.numbers], middle: (one.middle * a + other.middle * b) / (a + b) };
}

/** Return numbers as a text of ranges, such as "1–3, 7", which counts those that are too many. */
export function numbersText(numbers) {
  const ranges = [];
  for (const number of [...new Set(numbers)].sort((a, b) => a - b)) {
    const last = ranges.at(-1);
    if (last && number === last[1] + 1) last[1] = number;
    else ranges.push([number, number]);
  }
  const shown = ranges.slice(0, MOST_PARTS);
  const left = ranges.slice(MOST_PARTS).reduce((sum, [low, high]) => sum + high - low + 1, 0);
  const words = shown.map(([low, high]) => (low === high ? `${low}` : high === low + 1 ? `${low}, ${high}` : `${low}–${high}`));
  return words.join(", ") + (left ? ` +${left}` : "");
}

function visibleMiddle(start, end, view) {
  return (Math.max(start * 1000, view.from) + Math.min(end * 1000, view.to)) / 2;
}

function labelWidth(text) {
  return LABEL_PX + DIGIT_PX * text.length;
}

function dropLabel({ text, time }, colours, scale, y) {
  return {
    text,
    x: scale.base + time,
    xref: "x",
    y,
    yref: "paper",
    yanchor: "top",
    showarrow: false,
    font: { size: 11, weight: 700, color: colours.onLow },
    bgcolor: colours.low,
    borderpad: 2,
  };
}

function gapLabel([start, end], view, colours, scale) {
  const px = (Math.min(end * 1000, view.to) - Math.max(start * 1000, view.from)) * scale.pxPerMs;
  if (px < 56) return [];
  return [
    {
      text: "no data",
      x: scale.base + visibleMiddle(start, end, view),
      xref: "x",
      y: 0.5,
      yref: "paper",
      showarrow: false,
      font: { size: 11, color: colours.muted },
    },
  ];
}
