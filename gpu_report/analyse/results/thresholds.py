"""Thresholds of the verdict and stalls, each with its unit and its reason."""

COMPUTE_BOUND_PCT = 95.0  # above this: the time is in the model
SHARED_PCT = 5.0  # of a GPU's work: less of another process's is not worth a word beside it
HARDLY_PCT = 5.0  # a GPU that reads as much once did something, if only a step that crashed

# What the verdict leads with.
WORTH_LEADING_SHARE = 0.01  # of the training: what costs less is said later, and is nothing to fix first
NEARLY_ALL_SHARE = 0.8  # of the waiting, in one function of the user's: it is the cause, and what hides it a remedy
# Of the time that drops lasted: a cost that differs by less is the same number of seconds to a reader.
AS_LONG_SHARE = 0.1
# Of what a larger batch saves, by an estimate: a function of the user's that costs so much comes first. To make it
# cheaper changes nothing of what is trained.
INSTEAD_OF_BATCH = 0.5
FASTER_FROM = 1.2  # times as fast: less is no headline
HALF = 0.5  # of all GPUs: where so many were not used, nothing else costs as much

# Of a drop: so much of it reported as one wait between batches, and it is that wait. A trainer stopped within a batch
# has next to none of it (0 to 2 s of 12 to 15, on labelled H200 runs), one between two has all (13 and 18 s).
STALLED_SHARE = 0.5

# Guesses, from arguments alone: an order, no measured probability. Two workers starved each GPU that was recorded with
# them, four one (sample_runs/n-starved, ab-workers-2, ab-workers-4), and so did batches of 4 and 8 (n-small-batch,
# ab-batch-8).
FEW_WORKERS, SMALL_BATCH = 4, 8
GUESS_WORKERS, GUESS_BATCH, GUESS_ROOM, GUESS_CACHE = 0.4, 0.35, 0.3, 0.2
GUESS_SHORT = 0.5  # of how sure the same signals make it in a steady state, which nobody has seen yet
MUCH_LARGER = 4  # times the batch: twice would fit into most cards, and says nothing

# What is one finding.
SAME_EVENT_SHARE = 0.5  # of the longer: so much of it two GPUs must share
RECURS_TIMES = 3
RECURS_FACTOR = 2.0  # between the shortest and the longest of what recurs ...
FEW_SHARE = 0.1  # ... but for a few of them
TURNS_SHARE = 0.75  # of the turns of a period, with what is planned for each: one may be too short to be found

# How bad it is that something took GPU time: of that of training, and by itself (GPU seconds). Somebody is called for
# what is worth a person's time: of a day 2 minutes, of a short run what a drop takes at least.
CRITICAL_SHARE, CRITICAL_S = 0.05, 600.0
WARNING_SHARE, WARNING_S = 0.005, 120.0
SHORT_RUN_S, WARNING_SHORT_S = 1800.0, 5.0
# Utilisation of training (%) that is healthy, and yet makes people ask whether it is: three readers doubted 67.
QUESTIONED_PCT = 80.0
# Of training: so much that was no work is named beside a healthy utilisation; what takes less explains nothing. Of a
# tenth that nothing explains nobody can say that there is nothing to fix.
REST_SHARE, UNKNOWN_SHARE = 0.05, 0.1
# Of training, in which nothing at all ran: of what nothing holds up the driver reads 0 % in 0 to 2 % (long epochs).
IDLE_BESIDE_DROPS_SHARE = 0.05

# Of the cores that a training on the CPU may use, what other programs used beside it: a fifth is felt.
OTHERS_CORES_SHARE = 0.2
# Of a training on the CPU: other programs took so many of the cores (0 to 1), and so many were in use in all.
OTHERS_MOST_CORES, ALL_CORES = 0.5, 0.95
# Of a validation alone: waits for the loader after its first batch, from which on they are to be changed (as of calls);
# parts that are named; and of the run a start-up that is.
VALIDATION_WAITS, PART_SAID, STARTUP_SAID = 0.25, 0.05, 0.25
BETWEEN_CALLS_SHARE = 0.1  # of a model's time, in one line of the user's between its calls: less is no news

# A start-up that a healthy training has, too, is worth a sentence: minutes, and a fifth of what was recorded. It is
# paid once, and of a short look at a long training it is most.
LONG_START_SHARE, LONG_START_S = 0.2, 300.0
OWN_IN_INFERENCE = 0.05  # of the time for all calls: less of the user's code in inference is passing by

# What a training of under LEVEL_AT_LEAST_S must have for its mean utilisation to be known. The means of so many blocks
# of its readings must agree: the standard error of all is a quarter of the 20 points between healthy (60 %) and what
# asks for a reason (40 %). Four of 5 to 9 s on an H200 have 1 to 3 points, one whose first epoch stalled 12.
LEVEL_BLOCKS = 10
LEVEL_ERROR_PP = 5.0
# ... over so many training steps, and so many rounds of the loader, in each of which each worker hands over a batch.
LEVEL_STEPS = 20
LEVEL_ROUNDS = 2
# Of a program whose kernels nobody saw, of SM activity: tensor cores have 0.07 of it in YOLO26n, 0.15 in m (H200).
FEW_PRODUCTS_SHARE = 0.1
# Of DRAM's peak: 90 % is as much as any kernel gets. 58 with unfused attention, whose matrices pass memory (H200).
MEMORY_BOUND_PCT = 50.0
