import itertools
import json
import re
import string
import time
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from support.secrets_corpus import (
    FORMS,
    SECRET_NAMES,
    SECRET_VALUES,
    harmless,
    harmless_yamls,
    secrets,
    yaml_secrets,
)

from gpu_report.inside.on_path.gpu_report_inside.secrets.hide import (
    HIDDEN,
    hide_in_command,
    hide_in_text,
    hide_in_values,
)
from gpu_report.inside.on_path.gpu_report_inside.secrets.yaml_text import hide_in_yaml
from gpu_report.without_secrets import event_line, safe_arguments

SECRET = st.text(string.ascii_letters + string.digits, min_size=12, max_size=40)
NAMES = st.sampled_from(
    ["token", "hf-token", "api-key", "api_key", "apikey", "password", "WANDB_API_KEY", "client_secret", "accessToken"]
)


@given(NAMES, SECRET)
def test_a_secret_option_hides_its_value_in_either_form(name, secret):
    assert secret not in " ".join(
        hide_in_command(["yolo", f"--{name}", secret, f"--{name}={secret}", f"{name}={secret}"])
    )


@given(SECRET, st.sampled_from(["https", "s3", "postgres+ssl", "rtsp"]))
def test_a_login_in_a_url_is_hidden_and_the_rest_stays(secret, scheme):
    safe = hide_in_command([f"source={scheme}://user:{secret}@host:554/path"])[0]
    assert secret not in safe
    assert safe == f"source={scheme}://{HIDDEN}@host:554/path"


@given(SECRET.filter(str.isalnum), st.sampled_from(["hf_", "ghp_", "sk-", "glpat-"]))
def test_keys_are_known_by_their_shape_wherever_they_stand(secret, prefix):
    assert secret not in " ".join(
        hide_in_command(["python", "train.py", f"note:{prefix}{secret}", f"x={prefix}{secret}"])
    )


@given(st.lists(st.text(max_size=30), max_size=8))
def test_any_command_keeps_its_length_and_redacting_twice_changes_nothing(words):
    safe = hide_in_command(words)
    assert len(safe) == len(words)
    assert hide_in_command(safe) == safe


@pytest.mark.parametrize(
    "command",
    [
        ["yolo", "detect", "train", "data=coco8.yaml", "model=yolo26n.pt", "epochs=100", "imgsz=640", "batch=-1"],
        ["python", "train.py", "--keypoints", "17", "--monkey=5", "author=me", "tokenizer=bpe", "--pin-memory"],
        ["torchrun", "--nproc_per_node", "4", "--rdzv_endpoint=host:29500", "train.py", "--name", "über/läuft"],
    ],
)
def test_what_is_no_secret_stays(command):
    assert list(hide_in_command(command)) == command


@pytest.mark.parametrize(
    ("word", "safe"),
    [
        ("https://host/d.zip?sig=abc%2Fdef&x=1", "https://host/d.zip?sig=***&x=1"),
        ("Authorization: Bearer abc.def", "Authorization: Bearer ***"),
        ("AKIAIOSFODNN7EXAMPLE", "***"),
        ("mykey=0123456789abcdef0123456789abcdef", "mykey=***"),
    ],
)
def test_examples(word, safe):
    assert hide_in_command([word]) == (safe,)


@pytest.mark.parametrize(
    ("line", "safe"),
    [
        ("api_key: abc # mine", "api_key: '***'"),
        ("auth: null", "auth: null"),
        ("  hf_token: 'a: b'", "  hf_token: '***'"),
        ("source: rtsp://me:pw@cam/1", "source: rtsp://***@cam/1"),
        ("data: 'https://h/d.zip?token=abc&x=1'", "data: 'https://h/d.zip?token=***&x=1'"),
        ('data: "https://h/d.zip?x=1&sig=abc"', 'data: "https://h/d.zip?x=1&sig=***"'),
        ("name: hf_abcdefgh12", "name: '***'"),
        ("classes: [1, hf_abcdefgh12]", "classes: [1, '***']"),
        ("model: yolo26n.pt", "model: yolo26n.pt"),
    ],
)
def test_a_line_of_yaml_keeps_its_key_and_its_quotes(line, safe):
    assert hide_in_yaml(f"a: 1\n{line}\r\nb: 2") == f"a: 1\n{safe}\r\nb: 2"


def hidden(case):
    if case.kind == "yaml":
        return hide_in_yaml(case.text)
    return hide_in_text(case.text) if isinstance(case.text, str) else hide_in_command(case.text)


def test_of_the_corpus_hardly_a_secret_is_left_and_hardly_a_harmless_text_is_touched():
    held, free = [*secrets(), *yaml_secrets()], [*harmless(), *harmless_yamls()]
    left = [
        case for case in held if case.secret in "\0".join([*hidden(case)] if case.kind != "yaml" else [hidden(case)])
    ]
    touched = [case for case in free if hidden(case) != case.text]
    assert (len(held) >= 150, len(free) >= 150) == (True, True)
    assert len(left) <= 0.01 * len(held), left
    assert len(touched) <= 0.01 * len(free), touched


def written(kind, text):
    """Return what reaches the disk of a text; the words of a command with a NUL between."""
    if kind == "command":
        return "\0".join(hide_in_command(text))
    if kind == "values":
        return json.dumps(hide_in_values(text))
    return safe_arguments(text) if kind == "yaml" else hide_in_text(text)


@pytest.mark.parametrize(
    ("name", "attacks", "harmless"),
    [("secrets_attacks", 200, 100), ("secrets_attacks_2", 442, 172), ("secrets_attacks_3", 246, 87)],
)
def test_of_what_attackers_wrote_against_it_nothing_is_left(name, attacks, harmless):
    cases = json.loads((Path(__file__).parents[2] / "data" / f"{name}.json").read_text("utf-8"))
    assert (len(cases["attacks"]), len(cases["harmless"])) == (attacks, harmless)
    assert [text for kind, text, secret in cases["attacks"] if secret in written(kind, text)] == []
    joined = {"command": "\0".join, "values": json.dumps}
    assert [text for kind, text in cases["harmless"] if written(kind, text) != joined.get(kind, str)(text)] == []


@pytest.mark.parametrize("form", FORMS)
def test_every_name_hides_every_value_in_every_form(form):
    kind, shape = FORMS[form]
    left = []
    for name, value in itertools.product(SECRET_NAMES, SECRET_VALUES):
        text = [word.format(n=name, v=value) for word in shape] if kind == "command" else shape.format(n=name, v=value)
        if value in written(kind, text):
            left.append((name, value))
    assert len(left) <= 0.01 * len(SECRET_NAMES) * len(SECRET_VALUES), left


@pytest.mark.parametrize(
    "text", ["a: 'x --token abc'", "a: {token: {b: c}}", "token: &k abc\nuse: *k", "hf_abcdefghij: 1"]
)
def test_arguments_stay_yaml(text):
    assert yaml.safe_load(text)
    assert yaml.safe_load(safe_arguments(text)) is not None


def test_aliases_of_aliases_are_not_written_out():
    lists = [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 12)]
    bomb = "\n".join(["l0: &l0 ['x --token abc']", *lists, "a: 'x --token abc'"])
    began = time.perf_counter()
    assert "abc" not in safe_arguments(bomb)
    assert time.perf_counter() - began < 5


def test_an_event_holds_no_secret_in_whatever_it_carries():
    fields = {"text": f"token={'x' * 9}1", "path": Path("/data/pass=abc"), "metrics": {"a": ["https://u:abc@h/x", 1.5]}}
    event = json.loads(event_line("marker", 1.0, 2.0, fields))
    assert {name: event[name] for name in fields} == {
        "text": "token=***",
        "path": "/data/pass=***",
        "metrics": {"a": ["https://***@h/x", 1.5]},
    }


def test_yaml_is_read_as_yaml_where_lines_do_not_show_all_of_it():
    assert yaml.safe_load(safe_arguments('a: {"pass\\x77ord": abc}\nb: 1\n')) == {"a": {"password": HIDDEN}, "b": 1}
    assert safe_arguments("a: {b: [1, 2]}  # kept\n") == "a: {b: [1, 2]}  # kept\n"


@given(st.text(max_size=200))
def test_any_text_can_be_looked_through_and_twice_changes_nothing(text):
    safe = hide_in_text(text)
    assert hide_in_text(safe) == safe
    hide_in_yaml(text)


LONG = 65_536  # characters: an event has no more


@pytest.mark.parametrize(
    "piece", ["a", "a=", "://", "x@", "{'", "token=", "-", "\n", "|\n", "password='", "s: ", "\\", "?"]
)
@pytest.mark.parametrize("look", [hide_in_text, hide_in_yaml, lambda text: hide_in_command([text])])
def test_a_long_text_takes_no_long_time(look, piece):
    text = ("audit proctitle= curl " + piece * LONG)[:LONG]
    began = time.process_time()
    look(text)
    assert time.process_time() - began < 1.5


def test_the_templates_of_the_users_own_patterns_are_not_pushed_out():
    templates = getattr(re, "_compile_template", None) or re._compile_repl  # by version of Python
    before = templates.cache_info()
    for case in (*secrets(), *yaml_secrets()):
        hidden(case)
    assert templates.cache_info() == before
