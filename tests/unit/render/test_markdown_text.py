"""Sentences within Markdown: code as code, and nothing else alive."""

import pytest
from markdown_it import MarkdownIt

from gpu_report.render.markdown_text import prose, verdict


@pytest.mark.parametrize(
    ("sentence", "html"),
    [
        ("Set `workers=11` (now 2).", "<p>Set <code>workers=11</code> (now 2).</p>"),
        ("`a` and `b`: **c**", "<p><code>a</code> and <code>b</code>: **c**</p>"),
        ("one ` of them", "<p>one ` of them</p>"),
        ("`` and `c`", "<p>`` and `c`</p>"),
        ("`<b>` <b> [x](https://x)", "<p><code>&lt;b&gt;</code> &lt;b&gt; [x](https://\u200bx)</p>"),
    ],
)
def test_what_stands_between_backticks_is_code_and_the_rest_is_text(sentence, html):
    assert MarkdownIt().render(prose(sentence)).strip() == html


def test_of_a_verdict_the_first_sentence_is_bold():
    assert verdict("Set `workers=11`: 4.2 s an epoch. The GPU waited.") == (
        "**Set `workers=11`: 4.2 s an epoch.** The GPU waited."
    )
    assert verdict("All is well.") == "**All is well.**"
