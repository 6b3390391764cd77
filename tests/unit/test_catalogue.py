"""Every rule and cause that the analysis can emit has its row in the catalogue, and every row is of something."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import gpu_report
from gpu_report.analyse.signals.gpu.clock_fall import LOWER_CLOCK
from gpu_report.analyse.signals.gpu.clock_rows import POWER_CAP, THERMAL
from gpu_report.catalogue import CAUSES, RULES, SLOW_RANK, UNEXPLAINED, WAITING_FOR_PEER, row_words

ROOT = Path(gpu_report.__file__).parent
STYLES = (ROOT.parent / "templates" / "report.css").read_text("utf-8")
MAKERS = {"Cause": "cause", "Candidate": "cause", "finding": "rule"}


class Emitted:
    """The ids that a module's code can give to findings (`rule`) and causes, by reading the code."""

    def __init__(self, code: str) -> None:
        self.tree = ast.parse(code)
        self.nodes = list(ast.walk(self.tree))
        self.open: set[str] = set()  # names that are being looked up: one may be given for itself

    def ids(self) -> Iterator[tuple[str, str, set[str]]]:
        """Yield what is made, the expression of its id, and the ids that this may be: none where nobody can tell."""
        for node in self.nodes:
            if isinstance(node, ast.Call) and (what := MAKERS.get(self._name(node.func))) and node.args:
                yield what, ast.unparse(node.args[0]), self.values(node.args[0])
            for keyword in node.keywords if isinstance(node, ast.Call) and self._name(node.func) == "replace" else ():
                of_cause = keyword.arg == "name" and self._name(node.args[0]) == "cause"
                if what := "rule" if keyword.arg == "rule" else "cause" if of_cause else None:
                    yield what, ast.unparse(keyword.value), self.values(keyword.value)

    def values(self, node: ast.AST) -> set[str]:
        """Return the texts that an expression may be."""
        if isinstance(node, ast.Constant):
            return {node.value} if isinstance(node.value, str) else set()
        if isinstance(node, ast.IfExp):
            return self.values(node.body) | self.values(node.orelse)
        name = self._name(node)  # of an attribute: what objects of this module were made with
        if not name or name in self.open:
            return set()
        self.open.add(name)
        found = set().union(*self._given(name), *self._assigned(name))
        self.open.remove(name)
        return found

    def _assigned(self, name: str) -> Iterator[set[str]]:
        """Yield what a name is assigned: a text, or the first of a pair that a table of pairs holds."""
        for node in self.nodes:
            if not isinstance(node, ast.Assign):
                continue
            target = node.targets[0]
            if isinstance(target, ast.Name) and target.id == name:
                yield self.values(node.value)
            if isinstance(target, ast.Tuple) and self._name(target.elts[0]) == name:
                yield from self._firsts(node.value)

    def _firsts(self, looked_up: ast.AST) -> Iterator[set[str]]:
        table = self._name(looked_up.value) if isinstance(looked_up, ast.Subscript) else ""
        for node in self.nodes:
            if (
                isinstance(node, ast.Assign)
                and self._name(node.targets[0]) == table
                and isinstance(node.value, ast.Dict)
            ):
                yield from (self.values(pair.elts[0]) for pair in node.value.values if isinstance(pair, ast.Tuple))

    def _given(self, parameter: str) -> Iterator[set[str]]:
        """Yield what functions and classes of this module are given for a parameter or field of that name."""
        for maker in self.nodes:
            if isinstance(maker, ast.FunctionDef):
                names = [argument.arg for argument in maker.args.args]
            elif isinstance(maker, ast.ClassDef):
                names = [each.target.id for each in maker.body if isinstance(each, ast.AnnAssign)]
            else:
                continue
            if parameter in names:
                calls = (n for n in self.nodes if isinstance(n, ast.Call) and self._name(n.func) == maker.name)
                for call in calls:
                    yield from (self.values(a) for a in call.args[names.index(parameter) :][:1])
                    yield from (self.values(each.value) for each in call.keywords if each.arg == parameter)

    @staticmethod
    def _name(node: ast.AST) -> str:
        return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def emitted() -> dict[str, set[str]]:
    """Return the ids of rules and causes in the whole analysis."""
    found: dict[str, set[str]] = {"rule": set(), "cause": set()}
    # a candidate's own is counted where it is made
    elsewhere = {
        "throttle.cause": {POWER_CAP, THERMAL, LOWER_CLOCK},
        "UNEXPLAINED": {UNEXPLAINED},
        "WAITING_FOR_PEER": {WAITING_FOR_PEER},
        "SLOW_RANK": {SLOW_RANK},
        "best.name": {UNEXPLAINED},
        "always.name": {UNEXPLAINED},  # likewise: a cause that lasts
    }
    for path in sorted((ROOT / "analyse").rglob("*.py")):
        for what, expression, ids in Emitted(path.read_text("utf-8")).ids():
            known = ids or elsewhere.get(expression, set())
            assert known, f"{path.name}: nobody can tell which {what} `{expression}` is"
            found[what] |= known
    return found


def test_each_rule_that_the_analysis_can_emit_has_a_row_and_each_row_is_emitted():
    assert emitted()["rule"] == set(RULES)


def test_each_cause_that_the_analysis_can_emit_has_a_row_and_each_row_is_emitted():
    assert emitted()["cause"] == {cause.id for cause in CAUSES.values() if cause.of_findings}


def test_a_new_rule_or_cause_is_seen():
    code = """
TABLE = {"xid": ("new-fault", 0.9)}
def _one(context, rule): return context.finding(rule, "info", span, "")
def two(context): return [_one(context, "new-rule"), replace(found, rule="other" if bad else "another")]
def three(kind):
    name, confidence = TABLE[kind]
    return Candidate(name, confidence, "")
"""
    seen = {expression: ids for _, expression, ids in Emitted(code).ids()}
    assert seen["rule"] == {"new-rule"}
    assert seen["'other' if bad else 'another'"] == {"other", "another"}
    assert seen["name"] == {"new-fault"}


def test_each_colour_of_the_ledger_is_of_a_row():
    coloured = {cause.id.replace(" ", "-") for cause in CAUSES.values() if cause.coloured}
    styled = set(re.findall(r"\.fill-([a-z-]+)", STYLES))
    assert styled - {"other"} == coloured


def test_each_row_has_words_for_people():
    for row in (*RULES.values(), *CAUSES.values()):
        assert row.name
        assert row.name[0].isupper()
    assert all(rule.title and rule.anchor for rule in RULES.values())


@pytest.mark.parametrize("name", [name for name, cause in CAUSES.items() if cause.without_training])
def test_a_row_has_one_name_with_a_training_and_without(name):
    with_training, alone = row_words(name), row_words(name, is_training=False)
    assert alone != with_training
    assert with_training.startswith(alone) or alone.startswith(with_training)
