import assert from "node:assert/strict";
import test from "node:test";
import { timeTicks } from "../../../templates/js/ticks.js";

const AT = Date.UTC(2026, 10, 21, 23, 59, 0);

test("times on the axis are round, and as exact as their step", () => {
  assert.deepEqual(timeTicks(AT + 500, AT + 3500, 6).ticktext, [
    ...["23:59:00.500<br>21 Nov", "23:59:01.000", "23:59:01.500", "23:59:02.000", "23:59:02.500", "23:59:03.000"],
    "23:59:03.500",
  ]);
  assert.deepEqual(timeTicks(AT, AT + 20_000, 5).ticktext, [
    ...["23:59:00<br>21 Nov", "23:59:05", "23:59:10", "23:59:15", "23:59:20"],
  ]);
  assert.deepEqual(timeTicks(AT, AT + 20_000, 5).tickvals[1], AT + 5000);
});

test("a new day is told where it begins, and days stand alone where the step is one", () => {
  assert.deepEqual(timeTicks(AT, AT + 150_000, 3).ticktext, ["23:59<br>21 Nov", "00:00<br>22 Nov", "00:01"]);
  assert.deepEqual(timeTicks(AT, AT + 3 * 86_400_000, 4).ticktext, ["22 Nov", "23 Nov", "24 Nov"]);
});

test("no window of a phone has a single time", () => {
  const start = Date.UTC(2026, 10, 21, 18, 40, 0);
  const [from, to] = [start + 29 * 60_000, start + 121 * 60_000]; // of the hours only 20:00 lies within
  assert.deepEqual(timeTicks(from, to, 3).ticktext, ["19:30<br>21 Nov", "20:00", "20:30"]);
  for (const minutes of [3, 7, 22, 47, 61, 92, 100, 130, 213, 437, 700, 1000, 3000])
    for (const offset of [0, 7, 29, 44])
      assert.ok(timeTicks(start + offset * 60_000, start + (offset + minutes) * 60_000, 3).tickvals.length >= 2);
});

test("of any window there are no more times than there is room for, and none that no calendar has", () => {
  for (const span of [1, 30, 999, 61_000, 3_599_000, 5e7, 2e8, 9e9, 4e12])
    assert.ok(timeTicks(AT, AT + span, 8).tickvals.length <= 9, `${span}`);
  assert.equal(timeTicks(8.64e15 + 1, 8.64e15 + 10_000, 5).ticktext.join(""), "");
});
