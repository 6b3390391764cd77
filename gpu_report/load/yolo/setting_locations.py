"""The lines of code that switched something on, as the callbacks or the thread that notes stacks found them."""

from collections.abc import Iterable

from gpu_report.load.yolo.callback_lines import whole
from gpu_report.load.yolo.exceptions import one_line
from gpu_report.model import SettingLocation


def setting_locations(told: Iterable[object]) -> tuple[SettingLocation, ...]:
    """Return what a recording says of such lines, each once; what names no setting, file and line is left out."""
    parts = (each for each in told if isinstance(each, dict))
    known = ((one_line(each.get("name")), one_line(each.get("file")), whole(each.get("line"))) for each in parts)
    return tuple(
        dict.fromkeys(SettingLocation(name, file, line) for name, file, line in known if name and file and line)
    )
