"""Configuration problem: a torch that does not fit the driver or has no CUDA, and modes that slow each kernel."""

from gpu_report.analyse.busy_in_training import busy_in_training, steady_utilisation
from gpu_report.analyse.causes.slow_modes import SLOW_MODES, switch_off
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.rules.setup.check import SetupIssue, host_mean
from gpu_report.analyse.tensor_share import without_tensor_cores
from gpu_report.analyse.timeline.device_argument import CPU, visible_devices
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.catalogue import ON_CPU_KEY
from gpu_report.gpu_words import gpu_words
from gpu_report.model import HEALTHY_PCT, STARVED_PCT, Advice, Evidence, Severity
from gpu_report.wording import setting_location_words, upper_first

GIVE_A_GPU = "Give the training a GPU"
CUDNN_OFF = "cudnn_off"  # of the slow modes the one that makes the GPU's own work longer
TENSOR_CORES_FROM = 7.0  # compute capability (NVIDIA, CUDA C++ Programming Guide: Volta)
TF32_FROM = 8.0  # likewise: Ampere
# Times as fast with AMP as in 32 bits without TF32, at most: 5.8 to 6.3 with YOLO26m (H200). Its own work remains.
AMP_GAINS = 7.0
# ... and as with TF32: 16 bits are half the bytes, and tensor cores compute twice as many (NVIDIA, data sheets of A100
# and H100). YOLO26m's steps took 1.2 times as long with it (H200).
AMP_GAINS_ON_TF32 = 2.0

ROCM = "rocm"  # torch for AMD's GPUs: it has no CUDA either, and none is wanted


def torch_without_cuda(context: Context, training: Training) -> SetupIssue | None:
    """Find a training on the CPU by a torch that was built without CUDA, beside a GPU."""
    torch = training.text("torch")
    if not _on_cpu_beside_a_gpu(context, training) or torch is None or not _has_no_cuda(training, torch):
        return None
    served = context.run.recording.cuda
    which = f" with CUDA, {served} at most, which is what the driver supports" if served else " with CUDA"
    return SetupIssue(
        _severity(training),
        f"The training ran on the CPU, not on {_gpus(context)}: torch {torch} has no CUDA",
        (torch,),
        _idle(context, training),
        (_do(f"Install torch and torchvision{which}, and train again"),),
    )


def torch_too_new(context: Context, training: Training) -> SetupIssue | None:
    """Find a training on the CPU by a torch whose CUDA is of a newer generation than the driver serves.

    Within a major version a driver serves later minor ones, from CUDA 11 on; another major version needs a newer driver
    (NVIDIA, CUDA Compatibility: Minor Version Compatibility).
    """
    built, served = _version(training.text("cuda")), _version(context.run.recording.cuda)
    if not _on_cpu_beside_a_gpu(context, training) or not built or not served or built[0] <= served[0]:
        return None
    driver = f"the driver {context.run.recording.driver or ''}".strip()
    return SetupIssue(
        _severity(training),
        f"The training ran on the CPU, not on {_gpus(context)}: torch needs "
        f"CUDA {training.text('cuda')}, {driver} has {context.run.recording.cuda}",
        (training.text("torch"), training.text("cuda")),
        _idle(context, training),
        (_do(f"Update the NVIDIA driver, or install torch and torchvision for CUDA {served[0]}"),),
    )


def gpu_not_taken(context: Context, training: Training) -> SetupIssue | None:
    """Find a training on the CPU that nobody asked for, though torch and the driver fit each other."""
    built, served = _version(training.text("cuda")), _version(context.run.recording.cuda)
    fits = built is not None and served is not None and built[0] <= served[0]
    if not fits or not _on_cpu_beside_a_gpu(context, training) or training.args.get("device") == CPU:
        return None
    hidden = _hides_all(context, training)
    why = ": CUDA_VISIBLE_DEVICES hides it" if hidden else ", which torch could have used"
    place = setting_location_words(training.setting_locations, "no_gpu")
    do = "Run `python -c 'import torch; torch.zeros(1).cuda()'`: the error says why"
    if hidden:
        do = f"Leave CUDA_VISIBLE_DEVICES as it is{place}" if place else _unset(context)
    text = f"The training ran on the CPU, not on {_gpus(context)}{why}"
    return SetupIssue(_severity(training), text, (), _idle(context, training), (_do(do),))


def _unset(context: Context) -> str:
    """Return what to do about a CUDA_VISIBLE_DEVICES that hides all GPUs: who set it, the command or what began it."""
    named = context.run.recording.cuda_visible_devices
    is_ours = context.run.began_command
    if is_ours and (named is None or visible_devices(named)):
        return (
            "Find what sets CUDA_VISIBLE_DEVICES within the command: its code, a script, or an .env file that it loads"
        )
    return "Unset CUDA_VISIBLE_DEVICES"


def no_gpu_for_torch(context: Context, training: Training) -> SetupIssue | None:
    """Find a training on the CPU that nobody asked for, on a machine of which the recorder could read no GPU.

    Without a device ultralytics takes the CPU where torch sees no GPU, and goes on.
    """
    told, hidden = context.run.no_gpu, _hides_all(context, training)
    asked = "device" not in training.args or "cpu" in str(training.args["device"]).lower()  # not known: it may have
    has_no_cuda = _has_no_cuda(training, training.text("torch") or "")  # then it was meant for the CPU
    is_guessed = training.rank_group is None  # by GPUs that did nothing, which nobody saw here
    if training.device != CPU or context.run.gpus or told is None or asked or hidden or has_no_cuda or is_guessed:
        return None
    reason, advice = (str(told.get(name) or "") for name in ("reason", "advice"))
    summary = "PyTorch found no GPU and trained on the CPU" + (f" ({reason})" if reason else "")
    do = Advice(upper_first(advice) or GIVE_A_GPU, short=GIVE_A_GPU)
    main_pct = host_mean(context, training, "main_cpu_pct")
    numbers = evidence(
        Evidence("CPU of the training's main process", main_pct, "% of a core", key=ON_CPU_KEY),
        ("CPU of its data-loader workers", host_mean(context, training, "workers_cpu_pct"), "% of a core"),
        ("images a second", context.throughput.images_per_s(training.train_spans) if context.throughput else None, ""),
    )
    return SetupIssue("warning", summary, (reason,), numbers, (do,))


def torch_a_little_newer(context: Context, training: Training) -> SetupIssue | None:
    """Find a torch on the GPU that was built for a later CUDA than the driver serves: most of it works.

    The same source: "with limited feature-set", of which what is compiled at run time (PTX) is what one meets.
    """
    built, served = _version(training.text("cuda")), _version(context.run.recording.cuda)
    if not training.device.startswith("cuda") or not built or not served or built <= served:
        return None
    served_text = f"the driver supports {context.run.recording.cuda}: the GPU worked"
    text = f"torch was built for CUDA {training.text('cuda')}, {served_text}"
    do = "If `compile=True` or a kernel of your own fails to load, update the NVIDIA driver: nothing else needs it"
    return SetupIssue("info", text, (training.text("cuda"),), (), (Advice(do),))


def full_precision(context: Context, training: Training) -> SetupIssue | None:
    """Find a training in 32 bits on a GPU with tensor cores; worth more than a note where the GPU is the limit.

    Without any use of them it is worth more wherever the GPU does not mostly wait: faster kernels shorten no wait.
    Of amp=True that ultralytics' own check has turned off, only why can be found out. Where PyTorch's profiler saw a
    step, its own finding says how much of it that is.
    """
    capability = training.quantity("compute_capability")
    too_old = capability is not None and capability < TENSOR_CORES_FROM
    if training.settings.get("amp") is not False or not training.device.startswith("cuda") or too_old:
        return None
    asked = training.args.get("amp") is True
    if not asked and _saw_precision(context, training):
        return None
    busy = busy_in_training(context, training)
    is_limit = busy is not None and busy[0] >= HEALTHY_PCT and not asked
    bare = without_tensor_cores(context, training)
    is_bare = bare is not None or (training.settings.get("tf32") is False and (capability or 0.0) >= TF32_FROM)
    mostly_waits = busy is not None and busy[0] < STARVED_PCT
    saves = None if bare is None else min(bare.extra_pct / 100, 1 - 1 / AMP_GAINS)
    if not is_bare and busy is not None and training.settings.get("tf32") is True and (capability or 0.0) >= TF32_FROM:
        saves = busy[0] / 100 * (1 - 1 / AMP_GAINS_ON_TF32)
    text, do = _in_32_bits(training, asked=asked, is_bare=is_bare, saves=saves)
    if not asked and capability is not None and capability < TF32_FROM:
        text = f"{text}, for which this GPU has no tensor cores"
    numbers = evidence(("tensor activity", bare.tensor_pct, "%"), ("SM activity", bare.active_pct, "%")) if bare else ()
    warns = is_limit or (is_bare and not mostly_waits)
    return SetupIssue("warning" if warns else "info", text, (asked,), numbers, (do,))


def _in_32_bits(training: Training, *, asked: bool, is_bare: bool, saves: float | None) -> tuple[str, Advice]:
    """Return what is said of 32 bits; `saves` is the share (0 to 1) of training that AMP wins at most.

    `is_bare` says that it goes without them at all, also where no reading tells how much that is.
    """
    is_off = "TF32 is off" if training.settings.get("tf32") is False else "TF32 is probably off"
    how = "in 32 bits" if not is_bare else f"in 32 bits, without tensor cores ({is_off})"
    place = setting_location_words(training.setting_locations, "tf32")
    allow = "" if not is_bare else f". To stay in 32 bits, allow TF32: `torch.backends.cudnn.allow_tf32 = True`{place}"
    if asked:
        why = f"See in its log why its check of AMP failed: most GPUs since 2018 train faster with it{allow}"
        short = "" if not is_bare else "Allow TF32 or mend AMP"
        return f"The training computed {how}: ultralytics turned amp=True off", Advice(
            why, gain_at_most=saves, short=short
        )
    text = f"Use mixed precision, unless losses became NaN with it{allow}"
    do = Advice(text, "amp", "False", "True", gain_at_most=saves, short="Set `amp=True`")
    return f"The training computed {how}" + (" (amp=False)" if not is_bare else ""), do


def cudnn_off(context: Context, training: Training) -> SetupIssue | None:  # noqa: ARG001 - as all checks
    """Find convolutions that go without cuDNN."""
    if CUDNN_OFF not in training.slow_modes:
        return None
    mode = SLOW_MODES[CUDNN_OFF]
    off = switch_off(CUDNN_OFF, training.setting_locations)
    return SetupIssue("warning", f"Convolutions were slow: {mode.what}", (), (), (off,))


def slow_mode(context: Context, training: Training) -> SetupIssue | None:
    """Find a debugging mode that was on in a training which is too short to be judged as one that lasts.

    Of one that is judged it is the cause (causes/slow_modes.py).
    """
    on = [name for name in SLOW_MODES if name in training.slow_modes and name != CUDNN_OFF]
    busy = busy_in_training(context, training)
    if not on or busy is None or busy[0] >= HEALTHY_PCT or _is_judged(context, training):
        return None
    what, off = SLOW_MODES[on[0]].what, tuple(switch_off(name, training.setting_locations) for name in on)
    return SetupIssue("warning", upper_first(what), (what,), (), off)


def _is_judged(context: Context, training: Training) -> bool:
    """Tell whether there is enough of a training's steady state to say what holds it back."""
    pairs = zip(context.series, context.usable, strict=True)
    mine = ((series, use) for series, use in pairs if series.gpu in training.gpus)
    return any(steady_utilisation(context, training, series, use) is not None for series, use in mine)


def _saw_precision(context: Context, training: Training) -> bool:
    """Tell whether a window of the profiler in a training shows in how many bits its kernels ran."""
    ranks = training.rank_group.ranks if training.rank_group else ()
    mine = {window.name for rank in ranks for window in rank.profiled if window.phase == "train"}
    return any(each.window.name in mine and each.steps.tensor_cores is not None for each in context.profiled)


def _do(text: str) -> Advice:
    """Return advice that is short enough to stand in the verdict."""
    return Advice(text, short=text)


def _on_cpu_beside_a_gpu(context: Context, training: Training) -> bool:
    return training.device == CPU and bool(context.run.gpus)


def _hides_all(context: Context, training: Training) -> bool:
    """Tell whether CUDA_VISIBLE_DEVICES hides all GPUs from torch: what the training itself reports counts first."""
    told, named = training.settings.get("gpus_hidden"), context.run.recording.cuda_visible_devices
    return told if isinstance(told, bool) else named is not None and not visible_devices(named)


def _has_no_cuda(training: Training, torch: str) -> bool:
    """Tell whether a torch has no CUDA: it said so itself, or its version does. An unknown one is taken to have it."""
    if ROCM in torch:
        return False
    return "+cpu" in torch or ("cuda" in training.settings and training.settings["cuda"] is None)


def _severity(training: Training) -> Severity:
    """Return how bad it is: the GPU was of no use, unless the CPU was asked for (older versions write it there too)."""
    return "info" if training.args.get("device") == CPU else "critical"


def _gpus(context: Context) -> str:
    """Return the GPUs that the command was given, as far as it is known: all that were recorded."""
    named = visible_devices(context.run.recording.cuda_visible_devices or "")
    gpus = [gpu for gpu in context.run.gpus if str(gpu.index) in named] or context.run.gpus
    name = gpus[0].name or "of unknown model"
    return f"{gpu_words(gpus[0].index)} ({name})" if len(gpus) == 1 else f"{len(gpus)} GPUs ({name})"


def _idle(context: Context, training: Training) -> tuple[Evidence, ...]:
    """Return how busy each GPU was while the CPU trained."""
    means = {series.gpu: series.mean_util_pct(*training.span) for series in context.series}
    return evidence(*((f"utilisation of {gpu_words(gpu)} meanwhile", mean, "%") for gpu, mean in means.items()))


def _version(text: str | None) -> tuple[int, int] | None:
    """Return a version of CUDA, such as 13.0, as numbers; None for what is none."""
    parts = (text or "").split(".")[:2]
    return (int(parts[0]), int(parts[1])) if len(parts) == 2 and all(p.isdecimal() for p in parts) else None
