"""What a user may ask of logs that hold more than one run's GPUs."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Asked:
    """Which series are wanted, by label and value, and the moments (wall, s) to ask a server for, None for all."""

    labels: tuple[tuple[str, str], ...] = ()
    start_s: float | None = None
    end_s: float | None = None
    step_s: float | None = None
