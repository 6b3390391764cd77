// The timeline as Plotly wants it: one shared time axis and a lane for each quantity. Draws nothing itself.

import { MARGIN, lanesWidth, isBand, isUtilisation, rowsIn } from "./lanes.js";
import { marks } from "./marks.js";
import { roundTicks, timeTicks } from "./ticks.js";
import { laneTraces } from "./traces.js";
import { elapsed, gpuNumber } from "./words.js";

const WIDE_PX = 500; // has room beside the first lane's title for which part of the run is shown
const TICK_PX = 22; // room that a tick's number needs
const TIME_TICK_PX = 110; // and from one time to the next
const TIME_DIGIT_PX = 7;
const OVER_TITLE_PX = 20; // from the first lane's edge up to the times, over its title
const PERCENT_TICKS = [
  [0, 20, 40, 60, 80, 100],
  [0, 50, 100],
  [0, 100],
];

/**
 * Return Plotly's data and layout for the times in `view` (from and to in ms since the run's start, width in px,
 * hidden GPUs) in the colours and the zone given; lanes lie where `placeLanes` said. A folded lane has no axis.
 */
export function buildFigure(store, lanes, { places, height }, view, colours, zone) {
  const scale = {
    base: store.startWall + zone.offset,
    pxPerMs: lanesWidth(view.width) / (view.to - view.from),
  };
  const open = lanes.map((lane, i) => ({ ...lane, ...places[i] })).filter(({ domain }) => domain);
  const data = open.flatMap((lane, i) =>
    orNothing(laneTraces(store, lane, view, colours, scale), scale.base + view.from).map((trace) => ({
      ...trace,
      xaxis: "x",
      yaxis: axisName("y", i),
      hoverinfo: "skip",
      showlegend: false,
    })),
  );
  const { shapes, annotations } = marks(store, view, colours, scale, open);
  const layout = {
    ...baseLayout(view, colours, scale, height),
    annotations: [zoneTitle(zone, colours, view), ...timesOnTop(view, colours, scale), ...annotations, ...allHidden(store, view, colours, open)],
    shapes,
  };
  open.forEach((lane, i) => {
    layout[axisName("yaxis", i)] = yAxis(lane, lane.domain, colours);
  });
  return { data, layout };
}

/** Return a lane's traces, and where there are none one that draws nothing: without any, Plotly leaves out the axis. */
function orNothing(traces, at) {
  return traces.length ? traces : [{ type: "scatter", mode: "lines", name: "nothing", meta: {}, x: [at], y: [null], line: {} }];
}

/** Return a note that says why lanes are empty, where every GPU is switched off. */
function allHidden({ gpus }, { hidden }, colours, lanes) {
  const lane = lanes.find(isUtilisation);
  if (!lane || !gpus.every(({ index }) => hidden.has(index))) return [];
  return [
    {
      text: "every GPU is switched off",
      x: 0.5,
      xref: "paper",
      y: (lane.domain[0] + lane.domain[1]) / 2,
      yref: "paper",
      showarrow: false,
      font: { size: 12, color: colours.muted },
    },
  ];
}

function axisName(prefix, i) {
  return i ? `${prefix}${i + 1}` : prefix;
}

function baseLayout(view, colours, scale, height) {
  return {
    width: view.width,
    height,
    autosize: false,
    hovermode: false,
    margin: { t: MARGIN.top, r: MARGIN.right, b: MARGIN.bottom, l: MARGIN.left, autoexpand: false },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    showlegend: false,
    font: { family: colours.font, size: 12, color: colours.muted },
    xaxis: {
      type: "linear", // a date axis takes each point's time for a text, and tries to read it as one
      range: [scale.base + view.from, scale.base + view.to],
      autorange: false,
      fixedrange: true,
      anchor: "free",
      position: 0,
      gridcolor: colours.grid,
      linecolor: colours.line,
      showline: true,
      zeroline: false,
      ...timeAxis(view, scale),
    },
  };
}

function yAxis(lane, domain, colours) {
  const bare = isBand(lane) || lane.heat;
  return {
    domain,
    range: lane.range,
    autorange: false,
    fixedrange: true,
    anchor: "x",
    zeroline: false,
    showgrid: !bare,
    showticklabels: !bare,
    gridcolor: colours.grid,
    ...(lane.heat ? rowTicks(lane) : yTicks(lane)),
  };
}

/** Return the range of a heat strip, which is 1 for each row, and the names beside them; those of the first strip are buttons (rows.js). */
function rowTicks(lane) {
  const { rows, headroom } = lane;
  const { rowPx, named } = rowsIn(lane, lane);
  const names = rows.map(({ index }, row) => [rows.length - row - 0.5, `GPU ${gpuNumber(index)}`]).filter((_, row) => row % named === 0);
  return {
    range: [0, lane.height / rowPx],
    tickvals: names.map(([value]) => value),
    ticktext: names.map(([, name]) => name),
    showticklabels: headroom === 0,
  };
}

/** Return the ticks at a lane's side, no more than it has room for. */
function yTicks(lane) {
  const room = Math.max(Math.floor(lane.height / TICK_PX), 1); // steps between two ticks
  const values = lane.unit === "%" ? PERCENT_TICKS.find((ticks) => ticks.length <= room + 1) : lane.tickvals;
  if (!values) return roundTicks(...lane.range, room);
  const every = Math.ceil((values.length - 1) / room);
  const shown = (_, i) => i % Math.max(every, 1) === 0;
  return {
    tickvals: values.filter(shown),
    ...(lane.unit === "%" ? {} : { ticktext: lane.ticktext.filter(shown) }),
  };
}

/** Return the times over the first lane, as they stand under the last one: a chart is higher than many windows. */
function timesOnTop(view, colours, scale) {
  const { tickvals, ticktext } = timeAxis(view, scale);
  return tickvals.map((x, i) => ({
    text: ticktext[i].split("<br>")[0],
    x,
    xref: "x",
    y: 1,
    yref: "paper",
    yanchor: "bottom",
    yshift: OVER_TITLE_PX,
    showarrow: false,
    font: { size: 11, color: colours.muted },
  }));
}

/** Return the times of the axis as values and texts, without a text where it would reach beyond the chart. */
function timeAxis(view, scale) {
  const most = Math.max(Math.floor(view.width / TIME_TICK_PX), 3);
  const { tickvals, ticktext } = timeTicks(scale.base + view.from, scale.base + view.to, most);
  const room = (value) => (scale.base + view.to - value) * scale.pxPerMs + MARGIN.right;
  const fits = (text, i) => room(tickvals[i]) >= (text.split("<br>")[0].length * TIME_DIGIT_PX) / 2;
  return { tickvals, ticktext: ticktext.map((text, i) => (fits(text, i) ? text : "")) };
}

function zoneTitle(zone, colours, view) {
  const part = view.isWhole || view.width < WIDE_PX ? "" : `${elapsed(view.from)} to ${elapsed(view.to)} into the run, `;
  return {
    text: `${part}times in ${zone.name}`,
    x: 1,
    xref: "paper",
    xanchor: "right",
    y: 1,
    yref: "paper",
    yanchor: "bottom",
    yshift: 3,
    showarrow: false,
    font: { size: 11, color: colours.muted },
  };
}
