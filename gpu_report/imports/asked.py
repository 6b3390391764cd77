"""What a user may ask of logs that hold more than one machine's GPUs, and of a server."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Asked:
    """Labels and their values that a series must have; of a server (http...) its span and step in seconds."""

    labels: tuple[tuple[str, str], ...] = ()
    server: str | None = None
    start_s: float | None = None
    end_s: float | None = None
    step_s: float | None = None
