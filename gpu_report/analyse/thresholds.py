"""Every threshold of the analysis, with its unit and its reason, in one place."""

from gpu_report import model

# --- What counts as work -------------------------------------------------------------------------------------

# Below this a GPU does not work in any sense that matters (DESIGN.md: low interval, and the least level that a
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
PROCESSES_EVERY_S = 5.0  # the recorder's distance of two looks at the processes ...
LATE_LOOK_TICKS = 2.5  # ... which take place at ticks: up to one later, and the reading before that must be seen, too

# --- Level and drops (DESIGN.md, Words) ----------------------------------------------------------------------

LEVEL_OVER_S = 60.0  # the level is the median over up to this much of readings ...
LEVEL_AT_LEAST_S = 10.0  # ... and at least this much
STRAY_S = 3.0  # readings above the line for less than this do not end a drop or a low interval
STRAY_SHARE = 0.25  # ... unless they make up more than this of it: then it was busy, off and on
LOW_AT_LEAST_S = 10.0  # a low interval lasts at least this long
SUSTAINED_AFTER_S = 300.0  # then a drop is a new state: the level starts anew from here
LOW_READINGS = 3  # fewer are no evidence, however far apart they were taken
READING_SLACK = 0.5  # a drop of n seconds sampled every i seconds shows n/i readings give or take one: in intervals

# Between a drop and noise: all cores taken leaves YOLO26m 55 to 60 % of its level, and no healthy run of the labelled
# ones falls by a third for 10 s.
SLOWED_PERCENT = 30.0
SLOWED_CONFIDENCE = 0.75  # ... but a cause must be beside it, and not one among several

# --- Gaps ----------------------------------------------------------------------------------------------------

# A reading stands for the time to the next one, at most this many intervals (and at least HOLD_AT_LEAST_S): a
# tick may be late without anything being lost.
HOLD_INTERVALS = 2.5
HOLD_AT_LEAST_S = 1.0

# --- Epoch ends of epochs ----------------------------------------------------------------------------------------

# A drop touches the end of an epoch when the row of results.csv appears within it or this close to it.
BOUNDARY_S = 2.0
# A drop that ends this shortly after a told phase lies in that phase: a reading is of 0.2 s, a first batch longer.
EDGE_S = 0.5
ABUTS_S = 1.0  # ... and what lies within this of a phase touches it: a fault that goes on does, a later one does not
# A drop at an end of an epoch is expected when it lasts no longer than this times the median of its siblings.
SIBLING_FACTOR = 2.0
# Of the least length of a drop: what is left of one without the validation and checkpoint in it is told from here on.
REMAINS_SHARE = 0.5
# ... and from this on: their own ramps take up to 3.8 s before the first (FIRST_DRAIN_S), 1.2 s after one, on labelled
# H200 runs. Who asks for shorter drops (--drop-seconds) gets them.
REMAINS_AT_LEAST_S = 5.0
# The first validation also warms kernels up and starts its loader: 4.7 to 6.0 s on three labelled H200 runs whose
# later ones take 1.2 to 1.4 s, after up to 3 s of a draining training loader.
FIRST_BOUNDARY_EXTRA_S = 10.0
FIRST_VALIDATION_EXTRA_S = 5.0  # of this, what the validation itself takes: up to 4.6 s more than later ones
FIRST_DRAIN_S = 3.0  # ... and of the training before it, whose last batch has another size: 3.1 to 3.6 s on three
SIBLINGS = 10  # on either side: validation gets shorter as a model learns
# Readings above the line for less than this do not end the dip around a row: a validation has its own bursts.
DIP_STRAY_S = 1.5
# Utilisation under this share of the run's own level around a row is its validation and checkpoint.
DIP_SHARE = 0.5

# --- Edges of validation and checkpoint (analyse/timeline/epoch_end_fit.py) ---

REST_SHARE = 0.5  # of the median epoch: no validation or checkpoint that is looked for is longer
REST_STEP_S = 0.1  # lengths to try: half of the driver's sampling period of 0.2 s ...
REST_STEP_SHARE = 0.03  # ... and no finer than this share of the length itself
# A length differs from its siblings' only where readings insist: for more than this much of a reading (of those that
# are clearly work or clearly rest), and this share of a second for each second of difference.
REST_READINGS = 1.0
REST_PRIOR = 0.3
REST_DRIFT = 0.15  # price, in contradicted seconds a row, of a second between its neighbours' length and that of all
REST_OUTVOTED_S = 1.0  # the most contradicted seconds with which one row may vote on the length it shares with others
REST_ROWS_AT_ONCE = 2000  # a table of lengths by rows: 3 MB at a time, however long the run
READING_TRAILS_S = 0.2  # a reading is of the driver's last sampling period (0.2 s on H200): half of it ago, on average
POWER_MEAN_S = 0.9  # power is the mean of the last second, and ticks are a little early or late
POWER_TRAILS_S = 0.6  # half of that second, and the board follows a little later
SPIN_S = 3.0  # busy, but without the power of work for longer: power trails by a second and is read once in one
VALIDATION_POWER = 0.45  # of the power of training, above the least: 0.1 to 0.45 on three labelled runs
IDLE_POWER_SHARE = 0.5  # the least power must lie this far below that of work to tell the two apart
FINE_S = 0.5  # readings this close or closer are the driver's own
# Traffic to device memory in training, in % of its time: 20 to 56 on the labelled H200 runs, 0 to 3 in validation.
TRAFFIC_PCT = 10.0
# The first batch of a validation takes this much more memory than training had: 12 to 23 % on four labelled runs.
MEMORY_STEP_SHARE = 0.05
# ... and is there this long after the validation began, at most: 2.2 to 2.9 s on three runs, 8.3 with a stalled loader.
FIRST_BATCH_S = 6.0
# Power this far over that of the training, for this long, is of another process beside it: 1.5 in `faulted`, where
# training itself never exceeds 1.15 for longer than two readings.
FOREIGN_POWER = 1.25
FOREIGN_AT_LEAST_S = 5.0
BESIDE_ROW_S = 1.0  # on either side of a row lie validation and checkpoint

# --- Odd epochs ------------------------------------------------------------------------------------------------

# An epoch is marked when one of its times is over its siblings' median by all three of these: a fifth of it (what a
# person would notice), a second (what an edge seen from outside may be off), and 4 robust standard deviations.
ODD_SHARE = 0.2
ODD_AT_LEAST_S = 1.0
ODD_Z = 4.0
ODD_SIBLINGS = 4  # fewer have no "usual"
MAD_TO_SIGMA = 1.4826  # of normally distributed values: standard deviation over median absolute deviation

# --- Correlation ---------------------------------------------------------------------------------------------

KERNEL_BEFORE_S = 60.0  # a fault is felt within a minute, or it is not what caused the drop
KERNEL_AFTER_S = 2.0  # the log may be stamped by a clock that is off by a second (dmesg -T)
KERNEL_LINES_SHOWN = 20  # nearest first; more would bury the one that matters

# --- Severity ------------------------------------------------------------------------------------------------

CRITICAL_DROP_S = 120.0  # a drop this long costs more than any explanation of it

# --- Verdict (DESIGN.md, What the rules know) ----------------------------------------------------------------

STARVED_PCT = 40.0  # mean utilisation of training below this: the GPU mostly waits
ROOM_PCT = 60.0  # below this: room to win
COMPUTE_BOUND_PCT = 95.0  # above this: the time is in the model
UNUSED_PCT = 1.0  # a GPU whose mean is below this did nothing
WELL_COVERED = model.WELL_COVERED  # 0.95, with its reason: the pages go by it, too, and do not import this module
# The final evaluation is no training; one longer than this and than FINAL_FACTOR validations is judged all the same.
FINAL_EVALUATION_S = 30.0
FINAL_FACTOR = 3.0

# --- Causes of a drop (causes.py): measured on labelled H200 runs, half of them set aside ----------------------

# Rows at the edges of an interval belong half to what was before and after: a host row is the mean of a second.
SCENE_EDGE_S = 1.5
CALM_EDGE_S = 2.0  # likewise training this close to a phase's edge or a drop is not what is usual
CALM_TOLD_EDGE_S = 1.0  # ... to the edge of a phase that callbacks told, which is exact: a row is the mean of a second
IDLE_CPU_PCT = 15.0  # of one core: a process that waits uses 0 to 3, one that feeds a GPU 25 to 130
IDLE_SHARE = 0.25  # workers under this share of their usual CPU have nothing to do
QUIET_PRESSURE_PCT = 10.0  # less than this and nothing on the host is waited for
# Workers that stop starve the GPU only once the queue is empty: 2 to 6 s later with 8 to 14 workers. Where the trainer
# stops they go on for about a second, until the queue is full.
LEAD_S = 1.0
LEAD_LOOK_S = 2.0  # how far into the drop workers must be idle at the latest
SURGE_S = 3.0  # after a drop, for so long ...
SURGE_FACTOR = 1.5  # ... workers that fill an empty queue use so much more CPU than usual (2.4 measured)
MEMORY_PRESSURE_PCT = 10.0  # kernel documentation: some work is delayed for memory a tenth of the time
SWAP_IN_MIB_S = 1.0
IO_PRESSURE_PCT = 30.0  # 36 % measured in a storage-bound loader, 0 to 9 in a fed one
WORKERS_BLOCKED = 0.5  # on average: 17 % of the looks at a storage-bound loader's workers found state D
READ_MIB_S = 1.0
RISEN_FACTOR = 3.0  # a pressure is a cause only when it is so much higher than in the run's ordinary training
ALL_CORES_PCT = 90.0
CORES_TAKEN_SHARE = 0.6  # of the interval: what was late goes on being late for seconds after the cores are free
OTHERS_CPU_PCT = 40.0  # of all cores, taken by others than the training
WORKER_FULL_PCT = 85.0  # of one core: 66 to 99 measured with too few workers
WORKERS_FULL_PCT = 60.0  # likewise on average over all workers
MAIN_FULL_PCT = 90.0  # of one core; it also spins there while it waits for the GPU, so only where the GPU does not work
MAIN_BOUND_UTIL_PCT = 50.0  # where it is known that data always came, a full main process leaves nothing else
# A trainer that waits for data leaves its core: 0 to 30 % in rows that lie within a wait (stalls-1, ab-workers-2).
WAITING_MAIN_PCT = 60.0
WAITING_S = 5.0  # in rows of the host: fewer waits are no habit
WAITING_SHARE = 0.1  # of ordinary training: less is not what holds it back
# Of a core each, under what workers that cannot keep up use: 0.3 and 0.5 in stalls-1 and -2 (rows of a second lie half
# beside a wait), 1.0 in ab-workers-2.
WAITING_WORKERS_SHARE = WORKERS_FULL_PCT / 100
PRESENT_SHARE = 0.5  # of the interval
OWN_CORES_PCT = 90.0  # of each core that the training may use: 97 to 100 with 8 workers under a quota of 4 cores (H200)
# Of a drop: so much of it told as one wait between batches, and it is that wait. A trainer stopped within a batch
# has next to none of it (0 to 2 s of 12 to 15, on labelled H200 runs), one between two has all (13 and 18 s).
STOOD_STILL_SHARE = 0.5
TUNING_CPU_PCT = 60.0  # of one core: the main process, while it tunes kernels and nothing else goes on
PHASE_SHARE = 0.8  # of an interval: then it is that phase which took it
STOPPED = 0.5  # processes in state T on average: at least half the time

# --- Another process, a peer, the end -------------------------------------------------------------------------

OTHER_PROCESS_AT_LEAST_S = 5.0  # shorter ones are looks (nvidia-smi, a notebook's first cell)
OTHER_PROCESS_UTIL_PCT = 5.0  # of the GPU's time: an idle context keeps it at 0
OTHER_PROCESS_STEP_SHARE = 0.5  # of its memory: the step in the GPU's own memory that shows when it came or went
# A rank that waits in NCCL spins: 100 % and 120 W where it takes 450 to 550 W at work (H200).
BUSY_WAIT_UTIL_PCT = 90.0
BUSY_WAIT_POWER_SHARE = 0.45
# Where tensor activity is known and next to none of the usual, power may be nearer: a small model takes 279 W at work.
BUSY_WAIT_TENSOR_SHARE = 0.1
BUSY_WAIT_POWER_SHARE_WITHOUT_TENSOR = 0.7
BEFORE_THE_END_S = 5.0  # what "just before the end" means: allocations that fail last seconds
DATA_CAME_SHARE = 0.05  # of training waited for data: so little, and the loader is not what holds the GPU back
DATA_WAIT_SHARE = 0.2  # of ordinary training: 0.1 to 1 % where the loader keeps up, and a fifth is worth a repair
STARVED_AT_LEAST_S = 10.0  # of ordinary training: less is too little to call it the run's way
# Of utilisation: SM activity is 80 to 88 % of it in a fed YOLO26m, 25 % with batches of 4 (H200).
LAUNCH_SM_SHARE = 0.5

# --- Bounds and advice ----------------------------------------------------------------------------------------

# The first epoch of a process warms up: workers start, kernels are tuned; 5 to 20 s on 36 labelled runs. Its last batch
# is of another size and tuned for anew: 3 to 4 s.
WARM_UP_S = 20.0
LAST_BATCH_S = 5.0
TOUCHED_S = 1.0  # an epoch that shares less with a finding is as good as undisturbed
LEAST_SPEED_UP = 1.05  # winning less is not worth a person's time, and within what epochs differ by anyway
# Nobody fills every SM with warps all the time: 29 % in a fed YOLO26n, 42 to 45 % in YOLO26s and m (H200), and the
# most that is reported for training (reference: field practice) is about 50 %.
MOST_OCCUPANCY_PCT = 60.0
SPARE_CORES = 2  # a rank's main process with its threads takes 1.1 to 1.4 cores
WORKERS_MARGIN = 1.2  # so that the loader is a little faster than the GPU, not just as fast
# A loader that keeps up leaves an epoch a little over its bound: 1.07 and 1.10 of it in the two repairs that were
# recorded (sample_runs/n-fed and ab-workers-14, held against n-starved and ab-workers-2).
REACHED = 1.08
CACHE_NEEDS = 2.0  # ultralytics refuses to cache images unless twice their size is free
# Launching an optimiser's step, in forward and backward passes: YOLO26n on an H200 takes 52 ms a batch of 4 (a step in
# 6 to 11 of them), 55 of 8 (in 3 to 6), and 71 of 64 (in each), its main process full all along.
OPTIMISER_STEP = 0.45
BATCH_MEMORY_SHARE = 0.6  # of a card's memory: what ultralytics' own AutoBatch aims at
BATCHES_AT_LEAST = 10  # of an epoch: fewer are a poor epoch for the loader and for batch normalisation

# --- Throttling: clocks held down by power or heat (throttles.py, throttling.py) -------------------------------

THROTTLED_AT_LEAST_S = 10.0  # as with drops: shorter is not felt in an epoch
# A loaded H200 says "SW power cap" at half of the ticks: its clock is 15 MHz under its highest then (0.8 %), at times
# 45 (2.3 %). Only a tick with the clock further down than this counts as held down.
CLOCK_DOWN_SHARE = 0.03
COUNTED_SHARE = 0.5  # where only counters were recorded: of the 10 s or so between two readings of them
THROTTLED_JOIN_S = 5.0  # of work at full clock: less does not end a stretch, for reasons come and go by the second
THROTTLED_SHARE = 0.5  # of the work from the first stretch to the last: then they are one
SCATTERED_SHARE = 0.05  # of all work: then it is told even where no stretch is long; less is normal under load
HOT_C = 85.0  # DESIGN.md: held over 85 C. H200 boards slow down at 87 to 89 (T.Limit 0 to -2)
THROTTLED_COST_PCT = 5.0  # of the clock: what costs less is a note
# What a card can hold depends on its load: only work that drew nearly what the throttled work draws shows what the
# clock would have been. Where there was none, the limit may be all that the card can do: large matrices beside the
# training hold an H200 at 700 W 13 to 18 % under its highest clock. Less than the first is not told then, less than the
# second is a note.
SAME_LOAD_SHARE = 0.95
LOADED_LEAST_PCT = 10.0
LOADED_COST_PCT = 25.0
HALVED_PCT = 45.0  # nvml.h: HW slowdown divides the clock by two or more; the rest is for ticks at its edges
CAUSE_CLOCK_SHARE = 0.8  # of the usual clock: less of a fall explains no utilisation that fell to half

# --- Memory of a GPU (growth.py, memory_near_limit.py, endings.py) ---------------------------------------------

# A rise is growth from this on. 4 % of what the training held: 0.1 % was measured in the labelled runs after their
# first epoch. And 256 MiB: the first validation of a small model takes 140.
GROWTH_SHARE = 0.04
GROWTH_AT_LEAST_MIB = 256.0
# What tells a leak from an allocator whose reserve follows the batch that needed most so far (docs/memory.md has how
# well, by simulation). A leak takes many steps of about one size, at most points that are looked at, and goes on as it
# began; an allocator takes few, of any size, seldom, and ever fewer.
GROWTH_STEPS = 3.0  # the number of steps, were they of one size: (sum of steps)^2 / sum of (steps^2)
GROWTH_RISING_SHARE = 0.6  # of the points within it rise by ...
GROWTH_RISING_OF_MEAN = 0.25  # ... this much of the mean step, or more
GROWTH_SECOND_HALF = 0.35  # of all growth comes in its second half: 0.5 when even, 0.38 to 0.51 in the labelled runs
GROWTH_FIT = 0.9  # of the variance of all points is explained by two levels and a line: 0.98 in the labelled runs
GROWTH_EDGE_SHARE = 0.02  # it has begun when this much of it is there, and ended when no more than this is to come
SETTLES_SHARE = 0.2  # of a training of which no second epoch is known: an allocator takes most of what it will by then
GROWTH_POINTS = 5  # fewer tell no line from a step; with fewer epochs, memory is looked at every few seconds instead
GROWTH_BIN_S = 5.0  # ... this long or longer: a step that takes 2 to 3 s (the first validation) is one of them or two
GROWTH_POINTS_AT_MOST = 128  # all pairs of them are tried; more are taken together
GROWTH_PAUSE_SHARE = 0.25  # it came to an end where nothing more came for longer than this of its length
MOSAIC_STANDS_OUT = 3.0  # the step at which the mosaic closes is no growth where it is so much larger than any other
MOSAIC_STAYS_SHARE = 0.7  # ... and so much of it stays
FULL_SHARE = 0.97  # of a card: what fails to be allocated asks for more than the rest, so that it never reads as full

NEAR_LIMIT_PCT = 95.0  # of what the card can hold is in use (DESIGN.md section 6)
NEAR_LIMIT_S = 10.0  # held for so long: an allocator that is at its limit for a moment gives its cache back
LAST_MINUTE_S = 60.0  # what led to the end of a training that ran out of memory is looked for in this time
STEP_MIB = 64.0  # the least growth that is told at a moment: an allocator takes blocks of 2 to 20 MiB all the time

# --- Readings and GPUs (not_credible.py, imbalance.py) -----------------------------------------------------------

# Some drivers read 100 % for good once a process was killed in the middle of a kernel (reference/nvml.md, section 2.5).
NOT_CREDIBLE_PCT = 95.0
NOT_CREDIBLE_S = 30.0  # a process that has just gone, or is not listed yet, explains less
# Power at which a GPU does no work: 120 of 700 W for an H200 in its highest clocks, 9 to 25 % of the limit elsewhere.
NO_WORK_POWER_SHARE = 0.25  # of the limit, or ...
NO_WORK_POWER_FACTOR = 1.2  # ... so close to the least that was seen, where
NO_WORK_POWER_RANGE = 2.0  # ... so many times as much was seen, too
# Two GPUs with the same work: 0 to 1 points apart over a healthy labelled run, 4 with one reading a second and another
# process beside; by window up to 4 and 14.
IMBALANCE_POINTS = 15.0
IMBALANCE_WINDOW_S = 10.0  # compared window by window, and apart in ...
IMBALANCE_SHARE = 0.5  # ... at least this share of ordinary training
IMBALANCE_AT_LEAST_S = 10.0  # of it, as for a level; less is too little to call it the run's way
MORE_WORK = 1.1  # a GPU that does so many times another's work (tensor activity, else power) is not waiting for it
UNEVEN_MEMORY_SHARE = 0.3  # of the larger: rank 0 has the moving average of the weights and the validation besides
UNEVEN_MEMORY_MIB = 1024.0

# --- The set-up and the machine (environment.py) ---------------------------------------------------------------

# Workers leave their batches in /dev/shm, and one that finds no room dies of a bus error: with a tenth left of Docker's
# 64 MiB not even one batch of 16 images of 640 px (19 MiB) fits.
SHM_LEAST_SHARE = 0.1
THREADS_USED_PCT = 150.0  # of one core: a main process that launches kernels fills one; more is threads of arithmetic
# Of training in which a process waited for a core: 0 to 1.3 % in thirteen runs on H200s that had cores enough, 28 % in
# one whose cores others took for a third of it.
CORES_WAITED_PCT = 20.0
CORES_FULL_PCT = 85.0  # of each core that may be used, by the trainer and its workers together
# Reads that are waited for throughout: less is what the first epoch costs before the page cache holds the images.
READS_WAITED_S = 10.0
READS_WAITED_SHARE = 0.1  # of training
PLACE_ROOM = 1.2  # times what the images take: a disk that is filled to the brim is no place to move to
PLACE_LEAST_MIB = 51200.0  # where nobody knows what they take: COCO has 20 GiB
PLACE_MEMORY = 2.0  # times the need: what lies in /dev/shm is taken from the training's own memory

# --- Slow epochs, and epochs that change over the run (slow_epochs.py, data_wait.py) -----------------------------

# An epoch is a finding, more than a mark in the table, when its training is over its siblings' median by all of these
# and by ODD_Z: as long as a drop must last, and half of what it takes.
SLOW_AT_LEAST_S = 10.0
SLOW_SHARE = 0.5
# Of the time that the GPU is usually busy for an epoch's work, which hardly differs: 6.8 to 7.1 s in 23 epochs of a run
# on an H200, stalled ones among them, and 18.7 s in the one beside another process. What the clock lost is taken off.
BUSIER_FACTOR = 1.5
COMPARED_EPOCHS = 50  # on either side of slow ones: those far away tell less of what was usual just then
EXPLAINED_SHARE = (
    0.5  # of what it took longer: that much in drops, waits or beside another process, and those say it all
)
DISTURBED_SHARE = 0.2  # of its training: an epoch with more of these tells nothing of a trend
# Fewer epochs show no trend: with 10 the test's normal approximation holds, and a third has three.
TREND_EPOCHS = 10
TREND_P = 0.01  # one-sided; of epochs without any trend one run in a hundred passes, and must then also pass the lines
TREND_MOST = 300  # values compared in pairs; more are taken together in blocks
SLOWING_SHARE = 0.2  # the last third over the first: what a person would notice, as for odd epochs
WAIT_GROWS_S = 1.0  # an epoch, the last third over the first
WAIT_GROWS_SHARE = 0.05  # ... and of its training
WAIT_COSTS_S = 10.0  # in all
CHANGED_SHARE = 0.1  # a signal that moved less is not what changed

# --- How a training ended (endings.py) ---------------------------------------------------------------------------

# The OOM killer takes its time: where memory is short a dying process may not get to run for many seconds.
OOM_BEFORE_S = 30.0
OOM_COUNTED_S = 10.0  # its counters are read every 5 s
MOST_OF_MEMORY = 0.5  # share of a limit that who reached it must have held: less may be anybody's
MEMORY_FULL_PCT = 97.0  # of what there is: a machine that swaps or kills leaves less than this free
TOGETHER_S = 15.0  # the end of a command and that of its training: closing a big process takes seconds
# A training tells of its batches every 3 s, or every 1/1800 of its age (inside: batches.py). One that tells nothing for
# a minute and five such lines does none; nor does a validation or a checkpoint go on for five times the usual length.
HANG_S = 60.0
HANG_LINES = 5.0
PROGRESS_SHARE = 1 / 1800
HANG_FIRST_S = 600.0  # the first batch may compile the model, and fill a cache
HANG_SIBLINGS = 5.0

# One event in the kernel log
SAME_EVENT_S = 5.0  # the kernel writes the lines of one kill or one lost GPU at once; a busy log delays the last ones

# Causes that are read off and not inferred
CERTAIN = 0.95  # confidence of what a state of the process or the driver's own words say: nothing is second to a fact

# --- Comparing two runs (compare*.py, bootstrap.py, gates.py) ---------------------------------------------------

# What a comparison looks at: whole epochs where each side has this many, else windows of training. Fewer values have no
# interval worth the name: already with 5 Student's t reaches 1.8 times as far as the normal distribution.
COMPARED_AT_LEAST = 5
# Windows are cut where callbacks told how far the epoch was: every 2 to 3 s.
WINDOW_S = 2.5
INTERVAL_CONFIDENCE = 0.99  # so that a change out of nothing is called significant at most once in a hundred
BAND_CONFIDENCE = 0.95  # of several baselines' band; the interval above must be left, too
BAND_AT_LEAST = 3  # baselines: fewer have no spread to speak of
RESAMPLES = 10_000  # of each side: the widened 99 % interval of 5 values uses quantiles of 0.01 % and less
RESAMPLED_VALUES = 4_000_000  # ... but no more than so many numbers at a time (32 MB) ...
RESAMPLES_AT_LEAST = 2_000  # ... and no fewer than this
MEASURED_SHARE = 0.8  # of an epoch or window: where less was sampled its utilisation and energy are not known
IMAGES_SHARE = 0.01  # data sets whose sizes differ by more are not the same; less is less than epochs differ by
# Likewise of models: the number of classes moves their parameters by about a percent, the next size by a factor of two.
PARAMETERS_SHARE = 0.05
MOSAIC_SHARE = 0.1  # runs of whose epochs so much more is without mosaic are compared with mosaic only, or without only
# The smallest changes that count, where no gate says otherwise. They also stand for what two runs of one set-up differ
# by anyway, which no interval from the epochs of one run can know: 0.3 to 4.4 % in epoch time, up to 3.3 percentage
# points in utilisation (s-cpu-taken, s-loader-stall, s-storage without what was done to them; m-ddp, m-ddp-stopped).
LEAST_TIME_SHARE = 0.05
LEAST_ENERGY_SHARE = 0.05
LEAST_VALIDATION_SHARE = 0.1
LEAST_VALIDATION_S = 0.2
LEAST_MEMORY_SHARE = 0.05
LEAST_UTIL_PP = 5.0
LEAST_WAIT_PP = 2.0
LEAST_WORK_SHARE = 0.05
# A gate on a share of the data wait counts a change from this on, in percentage points of the epoch's training: where
# the loader keeps up an epoch waits for 0.1 to 0.5 % of it just to hand its batches over, 6 to 60 ms in 30 runs on
# H200s, and 15 to 39 ms in seven runs of one set-up. A fifth more of that is nothing that anybody waits for.
GATED_WAIT_PP = 0.5
# Slower cores (compare_cores.py): the same work takes the main process and the workers longer alike, and the GPU not.
# Seven runs of one set-up (tests/data/same_setup, two virtual machines with an H200 each) took the main process 0 to
# 38 % and the workers 0 to 42 % more than the fastest; of each the two were within 5 % of each other, and the SMs'
# activity within 3 % of the fastest's. A training that does more work of all kinds has all three risen alike.
CORES_AGREE = 0.12  # the one factor over the other
GPU_WORK_SHARE = 1 / 3  # of the cores' change: from here on the GPU's work is another, too
SHARED_GPU_SHARE = 0.05  # of the time: less of another process on the GPUs is not worth telling

# --- A clock held down beside another process (rules/throttling.py) ---

# Of what was held down: so much of it while the other process was there, and it came of that process's work, unless it
# was there for as much of the training, too. Other processes of three labelled runs: 93 to 100 % of it, in 7 to 24 % of
# training.
HELD_BESIDE_SHARE = 0.8
