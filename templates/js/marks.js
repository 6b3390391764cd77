// What is drawn over all lanes: drops, gaps, the ends of epochs, and their labels.

import { inView, thinning, widened } from "./traces.js";

const LABEL_PX = 28; // room that a drop's number needs; of two that do not fit the longer drop keeps its own

export function marks(store, view, colours, scale, lanes, domains) {
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
  const util = lanes.findIndex((lane) => lane.quantity?.name === "gpu_util_pct");
  const numbered =
    util < 0 ? [] : spaced(alarms, view, scale).map((f) => dropLabel(f, view, colours, scale, domains[util][1]));
  return { shapes, annotations: [...numbered, ...gaps.flatMap((gap) => gapLabel(gap, view, colours, scale))] };
}

/** Return stretches (in s) as one shape over all lanes, since each shape costs redraw time; a stretch of no length is a line. */
export function bands(stretches, style, view, scale) {
  if (!stretches.length) return [];
  const path = stretches
    .map(([start, end]) => {
      if (start === end) return `M${pathTime(scale.base + start * 1000)},0V1`;
      const [from, to] = widened(start, end, scale);
      const [left, right] = [Math.max(from, view.from), Math.min(to, view.to)].map((time) =>
        pathTime(scale.base + time),
      );
      return `M${left},0V1H${right}V0Z`;
    })
    .join("");
  return [{ type: "path", path, xref: "x", yref: "paper", layer: "below", ...style }];
}

/** Return ms as a date the way Plotly wants it within a path. */
function pathTime(time) {
  return new Date(time).toISOString().slice(0, -1).replace("T", "_");
}

function epochEnds(run, view, scale) {
  const visible = run.epochs.filter(([, , , end]) => inView(view, end, end));
  const step = thinning(visible, scale, 9);
  return visible.filter(([, epoch]) => epoch % step === 0).map(([, , , end]) => [end, end]);
}

/** Return those of `findings`, the first ones first, whose labels do not overlap. */
function spaced(findings, view, scale) {
  const taken = [];
  return findings.filter(({ start, end }) => {
    const x = visibleMiddle(start, end, view) * scale.pxPerMs;
    const fits = taken.every((other) => Math.abs(other - x) >= LABEL_PX);
    if (fits) taken.push(x);
    return fits;
  });
}

function visibleMiddle(start, end, view) {
  return (Math.max(start * 1000, view.from) + Math.min(end * 1000, view.to)) / 2;
}

function dropLabel(finding, view, colours, scale, y) {
  return {
    text: finding.id.split("-").pop(),
    x: scale.base + visibleMiddle(finding.start, finding.end, view),
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
