"""args.yaml as YOLO writes it is read line by line: what comes out is what YAML says."""

import pytest
import yaml

from gpu_report.load.yolo import args_yaml

VALUES = (
    "1_000",
    "0x1F",
    "1e-3",
    "1.5e3",
    "on",
    "Yes",
    "null",
    "0o17",
    "017",
    "2001-01-01",
    "12e03",
    "-0",
    "'it'",
    "''",
)
MORE = ("'0'", "N", "nan", "1.", "'a, b'", "0,1", "1,", "Null", "true", "abc-", "a.b/c", "/data/x.yaml", "-1", "9" * 40)


def by_yaml(text):
    values = yaml.load(text, args_yaml._SafeYaml)
    return {str(args_yaml._scalar(key)): args_yaml._plain(value) for key, value in values.items()}


@pytest.mark.parametrize("value", [*VALUES, *MORE])
def test_a_flat_line_is_what_yaml_says(value):
    text = f"before: 1\nkey: {value}\non: x\nempty:\nbefore: 2\n"
    assert repr(args_yaml._flat(text)) == repr(by_yaml(text))


@pytest.mark.parametrize(
    "text", ["a: [1]\n", "a:\n- 1\n", "a: b # c\n", "a: 'it''s'\n", "a: &x b\n", "a: 1\x0cb: 2\n", "", "a: 2001-99-01"]
)
def test_any_other_text_is_left_to_yaml(text):
    assert args_yaml._flat(text) is None
