"""Thresholds of benchmarks, each with its unit and its reason."""

# Share of boxes: FP16 and fused operators change a few boxes of a hundred, at the lowest scores. A wrong export has
# hardly any of the right ones.
SAME_OUTPUTS_SHARE = 0.9

# mAP50-95: what the published exports of YOLO differ by is a few thousandths; one point is felt by users.
SAME_MAP = 0.01

# Share of turns: of two benchmarks on an H100 whose host was twice as slow at times, the fastest tenth swapped 2 pairs
# of 12 variants, all calls 8, and the medians of turns 12.
FULL_SPEED_SHARE = 0.1

# Calls of a turn: with fewer, its p95 is its slowest call.
P95_CALLS_OF_A_TURN = 20

# Turns: an interval of the mean of fewer says little.
TURNS_AT_LEAST = 4

# Of turns in a row, by which is judged what another benchmark would read. Of two pairs on H200s whose hosts drifted, 46
# of 48 medians lay within the other benchmark's interval with 6 blocks, 42 with 8 and 33 with 20; of p95 39 with 6.
BLOCKS = 6

# Seconds: a board's power is read as a mean of up to a second, so that shorter turns have that of the one before, too.
# Then the energy is that of the warm-up, from this long after its beginning.
LONG_TURN_S = 1.5

# Share of a variant's turns: the power of the rest is taken to be the same, which a minority of it cannot say.
POWER_READ_SHARE = 0.5

HALF_OF_5_PERCENT = 0.975  # the quantile of an interval of 95 % on either side
