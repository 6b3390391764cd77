"""Which series of logs that hold more than one machine's GPUs are imported, and which time of a server's."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Selection:
    """Labels and their values that a series must have; of a server (http...) its span and step in seconds."""

    labels: tuple[tuple[str, str], ...] = ()
    server: str | None = None
    start_s: float | None = None
    end_s: float | None = None
    step_s: float | None = None
