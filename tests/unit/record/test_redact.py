import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_report.record.redact import HIDDEN, redact, redact_yaml

SECRET = st.text(string.ascii_letters + string.digits, min_size=12, max_size=40)
NAMES = st.sampled_from(
    ["token", "hf-token", "api-key", "api_key", "apikey", "password", "WANDB_API_KEY", "client_secret", "accessToken"]
)


@given(NAMES, SECRET)
def test_a_secret_option_hides_its_value_in_either_form(name, secret):
    assert secret not in " ".join(redact(["yolo", f"--{name}", secret, f"--{name}={secret}", f"{name}={secret}"]))


@given(SECRET, st.sampled_from(["https", "s3", "postgres+ssl", "rtsp"]))
def test_a_login_in_a_url_is_hidden_and_the_rest_stays(secret, scheme):
    safe = redact([f"source={scheme}://user:{secret}@host:554/path"])[0]
    assert secret not in safe
    assert safe == f"source={scheme}://{HIDDEN}@host:554/path"


@given(SECRET.filter(str.isalnum), st.sampled_from(["hf_", "ghp_", "sk-", "glpat-"]))
def test_keys_are_known_by_their_shape_wherever_they_stand(secret, prefix):
    assert secret not in " ".join(redact(["python", "train.py", f"note:{prefix}{secret}", f"x={prefix}{secret}"]))


@given(st.lists(st.text(max_size=30), max_size=8))
def test_any_command_keeps_its_length_and_redacting_twice_changes_nothing(words):
    safe = redact(words)
    assert len(safe) == len(words)
    assert redact(safe) == safe


@pytest.mark.parametrize(
    "command",
    [
        ["yolo", "detect", "train", "data=coco8.yaml", "model=yolo26n.pt", "epochs=100", "imgsz=640", "batch=-1"],
        ["python", "train.py", "--keypoints", "17", "--monkey=5", "author=me", "tokenizer=bpe", "--pin-memory"],
        ["torchrun", "--nproc_per_node", "4", "--rdzv_endpoint=host:29500", "train.py", "--name", "über/läuft"],
    ],
)
def test_what_is_no_secret_stays(command):
    assert list(redact(command)) == command


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
    assert redact([word]) == (safe,)


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
    assert redact_yaml(f"a: 1\n{line}\r\nb: 2") == f"a: 1\n{safe}\r\nb: 2"
