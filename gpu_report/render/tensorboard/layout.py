"""Charts of TensorBoard's tab Custom Scalars: the mean of each quantity, between its minimum and maximum.

The message is tensorboard/plugins/custom_scalar/layout.proto: a layout of categories (2), each of a title (1), charts
(2) and whether it is closed (3); a chart has a title (1) and a margin chart (3), whose series (1) name the tags of a
value, its lower and its upper bound (1, 2, 3).
"""

from collections.abc import Mapping, Sequence
from typing import Final

from gpu_report.gpu_words import gpu_words
from gpu_report.render.quantity_labels import label, unit_of
from gpu_report.tfevents.events import string_value
from gpu_report.tfevents.wire import bytes_field, int_field

CONFIG_TAG: Final = "custom_scalars__config__"
PLUGIN: Final = "custom_scalars"


def layout_value(columns: Mapping[str, Sequence[str]]) -> bytes:
    """Return the layout as a value of a summary: `columns` of each group of tags, `gpu0` or `host`.

    A group is a category, for lines in one chart have one colour, that of their run. The first is open: a page of all
    charts of eight GPUs would take a minute.
    """
    named = enumerate(each for each in columns.items() if each[1])
    categories = (_category(group, names, closed=at > 0) for at, (group, names) in named)
    return string_value(CONFIG_TAG, PLUGIN, b"".join(bytes_field(2, category) for category in categories))


def _category(group: str, columns: Sequence[str], *, closed: bool) -> bytes:
    """Return a category; TensorBoard 2.21 shows its charts in reverse."""
    title = gpu_words(int(group.removeprefix("gpu"))) if group.startswith("gpu") else group.capitalize()
    charts = b"".join(bytes_field(2, _chart(group, name)) for name in reversed(columns))
    return bytes_field(1, title.encode()) + charts + int_field(3, int(closed))


def _chart(group: str, column: str) -> bytes:
    unit = unit_of(column)
    title = f"{label(column)} ({unit})" if unit else label(column)
    bounds = enumerate(("mean", "min", "max"), start=1)
    series = b"".join(bytes_field(number, f"{group}/{column}/{statistic}".encode()) for number, statistic in bounds)
    return bytes_field(1, title.encode()) + bytes_field(3, bytes_field(1, series))
