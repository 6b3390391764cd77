"""TensorBoard's event files (events.out.tfevents*), read and written with the standard library alone.

TensorBoard itself, and the protobuf that it needs, conflict with many an environment. The format is small: records with
two checksums (`framing.py`), each a protobuf message (`wire.py`) of which a few fields matter (`events.py`).
"""

from gpu_report.tfevents.events import EventFile, Scalar, read_event_file
from gpu_report.tfevents.files import event_files

__all__ = ["EventFile", "Scalar", "event_files", "read_event_file"]
