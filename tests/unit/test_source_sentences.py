"""What our source says to people: the field's words in short sentences, whether a sample run renders it or not."""

from pathlib import Path

import pytest
from support.plain_words import banned
from support.prose import MOST_WORDS, sentences
from support.source_texts import PLACEHOLDER, texts_of

import gpu_report

ROOT = Path(gpu_report.__file__).parent
# They list names that stand in files: columns with their meaning, words by which a secret is known.
LISTS = ("schema.py", "fleet/tables.py", "inside/on_path/gpu_report_inside/secrets/")
MODULES = sorted(path for path in ROOT.rglob("*.py") if not path.relative_to(ROOT).as_posix().startswith(LISTS))
ROOMS = sorted({path.relative_to(ROOT).parts[0] for path in MODULES})


def texts(room):
    for path in MODULES:
        if path.relative_to(ROOT).parts[0] == room:
            yield from texts_of(path)


@pytest.mark.parametrize("room", ROOMS)
def test_no_sentence_of_the_source_has_a_word_that_only_we_use(room):
    found = {f"{each.path.name}:{each.line}": banned(each.text.replace(PLACEHOLDER, "X")) for each in texts(room)}
    assert {place: words for place, words in found.items() if words} == {}


@pytest.mark.parametrize("room", ROOMS)
def test_the_sentences_of_the_source_are_short(room):
    long = [
        (f"{each.path.name}:{each.line}", sentence.words, sentence.text)
        for each in texts(room)
        for sentence in sentences(each.text.replace(PLACEHOLDER, "X"))
        if sentence.words > MOST_WORDS
    ]
    assert long == []


def test_the_search_sees_what_is_filled_in_as_one_word(tmp_path):
    source = tmp_path / "module.py"
    source.write_text('"""A docstring is none."""\nWHY = f"the GPU {what} stood still"\nKIND = "one-word"\n')
    (found,) = texts_of(source)
    assert (found.line, found.text) == (2, f"the GPU {PLACEHOLDER} stood still")
    assert banned(found.text)
