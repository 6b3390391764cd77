// How the model learned: loss and learning rate of each epoch, as steps on the time axis of the GPUs.

import { inView } from "./stretches.js";
import { roundTicks } from "./ticks.js";

const FIRST_VALUE = 4; // in a row of run.epochs: run, epoch, start and end come before run.epoch_quantities
const DIGITS = 4; // significant ones that tell an epoch from its neighbours
const LANE_HEIGHT = 70;

/** Return what a row of run.epochs says of a quantity; null where it is not known. */
export function ofEpoch(run, epoch, name) {
  const place = run.epoch_quantities.findIndex((about) => about.name === name);
  return epoch?.[FIRST_VALUE + place] ?? null;
}

/** Return a lane of what is known of whole epochs; null where nothing is. Its range has 0, so that a flat loss looks flat. */
export function learningLane(run, { kind, title: key, drawn }) {
  const quantities = run.epoch_quantities.filter(({ name }) => drawn.includes(name));
  const values = quantities.flatMap(({ name }) => run.epochs.map((epoch) => ofEpoch(run, epoch, name)));
  const known = values.filter((value) => value !== null);
  if (!known.length) return null;
  const [low, high] = [Math.min(0, ...known), Math.max(0, ...known)];
  const room = (high - low || 1) * 0.06;
  const isFlat = known.every((value) => value === known[0]);
  const title = isFlat ? `${key}: ${learningText(known[0])} ${known.length === 1 ? "(one value)" : "throughout"}` : key;
  return {
    ...{ kind, key, title, isFlat, quantities, told: [], sources: [], unit: "", height: LANE_HEIGHT },
    range: [low - room, high + room],
    ...roundTicks(low, high || 1, 3),
  };
}

/** Return a quantity as a line, level over each epoch; it breaks where it is not known and where another run begins. */
export function learningTrace(run, about, view, colours, scale) {
  const [x, y] = [[], []];
  run.epochs.forEach((epoch, i) => {
    const value = ofEpoch(run, epoch, about.name);
    if (value === null || !inView(view, epoch[2], epoch[3])) return;
    const before = run.epochs[i - 1];
    const goesOn = before?.[0] === epoch[0] && ofEpoch(run, before, about.name) !== null;
    if (x.length && !goesOn) {
      x.push(x.at(-1));
      y.push(null);
    }
    x.push(scale.base + epoch[2] * 1000, scale.base + epoch[3] * 1000);
    y.push(value, value);
  });
  return {
    type: "scatter",
    mode: "lines",
    name: about.label,
    meta: { gpu: null, quantity: about.name, exact: true },
    connectgaps: false,
    x,
    y,
    line: { color: colours.lines[about.name], width: 1.8, shape: "hv" },
  };
}

/** Return a value of an epoch as a person reads it. */
export function learningText(value) {
  return value === null ? "n/a" : String(Number(value.toPrecision(DIGITS)));
}
