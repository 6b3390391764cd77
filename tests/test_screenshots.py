"""The pictures of docs/ are those that `make screenshots` makes, small, and each stands on a page."""

import hashlib
import re
import struct
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"
PICTURES = sorted((DOCS / "pictures").glob("*.png"))
MOST_BYTES, MOST_BYTES_TOGETHER = 120_000, 800_000


def test_the_pictures_are_those_that_the_script_makes() -> None:
    script = (DOCS / "pictures" / "screenshots.py").read_text(encoding="utf-8")
    made = set(re.findall(r'^    Picture\("([a-z-]+)"', script, re.MULTILINE))
    made.update(re.findall(r'^LIVE = "([a-z]+)"', script, re.MULTILINE))
    assert {path.stem for path in PICTURES} == made
    assert len(made) >= 6


def test_the_picture_of_the_example_for_ci_is_of_the_files_beside_it() -> None:
    """`make screenshots ARGS=ci-example` makes it anew."""
    example = DOCS / "ci" / "example"
    digest = hashlib.sha256(b"".join((example / name).read_bytes() for name in ("summary.md", "junit.xml"))).hexdigest()
    assert b"tEXtmade-from\x00" + digest.encode() in (example / "rendered.png").read_bytes()


def test_each_picture_is_shown_with_a_text_for_those_who_do_not_see_it() -> None:
    pages = "\n".join(path.read_text(encoding="utf-8") for path in DOCS.glob("*.md"))
    shown = dict(re.findall(r"^!\[([^\]]+)\]\(pictures/([a-z-]+)\.png\)$", pages, re.MULTILINE))
    assert sorted(set(shown.values())) == [path.stem for path in PICTURES]
    assert all(len(text) > 20 for text in shown)


def test_the_pictures_are_small_and_have_a_palette() -> None:
    sizes = [path.stat().st_size for path in PICTURES]
    assert max(sizes) < MOST_BYTES
    assert sum(sizes) < MOST_BYTES_TOGETHER
    for path in PICTURES:
        width, _, _, colour_type = struct.unpack(">IIBB", path.read_bytes()[16:26])
        assert width in {390, 1200}
        assert colour_type == 3, path.name  # indexed colours
