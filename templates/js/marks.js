// What is drawn over all lanes: drops, gaps, the ends of epochs, and their labels.

import { isUtilisation } from "./lanes.js";
import { inView, thinning, widened } from "./stretches.js";

const LABEL_PX = 12; // room that a drop's number needs beside its digits; of two that do not fit the longer drop keeps it
const DIGIT_PX = 8;

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
    ? spaced(alarms, view, scale).map((f) => dropLabel(f, view, colours, scale, util.domain[1]))
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

/** Return those of `findings`, the first ones first, whose labels do not overlap. */
function spaced(findings, view, scale) {
  const taken = [];
  return findings.filter((finding) => {
    const x = labelTime(finding, view, scale) * scale.pxPerMs;
    const px = labelWidth(finding);
    const fits = taken.every(([other, room]) => Math.abs(other - x) >= Math.max(room, px));
    if (fits) taken.push([x, px]);
    return fits;
  });
}

function visibleMiddle(start, end, view) {
  return (Math.max(start * 1000, view.from) + Math.min(end * 1000, view.to)) / 2;
}

function labelWidth(finding) {
  return LABEL_PX + DIGIT_PX * dropNumber(finding).length;
}

/** Return where a drop's number stands (in ms): over the drop's middle, but within the chart. */
function labelTime(finding, view, scale) {
  const half = labelWidth(finding) / 2 / scale.pxPerMs;
  return Math.min(Math.max(visibleMiddle(finding.start, finding.end, view), view.from + half), view.to - half);
}

function dropNumber(finding) {
  return finding.id.split("-").pop();
}

function dropLabel(finding, view, colours, scale, y) {
  return {
    text: dropNumber(finding),
    x: scale.base + labelTime(finding, view, scale),
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
