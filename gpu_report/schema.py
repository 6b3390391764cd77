"""The run folder's format: file names, columns with their units, and event kinds (standard library only).

`docs/format.md` describes the same for readers, and a test holds the two together. A renamed column or file
raises `FORMAT_VERSION`; a new optional column does not.
"""

from dataclasses import dataclass

FORMAT_VERSION = 1
MIG_INDEX_STEP = 1000  # GPU 0's MIG devices are 1000, 1001 ..., GPU 3's 4000, 4001 ...

RUN_JSON = "run.json"
SAMPLES_CSV = "samples.csv"
RING_CSV = "ring.csv"
HOST_CSV = "host.csv"
PROCESSES_CSV = "processes.csv"
WAITS_CSV = "waits.csv"
OTHERS_CSV = "others.csv"
EVENTS_JSONL = "events.jsonl"
# The files that lie in a run folder itself, and that are read of one.
RUN_FILES = (RUN_JSON, SAMPLES_CSV, RING_CSV, HOST_CSV, PROCESSES_CSV, WAITS_CSV, OTHERS_CSV, EVENTS_JSONL)
ACTIONS_JSONL = "actions.jsonl"  # commands that the live page ran
YOLO_DIR = "yolo"
INSIDE_DIR = "inside"
STACKS_DIR = "stacks"
DUMPS_JSONL = "dumps.jsonl"  # in STACKS_DIR: what py-spy saw of processes that note nothing themselves
DUMP_KIND = "dump"
NCCL_DIR = "nccl"  # what is kept of NCCL's log (*.log), and traces of torch's flight recorder in JSON
NCCL_SETTINGS = "NCCL_(?:IB_DISABLE|P2P_DISABLE|SHM_DISABLE|NET|SOCKET_IFNAME)"  # a pattern: lines of these are kept
NCCL_ZONE = "# kept by gpu-report; times are UTC"  # begins a log that is kept; the offset follows (+02:00)
NCCL_PICKLES = "pickles.txt"  # in NCCL_DIR: how many traces were there that nobody reads
BENCH_JSON = "bench.json"  # of `gpu-report bench`: its variants, what became of them, and when each served
BENCH_LOGS = "bench"  # what each variant's process printed
PROFILE_DIR = "profile"  # traces of PyTorch's profiler, and what asks for one
PROFILE_REQUEST = "request.json"
PROFILE_STEPS, MOST_PROFILE_STEPS = 8, 64  # of a window, unless asked otherwise, and at most
IMPORTED_TRACE = "import"  # how the names of traces begin that somebody else made
SOURCE_OF_TRACES = "PyTorch's profiler"  # in run.json: a run of imported traces, which nobody sampled
SOURCE_OF_DCGM = "dcgm-exporter"  # likewise: a run that was read from Prometheus
SOURCE_OF_SMI_EXPORTER = "nvidia_gpu_exporter"  # likewise
YOLO_ARGS = "args.yaml"
YOLO_RESULTS = "results.csv"
RECORDED_FILES = frozenset({*RUN_FILES, YOLO_ARGS, YOLO_RESULTS})  # nothing else is written under these names
YOLO_WEIGHTS = "weights/last.pt"  # in YOLO's own folder: only its time is looked at


@dataclass(frozen=True)
class Column:
    """A CSV column: its name, which ends in its unit, how many decimals mean something, and what it says."""

    name: str
    decimals: int
    meaning: str


TIME_COLUMNS = (
    Column("wall_s", 3, "UTC wall clock, seconds since 1970"),
    Column("mono_s", 3, "the recorder's monotonic clock, seconds"),
)

# Quantities of one GPU at one tick. An empty cell is a reading that could not be had.
GPU_QUANTITIES = (
    Column("gpu_util_pct", 0, "share of the driver's last sampling period in which a kernel ran"),
    Column("memory_util_pct", 0, "share of that period in which device memory was read or written"),
    Column("memory_used_mib", 0, "device memory in use, without what the driver reserves"),
    Column("memory_reserved_mib", 0, "device memory reserved by the driver"),
    Column("power_w", 1, "board power as the driver reports it (a 1 s average on Ampere and later)"),
    Column("energy_j", 1, "energy since the driver was loaded; read seldom, because it is dear"),
    Column("temperature_c", 0, "GPU temperature"),
    Column("sm_clock_mhz", 0, "SM clock"),
    Column("memory_clock_mhz", 0, "memory clock"),
    Column("performance_state", 0, "P-state: 0 is the fastest"),
    Column("clock_event_reasons", 0, "bitmask of why clocks are where they are (nvmlClocksEventReason*)"),
    Column("memory_temperature_c", 0, "temperature of the device memory, where the board reports it"),
    Column("sm_active_pct", 1, "share of cycles in which an SM had work, since the row before (GPM: Hopper and later)"),
    Column("sm_occupancy_pct", 1, "share of the SMs' warp slots that were in use (GPM)"),
    Column("tensor_active_pct", 1, "share of cycles in which the tensor cores worked (GPM)"),
    Column("dram_active_pct", 1, "share of the device memory's bandwidth that was used (GPM)"),
    Column("pcie_tx_mib_s", 1, "PCIe traffic from the GPU (GPM)"),
    Column("pcie_rx_mib_s", 1, "PCIe traffic to the GPU (GPM)"),
    Column("nvlink_tx_mib_s", 1, "NVLink traffic from the GPU, all links (GPM)"),
    Column("nvlink_rx_mib_s", 1, "NVLink traffic to the GPU, all links (GPM)"),
    Column("power_cap_s", 2, "seconds since the driver was loaded in which the power limit lowered the clocks"),
    Column("sw_thermal_slowdown_s", 2, "likewise by the driver, for heat"),
    Column("hw_thermal_slowdown_s", 2, "likewise by the board itself, for heat"),
    Column("power_brake_s", 2, "likewise by an outside power signal"),
    Column("pcie_link_generation", 0, "generation that the PCIe link runs at; an idle GPU lowers it to save power"),
    Column("pcie_link_width", 0, "lanes that the PCIe link runs with"),
)
SAMPLES_COLUMNS = (*TIME_COLUMNS, Column("gpu", 0, "device index"), *GPU_QUANTITIES)

# What the driver kept between ticks: one of the quantities a row, the other empty.
RING_QUANTITIES = (
    Column("gpu_util_pct", 0, "utilisation over the driver's own sampling period that ended here"),
    Column("power_w", 1, "board power at this moment (only with --detail)"),
)
RING_COLUMNS = (*TIME_COLUMNS, Column("gpu", 0, "device index"), *RING_QUANTITIES)

HOST_QUANTITIES = (
    Column("cpu_pct", 1, "CPU busy since the row before, mean over all cores"),
    Column("cpu_busiest_core_pct", 1, "CPU busy since the row before, the busiest core"),
    Column("iowait_pct", 1, "CPU idle while input or output was outstanding"),
    Column("memory_used_mib", 0, "total memory minus available memory"),
    Column("memory_available_mib", 0, "memory that can be had without swapping"),
    Column("cpu_pressure_pct", 1, "time in which a process waited for a core, since the row before (PSI some)"),
    Column("io_pressure_pct", 1, "time in which a process waited for input or output (PSI some)"),
    Column("io_full_pressure_pct", 1, "time in which all processes that could run waited for it (PSI full)"),
    Column("memory_pressure_pct", 1, "time in which a process waited for memory (PSI some)"),
    Column("swap_in_mib_s", 1, "read back from swap"),
    Column("disk_read_mib_s", 1, "read from disks, all of them"),
    Column("shm_free_mib", 0, "free in /dev/shm, where data loader workers leave their batches"),
    Column("main_cpu_pct", 0, "CPU of the trainer's main process in % of one core; the busiest of several ranks"),
    Column("busiest_worker_cpu_pct", 0, "CPU of the busiest process that the trainer started, in % of one core"),
    Column("workers_cpu_pct", 0, "CPU of all of these, in % of one core; with the programs that they ran to the end"),
    Column("workers", 0, "processes that the trainer started"),
    Column("main_cores", 0, "cores that a main process may run on (CPU affinity); the fewest of several ranks"),
    Column("worker_cores", 0, "likewise of the processes that the trainer started"),
    Column("workers_blocked", 0, "of these, how many wait for a device and cannot be interrupted (state D)"),
    Column("workers_major_faults", 1, "pages a second of mapped files, or from swap, that these had to wait for"),
    Column("trainer_stopped", 0, "of the trainer and its workers, how many a signal has stopped (state T)"),
    Column("trainer_read_mib_s", 1, "read from storage by the trainer and its workers"),
    Column(
        "cgroup_cpu_pressure_pct", 1, "time in which a process of the trainer's cgroup waited for a core (PSI some)"
    ),
    Column("cgroup_io_pressure_pct", 1, "likewise for input or output; empty in the root cgroup and with cgroup v1"),
    Column("cgroup_memory_pressure_pct", 1, "likewise for memory, also because the cgroup is at its own limit"),
    Column("cgroup_memory_used_mib", 0, "memory of the trainer's cgroup, with its page cache; read every 10 s"),
    Column("cpu_steal_pct", 1, "of `cpu_pct`, what a hypervisor gave to other virtual machines (steal)"),
    Column("trainer_memory_mib", 0, "memory of the trainer and its workers (RSS): what they share counts for each"),
    Column(
        "cpu_clock_mhz",
        0,
        "clock of the cores that the training works on, without one of those it may use (16 at most, mean); every 10 s",
    ),
    Column(
        "cpu_heat_throttles_per_s", 2, "how often a second heat slowed these cores or their package; read every 10 s"
    ),
)
HOST_COLUMNS = (*TIME_COLUMNS, *HOST_QUANTITIES)

PROCESSES_COLUMNS = (
    *TIME_COLUMNS,
    Column("gpu", 0, "device index"),
    Column("pid", 0, "process id as the driver names it"),
    Column("name", 0, "the process's name; empty when the pid is not visible here"),
    Column("memory_used_mib", 0, "its device memory; empty when the driver does not say"),
    Column("change", 0, "appeared, changed or gone"),
    Column("owner", 0, "trainer, other, not visible (another container, or hidden from this user) or unknown"),
    Column("gpu_util_pct", 0, "SM utilisation by this process, mean since it was last read; empty where not reported"),
)

# A wait of one process of the training, stamped with its beginning; one that goes on is told again, longer.
WAITS_COLUMNS = (
    *TIME_COLUMNS,
    Column("pid", 0, "the process"),
    Column("role", 0, "main (a process on a GPU, or the command itself) or worker (what one of these started)"),
    Column("seconds", 1, "how long it had waited when it was last seen to"),
    Column("state", 0, "the kernel's letter: S (asleep), D (asleep, cannot be interrupted), T (stopped) ..."),
    Column("channel", 0, "the kernel's function in which it slept (/proc/PID/wchan); empty where it may not be read"),
    Column("call", 0, "the system call on a file that it was in; empty where it was in none, or nobody may look"),
    Column("file", 0, "the file: its path, pipe or socket; secrets redacted"),
    Column("filesystem", 0, "the type of the filesystem that the file lies on"),
)

# A program of others between two looks at all processes, stamped with the second one.
OTHERS_COLUMNS = (
    *TIME_COLUMNS,
    Column("seconds", 1, "time since the look before"),
    Column("name", 0, "the program's name (/proc/PID/comm), never its command line"),
    Column("user", 0, "whose it is: a name, else the user's number; empty where that could not be read"),
    Column("pid", 0, "its process that used most"),
    Column("processes", 0, "how many processes of this name and user used any CPU"),
    Column("cpu_pct", 1, "CPU of all of them, in % of one core; with what they started that is over"),
    Column(
        "on_trainer_cores_pct", 0, "share of that CPU by processes that may run on a core of the trainer (affinity)"
    ),
)

# A call of a model: one batch, from on_predict_batch_start to on_predict_batch_end (inside/<pid>.calls.csv).
CALLS_SUFFIX = ".calls.csv"
CALLS_COLUMNS = (
    Column("mono_s", 6, "when it began: the batch had been loaded"),
    Column("model", 0, "the number of its `model` line in <pid>.jsonl; 0 beyond the 200th"),
    Column("images", 0, "images of the batch"),
    Column("height", 0, "pixels of what the model gets, after resizing and padding"),
    Column("width", 0, "likewise"),
    Column("preprocess_ms", 3, "ultralytics' pre-processing of the batch: resize, pad, copy to the GPU"),
    Column("inference_ms", 3, "the model; ultralytics waits for the GPU at its end"),
    Column("postprocess_ms", 3, "NMS and results"),
    Column("total_ms", 3, "from its beginning to on_predict_batch_end, with tracking, drawing and saving"),
    Column("gap_ms", 3, "from the end of this process's call before to its beginning; empty for the first one"),
    Column("new_thread", 0, "1 where its thread made no call of this model before, else 0"),
)

# What run.json says of the machine in `host`, as it is when the recording begins; null where it could not be had.
RUN_HOST = (
    Column("name", 0, "the machine's name"),
    Column("os", 0, "the operating system"),
    Column("kernel", 0, "the kernel's release"),
    Column("container", 0, "docker, podman, kubernetes, lxc; null when there is no sign of one"),
    Column("cores", 0, "cores that the recorder, and what it starts, may run on (CPU affinity)"),
    Column("cores_online", 0, "cores that the machine shows, which is what ultralytics counts"),
    Column(
        "cpu_limit",
        2,
        "cores' worth of time that the cgroups allow (v2 and v1); null when nothing limits it",
    ),
    Column("memory_mib", 0, "memory of the machine"),
    Column("memory_limit_mib", 0, "the least that a cgroup from the recorder's upwards allows; null without a limit"),
    Column("shm_total_mib", 0, "size of /dev/shm, where data loader workers leave their batches"),
    Column("mounts", 0, "filesystems that data may lie on: point, type, source, device, rotational, free_mib"),
)

# What run.json says in `job` of the job of several nodes that it may be part of; null is what nobody said.
RUN_JOB = (
    Column("id", 0, "Slurm's job number, else the id that torchrun was given"),
    Column("scheduler", 0, "slurm, torchrun or kubernetes"),
    Column("node_rank", 0, "the node's number within the job, from 0"),
    Column("nodes", 0, "nodes of the job"),
    Column("world_size", 0, "ranks of the job, on all nodes"),
    Column("restarts", 0, "how often torchrun had restarted the ranks"),
    Column("ranks", 0, "the ranks of this node: rank, local_rank, gpu_uuid, pid"),
    Column("clock", 0, "source (adjtimex), start and end: how well the wall clock was set then"),
)
JOB_CLOCK = (
    Column("synchronised", 0, "whether a daemon (NTP, PTP) keeps the clock, as the kernel knows it"),
    Column("offset_s", 9, "what the kernel still has to correct"),
    Column("max_error_s", 6, "at most so far from UTC; null while nobody keeps the clock"),
    Column("estimated_error_s", 6, "so far from UTC by the daemon's estimate; null likewise"),
)

# What run.json says of each GPU's health in `health_start` and `health_end`; null is a reading that could not be had.
GPU_HEALTH = (
    Column("recovery_action", 0, "what the driver says must be done to recover the GPU; none when nothing"),
    Column("ecc_volatile_corrected", 0, "memory errors corrected since the driver was loaded"),
    Column("ecc_volatile_uncorrected", 0, "memory errors not corrected since the driver was loaded"),
    Column("ecc_aggregate_corrected", 0, "memory errors corrected in the GPU's life"),
    Column("ecc_aggregate_uncorrected", 0, "memory errors not corrected in the GPU's life"),
    Column("remapped_rows_correctable", 0, "rows of memory remapped because of errors that were corrected (Ampere on)"),
    Column("remapped_rows_uncorrectable", 0, "rows of memory remapped because of errors that were not"),
    Column("row_remap_pending", 0, "1 when a row waits to be remapped at the next reset"),
    Column("row_remap_failed", 0, "1 when a row could not be remapped"),
    Column("retired_pages_corrected", 0, "pages retired because of corrected errors (before Ampere)"),
    Column("retired_pages_uncorrected", 0, "pages retired because of an error that was not corrected"),
    Column("retired_pages_pending", 0, "1 when a page waits to be retired"),
    Column("pcie_replays", 0, "PCIe packets that had to be sent again"),
)

# Each entry of `variants` in bench.json; what is not known yet, or never was, is absent.
BENCH_VARIANT = (
    Column("name", 0, "how people call it: yolo26n ONNX FP16, batch 8"),
    Column("model", 0, "what the user named"),
    Column("short", 0, "its name, or its path where several have the same"),
    Column("format", 0, "pt, torchscript, onnx, openvino or engine"),
    Column("half", 0, "FP16 was asked for"),
    Column("batch", 0, "images of a call"),
    Column("given", 0, "the model is an exported file, whose precision is its own"),
    Column("task", 0, "detect, segment ..."),
    Column("random_weights", 0, "the model is a YAML, and its weights are random"),
    Column("file", 0, "the file that serves"),
    Column("build_s", 3, "how long its export took, also where an earlier benchmark made it; null for weights"),
    Column("reused", 0, "an earlier benchmark made it"),
    Column("size_mib", 3, "size of the file, or of all in the folder"),
    Column("pid", 0, "its process, which has its calls in inside/"),
    Column("load_s", 3, "from nothing to the first result, without imports"),
    Column("settings", 0, "in use: format, half, device, providers ... as in a `model` line of inside/"),
    Column("unreadable_images", 0, "files of the source that could not be read as images"),
    Column("warm_up", 0, "start_mono_s, end_mono_s, calls, median_ms: before the first turn"),
    Column("turns", 0, "a list of the same, with waited_s, loop_ms, loop_after_ms"),
    Column("memory_mib", 1, "most memory of its process"),
    Column("gpu_memory_mib", 1, "most device memory that torch reserved in it"),
    Column("agreement", 0, "reference, images, boxes, share, score_difference: how far it finds the same boxes"),
    Column("map50_95", 6, "of a validation, with --data"),
    Column("failed", 0, "stage (start, model, build, load, serve, check) and reason; absent where nothing failed"),
)

PROCESS_CHANGES = ("appeared", "changed", "gone")
PROCESS_OWNERS = ("trainer", "other", "not visible", "unknown")

# Every line of events.jsonl holds wall_s, mono_s, kind, and the fields named here.
EVENT_KINDS = {
    "recording_started": "segment (1, 2, ... within this folder)",
    "recording_ended": "ended_by (duration, signal, command); signal; exit_code",
    "command_started": "pid, command (secrets redacted)",
    "command_ended": "exit_code or signal; asked (a signal that asked it to end before), asked_before_s",
    "left_behind": "pids, gpus: processes of the training that outlived its command, and the GPUs that they were on",
    "nvml_unavailable": "reason, advice: nothing could be read from any GPU",
    "nvml_error": "gpu, quantity, reason: why cells of this quantity are empty from here on",
    "nvml_recovered": "gpu, quantity: it can be read again",
    "nvml_stalled": "gpu, seconds: a call of the driver library does not return, or took over a second",
    "oom_kill": "where (cgroup: the trainer's; machine: anywhere on it), count: the kernel killed so many for memory",
    "gap": "seconds, reason: rows that should be here are not",
    "clock_step": "seconds: the wall clock was set by this much",
    "suspend": "seconds: the machine slept",
    "rows_lost": "file, rows, reason: rows that could not be written",
    "yolo_run": "path, number: the YOLO run that is watched (yolo/<number>/ holds its files when there are several)",
    "epoch": "run, epoch (1-based), time_s (of results.csv), metrics: a row of results.csv appeared",
    "checkpoint": "run, file: YOLO had written weights (stamped with the file's time)",
    "tensorboard": "run, training (1, 2, ...), part (start, train, epoch), epoch, metrics: YOLO's TensorBoard scalars",
    "kernel_log": "status (read, restricted, unavailable), source, reason, advice",
    "kernel": "text, level, source, stamp_s: one line of the kernel log, raw",
    "kernel_lines_dropped": "count: lines beyond the rate that is kept",
    "xid": "gpu, code: NVML's own Xid event, which needs no kernel log",
    "xid_events": "status (listening, unavailable), reason",
    "trace_lost": "reason: a trace of PyTorch's profiler could not be packed into the run folder",
    "dump_failed": "pid, reason: py-spy could not dump a process's stacks; said once",
    "marker": "text: whatever the user noted",
}

# Likewise every line of inside/<pid>.jsonl, which our callbacks in a process of YOLO write (gpu_report/inside).
INSIDE_KINDS = {
    "run": "task (train, val, predict, export), pid, rank, python, torch, cuda, ultralytics, save_dir: a run begins; "
    "under torchrun also local_rank, node_rank, nodes, ranks (of the job), restarts, run_id",
    "settings": "what it runs with, in effect: workers, batch, cache, amp, world_size, images, data_folder, gflops ...",
    "set_in": "name (a slow mode, tf32, p2p, shm, affinity, threads, start_method, memory_fraction, "
    "batch_tensors), file, line of code",
    "phase": "name, detail, epoch: a phase begins, and ends where the next one begins or the run ends",
    "batches": "epoch, attempt, start_wall_s, start_mono_s, batches, data_wait_s, first_wait_s, longest_wait_s: "
    "so far; allocated_mib, hooks, callbacks: now",
    "progress": "batches, data_wait_s: of the epoch so far, every 3 s at first and in a long training more seldom; "
    "allocated_mib: now",
    "epoch": "the same of a whole epoch, and images, images_per_s, loss (sum of the means), lr: its train part ended",
    "validation": "epoch, images, batch, workers, plots, batches, and the seconds of each part: a validation ended",
    "model": "number (in calls.csv), model, task, mode, format, half, compile, imgsz, batch, providers, device ...",
    "rebuilt": "number, before (of models), changed (arguments), file, line, function: a YOLO object's predictor was "
    "set up anew by a call with other arguments; each way once",
    "calls": "calls, failed, dropped (rows that were lost), objects (of models), rebuilt, largest_px, repeated and "
    "repeated_images, each by number: so far",
    "profile": "name, phase, epoch, kept_steps, reason, begin_mono_s, kept_mono_s, file, failed: PyTorch's profiler",
    "memory_holder": "epoch, look, allocated_mib, grown_mib, took_ms, cpu_ms; name, place, type, file, function, line, "
    "tensors, mib, new_tensors, new_mib, with_graph: what holds the tensors by which GPU memory grew",
    "ended": "how (finished, early stop, exception); error, bases, message, errno, cuda_error, raised_in, frames",
    "error": "where, reason: a fault of ours, which the training did not feel",
}
