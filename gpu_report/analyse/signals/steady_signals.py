"""What the signals of a run are in its steady state, given what disturbed it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gpu_report.analyse.signals.host.other_processes import OtherProcess
from gpu_report.analyse.signals.signals_index import SignalsIndex
from gpu_report.analyse.timeline.steady_state import steady_phases, steady_spans, undisturbed_epochs
from gpu_report.analyse.timeline.throughput import Throughput
from gpu_report.analyse.timeline.timeline import Timeline
from gpu_report.analyse.timeseries.gpu_series import GpuSeries
from gpu_report.analyse.timeseries.intervals import Span
from gpu_report.model import AT_EPOCH_END, Phase, Run


@dataclass(frozen=True, eq=False)
class SteadySignals:
    """What is needed to look at a run's steady state: all of its time but what is `disturbed`."""

    run: Run
    series: tuple[GpuSeries, ...]
    timeline: Timeline
    others: tuple[OtherProcess, ...]
    throughput: Throughput | None
    disturbed: tuple[Span, ...]

    def excluding(self, spans: Sequence[Span]) -> SteadySignals:
        """Return the same with more spans that are no part of the steady state."""
        return replace(self, disturbed=(*self.disturbed, *spans))

    def index(self) -> SignalsIndex:
        """Return what each signal is in the steady state."""
        return SignalsIndex(
            self.run,
            self.series,
            steady_spans(self._phases, self.timeline.activity, self.run.duration_s, [*self.disturbed, *self._ends]),
            trainings=self.timeline.trainings,
            phases=self.timeline.phases,
            first_epochs=self.timeline.epoch_ends.first_epochs,
            others=self.others,
            throughput=self.throughput,
            used_gpus=self.timeline.activity.used_gpus,
        )

    def undisturbed(self, index: SignalsIndex) -> tuple[Span, ...]:
        """Return the train phases that nothing disturbed; without any train phase, the whole steady state."""
        if not self._phases:
            return tuple(index.steady)
        reading_s = max((each.interval_s for each in self.series), default=0.0)
        return undisturbed_epochs(self.timeline.phases, self.timeline.epoch_ends, self.disturbed, reading_s)

    @property
    def _ends(self) -> list[Span]:
        """Return the validations, checkpoints and final evaluations of a run without any train phase."""
        ends = [phase.span for phase in self.timeline.phases if phase.name in {*AT_EPOCH_END, "final evaluation"}]
        return [] if self._phases else ends

    @property
    def _phases(self) -> list[Phase]:
        return steady_phases(self.timeline.phases, self.timeline.epoch_ends)
