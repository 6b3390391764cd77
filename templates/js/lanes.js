// The timeline's lanes from top to bottom: what stands in each, how high it is, and its range.

const LANE_GAP = 34;
const PHASE_HEIGHT = 22;
const KERNEL_HEIGHT = 26;
export const MARGIN = { top: 26, right: 14, bottom: 40, left: 50 };
const MIB_PER_GIB = 1024;

/** Return the lanes of a run from top to bottom: what stands in each, how high it is, and its range. */
export function lanesOf(store) {
  const { run } = store;
  const lanes = [];
  if (run.phases.length || run.epochs.length)
    lanes.push({ kind: "phases", title: "Phase and epoch", height: PHASE_HEIGHT, range: [0, 1] });
  if (run.kernel.length) lanes.push({ kind: "kernel", title: "Kernel events", height: KERNEL_HEIGHT, range: [0, 1] });
  for (const quantity of run.quantities.filter((q) => q.lane !== null).sort((a, b) => a.lane - b.lane)) {
    const lines = store.gpus.filter((gpu) => gpu.series.columns.has(quantity.name));
    if (lines.length) lanes.push(gpuLane(quantity, lines));
  }
  for (const quantity of run.host_quantities.filter((q) => q.lane !== null && store.host.columns.has(q.name))) {
    lanes.push({ kind: "host", quantity, title: `${quantity.label}, ${quantity.unit}`, height: 70, range: [-3, 103] });
  }
  return lanes;
}

function gpuLane(quantity, gpus) {
  const isMain = quantity.name === "gpu_util_pct";
  const unit = quantity.unit === "MiB" ? "GiB" : quantity.unit;
  const lane = { kind: "gpu", quantity, gpus, title: `${quantity.label}, ${unit}`, height: isMain ? 180 : 92 };
  return { ...lane, ...laneRange(quantity, gpus) };
}

function laneRange(quantity, gpus) {
  if (quantity.unit === "%") return { range: [-3, 103] };
  const extents = gpus.map((gpu) => gpu.series.columns.get(quantity.name).extent()).filter(Boolean);
  const low = Math.min(...extents.map(([least]) => least));
  const high = Math.max(...extents.map(([, most]) => most));
  if (quantity.unit === "°C") return { range: [low - 3, high + 3] };
  if (quantity.unit === "MiB") return memoryRange(high);
  return { range: [-high * 0.04, Math.max(high * 1.06, 1)] };
}

function memoryRange(high) {
  const top = Math.max(high / MIB_PER_GIB, 0.1) * 1.06;
  const step = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500].find((size) => top / size <= 4) ?? 1000;
  const ticks = Array.from({ length: Math.floor(top / step) + 1 }, (_, i) => Number((i * step).toFixed(1)));
  return {
    range: [-top * 0.04 * MIB_PER_GIB, top * MIB_PER_GIB],
    tickvals: ticks.map((t) => t * MIB_PER_GIB),
    ticktext: ticks.map(String),
  };
}

/** Return the lanes' places on the chart, as fractions of its inner height from below, and the whole height in px. */
export function placeLanes(lanes) {
  const inner = lanes.reduce((sum, lane) => sum + lane.height, 0) + LANE_GAP * (lanes.length - 1);
  let top = inner;
  const domains = lanes.map((lane) => {
    const domain = [Math.max((top - lane.height) / inner, 0), Math.min(top / inner, 1)];
    top -= lane.height + LANE_GAP;
    return domain;
  });
  return { domains, height: inner + MARGIN.top + MARGIN.bottom };
}
