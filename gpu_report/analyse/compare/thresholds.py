"""Thresholds of a comparison, each with its unit and its reason."""

# What a comparison looks at: whole epochs where each side has this many, else windows of training. Fewer values have no
# interval worth the name: already with 5 Student's t reaches 1.8 times as far as the normal distribution.
COMPARED_AT_LEAST = 5
# With fewer of them a change of the epoch time is certain where each epoch of one run takes so many times as long as
# each of the other, and there are so many of each: what lies in more than one epoch is how a run trains. The same
# set-up took up to 1.42 times as long on another machine (below), and its steady epochs are within 20 % of their
# median (OUTLIER_SHARE): 1.7 times together. Of two neighbouring epochs and two others of one run the ratio was 1.43
# at most in 62 recordings, but for three of which something slowed a part.
APART_TIMES = 2.0
APART_AT_LEAST = 2  # epochs of each run, none shorter than WINDOW_S: a hiccup of the machine lasts seconds
# Windows are cut where callbacks reported how far the epoch was: every 2 to 3 s.
WINDOW_S = 2.5
BAND_CONFIDENCE = 0.95  # of several baselines' band; INTERVAL_CONFIDENCE must be left, too
BAND_AT_LEAST = 3  # baselines: fewer have no spread to speak of
IMAGES_SHARE = 0.01  # data sets whose sizes differ by more are not the same; less is less than epochs differ by
# Likewise of models: the number of classes moves their parameters by about a percent, the next size by a factor of two.
PARAMETERS_SHARE = 0.05
MOSAIC_SHARE = 0.1  # runs of whose epochs so much more is without mosaic are compared with mosaic only, or without only
# The smallest changes that count, where no gate says otherwise. They also stand for what two runs of one configuration
# differ by anyway, which no interval from the epochs of one run can know: 0.3 to 4.4 % in epoch time, up to 3.3
# percentage points in utilisation (s-cpu-taken, s-loader-stall, s-storage without what was done to them; m-ddp,
# m-ddp-stopped).
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
# A slower host: the same work takes the main process and the workers longer alike, and the GPU not.
# Seven runs of one set-up (tests/data/same_setup, two virtual machines with an H200 each) took the main process 0 to
# 38 % and the workers 0 to 42 % more than the fastest; of each the two were within 5 % of each other, and the SMs'
# activity within 3 % of the fastest's. A training that does more work of all kinds has all three risen alike.
CORES_AGREE = 0.12  # the one factor over the other
GPU_WORK_SHARE = 1 / 3  # of the cores' change: from here on the GPU's work is another, too
# What lies in more of a run's ordinary epochs is how that run trains: a loader that stalls in every other epoch makes
# the run slower, and no gate may overlook it. A third is one of three epochs, the fewest that show a habit.
RECURS_SHARE = 1 / 3
DISTURBED_SHARE = LEAST_TIME_SHARE  # of an epoch or a window: less moves its time by less than what counts as a change
DISTURBANCES_SHARE = 0.5  # of the slow-down of the run as a whole: from here on they are named as its likely reason
CALLS_TO_COMPARE = 2  # times as many calls as a percentile needs by itself: 400 for p95, or its interval has no end
LEAST_PART_SHARE = 0.02  # of a call: a part of it that changed by less is no news, whatever share of itself that is
PIXELS_SHARE = 0.05  # images whose mean size differs by more are other work; latency is about in proportion to pixels
# Of the change of the epoch time or of a call: a part that changed by as much is its cause. More than half, so that no
# two parts can be, and some more, for both changes have intervals.
CAUSES_SHARE = 2 / 3
SHARED_GPU_SHARE = 0.05  # of the time: less of another process on the GPUs is not worth a word
# A line of code got slower from this share on of an epoch's GPU time, as much as counts of the wait for data. Its idle
# time is an estimate: a reading of utilisation covers a fifth of a second, and with it several lines.
LEAST_LINE_SHARE = LEAST_WAIT_PP / 100
# ... and where processes are in it for longer, by this share of the change of its idle time: a line that got slower
# takes as much longer itself. Between halves of one recording (cb-sleep-often) the idle time of a line differed by 4 %
# of the epoch, for certain, and its own by 0.5 %: idle time of readings had gone to another of their lines.
LINE_SPENT_SHARE = 0.5
