"""How calls are spoken of, and how bad a loss of their time is."""

from pathlib import PurePath

from gpu_report.analyse.context import Context
from gpu_report.analyse.inference.call_time import MS
from gpu_report.analyse.rules import thresholds as th
from gpu_report.model import ServedModel, Severity
from gpu_report.wording import counted, setting_location_words

BECOMES = "{now} become {then} {limit}"
OF_CALLS = "of the time for all calls"  # and for what lies between them, but for waits until one comes (`active_s`)
WAITS_SHARE = 0.03  # of that time: less does not show in images a second
FEW_MS = 10.0  # below it tenths count


def file_name(served: ServedModel) -> str:
    """Return a model's file without its folder."""
    return PurePath(served.calls.name).name or served.calls.name


def model_name(served: ServedModel) -> str:
    """Return a model's file without its folder, with what differs from others of that file: `a.pt with quantize=16`."""
    return file_name(served) + (f" with {served.differs}" if served.differs else "")


def model_px(served: ServedModel) -> int:
    """Return the longer side that a model sees (`imgsz`), 0 where it is not known."""
    sides = served.calls.settings.get("imgsz")
    longest = max(sides, default=0) if isinstance(sides, list | tuple) else 0
    return longest if isinstance(longest, int) else 0


def ms(value: float) -> str:
    """Return milliseconds of a call: seconds where they are many."""
    if value >= MS:
        return f"{value / MS:.1f} s"
    return f"{value:.0f} ms" if value >= FEW_MS else f"{value:.1f} ms"


def percent(share: float) -> str:
    """Return a share in whole percent."""
    return f"{100 * share:.0f} %"


def percent_or_none(share: float | None) -> float | None:
    """Return a share (0 to 1) in percent, None of one that is not known."""
    return None if share is None else 100 * share


def set_where(context: Context, served: ServedModel, setting: str) -> str:
    """Return the line that made a setting in a model's process, as the end of a phrase; empty where it is not known."""
    places = [place for run in context.run.inside if run.pid == served.calls.pid for place in run.setting_locations]
    return setting_location_words(places, setting)


def rate(images_per_s: float) -> str:
    """Return images a second with two digits or more."""
    return f"{images_per_s:,.0f}" if images_per_s >= FEW_MS else f"{images_per_s:.1f}"


def of_calls(served: ServedModel) -> str:
    """Return of which calls something is said: `yolo26n.pt, 1 image a call`."""
    batch = round(served.batch)
    return f"{model_name(served)}, {counted(max(batch, 1), 'image')} a call"


def severity(share: float, seconds: float) -> Severity:
    """Return how bad a loss is: a share of a model's time, in seconds of the recording."""
    return "warning" if share >= th.CALLS_LOST_SHARE and seconds >= th.CALLS_LOST_S else "info"


def active_s(served: ServedModel) -> float:
    """Return the seconds in which a model was called or its caller was busy: not those in which it waited for calls."""
    waits = sum(part.seconds for part in served.gap_parts if part.kind == "waiting for calls")
    return max(served.end_s - served.start_s - waits, 0.0)


def is_rare(served: ServedModel) -> bool:
    """Tell whether a model waited for calls most of the time: then their latency is what matters."""
    length_s = served.end_s - served.start_s
    return length_s > 0 and active_s(served) < th.RARE_CALLS_SHARE * length_s


def passed_s(served: ServedModel, part_ms: float) -> float:
    """Return the seconds that passed in a part of calls, of which several may go on at once."""
    called_s = served.in_calls_share * (served.end_s - served.start_s)
    return called_s * min(part_ms / served.parts.total_ms, 1.0) if served.parts.total_ms > 0 else 0.0


def speed_now(served: ServedModel) -> str:
    """Return how many images a second there are now, and that waits for calls are left out where they are long."""
    active = active_s(served)
    waits = served.end_s - served.start_s - active >= WAITS_SHARE * active
    return f"{rate(served.images / active)} images/s" + (" (waits for calls left out)" if waits else "")
