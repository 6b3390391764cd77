"""A sentence that may begin the verdict, and what it would save."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpu_report.analyse.context import Context
from gpu_report.analyse.timeseries.intervals import length_s, minus, union
from gpu_report.catalogue import RULES
from gpu_report.model import OF_EPOCHS, Advice, Finding, Sentence
from gpu_report.wording import upper_first

FIX, LOOK = "fix", "look"  # kinds of sentences: set an argument, look at something
URGENT_S = float("inf")  # nothing is worth more
GROWING_COST_S = (
    1e12  # of what makes each epoch longer than the one before: in time nothing that stays as it is costs more
)


@dataclass(frozen=True)
class Lead:
    """A sentence that may lead the verdict, and the seconds of the recorded training that it is about.

    `then` is in which line a process was meanwhile, or why, as a sentence that follows; empty where the lead says it.
    Of what else helps it says `then_advice`.
    `says_how` says that it has said what to do, too, `names_others_on_cpu` that it is on who else used the CPU.
    """

    sentence: Sentence
    saves_s: float
    then: str = ""
    says_how: bool = False
    names_others_on_cpu: bool = False
    then_advice: Advice | None = None

    @property
    def follows(self) -> tuple[Sentence, ...]:
        """Return the sentence that follows it, where it says what to do and not where or why."""
        said = self.sentence
        return (Sentence("where", self.then, said.findings, said.about, self.then_advice),) if self.then else ()


def seconds_trained(context: Context) -> float:
    """Return the seconds of training that were recorded; of what never trained, all."""
    trained = length_s(union(context.all_train_spans))
    return trained or context.run.duration_s


def affected_epochs(context: Context, findings: Sequence[Finding], epoch_s: float) -> float:
    """Return how many epochs of that many seconds were trained with what holds steps up all the time.

    Of the only epoch of a long training a part was recorded; and what utilisation fell for has another cause.
    """
    fell = [f.span for f in findings if RULES[f.rule].fall and not f.expected and f.severity != "info"]
    held_back_s = length_s(
        minus(union([phase.span for phase in context.phases if phase.name in OF_EPOCHS]), union(fell))
    )
    return min(float(max(epoch_count(context), 1)), held_back_s / epoch_s) if epoch_s > 0 else 0.0


def epoch_count(context: Context) -> int:
    """Return how many epochs were trained."""
    return sum(1 for phase in context.phases if phase.name == "train")


def sentence_of(  # noqa: PLR0913 - what a sentence has
    finding: Finding, kind: str, text: str, advice: Advice | None = None, *, names_own: bool = False, how: bool = True
) -> Sentence:
    """Return a sentence about a finding and its cause."""
    about = finding.cause_name
    return Sentence(kind, f"{upper_first(text)}.", (finding.id,), about, advice, names_own, how)


def without_backticks(text: str) -> str:
    """Return what somebody else wrote without the backticks that would make code of it, to be copied."""
    return text.replace("`", "'")


def now_words(advice: Advice) -> str:
    """Return the values that its arguments have now, in brackets; empty where they are not known."""
    return f" (now {without_backticks(advice.now)})" if advice.now else ""
