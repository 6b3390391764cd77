"""On how many GPUs a training ran, and whether torch numbers them as the driver does."""

from gpu_report.model import Run, YoloRun


def world_size(run: Run, yolo: YoloRun) -> int | None:
    """Return on how many GPUs a YOLO run trained, as it told itself or its arguments say; None where neither does."""
    told = [p.settings.get("world_size") for p in run.inside if p.run == yolo.number and p.task == "train"]
    sizes = [size for size in told if isinstance(size, int) and size > 0]
    return max(sizes) if sizes else _named(yolo.args.get("device"))


def visible_gpus(run: Run) -> int:
    """Return how many GPUs torch sees: what CUDA_VISIBLE_DEVICES leaves, else all that were recorded; at least 1."""
    named = run.recording.cuda_visible_devices
    whole = sum(gpu.parent_index is None for gpu in run.gpus) if named is None else len(named.split(","))
    return max(whole, 1)


def known_order(run: Run) -> bool:
    """Tell whether torch's number of each GPU is known to be the one that it has here.

    CUDA puts faster GPUs first and equal ones in the order of their bus, as the driver does, unless
    CUDA_VISIBLE_DEVICES says otherwise. What a process told of its own GPU must agree.
    """
    ours = any(event.kind == "command_started" for event in run.events)
    names = {gpu.name for gpu in run.gpus}
    alike = len(names) == 1 and None not in names and all(gpu.parent_index is None for gpu in run.gpus)
    return ours and alike and run.recording.cuda_visible_devices is None and _agree(run)


def _agree(run: Run) -> bool:
    uuids = {gpu.index: gpu.uuid for gpu in run.gpus}
    for process in run.inside:
        device, uuid = process.settings.get("device"), process.settings.get("gpu_uuid")
        number = str(device).removeprefix("cuda:")
        if uuid is not None and number.isdecimal() and uuids.get(int(number)) != uuid:
            return False
    return True


def _named(device: object) -> int | None:
    """Return how many GPUs a device argument names (`0`, `0,1`, `[0, 1]`, `cuda:0`), None where it names none."""
    words = device if isinstance(device, list | tuple) else str(device).strip("[]() ").removeprefix("cuda:").split(",")
    numbers = [word for word in (str(word).strip() for word in words) if word.removeprefix("-").isdecimal()]
    return len(numbers) or None
