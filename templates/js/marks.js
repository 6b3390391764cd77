// What is drawn over all lanes: drops, gaps, the ends of epochs, and their labels.

import { isUtilisation } from "./lanes.js";
import { inView, thinning, widened } from "./stretches.js";

const LABEL_PX = 12; // room that numbers of drops need beside their digits
const DIGIT_PX = 8;
const SEVERITIES = ["critical", "warning", "info"]; // worst first
const LONG_SHARE = 0.5; // of the times in view: the middle of what lasts longer says nothing
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
  const marked = run.findings.filter((f) => f.number && inView(view, f.start, f.end) && !view.hidden.has(f.gpu));
  const numbered = util
    ? labelled(marked, view, scale).map((label) => dropLabel(label, colours, scale, util.domain[1]))
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
  const once = [...new Map(findings.map((each) => [each.number, each])).values()]; // of several GPUs one is there for each
  const single = once.map((each) => ({ numbers: [each.number], worst: SEVERITIES.indexOf(each.severity), middle: placeOf(each, view) }));
  const labels = [];
  for (const next of single.sort((a, b) => a.middle - b.middle)) {
    const before = labels.at(-1);
    if (before && isTooNear(before, next, scale)) labels[labels.length - 1] = joined(before, next);
    else labels.push(next);
  }
  return labels.map(({ numbers, worst, middle }) => {
    const text = numbersText(numbers);
    const half = labelWidth(text) / 2 / scale.pxPerMs;
    return { text, severity: SEVERITIES[worst], time: Math.min(Math.max(middle, view.from + half), view.to - half) }; // within the chart
  });
}

function isTooNear(before, next, scale) {
  const room = (labelWidth(numbersText(before.numbers)) + labelWidth(numbersText(next.numbers))) / 2;
  return (next.middle - before.middle) * scale.pxPerMs < room;
}

function joined(one, other) {
  const [a, b] = [one.numbers.length, other.numbers.length];
  return { numbers: [...one.numbers, ...other.numbers], worst: Math.min(one.worst, other.worst), middle: (one.middle * a + other.middle * b) / (a + b) };
}

/**
 * Return numbers of findings as a text of ranges, such as "1–3, 7", which counts those that are too many. What happened several
 * times has a place behind its number: "2.1–2.3".
 */
export function numbersText(numbers) {
  const ranges = [];
  const parts = [...new Set(numbers.map(String))].map((text) => text.split(".").map(Number));
  for (const [number, place] of parts.sort(([a, i = 0], [b, j = 0]) => a - b || i - j)) {
    const last = ranges.at(-1);
    const isNext = last && (place === undefined ? last.place === undefined && number === last.number + last.count : number === last.number && place === last.place + last.count);
    if (isNext) last.count += 1;
    else ranges.push({ number, place, count: 1 });
  }
  const shown = ranges.slice(0, MOST_PARTS);
  const left = ranges.slice(MOST_PARTS).reduce((sum, { count }) => sum + count, 0);
  const words = shown.map(({ number, place, count }) => {
    const nth = (i) => (place === undefined ? `${number + i}` : `${number}.${place + i}`);
    return count === 1 ? nth(0) : `${nth(0)}${count === 2 ? ", " : "–"}${nth(count - 1)}`;
  });
  return words.join(", ") + (left ? ` +${left}` : "");
}

/** Return where a finding's number stands: in its middle, at the beginning of what lasts for most of what is in view. */
function placeOf({ start, end }, view) {
  const isLong = end - start > ((view.to - view.from) / 1000) * LONG_SHARE;
  return isLong ? Math.max(start * 1000, view.from) : visibleMiddle(start, end, view);
}

function visibleMiddle(start, end, view) {
  return (Math.max(start * 1000, view.from) + Math.min(end * 1000, view.to)) / 2;
}

function labelWidth(text) {
  return LABEL_PX + DIGIT_PX * text.length;
}

function dropLabel({ text, severity, time }, colours, scale, y) {
  return {
    text,
    x: scale.base + time,
    xref: "x",
    y,
    yref: "paper",
    yanchor: "top",
    showarrow: false,
    font: { size: 11, weight: 700, color: colours.onLow },
    bgcolor: colours[severity],
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
