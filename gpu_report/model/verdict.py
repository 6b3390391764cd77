"""What a run comes to in words: its verdict, how it ended, and what it may be where nothing was found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gpu_report.model.finding import Advice, Evidence


@dataclass(frozen=True)
class Sentence:
    """A sentence of the verdict: what kind it is, the findings that it reports (their ids), and what it is about.

    `about` is a cause or another row of the ledger, empty where that is nothing of the kind. `advice` is what it says
    to do, None where it says nothing of the kind: nobody needs to say that again, unless it says only what and
    not `how`. `replaces` is advice in whose place it stands. `names_own` says that it is to look at a function of the
    user's.
    """

    kind: str
    text: str
    findings: tuple[str, ...] = ()
    about: str = ""
    advice: Advice | None = None
    names_own: bool = False
    how: bool = True
    replaces: Advice | None = None


@dataclass(frozen=True)
class Verdict:
    """What a run comes to, in sentences; and how busy its GPUs were in training (%), None where that was too short.

    `is_healthy` says that they were busy enough once training was warm. `order` has the ids of findings by what a
    reader wins: what it begins with, then what saves most; what is worth too little to begin with is not in it.
    """

    sentences: tuple[Sentence, ...]
    busy_pct: float | None = None
    is_healthy: bool = False
    order: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """Return all sentences as one text."""
        return " ".join(sentence.text for sentence in self.sentences)

    @property
    def findings(self) -> frozenset[str]:
        """Return the ids of the findings that it reports."""
        return frozenset(found for sentence in self.sentences for found in sentence.findings)


EndingName = Literal["finished", "early stop", "interrupted", "failed", "going on", "unknown"]


@dataclass(frozen=True)
class Ending:
    """How the last training of a run ended (wording.ending_words says it), and when.

    `epoch` is the one it had come to, or with `whole_epochs` the last that came to its end; `epochs` are how many were
    to come. `failure` is the summary of the finding that it failed with, or was interrupted (Ctrl-C), which with
    `names_epoch` says in which epoch; `type` and `message` are those of the exception that ended it;
    `patience` in epochs is what an early stop had waited for. `still_recorded` says that its recording goes on as well.
    `last_minute` is what its GPUs and the host's memory were like in the minute before.
    """

    name: EndingName
    t_s: float
    epoch: int | None = None
    epochs: int | None = None
    last_minute: tuple[Evidence, ...] = ()
    whole_epochs: bool = False
    failure: str = ""
    names_epoch: bool = False
    patience: int | None = None
    still_recorded: bool = False
    type: str | None = None
    message: str | None = None


@dataclass(frozen=True)
class Hypothesis:
    """A guess at what holds a training back, where nothing that was measured explains it, and what would decide it.

    `confidence` (0 to 1) ranks guesses. `argument` is the argument of YOLO that it is about.
    """

    text: str
    confidence: float
    decided_by: str
    argument: str


@dataclass(frozen=True)
class NotChecked:
    """A rule that could not look, or not closely enough, and the reason: what to do about it is part of that.

    `under_s` is set where only what is shorter than that goes unseen.
    """

    rule: str
    reason: str
    under_s: float | None = None
