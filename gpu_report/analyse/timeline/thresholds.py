"""Thresholds of what counts as work, an epoch's end, and the steady state, each with its unit and its reason."""

# Below this a GPU does not work in any sense that matters (docs/findings.md: low interval, and the least level that a
# drop is judged against).
LOW_PCT = 20.0
# A single busy reading is a blip (the AMP check, a model being moved); work is this much of it within this time.
WORK_READINGS = 3  # at least ...
WORK_SECONDS = 2.0  # ... and, where readings are finer than a second, this long
WORK_WITHIN_S = 10.0
# Once training has begun, power this far up from that of waiting to what it reaches is work, too: it is the mean of a
# second, so that short bursts of a starved GPU, which readings of utilisation miss, are in it. Warming up reaches 0.06.
WORK_POWER = 0.2
# A YOLO process holds at least a CUDA context (250 to 600 MiB): memory this close to its least means there is none.
IDLE_MEMORY_SLACK_MIB = 150.0
# ... provided that least is far below what the run uses, else the recording began in the middle of training.
IDLE_MEMORY_SHARE = 0.3
# Shorter stretches without a process are moments of its start and end, not idleness.
IDLE_AT_LEAST_S = 3.0
# Processes seen within this of the recording's start were there before it: a training needs longer than this to
# load torch and open its GPU, and the first look takes place at once.
FIRST_LOOK_S = 1.0
PROCESSES_EVERY_S = 5.0  # the recorder's distance of two looks at the processes

# A level of utilisation, of a drop or of the steady state, is of readings of this long or longer.
LEVEL_AT_LEAST_S = 10.0

# Of training that has settled, without first epochs and what warms up: epochs of half a second are alike long before a
# level of LEVEL_AT_LEAST_S is together. Where readings are coarse it takes so many of them, or that level.
SETTLED_AT_LEAST_S = 5.0
SETTLED_READINGS = 10

# A drop touches the end of an epoch when the row of results.csv appears within it or this close to it.
EPOCH_END_S = 2.0
# The end of an epoch is expected when it lasts no longer than its siblings, and their spread beyond. A few have no
# spread to speak of: this share of them, and less of it the more they are.
FEW_SIBLINGS = 3
FEW_SIBLINGS_SHARE = 0.3
SPREAD_OF_AT_LEAST = 6  # of fewer, two that were held up would be the spread
# Of their length, the most that their spread excuses: 4 standard deviations of 30 %, and a bit. Where faults fell on
# half of a few validations the spread would excuse any.
SPREAD_AT_MOST = 1.5
FIRST_SHARE = 0.5  # so much longer the first validation of a process may be, which starts its loader
LONGER_TOLERATED_S = 8.0  # ... any: a stall of less, at an edge that is known to a second or two, is no drop of 10 s
SIBLING_FACTOR = 2.0  # a length fitted to readings that is over so many times its neighbours' has a stall beside it
# The first validation also warms kernels up and starts its loader: 4.7 to 6.0 s on three labelled H200 runs whose
# later ones take 1.2 to 1.4 s, after up to 3 s of a draining training loader.
FIRST_EPOCH_END_EXTRA_S = 10.0
FIRST_VALIDATION_EXTRA_S = 5.0  # of this, what the validation itself takes: up to 4.6 s more than later ones
FIRST_DRAIN_S = 3.0  # ... and of the training before it, whose last batch has another size: 3.1 to 3.6 s on three
SIBLINGS = 10  # on either side: validation gets shorter as a model learns
BESIDE = 5  # right before an epoch, and right after: a single stall among them is outvoted
# Readings above the line for less than this do not end the dip around a row: a validation has its own bursts.
PAUSE_STRAY_S = 1.5
# Utilisation under this share of the run's own level around a row is its validation and checkpoint.
PAUSE_LEVEL_SHARE = 0.5

# Busy, but without the power of work for longer than this: power trails by a second, and is read once in one.
BUSY_WITHOUT_POWER_S = 3.0
# What waits in a kernel for another GPU reads about what work does, and takes a tenth of its power above the least.
SPINS_FROM = 0.75  # of the utilisation of work
SPINS_UP_TO = 0.35  # of its power

UNUSED_PCT = 1.0  # a GPU whose mean is below this did nothing
# The final evaluation is no training; one longer than this and than FINAL_FACTOR validations is judged all the same.
FINAL_EVALUATION_S = 30.0
FINAL_FACTOR = 3.0
FINAL_OF_EPOCH = 0.25  # of an epoch whose validation was not seen: more is seldom validation

STEADY_EDGE_S = 2.0  # training this close to a phase's edge or a drop is no steady state
STEADY_EDGE_SHARE = 0.2  # ... and no more than this of a short one, or nothing would be left of it
STEADY_CALLBACK_EDGE_S = 1.0  # ... to an edge that callbacks reported, which is exact: a row is the mean of a second

# The first epoch of a process warms up: workers start, kernels are tuned; 5 to 20 s on 36 labelled runs. Its last batch
# is of another size and tuned for anew: 3 to 4 s.
WARM_UP_S = 20.0
# No unit. Batches of a first epoch that compute so many times as long as most of it are warming up, beside their waits
# for data: the first 5 to 24 s of 90 recordings, 57 s of one whose images vary in size, each size tuned for anew.
WARMING_UP_TIMES = 2.0
WARM_UP_SHARE = 0.3  # of the first epoch at either end, where there is no other to judge by: 4 s of the 13 s it takes
LAST_BATCH_S = 5.0

# An epoch of fewer of its loader's batches was cut. Others differ by a batch, where the last one is dropped.
WHOLE_EPOCH_SHARE = 0.9

SETTLES_SHARE = 0.2  # of a training of which no second epoch is known: an allocator takes most of what it will by then

ENDED_TOGETHER_S = 15.0  # the end of a command and that of its training: closing a big process takes seconds

STRETCH_BATCHES = 5  # between two reports: the pace of fewer is that of one batch that was fast by chance

# --- images ---

# Times imgsz, by the longer side of the images on disk: of four times the pixels three quarters of decoding could go.
# Under it some margin for a larger imgsz is worth having.
OVERSIZED_FROM = 2.0
# Readings so far apart leave gaps: the driver's sampling period is 1/6 to 1 s (nvml.h, nvmlUtilization_t).
SPARSE_S = 2.0

# Of a training: what was on for so much of it is in its typical epochs; a profiler of a few steps is not.
SLOW_MODE_SHARE = 0.5

# Steps that take longer in every epoch after the first: so many epochs, each against so many batches of the first,
# which begin after its first few. Batch and data are the same then, and a first epoch warms up: it is never faster.
SLOWER_EPOCHS = 2
SLOWER_BATCHES = 20
WARM_BATCHES = 10
