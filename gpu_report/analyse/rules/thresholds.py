"""Thresholds of what is a finding, and how severe, each with its unit and its reason."""

# --- drops ---

# Between a drop and noise: all cores taken leaves YOLO26m 55 to 60 % of its level, and no healthy run of the labelled
# ones falls by a third for 10 s.
SLOWED_PERCENT = 30.0
SLOWED_CONFIDENCE = 0.75  # ... but a cause must be beside it, and not one among several
SLOWDOWN_LASTS_S = 300.0  # of one that is reported though nothing explains it: what makes a drop a new state
# Of training, one that lasts to its end: what was before is then no queue of batches that were ready at the start. That
# of 8 workers holds 32: seconds on an H200, half a minute on a small card.
FALL_THAT_GOES_ON_SHARE = 2 / 3

ABUTS_S = 1.0  # what lies within this of a phase touches it: a fault that goes on does, a later one does not
REACHES_S = 4.0  # ... and what reaches further into training is no ramp of it (REMAINS_AT_LEAST_S)
# Of the least length of a drop: what is left of one without the validation and checkpoint in it is a finding from here
# on.
REMAINS_SHARE = 0.5
# ... and from this on: their own ramps take up to 3.8 s before the first (FIRST_DRAIN_S), 1.2 s after one, on labelled
# H200 runs. Who asks for shorter drops (--drop-seconds) gets them.
REMAINS_AT_LEAST_S = 5.0

# --- ends of epochs ---

STALLS_SHARE = 0.05  # of the time of all epochs: to win less is not worth a change
STALLS_OF_ENDS = 0.5  # of the ends of epochs, and two at least: what comes once is a slow validation or checkpoint
STALL_LEAST_S = 0.2  # of one epoch's end: four notes of where it stood
STALLS_APART_S = 0.5  # what is so far apart is held up twice; notes come 20 times a second
MOSTLY_ONCE = 0.5  # of what a first validation takes longer than later ones: most of it explains it
# Of a validation that waits for its loader: the first batch of any takes a second or two, of a short one most of it.
LOADING_AT_LEAST_S = 3.0
LOADING_SHARE = 0.5  # ... and of the end of an epoch: in less of it the validation itself is the larger part

ENDS_SHARE = 0.3  # of the time of epochs: to win most of it makes training 1.4 times faster
VALIDATION_SHARE = 0.25  # ... in validation alone, of which more can be won than of saving
# ... or in saving and callbacks, for so long each time: weights of 300 MB, saved twice, take 6 s at 100 MB/s
SAVING_SHARE = 0.05
SAVING_LONG_S = 10.0
# ... of which those seen from outside count that take so long, and so many readings: their edges are off by 1 to 2 s
CLEAR_END_S = 10.0
CLEAR_END_READINGS = 5
IDLE_AT_ENDS_PCT = 10.0  # utilisation of a row of the host in which a GPU had next to nothing to do
LARGE_ENDS_SHARE = 0.5  # ... and of which so much is said only: of less nobody knows what the GPU waited for
LARGE_SAVING_SHARE = 0.1
LARGE_ENDS_LEAST = 3  # epochs, without the first, each of which is mostly its end: a lasting share, not one slow end
SWAPPED_TIMES = 2.0  # as many images to validate as to train: of a split of 70 to 30 that is swapped 2.3 times as many
# Images to validate that distinguish epochs: those of COCO, or as many of the training images as a usual split has.
# Twice as many are a large set.
ENOUGH_VAL_IMAGES, ENOUGH_VAL_SHARE, LARGE_VAL_TIMES = 5000, 0.25, 2.0
ENDS_NAMED_S = 0.05  # each epoch: a validation or a checkpoint of less is not worth a word
LONG_ENDS_LEAST = 5  # epochs that say so, without the first: a warm validation takes as long every time
# ... or two whose ends take so long each (a warm validation differs by tenths of a second, H100), and agree
LONG_END_S = 2.0
LONG_END_ALONE_S = 60.0  # beside it a start of workers (10 s) is within what may differ
ENDS_AGREE = 1.25  # times the shorter one
# ... or any epochs whose validation takes so long, and longer than to train a whole one: what the first one needs to
# start its workers (4.4 s of 24 workers, YOLO11m, H200) changes little about it.
LONG_VALIDATION_S = 30.0
LONGER_EPOCHS = 10  # times: a tenth of the ends is little enough, and ...
STEPS_KEPT = 0.9  # of the steps: cutting more would make another training of it
CACHED_TIMES_MIB = 4096.0  # of a cache in memory that holds each image so often: less than a training takes anyway
EPOCHS_KEPT = 5  # ... so many epochs are left at least, to validate and to save after
LARGEST_PART = 0.4  # of a validation: of nine parts the largest, and worth a word in the headline
SHOWN_PART = 0.02  # of a validation: less is no evidence of anything
# Of what NMS and metrics take in a validation within training, in the final one: 0.5 to 1.5 in 41 recordings, 0.32
# where the loader's thread handed small tensors over meanwhile (H200).
HELD_UP_SHARE = 0.4
ENOUGH_CONF = 0.01  # what ultralytics itself takes for rotated boxes, to have fewer of them
MOST_TIMES_WORKERS = 4.0  # as many workers: a wait that more would not end is none for their number

# --- start-up ---

SLOW_START_S = 15.0  # of one part: the first batch takes 5 to 11 s on H200s, and a scan of 1,600 images under one
SLOW_BEFORE_S = 30.0  # ... and of the part before YOLO: imports and CUDA take 13 to 21 s from a cold disk (H100, H200)
SLOW_START_SHARE = 0.05  # of the training so far: to win less is not worth a change
# Of a core, of the process that checks images: with files at hand its eight threads fill one; a mount that answers in
# 70 ms left 6 % (H200).
SCAN_WAITS_PCT = 50.0
SLOW_EXIT_S = 7.5  # of the end of a command: 1.3 to 3.7 s of 70 trainings that had nothing more to do (H100, H200)
SLOW_EXIT_LINE_SHARE = 0.1  # of the time after the training: a line of less is passing by

# --- between validations ---

BETWEEN_SHARE = 0.2  # of the time of validations and what lies between: a fifth is worth a fix (as calls)
BETWEEN_S = 2.0  # ... and so many seconds in all
BETWEEN_CALLEE_SHARE = 0.8  # of a function's time: then what it calls is what takes it, else the function itself
BETWEEN_NOTED = 0.5  # of the time between, in stack samples: less, and what most of it went to is a guess

# --- images that a list names several times ---

REPEATED_DATA = 1.1  # images of a list for each different one: a tenth of a validation is worth a look at the list
REPEATED_DATA_S = 2.0  # ... and so many seconds of the recording (as between validations)

# --- low utilisation ---

WAITING_SHARE = 0.1  # of the steady state: less is not what holds it back
# Of utilisation, in SM activity: less, and a GPU that looks busy has too small kernels. Healthy trainings on H100 and
# H200 had 0.45 (fine-tuning with frozen layers) to 0.89; one with batches of 2 would have 0.26.
SMALL_KERNELS_SM_SHARE = 0.35
DATA_WAIT_SHARE = 0.2  # of the steady state: 0.1 to 1 % where the loader keeps up, and a fifth is worth a fix
# Of training at a stretch, with the CPU full: workers that refill a queue of some 30 batches are full, too, and the
# next batch is there all the same (ab-workers-8, epochs of 6 s: 93 % of a core each, 0.5 % waiting for data).
FULL_FOR_S = 60.0

USER_CODE_SHARE = 0.05  # of training time in a function of the user's own: less is not worth a change

# Of a function's time: with the GPU idle in less of it, it worked on what the function launches, or on the step before.
# That stays: of 25 % of training time in one, 6 % with the GPU idle, 7 % were won without it (H200).
SEEN_IDLE_SHARE = 0.5

# --- memory of a GPU ---

FULL_SHARE = 0.97  # of a card: what fails to be allocated asks for more than the rest, so that it never reads as full
# Of a card (0 to 1), left as a training ran out of its memory: what a step allocates at once is seldom half of a card.
ALLOWED_FREE = 0.5
# ... and what is left on a card whose process has gone: its driver's, a desktop's.
EMPTY_SHARE = 0.1
NEAR_LIMIT_PCT = 95.0  # of what the card can hold is in use
IMPOSSIBLE_MEMORY_PCT = 105.0  # of what it can hold, whatever is rounded or reserved: its size is another one then
NEAR_LIMIT_S = 10.0  # held for so long: an allocator that is at its limit for a moment gives its cache back
LAST_MINUTE_S = 60.0  # what led to the end of a training that ran out of memory is looked for in this time

# --- readings and GPUs ---

TAKEN_SHARE = 0.01  # of a GPU's time in training: what another process took less of is not worth a number
OTHER_PROCESS_AT_LEAST_S = 5.0  # shorter ones are looks (nvidia-smi, a notebook's first cell)
# Some drivers read 100 % for good once a process was killed in the middle of a kernel: 580.95 to 595.71 on Blackwell.
IMPLAUSIBLE_PCT = 95.0
IMPLAUSIBLE_S = 30.0  # a process that has just gone, or is not listed yet, explains less
# Power at which a GPU does no work: 120 of 700 W for an H200 in its highest clocks, 9 to 25 % of the limit elsewhere.
NO_WORK_POWER_SHARE = 0.25  # of the limit, or ...
NO_WORK_POWER_FACTOR = 1.2  # ... so close to the least that was seen, where
NO_WORK_POWER_RANGE = 2.0  # ... so many times as much was seen, too
# Of what was held down: so much of it while the other process was there, and it came of that process's work, unless it
# was there for as much of the training, too. Other processes of three labelled runs: 93 to 100 % of it, in 7 to 24 % of
# training.
THROTTLED_TOGETHER_SHARE = 0.8
# Two GPUs with the same work: 0 to 1 points apart over a healthy labelled run, 4 with one reading a second and another
# process beside; by window up to 4 and 14.
IMBALANCE_POINTS = 15.0
IMBALANCE_WINDOW_S = 10.0  # compared window by window, and apart in ...
IMBALANCE_SHARE = 0.5  # ... at least this share of the steady state
IMBALANCE_AT_LEAST_S = 10.0  # of it, as for a level; less is too little to call it the run's way
MORE_WORK = 1.1  # a GPU that does so many times another's work (tensor activity, else power) is not waiting for it
UNEVEN_MEMORY_SHARE = 0.3  # of the larger: rank 0 has the moving average of the weights and the validation besides
UNEVEN_MEMORY_MIB = 1024.0
SAME_EVENT_S = 5.0  # the kernel writes the lines of one kill or one lost GPU at once; a busy log delays the last ones

# --- configuration and machine ---

# Workers leave their batches in /dev/shm, and one that finds no room dies of a bus error: with a tenth left of Docker's
# 64 MiB not even one batch of 16 images of 640 px (19 MiB) fits.
SHM_LEAST_SHARE = 0.1
SHM_ROOM = 2.0  # times what a loader's workers may leave there: the validation has a loader of its own
# Of a GPU's memory, held by somebody else as the training's ran out: an idle CUDA context holds 1 %.
HOLDER_SHARE = 0.1
# Times what the images are on disk: from 2.25 times the pixels on, and of that time at least half could go.
ENLARGED_FROM = 1.5
IMGSZ_LEAST_PX = 320  # ten of YOLO's coarsest cells: tiny images may need to be enlarged to so much, to find anything
THREADS_USED_PCT = 150.0  # of one core: a main process that launches kernels fills one; more is threads of arithmetic
# Of training in which a process waited for a core: 0 to 1.3 % in thirteen runs on H200s that had cores enough, 28 % in
# one whose cores others took for a third of it.
CORES_WAITED_PCT = 20.0
CORES_FULL_PCT = 85.0  # of each core that may be used, by the trainer and its workers together
# Reads that are waited for throughout: less is what the first epoch costs before the page cache holds the images.
READS_WAITED_S = 10.0
READS_WAITED_SHARE = 0.1  # of training
# Training that waits for workers to read images. From a fast disk a .npy takes a millisecond, and workers compute for
# ten times as long: what they read most of the time comes from a slow one. On fast disks reading and decoding took 0 to
# 0.5 of what was waited for, up to 2 s besides steps, and the busiest worker 99 to 113 % of a core meanwhile; on slow
# ones 0.87 to 0.94, and 0 to 21 % (35 runs on H100 and H200).
SLOW_IMAGES_S = 4.0
NPY_SHARE = 0.5  # of the time that is waited for workers
READING_SHARE = 0.7  # likewise, of images that are decoded, too
SLOW_IMAGES_CPU_PCT = 50.0  # of one core, while it is waited for

POLYGON_SHARE = 0.2  # of the work of loader workers: half with 12 to 21 polygons an image (H200), none with boxes

# --- epochs ---

# An epoch is a finding, more than a mark in the table, when its training is over its siblings' median by all of these
# and by OUTLIER_Z: as long as a drop must last, and half of what it takes.
SLOW_AT_LEAST_S = 10.0
SLOW_SHARE = 0.5  # of LASTING_EPOCHS in a row SLOWING_SHARE is enough: a cause that lasts, and ends before the training
# Of the time that the GPU is typically busy for an epoch's work, which hardly differs: 6.8 to 7.1 s in 23 epochs of a
# run on an H200, stalled ones among them, and 18.7 s in the one beside another process. What the clock lost is taken
# off.
BUSIER_FACTOR = 1.5
# Of the training of the epochs before the mosaic closed: those after it that are so much faster have a loader that had
# kept them back. Epochs of one kind differ by 1 to 3 % (H200), and less than this hides no slow one.
FASTER_SHARE = 0.1
UNDISTURBED_QUANTILE = 0.25  # of the lengths of epochs, of which most may have been held up
# Parts of long epochs: so long that what a step takes averages out (2 minutes are 500 steps and more; parts of one kind
# differ by 1 to 5 %), and slower by what wandering boost clocks, heat below its limit or a shared host do not make.
PART_S = 120.0
PARTS_LEAST = 3  # in an epoch: shorter epochs are compared as a whole
SLOWER_PART_SHARE = 0.25
WAITED_PART_SHARE = 0.1
PARTS_COST_S = 120.0  # in all: from so much on what costs time is a warning anywhere
FIRST_SHARE = 0.01  # of all other epochs: a first one that loses less is what any training has
SLOW_TIMES = 3  # stretches of slow epochs with one cause: so many are one finding, as of all that recurs
LASTING_EPOCHS = 3  # in a row: chance makes one or two of many stand out by little
COMPARED_EPOCHS = 50  # on either side of slow ones: those far away tell less of what was typical just then
EXPLAINED_SHARE = 0.5  # of what it took longer: so much in drops, waits or with another process, and those say it all
DISTURBED_SHARE = 0.2  # of its training: an epoch with more of these tells nothing of a trend
SLOWING_SHARE = 0.2  # the last third over the first: what a person would notice, as for outliers
WAIT_GROWS_S = 1.0  # an epoch, the last third over the first
WAIT_GROWS_SHARE = 0.05  # ... and of its training
WAIT_COSTS_S = 10.0  # in all
RISEN_SHARE = 0.1  # of a rise: an epoch with less of it is as they were before
# A training whose epochs are too few for a trend, in parts of as many batches: of 20 the test compares 190 pairs. Of
# fewer than 8 chance or the odd last batch of an epoch makes too much.
STEP_PARTS, STEP_PARTS_LEAST = 20, 8
REGISTERED_EACH = 0.5  # hooks or callbacks more for each batch: what is registered in each epoch is far below one
# Of a function in workers, of what it costs more: so many times what the rest of an image does. A slower CPU, or larger
# images, make all of it dearer alike.
GROWS_BEYOND_REST = 2.0
GROWN_IN_ONE_SHARE = 0.5  # of what an epoch takes longer, in one function: most of it
# Of one time that PyTorch empties its cache and asks CUDA anew: 0.1 to 1 s, by how many blocks it had.
RETRY_AT_MOST_S = 1.0
PAGING_POWER_SHARE = 0.75  # of the power before: a GPU that waits for pages of the host draws less, though it is busy
OWN_MEMORY_GREW_SHARE = 0.1  # of what the card holds more: tensors of batches that differ move by less
CHANGED_SHARE = 0.1  # a signal that moved less is not what changed
OTHERS_ROSE_PCT = 5.0  # of all cores, by others than the training: less takes no core that it would miss
SLOWER_CPU_FACTOR = 1.3  # CPU time of the same work over what it was: caches and busy sibling threads move it by less
SLOWER_CLOCK_SHARE = 0.15  # of the CPU's clock, that it fell: with load a mean over some cores moves by a few percent
# A CPU that heats up: its clock in a minute (median), and of how many of them before it fell and since then, at least.
# Packages and their coolers need 2 to 20 minutes to get hot, and a burst above the sustained power is over in one.
CLOCK_WINDOW_S = 60.0
CLOCK_WINDOWS_BEFORE, CLOCK_WINDOWS_SINCE = 3, 10
GPU_CLOCK_FELL_SHARE = 0.05  # of a GPU's clock: it wanders by less with temperature, and steps get longer by no more
CLOCK_HELD_SHARE = 0.8  # of the time before it fell for good, at the clock of the beginning: else there is no before
OWN_WORK_LEAST_S = 0.5  # a validation's work that needs no loader: less of it is a matter of its first call
STEAL_ROSE_PCT = 2.0  # of all cores, taken by a hypervisor: with less a CPU is not slower by SLOWER_CPU_FACTOR
BLOCKED_LEAST = 0.5  # loader workers that wait for storage at a time: one of them for half of the time

# --- how a training ended ---

GONE_LEAST_S = 600.0  # that a GPU was empty afterwards: a training that is started anew takes less

ENDS_WHEN_ASKED_S = 60.0  # torchrun waits 30 s for its ranks before it kills them, and then closes

BEFORE_THE_END_S = 5.0  # what "just before the end" means: allocations that fail last seconds
# A GPU that fell off the bus fails the next call of CUDA; a driver that hangs answers after a few of its 45 s timeouts.
GPU_FAILED_BEFORE_S = 300.0
XID_BEFORE_S = 60.0  # an Xid that ends a process fails its next call of CUDA; torchrun needs 30 s to end other ranks
OOM_COUNTED_S = 10.0  # its counters are read every 5 s
MOST_OF_MEMORY = 0.5  # share of a limit that who reached it must have held: less may be anybody's
RISES_MIB = 4096.0  # of host memory while a training trains: a dozen workers of YOLO take less as they start
RISES_LATER = 0.35  # of the rise in its second half, as docs/memory.md has it for the GPU's: 0.5 where it is even
RISES_READINGS = 4  # fewer tell no rise from a step
RISES_FREED_S = 10.0  # before the end may be its highest: a kill frees it, and a loader looks for its workers every 5 s
MEMORY_FULL_PCT = 97.0  # of what there is: a machine that swaps or kills leaves less than this free
# Callbacks report a training's batches every 3 s, or every 1/1800 of its age (inside: batches.py). One that reports
# nothing for a minute and five such lines does none; nor does a validation or a checkpoint go on for five times the
# typical length.
HANG_S = 60.0
WAITED_TO_END_S = 2.0  # stacks are noted each second: so near to the end a wait lasted until then
HANG_LINES = 5.0
PROGRESS_SHARE = 1 / 1800
HANG_FIRST_S = 600.0  # the first batch may compile the model, and fill a cache
HANG_SIBLINGS = 5.0

# Where a training that ended was last seen.
LAST_SEEN_S = 60.0  # of a hang: what it did before may have been work still
PROCESSES_TOLD = 4  # of a training of eight ranks half are enough to see which one is elsewhere
UNNOTED_S = 10.0  # without a note: a process writes every 5 s at least what it has noted

# --- the model's part of the GPU's work ---

TENSOR_SHARE_LOW = 0.5  # of the usual: the smallest of 60 trainings without other work had 0.75 of it
# Times the work of the model's own step: the most of 77 trainings was 1.0, and sizes that vary by half come to 1.1. A
# teacher ten times as large, without gradients, makes it 4.
OTHER_NETWORK_TIMES = 2.0
# Of a main process in calls that compute weights of attention: 0.15 where they took 0.6 of a step (H200).
ATTENTION_SHARE = 0.05
OWN_CODE_SHARE = 0.003  # of training: what only launches is in its lines for little time, 0.005 of it (H100)

# An image whose boxes the loss pads its batch to: where it has so many times the mean, most of that is padding ...
CROWDED_TIMES = 10.0
# ... and so many boxes: with 2,500 a step took 203 instead of 126 ms (YOLO26s, batch of 32, H100), with 200 a twentieth
# more. The most in COCO are 93.
CROWDED_BOXES = 200
# Classes for which a loss is much of a step, since it computes each of them for each prediction: 1,203 took 44 % of
# YOLO26s' (H200). COCO has 80.
MANY_CLASSES = 300
UNUSED_CLASSES_TIMES = 2  # so many times as many as have labels: a rare class may not be among 2,000 images
# Of the classes with labels, that were met once: with more, many others have labels in images that were not looked at
# (V3Det names 13,204 classes, most of them of a few images among 180,000).
ONCE_SHARE = 0.1
# Of a function's time (0 to 1), in one call of one line: more may be a wait for the GPU. A hook of three means was in
# `mean` for 47 % of it (H200).
IN_ONE_CALL = 0.67
MOSTLY_PCT = 50.0  # of training time: less is not most of it

# --- what a profiler saw ---

STEP_SHARE = 0.02  # of a step: less is not worth a change
STEP_WARNS_SHARE = 0.05  # as much as a person notices of a training
HALF_PRECISION_LEAST = 0.05  # of the time of convolutions: with AMP nine tenths are in 16 bits (H100, torch 2.11)
HALF_PRECISION_TIME = 0.5  # of the same in 32 bits: YOLO26m on an H100, convolutions of 25.7 and 12.7 ms a step
HEAVY_SHARE = 0.1  # of a step in convolutions and matrix products: below it their precision hardly matters
GRADIENT_BYTES = 4  # of a parameter, also with AMP: DDP exchanges gradients in 32 bits
# Of a step, for gradients over a slow link: most hides behind the backward pass, and a third may not (COPIES_SHARE).
EXCHANGE_SHARE = 0.3
RECEIVED_SHARE = 0.5  # of a step's gradients that the driver saw come over a link: less goes another way, as by NVLink
FULL_POWER_SHARE = 0.9  # of its limit: a GPU that draws so much works, and waits for no link
SLEPT_SHARE = 0.1  # of a training and its sleep: less sleep is no problem of the set-up
SLOWEST_LINK = 1e9  # bytes/s: 10 Gbit Ethernet has 1.25e9, PCIe and NVLink ten and a hundred times that
FEW_LANES = 4  # a GPU has 8 or 16: these are a riser's, or those of a slot for other cards
AROUND_S = 600.0  # before and after a link fell: many reports of progress, and few other things that change
READ_EVERY_S = 10.0  # the recorder's readings of the link: it fell in one of these
REPLAYS_PER_S = 1.0  # a sound PCIe link repeats a handful of packets a day (as for AER lines of the kernel)
REPLAYS_LEAST = 1000  # a cable that is touched gives a hundred at once
IN_PIECES = 1.5  # compiled pieces entered a step: what is entered now and then is another function
RECOMPILES_A_STEP = 0.5  # torch makes a size dynamic the second time that it changes: what goes on does not settle
NMS_SHARE = 0.25  # of a step of validation: 0.07 to 0.15 in YOLO26n after two epochs (H100)
SYNC_LINES = 3  # that are told of the waits in a step
SYNCS_OF_YOLO = 35  # results that YOLO reads itself in each step (8.4.190: 12 in type_as, 11 in item, 12 elsewhere)

# --- calls of a model ---

CALLS_LOST_SHARE = 0.2  # of a model's time: to win it makes 1.25 times as many images a second
CALLS_LOST_S = 2.0  # ... in seconds of the recording: less is too short a look
NUMBERS_SHARE = 0.5  # of the time of a function between calls: copies of numbers are what makes it slow
TO_GPU_SHARE = 0.5  # likewise: copies of tensors to the GPU are
DRAWN_SHARE = 0.25  # ... and of drawing by PIL: 0.46 of a function that plots and sends frames (H200)
DECODED_TIMES = 2  # the model's side: of images so large decoders can leave out half of each side (OpenCV, JPEG)
# Calls of a process or a GPU that go on at once, on average: from here on the parts of most contain waits for others.
CALLS_AT_ONCE = 1.5
OTHER_SHARE = 0.1  # of a model's time: a function of the user's beside the longest one that is worth a look, too
PART_SHARE = 0.25  # of a call, or of a model's time: a part of less is not what makes it slow
GPU_OF_INFERENCE = 0.5  # of the time of inference the GPU works: with less the CPU that launches its work is the limit
GPU_BOUND = 0.7  # ... and with more a faster GPU program is
TAKEN_FROM_CALLS = 0.1  # of the GPU's time: what others took less of hardly shows beside the noise of latency
LARGEST_BATCH = 32  # images a call that are worth trying: more seldom win anything, and take memory
HALF_SAVES = 0.25  # of inference, by FP16: yolo26m with 32 images went from 28.3 to 20.4 ms (H100), n and s less
HALF_AT_MOST = 0.5  # ... and no more than this: half the bytes, and twice the arithmetic
RELOADED_CALLS, RELOADED_SHARE = 5, 0.5  # model objects made, at least, and of the calls: one for nearly each
# ... or setting up its predictor anew for changed arguments takes this share of the time: less is not worth a change.
REBUILT_SHARE = 0.05
# Of a model's calls, those with the image of the call before; and of how many images: a benchmark has a few for all.
REPEATED_SHARE, REPEATED_IMAGES = 0.25, 10
REPEATED_OF_IMAGES = 0.25  # of the different images, that come again: a camera or a stream that pauses repeats a few
MANY_TIMES = 3.0  # from here on whole times are precise enough
RARE_CALLS_SHARE = 0.5  # of a model's time it was called, or its caller worked: with less its latency is what matters
SLOWER_AFTER_PAUSE = 1.2  # times, of the median, after a pause
GROWN_MIB = 256.0  # of a GPU, over all calls: an allocator's own steps are of 2 to 20 MiB, workspaces of up to 200
GROWN_SHARE = 0.1  # ... and of what was used before
GROWN_HOST_MIB = 512.0  # of the host, where other programs take and give back as well
FULL_SOON_S = 86_400.0  # until memory is full: a service runs for days, and will end by it
# Calls: a container with a limit (a queue of frames, `lru_cache`, which keeps 128) holds tens to hundreds of results.
LIMITED_CALLS = 500
FULL_TIMES_SEEN = 4.0  # of the time in which memory grew: to foretell more of it is a guess, where calls are so few
GROWTH_FIT = 0.9  # of the variance that the rise explains
# Of the rise, in the last third of the calls: half of a steady rise; an allocator has settled by then.
GROWTH_GOES_ON = 0.15

# What a look into the training found to hold new tensors explains growth when they are so much of it. The rest may be
# what others took meanwhile, and what a look at other tensors would have found.
LARGEST_LOSS_MIB = 0.01  # of a tensor: a loss is a number, or one for each object
KEPT_SHARE = 0.3

# --- larger batches ---

LARGER_BATCH_FROM = 20  # batches of an epoch: of twice the size 10 are left, and fewer are a poor epoch (advice)

# --- clocks that somebody set ---

# Of the highest: V100s come with application clocks of 0.86 of it, and the last tenth is hardly reached under load.
SET_CLOCK_SHARE = 0.8
SET_CLOCK_OF_WORK = 0.9  # of the readings at work, with no other reason beside it

# Of another model's share of its power limit: steps as heavy take GPUs of one generation to like shares (0.8 to 1), and
# one that spins half of the time draws 0.6 of what it would.
UNLIKE_POWER_SHARE = 0.75

# Gradients through the host's memory: copies of several ranks share it, and PCIe links to it; 3 to 6 GB/s are common
# with NCCL, not measured here. A tenth of a step is worth a trial; more than the last of these nobody can promise.
HOST_MIB_PER_S = 3000
HOST_GRADIENTS_SHARE, HOST_GRADIENTS_MOST = 0.1, 0.45
