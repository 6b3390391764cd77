"""The splitter of sentences that the language check rests on."""

import pytest
from support.prose import banned_in, code_blocks, inline_code, paragraphs_and_rows, sentences


def texts(markdown):
    return [each.text for each in sentences(markdown)]


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("One. Two!\nStill two? Three.", ["One.", "Two!", "Still two?", "Three."]),
        ("4.2 s and 0.5 GiB are one. `code` begins one.", ["4.2 s and 0.5 GiB are one.", "¤ begins one."]),
        ("# A heading\nText of\nits own.", ["A heading", "Text of its own."]),
        (
            "- an entry\n  that goes over a line\n- another\n1. a third",
            ["an entry that goes over a line", "another", "a third"],
        ),
        ("before\n\n| a. B. | cell |\n|---|---|\n\nafter", ["before", "after"]),
        ("before\n```\ncode. More code.\n```\nafter", ["before", "after"]),
        ("See [the page. It](a/very/long.md#target) now.", ["See the page.", "It now."]),
        ("![A picture of this](a.png)\n\n*Its caption.*", ["A picture of this.", "*Its caption.*"]),
        ('He said "done." Then he went.', ['He said "done.', "Then he went."]),
        ("<!-- a comment. Another. -->\nText.", ["Text."]),
        ("**Bold.** And *so.* On.", ["**Bold.", "And *so.", "On."]),
    ],
)
def test_sentences_are_split_as_a_reader_meets_them(markdown, expected):
    assert texts(markdown) == expected


def test_code_and_a_number_are_one_word_and_a_dash_is_none():
    (sentence,) = sentences("Set `workers=11 (now 2)` to 4.2 - then look.")
    assert sentence.words == 6


def test_a_sentence_knows_the_line_of_its_paragraph():
    assert [(each.text, each.line) for each in sentences("# A\n\nOne.\nTwo.\n\n- three")] == [
        ("A", 1),
        ("One.", 3),
        ("Two.", 3),
        ("three", 6),
    ]


@pytest.mark.parametrize(
    "text", ["The GPU stood  still.", "Nothing\nrecorded explains it", "PACE", "two guests", "as told"]
)
def test_a_banned_phrase_is_found_in_any_case_and_over_a_line(text):
    assert banned_in(text)


@pytest.mark.parametrize(
    "text", ["a space", "The intel", "retold", "guesstimate", "hold the line against", "no pacemaker"]
)
def test_parts_of_other_words_are_no_banned_phrase(text):
    assert banned_in(text) == []


def test_code_is_no_text_and_a_row_of_a_table_is():
    page = "`it told` is code.\n\n| it told |\n\n```sh\nit told\n```\n"
    assert [banned_in(text) for _, text in paragraphs_and_rows(page)] == [[], ["told"]]
    assert inline_code(page) == ["it told"]
    assert code_blocks(page) == [("sh", 5, "it told")]
