"""Thresholds of drops, other processes, clocks, memory and the kernel log, each with its unit and its reason."""

# Looks at the processes (every PROCESSES_EVERY_S) take place at ticks: up to one later, and the reading before that
# must be seen, too.
LATE_LOOK_TICKS = 2.5

# The level is the median over up to this much of readings, and at least LEVEL_AT_LEAST_S; of LOW_READINGS, where they
# are further apart.
LEVEL_OVER_S = 60.0
STRAY_SHARE = 0.25  # of a stretch: readings above its line (STRAY_S) that make up more mean busy, off and on
# Drops are the way of a training where there are so many, in so much of it, and in each of so many parts of it half of
# what there are on average: 36 % and 45 % with 2 and 3 workers whose batches took 20 s (n-starved and ab-s-workers-3,
# twenty times as slow). A stall of 39 s every 10 min is 6 %.
BURSTS_AT_LEAST = 5
BURSTS_SHARE = 0.2
BURSTS_PARTS = 3
BURSTS_EVEN_SHARE = 0.5
BURSTS_WAITED_SHARE = 0.4  # of them: by reports as far apart as a burst and a drop the waits of both are one
CHANCE_READINGS = 100  # of training on either side: enough to say how often one is low, and near enough
CHANCE_LEAST = 0.05  # a drop that chance makes in one of twenty such runs is no event
# In them the workers use so much of their typical CPU, and the machine at most so many points more of all its cores.
WENT_ON_SHARE = 0.75
OTHERS_CAME_PCT = 5.0
LOW_AT_LEAST_S = 10.0  # a low interval lasts at least this long
# Then a drop is a new state, and the level starts anew: after so much training, and so much of all of it.
SUSTAINED_AFTER_S = 300.0
SUSTAINED_SHARE = 0.05
LOW_READINGS = 3  # fewer are no evidence, however far apart they were taken

# Pauses shorter than a drop count where a GPU stood still in them (%), for as long as what is left of a drop must last,
# and where they took 2 minutes, and a share of training. Of 188 recordings of a GPU in training 180 had none at all in
# 104 minutes of it, and 7 of the other 8 a fault: so ordinary training has less than 0.4 % of them (95 % confidence,
# 8 s each). Five times as much is no chance. Ends of epochs are none of training.
STILL_PCT = 5.0
PAUSE_S = 5.0
PAUSES_SHARE = 0.02
PAUSES_S = 120.0

# A drop that ends this shortly after a phase that callbacks reported lies in that phase: a reading is of 0.2 s, a first
# batch longer.
PHASE_EDGE_S = 0.5

KERNEL_BEFORE_S = 60.0  # a fault is felt within a minute, or it is not what caused the drop
KERNEL_AFTER_S = 2.0  # the log may be stamped by a clock that is off by a second (dmesg -T)
KERNEL_LINES_SHOWN = 20  # nearest first; more would bury the one that matters

# Rows at the edges of an interval belong half to what was before and after: a host row is the mean of a second.
ROW_EDGE_S = 1.5
IDLE_SHARE = 0.25  # workers under this share of their typical CPU have nothing to do
LEAD_LOOK_S = 2.0  # how far into the drop workers must be idle at the latest
SURGE_S = 3.0  # after a drop: for so long workers may fill an empty queue
# A trainer that waits for data leaves its core: 0 to 30 % in rows that lie within a wait (stalls-1, ab-workers-2).
WAITING_MAIN_PCT = 60.0
# Of what workers do while they are waited for: so much in a lock, or in asking one process, and more would wait, too.
SHARED_WAIT_SHARE = 0.25
MOSTLY_SHARE = 0.5  # of an interval: what a process did in most of it, by its stacks
# Likewise, in code of the user's own: none where nothing but steps goes on, 0.13 with hooks in each layer, 0.18 with
# threads that are waited for, 0.2 with a tracer (H100, H200; set with these in view).
OWN_SHARE = 0.1
MUCH_SHARE = 0.25  # likewise, of what no other cause explains: the rest is a training's own launching
SOCKET_PROBES_LEAST = 4  # likewise, in a place where it reads a socket: whoever stands there waits, as a rule
PROBES_LEAST = 10  # looks in a place: with half of them alike the standard error is 16 points
THERE_LEAST_S = 1.0  # of a place, apart from what lies beside it in the same readings
# Of a core, while the main process stood in one place: what computes there fills most of it, what waits little.
COMPUTES_CPU_PCT = 50.0
THERE_ERROR_PCT = 15.0  # of a core: what waits takes 0 to 10, what computes 60 and more
NOT_LOADING_SHARE = 0.5  # of a row of the host: in less of it a trainer waits for data, by its stacks
WAITING_S = 5.0  # in rows of the host: fewer waits are no habit

OTHER_PROCESS_UTIL_PCT = 5.0  # of the GPU's time: an idle context keeps it at 0
# Another process where none were logged, by memory: at least a CUDA context (250 MiB and more), from and to one level
# that was held for so long (s), or so many readings, in which the GPU was as busy as before it came, or nearly.
CONTEXT_MIB, SAME_MEMORY_MIB = 200.0, 32.0
BASE_S, BASE_READINGS = 20.0, 5
AS_MUCH_SHARE = 0.97
SAVED_WITHIN_S = 10.0  # after an epoch's row: its weights are saved, before memory may be given back
COME_ROUND = 3  # stays of one size: so many are the training's own, as its validations are
COME_AGAIN = 2  # likewise, of a single reading each
UTIL_READ_WITHIN_S = 60.0  # that a process was there: what it used was read each 5 s, or 30 s, by then
OTHER_PROCESS_STEP_SHARE = 0.5  # of its memory: the step in the GPU's own memory that shows when it came or went
# A rank that waits in NCCL spins: 100 % and 120 W where it takes 450 to 550 W at work (H200).
BUSY_WAIT_UTIL_PCT = 90.0
BUSY_WAIT_POWER_SHARE = 0.45
# Where tensor activity is known and next to none of what is typical, power may be nearer: a small model takes 279 W at
# work.
BUSY_WAIT_TENSOR_SHARE = 0.1
BUSY_WAIT_POWER_SHARE_WITHOUT_TENSOR = 0.7
# Of the power at no utilisation with clocks up: 1.03 while two H100s waited for each other, 2 at their least work.
IDLE_POWER_FACTOR = 1.15
IDLE_POWER_PERCENTILE = 90.0  # of the rest: what is over it may still be the tail of work
IDLE_TENSOR_PCT = 0.5  # tensor activity: 0 to 0.4 while two H100s waited, 1.6 and more in the least of their work
# A rank that mostly waits for one of another node, with a short step now and then (two-nodes-0, H200): at 90 % and more
# it takes 1.0 to 1.23 times the idle power, SMs are busy 1.5 to 6.9 %, tensor cores 0 to 0.6 %. In NCCL alone SMs read
# up to 18.2 % (24 of 132). Work at such utilisation begins at 1.9 times, SMs 15 %, tensor cores 1.4 % (33 sample runs).
SPIN_POWER_FACTOR = 1.4
SPIN_SM_PCT = 20.0
SPIN_TENSOR_PCT = 1.0
EXCHANGE_SM_PERCENTILE = 5.0  # of SM activity in such waits: what NCCL alone takes; a lower one may be a row at an edge
BUSY_WAIT_MOST_SHARE = 0.5  # of a training: then it waits in each epoch, and epochs may be shorter than LOW_AT_LEAST_S
# What drivers average power over (nvmlDeviceGetPowerUsage, from Ampere on): what comes so soon after work is no rest.
POWER_MEAN_S = 1.0
IDLE_POWER_RANGE = 1.5  # times it, that the GPU drew at some time: else its power tells nothing of its work

THROTTLED_AT_LEAST_S = 10.0  # as with drops: shorter is not felt in an epoch
# A loaded H200 says "SW power cap" at half of the ticks: its clock is 15 MHz under its highest then (0.8 %), at times
# 45 (2.3 %). Only a tick with the clock further down than this counts as held down.
CLOCK_DOWN_SHARE = 0.03
COUNTED_SHARE = 0.5  # where only counters were recorded: of the 10 s or so between two readings of them
THROTTLED_JOIN_S = 5.0  # of work at full clock: less does not end a stretch, for reasons come and go by the second
THROTTLED_SHARE = 0.5  # of the work from the first stretch to the last: then they are one
SCATTERED_SHARE = 0.05  # of all work: then it is a finding even where no stretch is long; less is normal under load
HOT_C = 85.0  # held over it: a finding. H200 boards slow down at 87 to 89 (T.Limit 0 to -2)
THROTTLED_COST_PCT = 5.0  # of the clock: what costs less is a note
# What a card can hold depends on its load: only work that drew nearly what the throttled work draws shows what the
# clock would have been. Where there was none, the limit may be all that the card can do: large matrices of another
# process hold an H200 at 700 W 13 to 18 % under its highest clock. Less than the first is no finding then, less than
# the second is a note.
ALIKE_READINGS = 3  # of work alike: a single one, that stands for half a minute, may be of anything
SAME_LOAD_SHARE = 0.95
LOADED_LEAST_PCT = 10.0
AROUND_S, AS_BUSY_SHARE = 150.0, 0.9  # five minutes around a reading: work that waits in between draws as much at times
LOADED_COST_PCT = 25.0
# A card that draws its limit in nearly all of its work, and never showed what it does below it, does what it can: small
# cards (a T4 of 70 W) train so all the time.
BY_DESIGN_SHARE = 0.8
# Of all work, at a limit that nobody has lowered: few may raise that, and what costs less is a note (2.9 %, H200).
OWN_LIMIT_COST_PCT = 5.0
SAME_POWER_SHARE = 0.92  # of that at full clock: the same work at a tenth less of it draws 0.8 to 0.9 of the power
NEAR_LIMIT_SHARE = 0.8  # of the limit: GPUs that it slows draw 0.95 to 1 of it (H200), in the median
LIMIT_PERCENTILE = 90.0  # of power while a limit acts: waits only lower a reading, and few are above it
LOWERED_SHARE = 0.98  # of the default limit: less was set by somebody
# A clock that fell though nobody says why: boost clocks wander by 5 % with temperature, and stay for seconds on a step.
LOWER_SHARE = 0.1
LOWER_LEVEL_S, LOWER_AT_LEAST_S = 60.0, 120.0  # a level is of so long, and a fall, and what was before it, two of them
LOWER_EPOCH_SHARE = 0.9  # of an epoch's work at one clock: then its length is that clock's
# Heat without a word of the driver: nearly all readings at the lower clock are hotter than nearly all at the full one.
# Cards slow down at 83 to 89 °C; targets that somebody set lower, and laptops, begin at 75.
HEAT_ONSET_SHARE, HEAT_ONSET_LEAST_C = 0.1, 75.0
SAID_SHARE = 0.1  # of the time at a lower clock: reasons come and go by the second, and a reading is of a moment
BUSIER_SHARE = 0.1  # of utilisation: with less of it a GPU waits, and lowers its clock by itself
HALVED_PCT = 45.0  # nvml.h: HW slowdown divides the clock by two or more; the rest is for ticks at its edges

# Of an interval: with 3,000 processes looks are 41 s apart, but for the second one, which is of 2 s of 10 s or more.
LOOKED_SHARE = 0.1

# A rise is growth from this on. 4 % of what the training held: 0.1 % was measured in the labelled runs after their
# first epoch. And 256 MiB: the first validation of a small model takes 140.
GROWTH_SHARE = 0.04
GROWTH_AT_LEAST_MIB = 256.0
GROWTH_POINTS_AT_MOST = 128  # all pairs of them are tried; more are taken together
STEP_MIB = 64.0  # the least growth that is dated to a moment: an allocator takes blocks of 2 to 20 MiB all the time

# The OOM killer takes its time: where memory is short a dying process may not get to run for many seconds.
OOM_BEFORE_S = 30.0

# Seconds of a step in which the GPU idles, at most, for want of launches: 0.03 to 0.09 with YOLO26 n to l, whatever the
# batch (H100, H200), and three times that, and a bit, on a slow CPU. With cuDNN off it was 0.6 (each image by itself).
LAUNCHES_S = 0.4
FAST_LAUNCHES_S = 0.1  # ... without a slow CPU: what is between the two may be either, a slow CPU or other code
# Of stack samples while a GPU idles, in calls of convolutions: 0.99 where cuDNN tried kernels, of a service's inference
# as of a program's idle time; 0.56 to 0.69 in seven services that launched them (H200).
IN_CONVOLUTIONS = 0.9
