"""What all values have that take time."""


class TimeSpan:
    """What all values have that take time: from `start_t_s` to `end_t_s`."""

    start_t_s: float
    end_t_s: float

    @property
    def span(self) -> tuple[float, float]:
        """Return its start and its end."""
        return self.start_t_s, self.end_t_s

    @property
    def duration_s(self) -> float:
        """Return its length in seconds."""
        return self.end_t_s - self.start_t_s
