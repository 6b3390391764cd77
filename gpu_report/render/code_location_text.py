"""The lines of code of a finding, and of what time the share of each is."""

from collections.abc import Iterator

from gpu_report.catalogue import GREW_IN_CALL_KEY, GROWN_TO_KEY, RULES
from gpu_report.model import Analysis, Finding
from gpu_report.wording import upper_first, where_it_is, where_words

WHO = {"workers": "Data-loader workers", "thread": "Another thread", "main": "The main process"}
WHO_IN_CALLS = {"main": "The main thread", "thread": "Another thread"}
# Where one line is all there is, which a share would say nothing of.
NO_SHARE = frozenset(rule for rule, row in RULES.items() if row.ending)
TIME_OF_SHARES = {
    "other-gpu-work": "of training in steady state",
    "missing-rank": "of the ranks",
    "gpu-syncs": "of the waits for the GPU",
    "slow-exit": "of that time",
    "slow-between-calls": "between calls",
}
OF_IDLE, OF_THAT = "of the idle time", "of that time"
OF_GROWN = "of the last third of training"  # of a function for which each step takes longer, idle or not
OF_GROWN_ENDS = "of the ends of epochs since it grew"  # of one for which these take longer


def first_location_text(finding: Finding, analysis: Analysis) -> str:
    """Return the first line of code of a finding, with its share and of what that is: f (train.py:4) 40 % of ..."""
    line = finding.where[0]
    if finding.rule in NO_SHARE:
        return where_it_is(line)
    return f"{where_words(line)} {_time_of_shares(finding, line.process, analysis)}"


def location_texts(finding: Finding, analysis: Analysis) -> Iterator[tuple[str, str]]:
    """Yield who stood in lines of code, and in what time of it; and these lines."""
    shown = where_it_is if finding.rule in NO_SHARE else where_words
    for process in dict.fromkeys(location.process for location in finding.where):
        mine = ", ".join(shown(location) for location in finding.where if location.process == process)
        yield _process_and_time(finding, process, analysis), mine


def _process_and_time(finding: Finding, process: str, analysis: Analysis) -> str:
    who = (WHO_IN_CALLS if RULES[finding.rule].of_calls else WHO).get(process)
    if finding.rule in NO_SHARE:
        return who or upper_first(process)
    of_what = _time_of_shares(finding, process, analysis)
    if who is None:  # a rank
        idle = "while that was idle" if of_what == OF_IDLE else of_what
        return f"{upper_first(process)} (the process of a GPU), {idle}"
    return f"{who}, {'while the GPU was idle' if of_what == OF_IDLE else of_what}"


def _time_of_shares(finding: Finding, process: str, analysis: Analysis) -> str:
    """Return of what time shares of lines are, of a role's processes."""
    if finding.rule in TIME_OF_SHARES:
        return TIME_OF_SHARES[finding.rule]
    if finding.rule == "epochs-slowing" and finding.number(GROWN_TO_KEY) is not None:
        return OF_GROWN
    if finding.number(GREW_IN_CALL_KEY) is not None:
        return OF_GROWN_ENDS
    noted = process == "thread" or RULES[finding.rule].of_calls or not analysis.gpus
    return OF_THAT if noted else OF_IDLE
