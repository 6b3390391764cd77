"""Where an exception that ended a training was raised: the line of the user's code, or of YOLO's."""

from dataclasses import replace

from gpu_report.analyse.signals.code.stack_kinds import WORKER_LOOP, kind_of, location_of
from gpu_report.model import Advice, CodeLocation, Finding, Stack
from gpu_report.wording import place_words, where_it_is


def with_place_raised(finding: Finding, frames: Stack, rank: int | None) -> Finding:
    """Return the finding of an end with the line that raised it; `rank` is the process's, None of a single one.

    Its sentence names a line of the user's own: of one in a library the words of the exception say more.
    """
    in_worker = any(frame.function == WORKER_LOOP for frame in frames)
    line = location_of(frames, of_worker=in_worker)
    if line is None:
        return finding
    process = "workers" if in_worker else "main" if rank is None else f"rank {rank}"
    where = (CodeLocation(process, line.function, line.file, line.line, 1.0),)
    if kind_of(line) != "own":
        return replace(finding, where=where)
    short = f"Fix {place_words(line)}: the exception was raised there"
    advice = finding.advice or (Advice(short, short=short),)  # what is known of its kind says more
    return replace(finding, summary=f"{finding.summary} in {where_it_is(line)}", where=where, advice=advice)
