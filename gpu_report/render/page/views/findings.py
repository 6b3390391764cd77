"""Findings: each as a card with its chart, and what stands above and beneath them."""

from dataclasses import dataclass

from gpu_report.render.page.views.tables import Fact
from gpu_report.render.run_clock import Moment


@dataclass(frozen=True)
class KernelRow:
    """A kernel event with what it means; `text` is the raw line, `distance` its place beside a finding."""

    moment: Moment
    severity: str
    title: str
    meaning: str
    action: str
    text: str
    gpu: str
    count: str
    distance: str = ""


@dataclass(frozen=True)
class AdviceView:
    """One thing to change: in words, and where it can be, the argument with its value now and the one to try."""

    text: str
    change: str
    now: str
    gain: str


@dataclass(frozen=True)
class ChartLine:
    """A line of a small chart: its colour's class, whether it is what the chart is about, and its SVG path.

    Of more readings than can be drawn the line is their mean, and `band` the area from the lowest to the highest.
    Of many GPUs one line stands for all `gpus`, as their mean.
    A path that is drawn more than once has an `id`, and stands only where it comes first; elsewhere both are empty.
    """

    colour: str
    is_own: bool
    path: str
    band: str = ""
    id: str = ""
    gpus: int = 1


@dataclass(frozen=True)
class ChartView:
    """What a finding is about in and around it, 1000 wide and 100 high; the bands (x, width) are the finding itself.

    `quantity` is what the lines show, `top` the value at the upper edge; the lower edge is 0. `has_wide_band` says that
    a band is more than a line, `has_range` that lines are means, each with the area from the lowest to the highest.
    """

    quantity: str
    top: str
    lines: tuple[ChartLine, ...]
    bands: tuple[tuple[float, float], ...]
    epochs: tuple[float, ...]
    kernel: tuple[float, ...]
    start: Moment
    end: Moment
    has_wide_band: bool = True
    has_range: bool = False


@dataclass(frozen=True)
class LearnMore:
    """What the documentation says of a rule or a cause: paragraphs, and points with a name (for, against, ...)."""

    name: str
    paragraphs: tuple[str, ...]
    points: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class FindingView:
    """A finding as it is listed; `id` is its anchor, `number` stands on the timeline, too (empty of an expected one).

    `cause_and_length` is its cause and how long it took; `cause_kind` is the colour of its cause, empty where the title
    says what that is; `step` is where to look, before its advice; `is_told` says that
    the verdict tells it already.
    """

    id: str
    number: str
    title: str
    severity: str
    severity_word: str
    expected: bool
    start: Moment
    end: Moment
    cause_and_length: str
    summary: str
    facts: tuple[Fact, ...]
    cause: str
    cause_kind: str
    confidence: str
    explanation: str
    runner_up: str
    evidence: tuple[Fact, ...]
    kernel: tuple[KernelRow, ...]
    advice: tuple[AdviceView, ...]
    step: str = ""
    is_told: bool = False
    learn_more: tuple[LearnMore, ...] = ()
    chart: ChartView | None = None


@dataclass(frozen=True)
class FindingsView:
    """The section of findings: `cards` in full, of which the first `open_cards` are open, and `more` as rows.

    `at_the_top` stand under the verdict, too. `expected` are drops that their phase explains. `none_found` is what is
    said in their place.
    """

    cards: tuple[FindingView, ...]
    open_cards: int
    at_the_top: tuple[FindingView, ...]
    more: tuple[FindingView, ...]
    count: str
    is_filtered: bool
    expected: tuple[FindingView, ...]
    none_found: str
