"""Names in the source: what two people add to one module at once must not have one name."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import REPOSITORY

MODULES = sorted((REPOSITORY / "gpu_report").rglob("*.py"))


def names(body: list[ast.stmt]) -> Iterator[str]:
    """Yield the names that statements give, one for each time: of assignments, functions and classes."""
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield statement.name
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        targets += [statement.target] if isinstance(statement, ast.AnnAssign) else []
        yield from (target.id for target in targets if isinstance(target, ast.Name))


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.relative_to(REPOSITORY).as_posix())
def test_no_module_gives_a_name_twice(module: Path) -> None:
    body = ast.parse(module.read_text(encoding="utf-8")).body
    assert [name for name, times in Counter(names(body)).items() if times > 1] == []


def test_the_search_sees_a_constant_that_stands_twice() -> None:
    assert Counter(names(ast.parse("SHARE = 0.1\nA: int = 1\nSHARE = 0.5").body)) == {"SHARE": 2, "A": 1}
