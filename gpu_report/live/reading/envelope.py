"""A series in a bounded number of buckets, each with the least, the mean and the most of what was read in it."""

MOST_BUCKETS = 1000  # as many as a wide screen has columns of pixels for a line
SHORTEST_S = 1.0  # of a bucket

Bucket = list[float]  # least, most, sum and count of the readings


class Envelope:
    """Readings of one quantity, in buckets of equal length; they get twice as long where they would be too many.

    They may come in any order. A fall of one reading stays visible however long the run is: the least is kept.
    """

    def __init__(self, start_s: float) -> None:
        self.start_s, self.width_s = start_s, SHORTEST_S
        self._buckets: dict[int, Bucket] = {}

    def add(self, at_s: float, value: float) -> None:
        """Add a reading at a time (s); one before the start is left out."""
        number = int((at_s - self.start_s) / self.width_s)
        if number < 0:
            return
        while number >= MOST_BUCKETS:
            self._widen()
            number = int((at_s - self.start_s) / self.width_s)
        known = self._buckets.get(number)
        if known is None:
            self._buckets[number] = [value, value, value, 1]
            return
        if value < known[0]:
            known[0] = value
        elif value > known[1]:
            known[1] = value
        known[2] += value
        known[3] += 1

    def _widen(self) -> None:
        narrow, self._buckets = self._buckets, {}
        self.width_s *= 2
        for number, (least, most, total, count) in narrow.items():
            known = self._buckets.setdefault(number // 2, [least, most, 0.0, 0])
            known[:] = min(least, known[0]), max(most, known[1]), known[2] + total, known[3] + count

    def short_rows(self) -> list[list[float]]:
        """Return the same as `rows`, rounded to what a page can show."""
        return [[round(value, 2) for value in row] for row in self.rows()]

    def rows(self) -> list[tuple[float, float, float, float]]:
        """Return of each bucket that has readings: when it begins (s), and its least, mean and most."""
        return [
            (self.start_s + number * self.width_s, least, total / count, most)
            for number, (least, most, total, count) in sorted(self._buckets.items())
        ]
