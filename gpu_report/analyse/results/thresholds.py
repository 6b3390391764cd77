"""Thresholds of the verdict and stalls, each with its unit and its reason."""

COMPUTE_BOUND_PCT = 95.0  # above this: the time is in the model

# Of a drop: so much of it reported as one wait between batches, and it is that wait. A trainer stopped within a batch
# has next to none of it (0 to 2 s of 12 to 15, on labelled H200 runs), one between two has all (13 and 18 s).
STALLED_SHARE = 0.5
