"""Thresholds of speed-up limits and fixes, each with its unit and its reason."""

# Of a larger batch, whose estimates were up to a fifth off: 1.14 and 1.16 times as fast came to 1.08 and 0.99 (YOLO26m
# and x, H200).
LARGER_BATCH_LEAST = 1.2
# A GPU busy for less of the time says nothing of the best case: 3 % made 2.0 s of an epoch that took 7.0 without the
# fault (H200), as launching its steps alone takes longer.
LEAST_BUSY_SHARE = 0.1
# Nobody fills every SM with warps all the time: 29 % in a fed YOLO26n, 42 to 45 % in YOLO26s and m (H200), and the
# most that is reported for training is about 50 %.
MOST_OCCUPANCY_PCT = 60.0
SPARE_CORES = 2  # a rank's main process with its threads takes 1.1 to 1.4 cores
# The least of a core that a data-loader worker is taken to need: one that waits for a network decodes images, too, at
# times (bucket of 70 ms a request, H200: 0.04).
CORE_OF_A_WORKER = 0.1
# Times the workers there are: each takes memory, and what they wait for may not answer so many at once. A second step
# can follow.
MORE_AT_ONCE = 4
# Times the workers of training, in validations (ultralytics gives these twice as many), and times its images a second:
# workers that load side by side would get twice as many there, and more, for those are hardly augmented.
MORE_WORKERS, SAME_RATE = 1.5, 1.2
VALIDATION_WAITS_SHARE = 0.25  # of a validation: with less of it waiting for data, other work sets its rate
WORKERS_MARGIN = 1.2  # so that the loader is a little faster than the GPU, not just as fast
# A loader that keeps up leaves an epoch a little over what a typical one takes without its waits: 1.01 to 1.06 times
# that in the five fixes of sample_runs, 1.28 on a noisy host (H200; of one worker, six made the steps slower, too).
REACHED = 1.08
READY_BATCHES = 2  # that each worker has at the start of an epoch, at most, where that is not recorded: torch's default
# Of an image to train, what is computed on pixels of imgsz, in times that decoding as many takes: to validate, half of
# it. In a validation of one batch an image took 0.4 to 0.65 of that to train (640 px), 1.4 times it of 4000 px (H200).
AUGMENTING = 6.0
WORKERS_COMPUTE = 0.7  # of the workers at work, on cores: 0.86 to 1.2 where images lie in memory, 0.5 of slow storage
WAITS_LEAST = 1.1  # times as fast without waits for data: some steps wait in healthy trainings, too
CACHE_NEEDS = 2.0  # ultralytics refuses to cache images unless twice their size is free
# Launching an optimiser's step, in forward and backward passes: YOLO26n on an H200 takes 52 ms a batch of 4 (a step in
# 6 to 11 of them), 55 of 8 (in 3 to 6), and 71 of 64 (in each), its main process full all along.
OPTIMISER_STEP = 0.45
BACKWARD_SHARE = 2 / 3  # of a step's arithmetic: gradients of inputs and of weights, beside one forward pass
BACKWARD_LAUNCHES = 0.4  # of a step's launching: 0.3 to 0.5 of what main threads did in YOLO26 n to l (H100, H200)
FULL_SM_SHARE = 0.85  # of utilisation, SM activity where kernels fill the GPU: 80 to 88 % in a fed YOLO26m (H200)
# Power of the images with which a step's kernels take longer once their mean fills the GPU: some are full long before,
# others long after. YOLO26n from 4 and 8 images to 64, s, m and l from 32 to 64 (H100, H200): within a tenth.
KERNELS_GROW = 0.75
BATCH_MEMORY_SHARE = 0.6  # of a card's memory: what ultralytics' own AutoBatch aims at
BATCHES_AT_LEAST = 10  # of an epoch: fewer are a poor epoch for the loader and for batch normalisation
WORTH_NEXT_S = 60.0  # of a training's time: nobody lists images eight times for less

# Of the epoch that the first fix reaches: another asks for more (memory, a first epoch that decodes), and has to win
# a quarter more. For 8 workers that decode images of 12 megapixels 14 are expected to win 1.8 times, a cache 2.6 times;
# images of the training's size won 3.6 (H200).
MUCH_FASTER_SHARE = 0.8
ALIKE_SHARE = 0.95  # of images that are too large: of so many the others are not worth a word
READING_SHARE = 0.5  # of what workers do while they are waited for: with less of it a cache takes little away
READING_WITH_CROPS = 0.25  # likewise, where crops of classification take the rest: they work on all pixels, too
RESTART_WORTH_SHARE = (
    0.8  # of the time that resuming takes: a new start throws away what was trained, for less of a win
)
WARM_UP_SHARE = 0.1  # of a first epoch: with more of it warming up, it says little of the ones that follow
STEPS_LEAST = 5  # of a training whose epoch is worked out by their pace: fewer say nothing of how even that is
# Of all epochs' time: where those that were recorded took so much less than as many typical ones, they were not alike.
ALIKE_EPOCHS_SHARE = 0.1

# The loader that slower steps hid: so many epochs at the full clock tell, and so much of them waited for data is felt
# again (as DATA_CAME_SHARE of causes).
FREE_EPOCHS, WAITED_BEFORE_SHARE = 3, 0.05
