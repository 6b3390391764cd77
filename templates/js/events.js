// The lane of events: kernel messages, checkpoints, gaps, and what else happened to the recording.

import { inView, thinning } from "./stretches.js";

const SYMBOLS = { critical: "diamond", warning: "triangle-up", info: "circle" };
const CHECKPOINT_PX = 6; // on the screen; of closer ones every n-th epoch's is drawn, as of the lines at epochs' ends

/** Return whether a run has anything to show in the lane. */
export function hasEvents(run) {
  return [run.kernel, run.happenings, run.gaps, checkpoints(run)].some((each) => each.length > 0);
}

/** Return the lane's marks, the most important last and so on top. */
export function eventTraces(run, view, colours, scale) {
  const at = (t) => scale.base + t * 1000;
  const shown = run.phases.length ? checkpointsShown(run, view, scale) : [];
  const gaps = run.gaps.filter(([, start, end]) => inView(view, start, end));
  const traces = [
    points("checkpoint", shown.map(([, , , end]) => at(end)), { symbol: "line-ns-open", color: colours.checkpoint }),
    points("gap", gaps.map(([, start, end]) => at((start + end) / 2)), { symbol: "x-thin-open", color: colours.muted }),
    points("happening", run.happenings.map(([t]) => at(t)), { symbol: "square", color: colours.muted, size: 9 }),
    points("kernel", run.kernel.map(({ t }) => at(t)), {
      symbol: run.kernel.map(({ severity }) => SYMBOLS[severity]),
      color: run.kernel.map(({ severity }) => colours[severity]),
      line: { width: 1, color: colours.background },
      size: 12,
    }),
  ];
  return traces.filter(({ x }) => x.length);
}

function checkpoints(run) {
  return run.phases.filter(([name]) => name === "checkpoint");
}

function checkpointsShown(run, view, scale) {
  const visible = checkpoints(run).filter(([, , , end]) => inView(view, end, end));
  const step = thinning(visible, scale, CHECKPOINT_PX);
  return visible.filter(([, epoch], i) => (epoch ?? i) % step === 0);
}

function points(kind, x, { symbol, color, size = 10, line = { width: 2, color } }) {
  return {
    type: "scatter",
    mode: "markers",
    name: kind,
    meta: { marks: kind },
    x,
    y: x.map(() => 0.5),
    cliponaxis: false,
    marker: { symbol, color, size, line },
  };
}

/** Return what happened to the recording within some ms of a moment, nearest first, as [t, what, detail]. */
export function happeningsNear(run, time, within) {
  const distance = ([t]) => Math.abs(t * 1000 - time);
  return run.happenings.filter((each) => distance(each) <= within).sort((a, b) => distance(a) - distance(b));
}
