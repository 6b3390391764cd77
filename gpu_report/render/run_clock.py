"""Seconds since a run's start as moments that a person can read."""

from dataclasses import dataclass

from gpu_report.render.formatting import elapsed, utc


@dataclass(frozen=True)
class Moment:
    """A moment of the run: seconds since its start, as a clock since its start, and in UTC."""

    t_s: float
    wall_s: float
    elapsed: str
    utc: str


@dataclass(frozen=True)
class WallClock:
    """The run's clock: what second 0 was on the wall, in UTC seconds since 1970."""

    start_wall_s: float

    def moment(self, t_s: float) -> Moment:
        """Return the moment `t_s` seconds after the run's start."""
        wall_s = self.start_wall_s + t_s
        return Moment(round(t_s, 3), round(wall_s, 3), elapsed(t_s), utc(wall_s))
