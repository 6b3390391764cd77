"""What a kernel message says, before it is put on the run's clock and GPUs."""

import re
from dataclasses import dataclass
from typing import Final, Literal

from gpu_report.model import OomReport, Severity

PCI: Final = r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?"

PciAddress = tuple[int, int, int]  # domain, bus, device: a GPU's function is always 0, and the log leaves it out

# How a message relates to others of its kind:
#   introduction  names a GPU before its first Xid, and is no event of note
#   opens         the first of several lines of one event (oom-killer invoked)
#   victim        the line that names whom the OOM killer took
#   detail        belongs to the event before it
#   aside         says more of an event of its kind before it, and by itself nothing: other dumps have such lines, too
#   resolved      ends an event that lasted (NFS answers again, the machine woke up)
Role = Literal["", "introduction", "opens", "victim", "detail", "aside", "resolved"]


@dataclass(frozen=True)
class RawLine:
    """One raw line of the kernel log, `t_s` seconds from the run's start; `level` is the kernel's, 0 to 7."""

    t_s: float
    text: str
    level: int | None = None
    source: str = ""


@dataclass(frozen=True)
class Match:
    """What one kernel message says. `subject` is what its fault sticks to: a device, a server, a ring."""

    kind: str
    severity: Severity
    meaning: str
    action: str = ""
    pci: PciAddress | None = None
    code: int | None = None
    pid: int | None = None
    process: str | None = None
    subject: str = ""
    uuid: str | None = None
    role: Role = ""
    critical_in_run: bool = False  # critical where the process belongs to the run that is watched
    oom: OomReport | None = None
    at_limit: bool = False  # of a container or service, where memory ran out


UNKNOWN: Final = Match("other", "info", "a kernel message that is not known to mean trouble")


@dataclass(frozen=True)
class MatchedLine:
    """A line of the kernel log and what it says."""

    line: RawLine
    match: Match


@dataclass(frozen=True)
class LinePattern:
    """A message's pattern and what it means.

    The pattern is matched at the message's start only: what follows may hold names that a stranger chose.
    Its groups `pci`, `pid`, `process` and `subject` go to the match; `meaning` may name any group.
    """

    pattern: re.Pattern[str]
    kind: str
    severity: Severity
    meaning: str
    action: str = ""
    role: Role = ""
    critical_in_run: bool = False
    at_limit: bool = False

    def apply(self, message: str) -> Match | None:
        """Return what `message` says under this rule, or None where it does not fit."""
        found = self.pattern.match(message)
        if found is None:
            return None
        groups = found.groupdict(default="")
        return Match(
            kind=self.kind,
            severity=self.severity,
            meaning=self.meaning.format(**groups),
            action=self.action,
            pci=parse_pci(groups.get("pci", "")),
            pid=parse_pid(groups.get("pid", "")),
            process=groups.get("process") or None,
            subject=groups.get("subject", ""),
            role=self.role,
            critical_in_run=self.critical_in_run,
            at_limit=self.at_limit,
        )


def rule(  # noqa: PLR0913 (the columns of the tables of rules)
    pattern: str, kind: str, severity: Severity, meaning: str, action: str = "", *, role: Role = "", **flags: bool
) -> LinePattern:
    """Return a rule; `pattern` may write `{PCI}` for a PCI address in the group `pci`."""
    compiled = re.compile(pattern.replace("{PCI}", f"(?P<pci>{PCI})"))
    return LinePattern(compiled, kind, severity, meaning, action, role, **flags)


def first_match(rules: tuple[LinePattern, ...], message: str) -> Match | None:
    """Return what the first fitting rule says of `message`, or None."""
    return next((match for each in rules if (match := each.apply(message)) is not None), None)


def parse_pci(text: str) -> PciAddress | None:
    """Return (domain, bus, device) of an address with a 4- or 8-digit domain, with or without a function."""
    if not re.fullmatch(PCI, text):
        return None
    domain, bus, device = text.split(":")
    return int(domain, 16), int(bus, 16), int(device.split(".")[0], 16)


def parse_pid(text: str) -> int | None:
    """Return the process id in `text`, or None for `<unknown>`, an empty text and numbers no kernel hands out."""
    return int(text) if re.fullmatch(r"[0-9]{1,10}", text) else None
