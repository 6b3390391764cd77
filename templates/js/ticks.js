// Round numbers for the side of a lane.

/** Return the least of 1, 2, 5, 10, 20, ... times a power of ten that parts `span` into at most `most` steps. */
export function roundStep(span, most) {
  const power = 10 ** Math.floor(Math.log10(span / most));
  return [1, 2, 5, 10].map((digit) => digit * power).find((step) => span / step <= most * (1 + 1e-9));
}

/** Return the multiples of a round step within a range, as values and as they are written; the unit is `size` of them. */
export function roundTicks(low, high, most, size = 1) {
  const step = roundStep((high - low) / size, most);
  const first = Math.ceil(low / size / step);
  const count = Math.floor(high / size / step) - first + 1;
  const values = Array.from({ length: count }, (_, i) => Number(((first + i) * step).toPrecision(12)));
  return { tickvals: values.map((value) => value * size), ticktext: values.map(String) };
}
