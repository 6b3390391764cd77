"""Options that other tools have: the error names ours."""

import pytest


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("check", "run", "--gate", "util:60%"), "--fail-on"),
        (("compare", "a", "b", "--output", "page.html"), "--html"),
        (("compare", "a", "b", "--json-path", "x"), "--json"),
        (("compare", "a", "b", "--format", "json"), "Use '--json'."),
        (("check", "run", "--format", "json"), "Use '--json'."),
        (("bench", "m.pt", "--format", "onnx"), "Use '--formats'."),
        (("summary", "run", "--json", "x"), "Use '--format'."),
    ],
)
def test_an_option_that_other_tools_have_names_ours(run_cli, arguments, meant):
    done = run_cli(*arguments)
    assert done.returncode == 2
    assert meant in done.stderr


def test_a_command_without_it_names_none(run_cli):
    assert "--fail-on" not in run_cli("doctor", "--gate", "x").stderr
