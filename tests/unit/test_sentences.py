"""Text is never data: outside of wording no code takes a sentence apart, searches or compares it."""

import ast
from pathlib import Path

import gpu_report

# Fields of the model whose value is a sentence, or part of one. (A kernel line's `text` is read where it is loaded.)
SENTENCES = {
    *("summary", "text", "explanation", "meaning", "particulars", "verdict", "failure", "action"),
    *("short", "note", "decided_by"),
}
# ... and the functions that word them.
WORDING = {"ending_words", "cause_words", "rule_words", "row_words", "phase_words"}
READS = {
    *("split", "rsplit", "partition", "rpartition", "splitlines", "startswith", "endswith", "removeprefix"),
    *("removesuffix", "find", "rfind", "index", "count", "lower", "casefold", "match", "search", "fullmatch"),
}
ROOT = Path(gpu_report.__file__).parent
ROOMS = ("analyse", "catalogue", "cli", "model", "notebook", "record", "render")
PLACES = [path for room in ROOMS for path in (ROOT / room).rglob("*.py")]
# What stands beside something that reads the same is not printed twice: with other words both are, and that is all.
ALLOWED = {
    "render/bench/chart.py": ["models.index(row.variant.short)"],  # a variant's name, no sentence
    "render/page/sections/findings.py": [
        "finding.summary.endswith(why)",
        "cause in finding.summary",
        "when.replace(NO_BREAK, ' ') in finding.summary",
        "nearby.event.meaning.rstrip('.') in finding.summary",
        "a.text == nearby.event.action",
    ],
    "render/run/terminal.py": ["title.startswith(each.text)", "each.text.startswith(title)"],
}


def is_sentence(node: ast.AST) -> bool:
    """Tell whether an expression is a sentence's field, or what wording made."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in WORDING
    return isinstance(node, ast.Attribute) and node.attr in SENTENCES


def reads_of_sentences(code: str) -> list[str]:
    """Return the expressions in some code that decide by a sentence; one that asks whether there is any is fine."""
    found = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Compare) and any(map(is_sentence, [node.left, *node.comparators])):
            found.append(ast.unparse(node))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in READS:
            said = [node.func.value, *node.args]  # sentence.split(), pattern.search(sentence)
            found += [ast.unparse(node)] if any(map(is_sentence, said)) else []
        if isinstance(node, ast.Subscript) and is_sentence(node.value):
            found.append(ast.unparse(node))
    return found


def test_no_code_decides_by_reading_a_sentence():
    found = {path.relative_to(ROOT).as_posix(): reads_of_sentences(path.read_text("utf-8")) for path in PLACES}
    assert {path: sorted(reads) for path, reads in found.items() if reads} == {
        path: sorted(reads) for path, reads in ALLOWED.items()
    }


def test_the_search_sees_what_was_once_decided_so():
    for code in (
        "advice.short == NEXT_TIME",
        "time.note == NOISE",
        'finding.summary.endswith(", and ran out")',
        'ending.text.removeprefix("It")',
        'each.text != "utilisation"',
        '"emptied" in cause.explanation',
        "name.lower() in analysis.verdict",
        'obstacle.text.partition(":")[0]',
        'ending_words(ending).startswith("The training")',
        "PATTERN.search(event.meaning)",
    ):
        assert reads_of_sentences(code), code
    assert not reads_of_sentences("f'{finding.summary}: {cause.explanation}' if cause.explanation else verdict(x)")
