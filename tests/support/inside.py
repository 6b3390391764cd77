"""What callbacks would have written of a labelled run, as the loader would give it."""

from gpu_report.model import InsideEpoch, InsideRun, Phase
from support.agreement import BEGINS
from support.labels import Labels


def inside_of(labels: Labels, images: int = 4000, wait_s: float = 0.5) -> InsideRun:
    """Return rank 0 of a labelled run as seen from inside; data waits are made up."""
    events = labels.events
    begun = [(events[0][0], "startup", None, "setup")]
    epochs, epoch = [], None
    for t_s, event, number in events:
        epoch = number if event == "on_train_epoch_start" else epoch
        if event == "on_train_epoch_end":
            start = max(t for t, name, n in events if name == "on_train_epoch_start" and t < t_s)
            epochs.append(InsideEpoch(epoch, 1, start, t_s, images, images // 64, wait_s, 0.1, 0.2, 3.0, 0.01))
        if event == "on_train_epoch_start" and epoch == 1:
            begun.append((t_s, "startup", None, "first batch"))
            begun.append((labels.first_work_t_s, "train", 1, ""))
        elif BEGINS.get(event):
            begun.append((t_s, BEGINS[event], epoch, ""))
    ends = [*(t for t, *_ in begun[1:]), events[-1][0]]
    phases = tuple(
        Phase(name, of, start, end, "callbacks", detail)
        for (start, name, of, detail), end in zip(begun, ends, strict=True)
    )
    settings = {"workers": 8, "batch": 64, "amp": True, "images": images, "world_size": 1}
    return InsideRun(1, 0, 1234, "train", settings, phases, tuple(epochs))
