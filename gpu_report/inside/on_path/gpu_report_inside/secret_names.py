"""Whether a name is a secret's, and whether what stands under it looks like one."""

from __future__ import annotations

import re

HIDDEN = "***"

# A name is a secret's by one of its words (`HF_TOKEN`, `dbPassword`) or by how its last one ends (`PGPASSWORD`).
SECRET_WORDS = frozenset(
    (  # noqa: SIM905 - a word a line is forty lines
        "password passwords passwd passphrase passcode pwd pw psw secret secrets credential credentials cred creds "
        "apikey apikeys authorization bearer cookie cookies dsn jwt sas webhook otp authtoken"
    ).split()
)
LAST_WORDS = frozenset({"token", "tokens", "pass", "auth", "key", "keys"})  # secrets' only at the end of a name
SECRET_ENDS = (
    "password",
    "passwd",
    "passphrase",
    "apikey",
    "secret",
    "token",
    "accesskey",
    "secretkey",
    "authkey",
    "pw",
)
ASIDES = frozenset({"prod", "dev", "test", "staging", "value", "env", "str", "id"})  # behind such a word: api_key_prod
# ... and no secrets' after one of these: a model's tokens, a pass over the data.
HARMLESS_BEFORE = frozenset(
    (  # noqa: SIM905 - a word a line is forty lines
        "pad eos bos mask cls sep unk special max min num n new image per stop start end first second last next "
        "forward backward single multi two by no low high band prompt input output total"
    ).split()
)
# A key is a secret after one of these; after any other word, or alone, it is one where what it holds looks random.
SECRET_KEYS = frozenset(
    {
        "api",
        "access",
        "secret",
        "private",
        "account",
        "auth",
        "encryption",
        "master",
        "signing",
        "wandb",
        "ssh",
        "storage",
    }
)
MAYBE_WORDS = frozenset({"key", "keys", "pat", "signature", "sig"})
ABOUT = frozenset(
    {"file", "path", "dir", "folder", "type", "length", "len", "size", "count", "limit", "name", "field", "url"}
)
NUMBER = re.compile(r"[+-]?\d[\d.,]{0,11}(?:e[+-]?\d+)?(?:[kKmMbBgGtT]|ms|s|%)?")
NOTHING = frozenset({"", "null", "none", "~", "true", "false", "yes", "no", "on", "off", "0", "1", "(null)", "nil"})
_PLAIN = re.compile(
    r"(?:[A-Za-z][a-z]*|\d{1,6})?(?:[-_.,/ ](?:[A-Za-z][a-z]*|\d{1,6})?)*"
)  # words, numbers, lists of them
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def is_secret_name(name: str) -> bool:
    """Tell whether what stands under a name is a secret, whatever it looks like."""
    words = words_of(name)
    while len(words) > 1 and words[-1] in ASIDES and words[-2] in LAST_WORDS | SECRET_WORDS:
        words.pop()
    if not words or words[-1] in ABOUT:
        return False
    if words[-1] in {"key", "keys"}:
        return len(words) > 1 and words[-2] in SECRET_KEYS
    if words[-1] in LAST_WORDS:
        return len(words) == 1 or words[-2] not in HARMLESS_BEFORE
    return any(word in SECRET_WORDS for word in words) or words[-1].endswith(SECRET_ENDS)


def words_of(name: str) -> list[str]:
    """Return the words of a name, small: HF_TOKEN, hfToken and hf-token have the same two."""
    return [word.lower() for word in _WORD.findall(name)]


def hides(name: str, value: str) -> bool:
    """Tell whether a value under a name is to be hidden."""
    bare = value.strip().strip("\"'")
    words = words_of(name)
    if (
        not words
        or bare.lower() in NOTHING
        or bare.startswith(HIDDEN)
        or re.fullmatch(r"\$(?:\{?[A-Z_]+\}?|\(.*)?", bare)
    ):
        return False
    if not is_secret_name(name):
        return may_hide(name) and looks_random(bare)
    if words[-1] in {"token", "tokens", "pass", "pw"} and all(
        map(NUMBER.fullmatch, re.split(r"[\s,\[\]()/]+", bare.strip("[]()")))
    ):
        return bare.isdigit() and len(bare) > 7
    return not (words[-1] in {"pwd", "key", "keys", "credentials"} and _is_path(bare))


def may_hide(name: str) -> bool:
    """Tell whether what stands under a name may be a secret, by what it looks like."""
    words = words_of(name)
    return bool(words) and (is_secret_name(name) or words[-1] in MAYBE_WORDS or words[-1].endswith("key"))


def _is_path(value: str) -> bool:
    return value.startswith(("/", "./", "../", "~/")) and "=" not in value


def _is_plain(value: str) -> bool:
    """Tell whether a value is a word or some, a number, a path or a list of them."""
    return _is_path(value) or _PLAIN.fullmatch(value) is not None


def looks_random(value: str) -> bool:
    """Tell whether a value is a key by its looks: long hexadecimal digits, or letters and digits all mixed."""
    bare = value.rstrip("=")
    if re.fullmatch(r"(?:0x)?[0-9a-fA-F-]{24,}", bare):
        return any(map(str.isalpha, bare)) and any(map(str.isdigit, bare))
    return any(len(run) >= 12 and _is_mixed(run) for run in re.split(r"[^A-Za-z0-9]+", bare))


def _is_mixed(run: str) -> bool:
    """Tell whether small letters, capitals and digits take turns: q7Rk2v does, Cityscapes2Foggy does not."""
    kinds = ["d" if c.isdigit() else "u" if c.isupper() else "l" for c in run]
    changes = sum(kinds[at] != kinds[at - 1] for at in range(1, len(kinds)))
    return "d" in kinds and len(set(kinds)) > 1 and changes > 0.3 * len(run)


def mixes(value: str) -> bool:
    """Tell whether a value beside a telling word may be one that a person chose: letters, and a digit or a sign."""
    safe = (
        _is_path(value)
        or "://" in value
        or re.fullmatch(r"0x[0-9a-fA-F]+|[\d.,:x\-]+|[\w.\-]+\.(?:py|pt|yaml|json|csv|weight|bias):?", value)
    )
    return not safe and len(value) >= 8 and any(map(str.isalpha, value)) and any(map(str.isdigit, value))


def gives_away(name: str, value: str) -> bool:
    """Tell whether `name: value` in prose gives a secret away: "signed with key: ..." and "77 tokens: ok" do not."""
    return is_secret_name(name) and not (words_of(name)[-1] in {"token", "tokens", "pass"} and _is_plain(value))
