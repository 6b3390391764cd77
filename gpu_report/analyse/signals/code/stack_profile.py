"""Where a main process stood in an interval, against where it stands while its GPU works: what it waited in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from gpu_report.analyse.signals import thresholds as th
from gpu_report.analyse.signals.code.idle_stacks import IdleStacks, Rows
from gpu_report.analyse.signals.code.stack_kinds import (
    computes_weights,
    copies_for,
    in_forward_pass,
    in_synced_norm,
    kind_of,
    location_of,
    own_layer,
    runs_network,
    waits_for_gpu,
    waits_for_socket,
)
from gpu_report.analyse.signals.host.cpu_in_place import cpu_in_place
from gpu_report.analyse.signals.signal_table import SignalTable
from gpu_report.analyse.timeline.phase_index import PhaseIndex
from gpu_report.analyse.timeseries.distinct import PlaceOf
from gpu_report.analyse.timeseries.gpu_series import Bools, Floats
from gpu_report.analyse.timeseries.interval_cover import IntervalCover, interval_cover
from gpu_report.analyse.timeseries.intervals import Span, parts
from gpu_report.analyse.timeseries.sums import sums_by_key
from gpu_report.model import CodeLocation, Frame, Phase, Stack

LEAST_IDLE_S = 1.0  # of an interval: 20 notes; less of it may be chance
DOES_SHARE = 0.8  # of a call's time in one function within it: what is said of the call is true of that, too
DUST_S = 1e-9  # of sums
LEAST_ELSEWHERE_S = 1.0  # likewise of the same phases outside the interval, which it is compared with


@dataclass(frozen=True)
class IdleLocation:
    """Where a main process stood in most of an interval's idle GPU time.

    `in_loader` is the share (0 to 1) of that time in which it waited for its loader, `launching` that in which it
    launched the kernels of training steps, `convolving` that in the calls of convolutions.
    `share` is that of `line`, the one of most of the rest; `usual` is the share
    that this line has of the GPU's work in the same phases outside the interval, None where too little of that was
    noted. `call_share` is that of `call`, the user's function that YOLO called, such as a callback, in which it was
    longest; a training that nothing holds up stands in none. `call_of_all` is what it took of all time, busy or idle,
    `line_of_all` what `line` did; `call_waited` and `line_waited` are what of that it waited for work of the step.
    That is done without it, too.
    `own_share` is that of all code of the user's but a
    model's blocks, whoever called it; `by_image` is that of all time in which it did what takes longer the more images
    a batch has. `is_alone` says that the host's reading of a main process is of this one, and not
    of the busiest of several ranks.
    `cpu_pct` is the main process's CPU (% of a core) while it was in the call, if that took much of the time, else in
    the line; None where that is not known.
    """

    in_loader: float
    line: Frame | None
    share: float
    usual: float | None
    call: Frame | None = None
    call_share: float = 0.0
    call_of_all: float = 0.0
    cpu_pct: float | None = None
    own_share: float = 0.0
    is_alone: bool = True
    launching: float = 0.0
    line_of_all: float = 0.0
    by_image: float = 0.0
    call_waited: float = 0.0
    line_waited: float = 0.0
    convolving: float = 0.0

    @property
    def is_in_call(self) -> bool:
        """Tell whether it stood in a user's function for most of the time."""
        return self.call_share >= th.MOSTLY_SHARE

    @property
    def is_partly_in_call(self) -> bool:
        """Tell whether it stood in one for much of the time, and in no other place for most of it."""
        return self.call_share >= th.MUCH_SHARE and max(self.call_share, self.share) < th.MOSTLY_SHARE


@dataclass(frozen=True)
class OwnLayer:
    """A layer of the user's in the model: the line of its `forward` that takes longest, and what it takes of a pass.

    `share` (0 to 1) is that of the model's forward pass, in the main process.
    """

    line: Frame
    share: float


@dataclass(frozen=True)
class OwnFunction:
    """A function of the user's: its worst line, and the share (0 to 1) of a main process's time that it took.

    `in_one_call` is the share of that in one call of one line. A wait for the GPU is all in one; where the GPU has as
    much work queued as it takes, what launches more waits in each of its calls. `seconds` is its time.
    """

    line: Frame
    share: float
    in_one_call: float
    seconds: float


class StackProfile:
    """Says of any interval where one main process stood in it, and whether it stands there when all is well."""

    def __init__(self, stacks: IdleStacks, phases: Sequence[Phase], host: SignalTable) -> None:
        """Take the notes of a main process, the phases of the run in order of time, and the readings of its host."""
        self.stacks, self._phases, self._host = stacks, PhaseIndex(phases), host
        self._covers: dict[tuple[Frame, bool], IntervalCover] = {}

    def within(self, spans: Sequence[Span]) -> IdleLocation | None:
        """Return where it stood in some stretches, None where too little was noted of its idle time."""
        rows, share = self.stacks.within(spans)
        idle = self.stacks.idle_s[rows] * share
        total = float(idle.sum())
        if total < LEAST_IDLE_S:
            return None
        waits, launches = self.stacks.waits[rows], self._launches(rows, spans)
        lines, line_of = self.stacks.lines
        not_waiting = np.where(waits | launches, 0.0, idle)
        by_line = np.bincount(line_of[rows], not_waiting, minlength=len(lines))
        most = int(by_line.argmax())
        usual = self._usual(most, rows, share)
        call, call_s = self._call(rows, not_waiting)
        in_loader, in_line = float(idle[waits].sum()) / total, float(by_line[most]) / total
        own = [at for at, line in enumerate(lines) if line is not None and kind_of(line) == "own"]
        found = IdleLocation(
            in_loader,
            lines[most],
            in_line,
            usual,
            call,
            call_s / total,
            self._share_of_all(call, self.stacks.calls, rows, share),
            own_share=float(by_line[own].sum()) / total,
            is_alone=len(self._host.t_s) > 0,
            launching=float(idle[launches].sum()) / total,
            line_of_all=self._share_of_all(lines[most], self.stacks.lines, rows, share),
            by_image=self._share_by_image(rows, share),
            call_waited=self._share_waited(call, self.stacks.calls, rows, share),
            convolving=float(idle[self.stacks.convolves[rows]].sum()) / total,
            line_waited=self._share_waited(lines[most], self.stacks.lines, rows, share),
        )
        return replace(found, cpu_pct=self._cpu_pct(found, spans))

    def _share_of_all(
        self, place: Frame | None, places: tuple[list[Frame | None], PlaceOf], rows: Rows, share: Floats
    ) -> float:
        """Return the share of all time that was noted in some pieces in which it stood in a place, of all `places`."""
        seconds = self.stacks.seconds(rows) * share
        return float(seconds[_in_place(place, places, rows)].sum() / seconds.sum())

    def _share_waited(
        self, place: Frame | None, places: tuple[list[Frame | None], PlaceOf], rows: Rows, share: Floats
    ) -> float:
        """Return the share of all time in which it waited in a place for the step that its GPU worked on."""
        waited = _in_place(place, places, rows) & self.stacks.waits_for_step[rows]
        busy_s = float((self.stacks.busy_s(rows[waited]) * share[waited]).sum())
        return busy_s / float((self.stacks.seconds(rows) * share).sum())

    def _share_by_image(self, rows: Rows, share: Floats) -> float:
        seconds = self.stacks.seconds(rows) * share
        return float(seconds[self.stacks.by_image[rows]].sum() / seconds.sum())

    def place_in_call(self, call: Frame, spans: Sequence[Span]) -> CodeLocation | None:
        """Return the line that most of a call's time lies in, and its share (0 to 1) of it; None where none was noted.

        It lies in the innermost function of the user's with DOES_SHARE of its time: of a decorated one that is not the
        wrapper. Where no other has so much it is the call itself.
        """
        rows, share = self.stacks.within(spans)
        stacks, stack_of = self.stacks.own_within_calls
        of_stack = np.bincount(stack_of[rows], self.stacks.seconds(rows) * share, minlength=len(stacks)).tolist()
        mine = zip(stacks, of_stack, strict=True)
        inside = {own: spent for own, spent in mine if spent > 0 and own and _function(own[0]) == call}
        if not inside:
            return None
        total, found = sum(inside.values()), call
        for depth in range(max(map(len, inside))):
            by = _by_frame_at(depth, inside, found)
            most = max(by, key=lambda frame: by[frame], default=None)
            if most is None or (depth and by[most] < DOES_SHARE * total):
                break
            found = most
        line, spent = _line_of_most(inside, found)
        return CodeLocation(self.stacks.process.role, line.function, line.file, line.line, spent / total)

    def longest_layer(self, spans: Sequence[Span]) -> OwnLayer | None:
        """Return the user's own layer that was noted for longest in some stretches, at its worst line; None without."""
        noted = self.stacks.stood(spans)
        by = sums_by_key((layer, spent) for stack, spent in noted if (layer := own_layer(stack)) is not None)
        if not by:
            return None
        forward_s = sum(spent for stack, spent in noted if in_forward_pass(stack))
        most = max(by, key=lambda each: by[each])
        mine_s = sum(spent for line, spent in by.items() if _function(line) == _function(most))
        return OwnLayer(most, min(mine_s / forward_s, 1.0) if forward_s else 0.0)

    def copying_line(self, spans: Sequence[Span]) -> Frame | None:
        """Return the user's line for which tensors were copied for longest in some stretches; None without one."""
        return self._longest(copies_for, spans)

    def weights_line(self, spans: Sequence[Span]) -> CodeLocation | None:
        """Return the user's line whose attention computed its weights for longest, and its share of the time."""
        by, total_s = self._by_line(computes_weights, spans)
        line = max(by, key=lambda each: by[each], default=None)
        return line and CodeLocation.in_main(line, by[line] / total_s)

    def network_line(self, spans: Sequence[Span]) -> CodeLocation | None:
        """Return the user's line that ran another network for longest, and its share of the time; None without one."""
        by, total_s = self._by_line(runs_network, spans)
        line = max(by, key=lambda each: by[each], default=None)
        return line and CodeLocation.in_main(line, by[line] / total_s)

    def _longest(self, line_of: Callable[[Stack], Frame | None], spans: Sequence[Span]) -> Frame | None:
        by, _ = self._by_line(line_of, spans)
        return max(by, key=lambda each: by[each], default=None)

    def _by_line(
        self, line_of: Callable[[Stack], Frame | None], spans: Sequence[Span]
    ) -> tuple[dict[Frame, float], float]:
        """Return the seconds of each line that stacks noted in some stretches are of, and those of all stacks."""
        noted = self.stacks.stood(spans)
        by = sums_by_key((line, spent) for stack, spent in noted if (line := line_of(stack)) is not None)
        return by, sum(spent for _, spent in noted)

    def synced_share(self, spans: Sequence[Span]) -> float:
        """Return the share (0 to 1) of the model's forward passes in which norms exchange with other ranks."""
        passes = [(stack, spent) for stack, spent in self.stacks.stood(spans) if in_forward_pass(stack)]
        forward_s = sum(spent for _, spent in passes)
        return sum(spent for stack, spent in passes if in_synced_norm(stack)) / forward_s if forward_s else 0.0

    def longest_line(self, spans: Sequence[Span]) -> tuple[Frame | None, float]:
        """Return the line that was noted for longest in some stretches, idle or not, and its share (0 to 1) of them."""
        rows, share = self.stacks.within(spans)
        seconds = self.stacks.seconds(rows) * share
        by = self.stacks.by_line(rows, seconds)
        most = max(by, key=lambda line: by[line], default=None)
        return (None, 0.0) if most is None else (most, by[most] / float(seconds.sum()))

    def longest_own(self, spans: Sequence[Span]) -> OwnFunction | None:
        """Return the function of the user's that was noted for longest in some stretches, whoever calls it."""
        found = self.own_functions(spans)
        return max(found.values(), key=lambda own: own.share, default=None)

    def own_functions(self, spans: Sequence[Span]) -> dict[Frame, OwnFunction]:
        """Return what was noted of the user's functions in some stretches, by function.

        A line that waits for the GPU launches nothing: that counts for none.
        """
        by: dict[Frame, dict[tuple[Frame, str], float]] = {}
        noted = self.stacks.stood(spans)
        for stack, spent in noted:
            line = None if waits_for_gpu(stack) else location_of(stack)
            if line is not None and kind_of(line) == "own":
                calls, call = by.setdefault(_function(line), {}), (line, stack[0].called)
                calls[call] = calls.get(call, 0.0) + spent
        total_s = sum(spent for _, spent in noted)
        return {function: _own_function(calls, total_s) for function, calls in by.items() if sum(calls.values()) > 0}

    def longest_call(self, spans: Sequence[Span]) -> tuple[Frame | None, float]:
        """Return the user's function that YOLO called for longest in some stretches, idle or not, and for how long."""
        rows, share = self.stacks.within(spans)
        return self._call(rows, self.stacks.seconds(rows) * share)

    def calls(self, spans: Sequence[Span], *, only_idle: bool = False) -> dict[Frame, float]:
        """Return the user's functions that YOLO called in some stretches, and the seconds of each.

        With `only_idle` it is how long a GPU was idle in them.
        """
        rows, share = self.stacks.within(spans)
        seconds = self.stacks.idle_s[rows] / max(len(self.stacks.gpus), 1) if only_idle else self.stacks.seconds(rows)
        calls, call_of = self.stacks.calls
        by_call = np.bincount(call_of[rows], seconds * share, minlength=len(calls)).tolist()
        named = ((call, spent) for call, spent in zip(calls, by_call, strict=True) if call is not None)
        return {call: spent for call, spent in named if spent > 0}

    def _launches(self, rows: Rows, spans: Sequence[Span]) -> Bools:
        """Return which pieces launch; none where the process hardly used the CPU in them: then it waits there.

        Its main thread tells nothing of that, since in `backward` another one launches.
        """
        mine = rows[self.stacks.launches[rows]]
        there = interval_cover(self.stacks.together(mine))
        cpu_pct = cpu_in_place(self._host, spans, there)
        is_known_to_wait = cpu_pct is not None and cpu_pct < th.COMPUTES_CPU_PCT
        return np.zeros(len(rows), dtype=np.bool_) if is_known_to_wait else self.stacks.launches[rows]

    def _call(self, rows: Rows, idle: Floats) -> tuple[Frame | None, float]:
        """Return the user's function that YOLO called and in which most of the idle time of some pieces lies."""
        calls, call_of = self.stacks.calls
        by_call = np.bincount(call_of[rows], idle, minlength=len(calls))
        named = np.array([call is not None for call in calls])
        if not named.any():
            return None, 0.0
        most = int(np.where(named, by_call, -1.0).argmax())
        return calls[most], float(by_call[most])

    def _cpu_pct(self, location: IdleLocation, spans: Sequence[Span]) -> float | None:
        """Return the CPU of the main process while it stood in its call, else in its line."""
        is_call = location.is_in_call or location.is_partly_in_call
        there = location.call if is_call else location.line
        if there is None or not (is_call or location.share >= th.MOSTLY_SHARE):
            return None
        return self._cpu_at(there, spans, is_call=is_call)

    def cpu_in_call(self, call: Frame, spans: Sequence[Span]) -> float | None:
        """Return the CPU of the main process in a function of the user's, None where it is not known."""
        return self._cpu_at(call, spans, is_call=True)

    def _cpu_at(self, place: Frame, spans: Sequence[Span], *, is_call: bool) -> float | None:
        """Return the CPU in a place by the looks at it, where there are enough, else by the host's readings."""
        probes, there = self.stacks.process.probes, self.when_in(place, is_call=is_call)
        if probes is not None:
            mine = probes.ran[there.holds(probes.at_s) & interval_cover(spans).holds(probes.at_s)]
            if len(mine) >= self._looks_needed(place, spans, is_call=is_call):
                return 100 * float(mine.mean())
        return cpu_in_place(self._host, spans, there)

    def _looks_needed(self, place: Frame, spans: Sequence[Span], *, is_call: bool) -> int:
        """Return how many looks say whether a place computes: few confirm that one that reads a socket does not."""
        places, place_of = self.stacks.calls if is_call else self.stacks.lines
        rows, share = self.stacks.within(spans)
        inside = _in_place(place, (places, place_of), rows)
        noted = self.stacks.by_stack(rows[inside], (self.stacks.seconds(rows) * share)[inside])
        of_socket_s = sum(spent for stack, spent in noted if waits_for_socket(stack))
        waits = of_socket_s > th.MOSTLY_SHARE * sum(spent for _, spent in noted)
        return th.SOCKET_PROBES_LEAST if waits else th.PROBES_LEAST

    def when_in(self, there: Frame, *, is_call: bool) -> IntervalCover:
        """Return when the process stood in a line or in a call of the user's."""
        key = there, is_call
        if key not in self._covers:
            places, place_of = self.stacks.calls if is_call else self.stacks.lines
            rows = np.flatnonzero(np.isin(place_of[:], [at for at, place in enumerate(places) if place == there]))
            self._covers[key] = interval_cover(self.stacks.together(rows))
        return self._covers[key]

    def _usual(self, line: int, rows: Rows, share: Floats) -> float | None:
        """Return the share that a line has of the GPU's work in the phases it stands in, outside of some pieces.

        Of a phase in which a GPU does no work, as a checkpoint, it is that of the time.
        """
        inside = self._sums(rows, share)
        work, time = self._whole.work - inside.work, self._whole.time - inside.time
        idle_s = inside.time[:, line] - inside.work[:, line]  # idle
        usual = 0.0
        for phase in np.flatnonzero(idle_s > DUST_S):
            spent = work[phase] if float(work[phase].sum()) >= LEAST_ELSEWHERE_S else time[phase]
            if float(spent.sum()) < LEAST_ELSEWHERE_S:
                return None
            usual += float(idle_s[phase] / idle_s.sum() * spent[line] / spent.sum())
        return usual

    def _sums(self, rows: Rows, share: Floats) -> _Sums:
        """Return the GPU seconds, and the work in them, of some pieces by phase and line."""
        lines, line_of = self.stacks.lines
        shape = (len(self._phases.names), len(lines))
        time, work = np.zeros(shape), np.zeros(shape)
        for part in parts(len(rows)):
            mine = rows[part]
            cells = self._phases(self.stacks.middle_s(mine)) * shape[1] + line_of[mine]
            # GPU seconds, as the idle ones are
            seconds = self.stacks.seconds(mine) * share[part] * max(len(self.stacks.gpus), 1)
            busy = np.maximum(seconds - self.stacks.idle_s[mine] * share[part], 0.0)
            time += np.bincount(cells, seconds, minlength=time.size).reshape(shape)
            work += np.bincount(cells, busy, minlength=time.size).reshape(shape)
        return _Sums(time, work)

    @cached_property
    def _whole(self) -> _Sums:
        return self._sums(np.arange(len(self.stacks.start_s)), np.ones(len(self.stacks.start_s)))


@dataclass(frozen=True, eq=False)
class _Sums:
    """GPU seconds, and the GPU's work in them, by phase (rows) and line of code (columns)."""

    time: Floats
    work: Floats


def _in_place(place: Frame | None, places: tuple[list[Frame | None], PlaceOf], rows: Rows) -> Bools:
    """Return which pieces lie in a place, of all `places`; none of them where it is None."""
    names, place_of = places
    mine = np.array([each is not None and each == place for each in names], dtype=np.bool_)
    found: Bools = mine[place_of[rows]]
    return found


def _own_function(calls: Mapping[tuple[Frame, str], float], total_s: float) -> OwnFunction:
    """Return what the seconds of a function's calls, by line and what that calls, come to."""
    mine_s, lines = sum(calls.values()), sums_by_key((line, spent) for (line, _), spent in calls.items())
    worst = max(lines, key=lambda line: lines[line])
    return OwnFunction(worst, mine_s / total_s, max(calls.values()) / mine_s, mine_s)


def _function(frame: Frame) -> Frame:
    return frame._replace(line=0, called="")


def _by_frame_at(depth: int, inside: Mapping[Stack, float], within: Frame) -> dict[Frame, float]:
    """Return the seconds of each function at a depth of stacks, of those that the function before it called."""
    return sums_by_key(
        (_function(own[depth]), spent)
        for own, spent in inside.items()
        if len(own) > depth and (not depth or _function(own[depth - 1]) == within)
    )


def _line_of_most(inside: Mapping[Stack, float], function: Frame) -> tuple[Frame, float]:
    """Return the line of a function that most of some stacks' seconds lie in, and these seconds."""
    mine = ((next((frame for frame in own if _function(frame) == function), None), s) for own, s in inside.items())
    by = sums_by_key((line, spent) for line, spent in mine if line is not None)
    return max(by.items(), key=lambda each: each[1])


def idle_location_of(profiles: Sequence[StackProfile], gpu: int, spans: Sequence[Span]) -> IdleLocation | None:
    """Return where the main process of a GPU stood in some stretches; of several the one that was least in its loader.

    One that does not wait for data is what the others wait for.
    """
    return min(_all_within(profiles, gpu, spans), key=lambda found: found.in_loader, default=None)


def _all_within(profiles: Sequence[StackProfile], gpu: int, spans: Sequence[Span]) -> Iterator[IdleLocation]:
    for each in profiles:
        if gpu in each.stacks.gpus and (found := each.within(spans)) is not None:
            yield found
