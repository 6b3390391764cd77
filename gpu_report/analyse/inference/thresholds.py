"""What is judged of calls: how many of them, how long, how large a share."""

# A group of fewer calls than this is not shown: its median would be of a few calls.
GROUP_CALLS = 10
MOST_GROUPS = 8  # of a kind; a source with more shapes than this has no typical ones
# Milliseconds without a call, by which calls are told apart. Clocks fall, caches cool and connections close within
# tenths of seconds to tens of them, so the classes are decades.
GAP_EDGES_MS = (10.0, 100.0, 1_000.0, 10_000.0)
# Shares of the highest SM clock by which calls are told apart: idle clocks of recent cards lie below half of it, and
# power limits take up to a quarter.
CLOCK_EDGES = (0.5, 0.75, 0.95)
# Of the time of a model: where calls take less of it, the driver's readings (0.2 s, whole %) say nothing of one call.
IN_CALLS_AT_LEAST = 0.2
# Notes (20 a second) of where a process stood between calls, before anything is said of it; and of those within calls
# the share that must lie in a call of ultralytics, so that it is the noted thread that makes the calls.
GAP_NOTES_S = 1.0
CALLS_IN_THREAD = 0.5
# Of calls, before anything is said of threads beside the main one, which are seen once a second.
THREAD_NOTES_S = 10.0
# Of a core: handlers that waited in `with lock:` used none, one that encoded images a fifth, beside other programs.
LOCKED_CPU_SHARE = 0.05
# Threads, on average: so many in one line of Python that calls nothing, while for that share of the time one works, and
# never two, wait for their turn there. Of one that waits alone nobody can tell whether it computes.
MANY_AT_ONCE, ONE_AT_WORK = 2.0, 0.9
QUEUE_LEAST = 1.0  # threads that wait in a line on average: two that share a lock, each held half of the time
# Of the time between calls: what takes so much of it makes it grow. Twice as long, by a rise that explains so much of
# the variance of medians, is no chance of images with more boxes.
MOST_OF_GAPS, GAPS_FIT, GAPS_GROW = 0.8, 0.9, 1.0
# Of waits for calls, those between the 5th and the 95th percentile: where they differ by no more than this share they
# end by a time-out. Nobody lets requests wait longer than WINDOW_MOST_MS for others to come.
# Timers are even to TIMER_MS.
EVEN_WAITS, WINDOW_MOST_MS, TIMER_MS = 0.05, 1_000.0, 1.0
SHOWN_LINES = 3  # lines of code of a part of calls: what comes after them is seldom what takes long
MOST_OF_PART = 0.5  # of the notes in a part of calls: one kind of work with more of them is what the part is
# Calls of a new shape, and of known ones beside them, before these are compared: of fewer one odd call decides.
NEW_SHAPES_LEAST = 5
# Inference of a new shape, in units of that of a known one: kernels that are merely loaded, and new memory, take less.
# With cuDNN's autotuner it was 17 (H200).
NEW_SHAPE_SLOWER = 2.0
PROBES_LEAST = (
    10  # at whether a thread uses the CPU in a place: with half of them alike the standard error is 16 points
)
# Of a core, by those looks: a thread that only waits uses next to none, one that polls in sleeps of 1 ms up to a fifth.
WORKS_SHARE = 0.5
# Readings of PCIe (20 ms each), and how many times what images need at most: 26 programs stayed below 1, one with
# a table of 244 MiB stood at 14 (H200).
COPIED_READINGS, COPIED_TIMES = 5, 4
MOSTLY = 0.5  # of calls
# Calls of new threads, and of others beside them, before these are compared: of fewer one odd call decides.
NEW_THREADS_LEAST = 5
# Of the share of new threads in all calls, what the last third has at least: a pool that has filled has none there.
NEW_THREADS_LATER = 0.5
# Inference of a new thread, in units of that of others, or of the GPU's work: 10 to 13 (YOLO26n, H200).
NEW_THREAD_SLOWER = 2.0
FORMATS_OF_PYTORCH = frozenset({"pt", "torchscript"})  # whose convolutions PyTorch makes
NEW_SHAPE_IDLE = 0.5  # of inference the GPU is idle, where no calls of known shapes are there to compare with
