"""What calls did beside the parts of the model itself: hooks, callbacks, tracking, drawing, saving."""

from collections.abc import Mapping

from gpu_report.analyse.context import Context
from gpu_report.analyse.inference import thresholds as th
from gpu_report.analyse.inference.call_kinds import CallKind, lines_in_calls
from gpu_report.analyse.inference.call_time import MS, call_spans, seconds_of
from gpu_report.analyse.inference.gap_kinds import is_in_call
from gpu_report.analyse.inference.gaps import noted_thread
from gpu_report.analyse.inference.served import served_models
from gpu_report.model import Frame, ServedModel

OWN: CallKind = "own code"

# The seconds in all calls of each kind, and its lines with their seconds in the notes.
InCalls = Mapping[CallKind, tuple[float, Mapping[Frame, float]]]


def in_calls(context: Context, served: ServedModel) -> InCalls:
    """Return what calls did besides the model's own parts, as stack notes say; empty where these say too little.

    Of several models of a process nobody can say whose calls a note is of.
    """
    notes = noted_thread(context, served.calls.pid)
    if notes is None or sum(each.calls.pid == served.calls.pid for each in context.cached(served_models)) > 1:
        return {}
    process = notes.process
    spent = notes.seconds_by_stack([(served.start_s, served.end_s)])
    noted = sum(s for number, s in spent.items() if is_in_call(process.stacks.get(number, ())))
    called_s = seconds_of(call_spans(served.steady_calls))
    if noted < max(th.GAP_NOTES_S, th.CALLS_IN_THREAD * called_s):
        return {}
    kinds = lines_in_calls(process, spent)
    return {kind: (sum(lines.values()) / noted * called_s, lines) for kind, lines in kinds.items()}


def own_code_in_inference_s(context: Context, served: ServedModel) -> float:
    """Return the seconds of the user's code that must lie within inference, as a hook of a layer does, 0 unknown.

    What does not fit into the other parts of calls, which callbacks belong to.
    """
    own_s, _ = in_calls(context, served).get(OWN, (0.0, {}))
    parts = served.parts
    others_ms = sum(part or 0.0 for part in (parts.preprocess_ms, parts.postprocess_ms, parts.other_ms))
    return max(own_s - others_ms / MS * served.latency.calls, 0.0)
