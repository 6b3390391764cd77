"""The live output in words: as HTML and as text, each under 5 kB. Standard library only: it runs within a training."""

import time
from html import escape

from gpu_report.catalogue import phase_words
from gpu_report.gpu_words import gpu_number
from gpu_report.notebook.live_state import BUSY_OVER_S, GpuNow, LastEpoch, LiveState
from gpu_report.wording import MIB_PER_GIB

MOST_GPUS = 16  # that are listed: an update must stay small
FULL = "█"
BAR = 10  # characters of a bar that is 100 %
LONGEST_REASON = 200  # characters of what somebody else's library says
HEAD = ("GPU", f"Busy, last {BUSY_OVER_S:.0f} s", "", "Memory", "")

Bundle = dict[str, str]


def bundle(state: LiveState) -> Bundle:
    """Return how a training goes now, for a notebook's output."""
    lead, lines = _lead(state), _lines(state)
    rows = [_cells(gpu, state) for gpu in state.gpus[:MOST_GPUS]]
    html = [f"<b>{escape(lead)}</b>", *map(escape, lines)]
    text = [lead, *lines, *(" ".join(filter(None, ("GPU", *row))) for row in rows)]
    return {"text/html": f"<div>{'<br>'.join(html)}{_table(rows)}</div>", "text/plain": "\n".join(text)}


def final_bundle(folder: str, verdict: list[str], reason: str = "") -> Bundle:
    """Return the last output: the verdict, and how to see more; `reason` says why there is no verdict."""
    lead, *rest = verdict or [f"The training is over. {reason}".strip()]
    code = f"gpu_report.show({folder!r})"
    html = [
        f"<b>{_with_code(lead)}</b>",
        *([_with_code(" ".join(rest))] if rest else []),
        f"<code>{escape(code)}</code>",
    ]
    return {"text/html": f"<div>{'<br>'.join(html)}</div>", "text/plain": "\n".join([lead, *rest, code])}


def starts_bundle() -> Bundle:
    """Return what stands until something has been read."""
    return {"text/html": "<div><b>The training starts.</b></div>", "text/plain": "The training starts."}


def over_bundle() -> Bundle:
    """Return what stands until the verdict is there."""
    return {
        "text/html": "<div><b>The training is over.</b> Reading the recording ...</div>",
        "text/plain": "The training is over.",
    }


def _lead(state: LiveState) -> str:
    parts = [_epoch(state), phase_words(state.phase) if state.phase else "", f"at {_clock(state.at_wall_s)}"]
    return " · ".join(filter(None, parts))


def _epoch(state: LiveState) -> str:
    if state.epoch is None:
        return "No epoch yet"
    return f"Epoch {state.epoch}" + (f" of {state.epochs}" if state.epochs else "")


def _lines(state: LiveState) -> list[str]:
    """Return sentences: what is wrong with the recording first, for figures are then none of now."""
    lines = []
    if not state.is_recorded:
        last = "" if state.read_wall_s is None else f" The last reading was at {_clock(state.read_wall_s)}."
        lines.append(f"The recorder has ended: nothing is recorded any more.{last}")
    elif state.is_old and state.read_wall_s is not None:
        lines.append(f"No reading since {_clock(state.read_wall_s)}.")
    if not state.gpus:
        lines.append(f"No GPU is read: {state.no_gpu[:LONGEST_REASON]}" if state.no_gpu else "No GPU reading yet")
    if state.last_epoch is not None:
        lines.append(_data_wait(state.last_epoch))
    if len(state.gpus) > MOST_GPUS:
        lines.append(f"The first {MOST_GPUS} of {len(state.gpus)} GPUs:")
    return lines


def _data_wait(last: LastEpoch) -> str:
    if last.data_wait_s is None or last.train_s <= 0:
        return f"Epoch {last.epoch}: trained for {last.train_s:.1f} s"
    share = 100 * last.data_wait_s / last.train_s
    return f"Epoch {last.epoch}: {last.data_wait_s:.1f} s of {last.train_s:.1f} s waiting for data ({share:.0f} %)"


def _cells(gpu: GpuNow, state: LiveState) -> tuple[str, ...]:
    """Return a GPU's row; what was read some time ago is not said as if it were now."""
    if state.is_old or not state.is_recorded:
        return gpu_number(gpu.index), "n/a", "", "n/a", ""
    busy = "n/a" if gpu.busy_pct is None else f"{gpu.busy_pct:.0f} %"
    length = 0 if gpu.busy_pct is None else round(min(max(gpu.busy_pct, 0), 100) * BAR / 100)
    memory = "n/a" if gpu.memory_used_mib is None else f"{gpu.memory_used_mib / MIB_PER_GIB:.1f} GiB"
    since = gpu.low_since_wall_s
    low = "" if since is None else f"under 20 % since {_clock(since)} ({state.at_wall_s - since:.0f} s)"
    return gpu_number(gpu.index), busy, FULL * length, memory, low


def _table(rows: list[tuple[str, ...]]) -> str:
    if not rows:
        return ""
    head = "".join(f"<th>{escape(name)}</th>" for name in HEAD)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(text: str) -> str:
    """Return a cell; notebooks set all to the right by a style sheet, which suits numbers and no bars."""
    side = ' style="text-align:left"' if text.startswith(FULL) else ""
    return f"<td{side}>{escape(text)}</td>"


def _clock(wall_s: float) -> str:
    """Return a UTC wall time of today's clock; n/a where it is none."""
    try:
        return time.strftime("%H:%M:%S UTC", time.gmtime(wall_s))
    except (ValueError, OverflowError, OSError):
        return "n/a"


def _with_code(text: str) -> str:
    """Return text as HTML; what stands between backticks is code."""
    parts = text.split("`")
    return "".join(f"<code>{escape(part)}</code>" if place % 2 else escape(part) for place, part in enumerate(parts))
