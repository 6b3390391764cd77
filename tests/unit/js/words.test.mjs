import assert from "node:assert/strict";
import test from "node:test";
import { Zone, elapsed, phaseWords, quantity } from "../../../templates/js/words.js";

test("what is missing reads n/a and never 0", () => {
  for (const value of [null, undefined, Number.NaN]) assert.equal(quantity(value, "W"), "n/a");
  assert.equal(quantity(0, "W"), "0\u00a0W");
  assert.equal(quantity(143771, "MiB"), "143,771\u00a0MiB");
  assert.equal(quantity(12.34, "%", 1), "12.3\u00a0%");
  assert.equal(quantity(5), "5");
});

test("time since the start reads as a clock, also before it and over an hour", () => {
  assert.equal(elapsed(0), "0:00:00");
  assert.equal(elapsed(3_661_499), "1:01:01");
  assert.equal(elapsed(3_661_499, true), "1:01:01.5");
  assert.equal(elapsed(-61_000), "-0:01:01");
  assert.equal(elapsed(-10), "0:00:00");
});

test("a zone is the viewer's or UTC, and a time that no calendar has is n/a", () => {
  const zone = new Zone(Date.UTC(2026, 10, 21, 1, 10, 24));
  zone.localOffset = 9 * 3_600_000;
  assert.equal(zone.name, "UTC+09:00");
  assert.equal(zone.dateTime(zone.startWall), "2026-11-21 10:10:24");
  zone.localOffset = -3.5 * 3_600_000;
  assert.equal(zone.name, "UTC−03:30");
  zone.useUtc = true;
  assert.equal(zone.name, "UTC");
  assert.equal(zone.timeOfDay(zone.startWall), "01:10:24");
  assert.equal(zone.dateTime(1e18), "n/a");
});

test("a phase is written as people write it", () => {
  assert.equal(phaseWords("startup"), "start-up");
  assert.equal(phaseWords("final evaluation"), "final evaluation");
});
