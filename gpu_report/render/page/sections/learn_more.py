"""What docs/findings.md says of a rule or a cause, to unfold beneath a finding: the page is read without a network."""

import re
from functools import cache
from importlib.resources import files
from pathlib import Path

from gpu_report.catalogue import CAUSES, RULES
from gpu_report.model import Finding
from gpu_report.render.page.views.findings import LearnMore
from gpu_report.wording import upper_first

PAGE = "findings.md"
_SECTION = re.compile(r"^#{2,3} (.+)$", re.MULTILINE)
_ID = re.compile(r"`([a-z]+(?:-[a-z]+)+)`")  # of a cause or a finding: `main-process`
_HEADS = {
    "For": "Evidence for",
    "Against": "Evidence against",
    "Mistaken for": "Easily confused with",
    "Do": "What to do",
}
_POINT = re.compile(r"^(?:- )?\*\*([^*]+)\*\*: ")  # - **For**: ...
_LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")


def learn_more(finding: Finding) -> tuple[LearnMore, ...]:
    """Return what is written of a finding's rule, then of its cause; nothing where the page is not installed."""
    names = dict.fromkeys(name for name in (finding.rule, finding.cause_name) if name)
    return tuple(sections()[name] for name in names if name in sections())


@cache
def sections() -> dict[str, LearnMore]:
    """Return what stands under each heading of the page, by that heading: the id of a rule or of a cause."""
    parts = _SECTION.split(_page())
    return {name: _section(name, text) for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def _page() -> str:
    """Return the page as it is installed, else as it is in the checkout; empty where it is nowhere."""
    package = Path(str(files("gpu_report")))
    places = (package / "docs" / PAGE, package.parent / "docs" / PAGE)
    return next((place.read_text(encoding="utf-8") for place in places if place.is_file()), "")


def _section(name: str, text: str) -> LearnMore:
    blocks = [_plain(block) for paragraph in text.split("\n\n") for block in re.split(r"\n(?=- )", paragraph.strip())]
    points = [(point.group(1), block[point.end() :]) for block in blocks if (point := _POINT.match(block))]
    texts = [block.removeprefix("- ") for block in blocks if block and not _POINT.match(block)]
    return LearnMore(
        name,
        tuple(text.replace("*", "") for text in texts),
        tuple((_HEADS.get(point, point), upper_first(text.replace("*", ""))) for point, text in points),
    )


def _plain(text: str) -> str:
    """Return Markdown without links and line ends, with the names of causes and findings as the page has them."""
    named = _ID.sub(lambda found: _quoted(found[1], found[0]), text)
    return re.sub(r"\s+", " ", _LINK.sub(lambda link: _quoted(link[1], link[1]), named)).strip()


def _quoted(name: str, otherwise: str) -> str:
    """Return the name that a cause or a finding has on the page, by its id; of no id something else."""
    known = CAUSES[name].name if name in CAUSES else RULES[name].title if name in RULES else ""
    return f"\u201c{known}\u201d" if known else otherwise
