"""Names and threads of a trace, each kept once and known by a number from then on."""

from gpu_report.load.trace.event import lane
from gpu_report.load.trace.limits import LONGEST_NAME, MOST_NAME_CHARACTERS, MOST_NAMES, MOST_THREADS


class Names(dict[str, int]):
    """The index of each name, which gets one when it is first asked for; past the limits all share one."""

    def __init__(self) -> None:
        """Begin with none."""
        super().__init__()
        self.texts: list[str] = []
        self.left_out = False
        self._characters = 0

    def __missing__(self, name: str) -> int:
        """Give a name its index."""
        kept = name[:LONGEST_NAME].encode("utf-8", "replace").decode("utf-8")
        if len(self) >= MOST_NAMES or self._characters + len(kept) > MOST_NAME_CHARACTERS:
            self.left_out, kept = True, "(one of many names)"
            return self[kept] if kept in self else self._add(kept, kept)
        return self._add(name, kept)

    def _add(self, name: str, kept: str) -> int:
        self[name] = len(self.texts)
        self.texts.append(kept)
        self._characters += len(name) + len(kept)
        return self[name]


class Threads(dict[tuple[int | str, int | str], int]):
    """The index of each process and thread, which gets one when it is first asked for; the last one is shared."""

    def __init__(self) -> None:
        """Begin with none."""
        super().__init__()
        self.texts: list[str] = []

    def __missing__(self, key: tuple[int | str, int | str]) -> int:
        """Give a thread its index."""
        same = lane(key[0]), lane(key[1])  # a number written as text is the number
        if len(self) >= MOST_THREADS:
            return self.get(same, len(self.texts) - 1)
        if same not in self:
            self[same] = len(self.texts)
            self.texts.append(f"pid {same[0]!s:.64} tid {same[1]!s:.64}")
        self[key] = self[same]
        return self[key]
