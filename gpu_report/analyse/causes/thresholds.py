"""Thresholds of what may have held the GPU back, measured on labelled H200 runs, half of which were set aside."""

IDLE_CPU_PCT = 15.0  # of one core: a process that waits uses 0 to 3, one that feeds a GPU 25 to 130
QUIET_PRESSURE_PCT = 10.0  # less than this and nothing on the host is waited for
# Workers that stop starve the GPU only once the queue is empty: 2 to 6 s later with 8 to 14 workers. Where the trainer
# stops they go on for about a second, until the queue is full.
LEAD_S = 1.0
SURGE_FACTOR = 1.5  # workers that fill an empty queue use so much more CPU than is typical (2.4 measured)
OWN_MEMORY_SHARE = 0.5  # of the host memory in use, the training's: what it does without is what the machine lacks
MEMORY_PRESSURE_PCT = 10.0  # kernel documentation: some work is delayed for memory a tenth of the time
SWAP_IN_MIB_S = 1.0
IO_PRESSURE_PCT = 30.0  # 36 % measured in a storage-bound loader, 0 to 9 in a fed one
WORKERS_BLOCKED = 0.5  # on average: 17 % of the looks at a storage-bound loader's workers found state D
# Of the loader's workers, on average in state D: 0 in 51 recordings, 0.12 and 0.22 with slow storage (m-, s-storage).
# Workers that decode in between are there for less than their wait is of an image.
STUCK_SHARE = 0.25
READ_MIB_S = 1.0
MAJOR_FAULTS_PER_S = 5.0  # of each worker: what is in memory has none, and 5 waits of 20 ms (a network drive) are 10 %
PAGES_OF_A_MIB = 256  # of 4 KiB
SWAPPED_SHARE = 0.5  # of the pages that workers waited for: so many were read back from swap, and swap explains them
RISEN_FACTOR = 3.0  # a pressure is a cause only when it is so much higher than in the run's steady state
CPU_PRESSURE_PCT = 30.0  # 51 to 78 %, typically 0, with 40 busy processes on the 16 cores of a training (H200) ...
LESS_CPU_SHARE = 0.75  # ... which got under half of its typical CPU there
# Of what others used: with less of it on cores that the trainer may use, they have cores of their own (cpusets, Slurm).
SHARED_LEAST = 0.1
TOOK_SHARE = 0.5  # of the CPU that a training lost, used by others beyond what is typical: they have it, then
NAMED_SHARE = 0.25  # of what others took: a program that used less is not named
MOST_NAMED = 2  # programs: of more, none alone slowed the training
WHOLE_CORES = 10  # from so many on tenths of a core say nothing
ALL_CORES_PCT = 90.0
CORES_TAKEN_SHARE = 0.6  # of the interval: what was late goes on being late for seconds after the cores are free
# Steal: of the CPU time that a machine wanted. A cloud's shared machines have 0 to 2 % of it mostly; of what is wanted
# by next to nobody, a few ticks are a large share. Not measured here: no hypervisor of ours takes any.
STOLEN_SHARE, STOLEN_MUCH_SHARE, STOLEN_LEAST_PCT = 0.1, 0.3, 2.0
OTHERS_CPU_PCT = 40.0  # of all cores, taken by others than the training
WORKER_FULL_PCT = 85.0  # of one core: 66 to 99 measured with too few workers
WORKERS_FULL_PCT = 60.0  # likewise on average over all workers
WORKERS_IDLE_SHARE = 0.5  # of their typical CPU: workers whose queue is full have as little to do as the trainer takes
SIZES_MET = 4  # steps for each image size: of 21 that are drawn at random, the last one comes after 77 on average
MAIN_FULL_PCT = 90.0  # of one core; it also spins there while it waits for the GPU, so only where the GPU does not work
# Of utilisation: with less of it gone, what the main process has less of its core is not seen. Of that share again: one
# that waits uses about as much less of it, and images are loaded as much more slowly.
FELL_SHARE, LITTLE_OF_IT, MUCH_OF_IT = 0.2, 0.33, 0.5
MAIN_BOUND_UTIL_PCT = 50.0  # where it is known that data always came, a full main process leaves nothing else
# Of a core each, under what workers that cannot keep up use: 0.3 and 0.5 in stalls-1 and -2 (rows of a second lie half
# beside a wait), 1.0 in ab-workers-2.
WAITING_WORKERS_SHARE = WORKERS_FULL_PCT / 100
PRESENT_SHARE = 0.5  # of the interval
# OpenMP binds the thread that imports torch to one place, by default a core: of x86 that is two hardware threads.
PLACE_CORES = 2
FEW_CORES_SHARE = 0.5  # of the cores that a process had: with less than half little else explains what follows
# Of time, on a machine whose other cores are free: 19 with one rank of two on 3 cores, under 2 with enough (H100).
RANK_PRESSURE_PCT = 10.0
# A quota gives the same CPU in each of its periods of 0.1 s: of 4 cores 386 to 406 % of a core in six of ten seconds,
# and 52 % pressure, on a machine that was 26 % busy (H200). So near that, for so much of the time:
CEILING_NEAR, CEILING_SHARE = 0.06, 0.5
CEILING_LEAST_PCT = 50.0  # of a core: a training that takes less waits for something else
CORES_FREE_PCT = 60.0  # of all cores: with more of them busy a process may wait for one without a limit
MOST_OF_CORES_PCT = 108.0  # of each core: more is used on other cores, too (ticks of 10 ms read up to 107)
IDLE_BY_WAITING = 0.8  # of a GPU's idle time, waited for data: the rest are gaps between steps
OWN_CORES_PCT = 90.0  # of each core that the training may use: 97 to 100 with 8 workers under a quota of 4 cores (H200)
# Of the cores that a training may use, which are mostly two threads of one core each: with more of them busy, the main
# process shares its own with a worker. JSON parsed for each image on 12 of 16 made its steps 16 % longer (H200).
CROWDED_SHARE = 0.5
WORKERS_BUSY_SHARE = (
    0.7  # of the workers, at work on average: faster steps gain a tenth or two until they wait for them
)
# Likewise while a process waited for a core: who sleeps between two batches leaves a core free, and then all want it.
# 87 to 100 with 9 processes on 2 and 4 cores, under 60 where cores were not what lacked (H100, H200).
CROWDED_CORES_PCT = 75.0
# Of a core, by the busiest worker (mean): one thread has 100 at most, and reads as 101 to 104 by ticks of 10 ms. With
# threads of BLAS in 14 workers on 16 cores it had 128 to 163 (H200).
ONE_THREAD_PCT = 105.0
# What each tensor takes that a worker hands over (a descriptor, a mapping, an object): CPU of the main process, 92 to
# 142 us on an EPYC with torch 2.14, a copy to pinned memory apart; and time, with the worker's answer, 200 to 770 us.
HAND_OVER_S, HAND_OVER_WAITS_S = 100e-6, 200e-6
MANY_TENSORS = 100  # of a batch: YOLO's own has 4 to 8
HANDED_OVER_SHARE = 0.25  # of a step, in handing tensors over: as much of Python's lock is not there to launch
TUNING_CPU_PCT = 60.0  # of one core: the main process, while it tunes kernels and nothing else goes on
PHASE_SHARE = 0.8  # of an interval: then it is that phase which took it
STOPPED_SHARE = 0.5  # of the time (0 to 1) with any process in state T: several that stop at once stop once

# Of a training waited for data: then the wait is its way, and no stall now and then (0.1 to 0.3 in runs with stalls).
LATENCY_WAIT_SHARE = 0.4
LOADS_CPU_SHARE = 0.5  # of a core while it loads: a main process that uses less waits for what it reads
LATENCY_WORKERS_LEAST_SHARE = 0.05  # of a core each: images come, only slowly; workers that stall use none
# Python's lock lets one thread launch at a time, and autograd's own does so while the main one waits for it: 93 to
# 152 % of a core with every size of model (H200). What fills more computes in threads.
LAUNCHES_CPU_PCT = 200.0
# A training that hangs in its loader: in all of the time, but for a note or two, and no kernel runs meanwhile.
HUNG_SHARE, HUNG_UTIL_PCT = 0.98, 1.0
DATA_CAME_SHARE = 0.05  # of training waited for data: so little, and the loader is not what holds the GPU back
# Of utilisation: SM activity is 80 to 88 % of it in a fed YOLO26m, 25 % with batches of 4 (H200).
LAUNCH_SM_SHARE = 0.5
# Back to back, even kernels of microseconds keep a GPU busy for this share of the time: 27 % with batches of 4 (H200).
LAUNCH_UTIL_PCT = 15.0
# % of a core: 100 of the thread that searches, and what others of its process take beside it.
SEARCH_CPU_PCT = 150.0
# A GPU that has work for so long in each step has all of it launched meanwhile: those of a YOLO model take 0.1 s with a
# fast CPU (FAST_LAUNCHES_S). What it idles then has another reason: up to a tenth in healthy ones, with one GPU.
LONG_WORK_S, IDLE_IN_STEPS_SHARE = 0.2, 0.2
# Of the PCIe link's bandwidth, from the GPU to CPU memory: 250 trainings on one GPU sent back up to 0.4 %, one that
# keeps activations in CPU memory (`save_on_cpu`) 25 % (H100, H200).
SENT_BACK_SHARE = 0.05
CAUSE_CLOCK_SHARE = 0.8  # of the typical clock: less of a fall explains no utilisation that fell to half
# Copies of images over a PCIe link: of a step, as much as is worth opening a machine for, and of the GPU's idle time
# most of it.
COPIES_SHARE = 0.1
COPIES_OF_IDLE = 0.6
LOCK_SHOWN_SHARE = 0.02  # of an interval with the lock kept: less is what any training with NumPy has, and says nothing

# --- where images lie, and storage that got slower ---

PLACE_ROOM = 1.2  # times what the images take: a disk that is filled to the brim is no place to move to
PLACE_LEAST_MIB = 51200.0  # where nobody knows what they take: COCO has 20 GiB
PLACE_MEMORY = 2.0  # times the need: what lies in /dev/shm is taken from the training's own memory

OTHERS_READ_SHARE = 0.5  # of what a training reads from its disk: with as much of others it gets two thirds of it
READER_CPU_PCT = 10.0  # of a core: what reads a disk at 100 MiB/s takes as much, and more to do something with it
READS_FELL_SHARE = 0.8  # of what a training read before: less, though more is waited for, is less that the disk gives
NOTHING_READ_SHARE = 0.1  # likewise: what was on its way as remote storage stopped to answer
READS_ROSE_FACTOR = 3.0  # times as much is read as before: another reader, or a page cache that lost what it held

# Epochs that begin without data.
LATE_START_S = 3.0  # an epoch's wait for its first batch: YOLO's own loader has it ready, 0.01 to 0.1 s (H100)
LATE_STARTS_S = 0.3  # likewise, where it is all of the training that waits: what its epochs waited in sum decides
LATE_EPOCHS = 3  # chance makes one or two of many late
OF_THE_WAIT = 0.5  # of an interval or an epoch's wait for data: so much at the beginning, and that says it all
# Of the time, in Python's garbage collector: less is not worth a change. A plain training has 0.1 to 1 % of it there.
GARBAGE_LEAST_SHARE = 0.05
# ... of a training on the CPU in seconds, too: YOLO collects after each epoch, which is much of one that takes 0.3 s
GARBAGE_LEAST_S = 1.0

# A training whose own memory leaves no room for its images.
ROOM_FELL_SHARE = 0.25  # of the memory that was available: so much less, and the page cache may lose what it held
OWN_GREW_SHARE = 0.5  # of that in the training's own memory: it is what took the room
OWN_READS_ROSE = 1.25  # times as much is read as before beside it: less is no sign of images that left the page cache

# `save_period`: an epoch writes `last.pt`, and often `best.pt`. One more file in more than so many epochs is less than
# a tenth of what they write.
SAVED_OFTEN_EPOCHS = 5
