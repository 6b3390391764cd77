"""Keeping a flood of messages (a driver in a loop) from filling a disk: a sample of it is enough."""

# More than this in one window is a flood. The OOM killer alone dumps 140 lines and one for each process at a time.
LINES_PER_WINDOW = 2000
WINDOW_S = 60.0


class RateCap:
    """Admits so many lines a window and counts those beyond."""

    def __init__(self) -> None:
        self._window_s = float("-inf")
        self._admitted = 0
        self.dropped = 0

    def new_window(self, mono_s: float) -> int:
        """Begin a new window when the old one is over; return how many lines the old one dropped."""
        if mono_s - self._window_s < WINDOW_S:
            return 0
        dropped, self._window_s, self._admitted, self.dropped = self.dropped, mono_s, 0, 0
        return dropped

    def admit(self) -> bool:
        """Say whether one more line may be kept in this window."""
        self._admitted += 1
        kept = self._admitted <= LINES_PER_WINDOW
        self.dropped += not kept
        return kept
