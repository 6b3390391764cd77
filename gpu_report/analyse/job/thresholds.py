"""Thresholds of jobs of several nodes."""

# A rank is the one that all wait for when it was last in so many of the epochs (0 to 1): a rank that is slow by chance
# changes from one epoch to the next.
LAST_SHARE = 0.8
# ... and when without it an epoch's training would be shorter by this share: less is noise of a loader.
LEAST_EXCESS = 0.05
# ... over so many epochs after the first, in which each node fills its caches.
LEAST_EPOCHS = 2
# One of several ranks of a node is meant, not the node, when it has so much of what the node waits longer than others.
OWN_EXCESS = 0.5

# A GPU that waits for another rank reads as busy: the others do, when they are at least this busy (%) ...
WAITERS_BUSY_PCT = 90.0
# ... and the one that they wait for is less busy by so many points.
LATE_BUSY_GAP_PCT = 10.0

# Clocks that fit no better than this (s) order no two events: no cause crosses from node to node.
WORST_RESIDUAL_S = 1.0
# A clock that is ahead of the reference by more than this (s) is named; NTP keeps hosts of one network within it.
APART_S = 0.1
# ... and by more than this somebody has to set it: logs of the nodes cannot be compared.
FAR_APART_S = 60.0

# Recordings of one job overlap by so much (0 to 1) of the shorter one.
OVERLAP_SHARE = 0.2
# Memory of two GPUs (of the larger, 0 to 1) that differs by more makes them unequal.
UNEQUAL_MEMORY = 0.05
