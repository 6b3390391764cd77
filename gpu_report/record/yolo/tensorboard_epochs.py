"""When epochs ended by the events that YOLO itself writes for TensorBoard, read once as the recording ends."""

from pathlib import Path
from typing import Final

from gpu_report.errors import InputError
from gpu_report.tfevents import EventFile, event_files, read_event_file
from gpu_report.tfevents.yolo_epochs import is_of_epoch, logged_trainings, moments

# A recording's end waits for it: 100,000 records, of 4,000 epochs, take 1.5 s. A graph or images are stepped over.
MOST_RECORDS: Final = 100_000
MOST_FILES: Final = 4  # the newest of one folder since the recording began: each start of a training makes one


def epochs_since(folder: Path, since_wall_s: float) -> list[tuple[float, dict[str, object]]]:
    """Return the wall times (s since 1970) and the fields of `tensorboard` events since a moment; none without files.

    Files that were written last before that moment are of earlier trainings in the same folder, and not read.
    """
    files: list[EventFile] = []
    for path in reversed(event_files(folder)):
        try:
            if len(files) < MOST_FILES and path.stat().st_mtime >= since_wall_s:
                files.append(read_event_file(path, is_of_epoch, MOST_RECORDS, MOST_RECORDS))
        except (InputError, OSError):
            continue  # it is one of several sources, and the others are there
    return [(wall_s, fields) for wall_s, fields in moments(logged_trainings(files)) if wall_s >= since_wall_s]
