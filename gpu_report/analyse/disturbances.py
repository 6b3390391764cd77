"""What held a training up that is a finding of its own: it explains an epoch that took longer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpu_report.analyse import thresholds as th
from gpu_report.analyse.context import Context
from gpu_report.analyse.epoch_parts import Trained
from gpu_report.analyse.spans import Span, union
from gpu_report.analyse.track import Floats
from gpu_report.model import Finding


@dataclass(frozen=True, eq=False)
class Disturbances:
    """Stretches of time without overlap: `edges_s` their starts and ends in order, `covered_s` their sum up to each."""

    edges_s: Floats
    covered_s: Floats

    def seconds_in(self, span: Span) -> float:
        """Return how many seconds of a span are disturbed."""
        if not len(self.edges_s):
            return 0.0
        before, until = np.interp(span, self.edges_s, self.covered_s)
        return float(until - before)

    def calm(self, epochs: Sequence[Trained]) -> list[Trained]:
        """Return the epochs of which little was disturbed."""
        if not len(self.edges_s):
            return list(epochs)
        spans = np.array([epoch.span for epoch in epochs]).reshape(-1, 2).T
        before, until = np.interp(spans, self.edges_s, self.covered_s)
        seconds = (until - before).tolist()
        return [e for e, lost_s in zip(epochs, seconds, strict=True) if lost_s < th.DISTURBED_SHARE * e.train_s]


def disturbances(context: Context, findings: Sequence[Finding] = ()) -> Disturbances:
    """Return when a GPU fell idle, waited for a peer or had a guest, when nobody recorded, and what `findings` say."""
    spans = [(drop.start_t_s, drop.end_t_s) for drop in context.drops]
    spans += [(finding.start_t_s, finding.end_t_s) for finding in findings]
    spans += [(wait.start_t_s, wait.end_t_s) for wait in context.waits]
    spans += [guest.span for guest in context.guests if guest.worked and guest.gpu in context.activity.used_gpus]
    missing = ((event.t_s, event.fields.get("seconds")) for event in context.run.events if event.kind == "gap")
    spans += [(t_s - seconds, t_s) for t_s, seconds in missing if isinstance(seconds, int | float)]
    apart = union(spans)
    lengths = [length for start, end in apart for length in (0.0, end - start)]
    return Disturbances(np.array(apart, dtype=float).ravel(), np.cumsum(np.array(lengths, dtype=float)))
