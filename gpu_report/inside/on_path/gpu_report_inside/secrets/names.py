"""Whether a name is a secret's, and whether what stands under it looks like one."""

from __future__ import annotations

import re
from re import Match

HIDDEN = "***"

# A name is a secret's by one of its words (`HF_TOKEN`, `dbPassword`) or by how its last one ends (`PGPASSWORD`).
SECRET_WORDS = frozenset(
    (  # noqa: SIM905 - a word a line is forty lines
        "password passwords passwd passwds passphrase passcode pwd pw psw secret secrets credential credentials "
        "cred creds "
        "apikey apikeys authorization bearer cookie cookies dsn jwt sas webhook otp totp authtoken psk mnemonic oauth "
        "passwort kennwort senha contrasena contrase clave wachtwoord haslo пароль 密码 口令 パスワード 비밀번호"
    ).split()
)
LAST_WORDS = frozenset(
    {"token", "tokens", "pass", "passe", "auth", "key", "keys"}
)  # secrets' only at the end of a name
SECRET_ENDS = (
    *("password", "passwd", "passphrase", "apikey", "secret", "token", "accesskey", "secretkey", "authkey"),
    *("accountkey", "privatekey", "pw", "pwd", "pass", "passwort", "sessid", "sessionid"),
    *("pswd", "passw", "loginpas", "auth", "securestring"),
)
NO_SECRETS = re.compile(  # bypass, prepass, noauth
    r"(?:by|com|over|under|low|high|band|all|multi|single|two|sur|tres|first|second|pre|post)pass|"
    r"(?:no|un|de|re|pre)auth"
)
# Behind such a word: api_key_prod, client-key-data, tokenValue.
ASIDES = frozenset(
    (  # noqa: SIM905 - see above
        "prod dev test staging value env str id string data raw plain pem hex base json old new current default primary"
    ).split()
)
# ... and no secrets' after one of these: a model's tokens, a pass over the data.
HARMLESS_BEFORE = frozenset(
    (  # noqa: SIM905 - see above
        "pad eos bos mask cls sep unk special max min num n new image per stop start end first second last next "
        "forward backward single multi two by no low high band prompt input output total patch text visual query class"
    ).split()
)
# A key is a secret after one of these; after any other word, or alone, it is one where what it holds looks random.
SECRET_KEYS = frozenset(
    (  # noqa: SIM905 - see above
        "api access secret private account auth encryption master signing wandb ssh storage client deploy hub hf "
        "rf comet "
        "openai license licence activation product recovery bot webhook admin root service subscription shared roboflow"
    ).split()
)
_CODES = frozenset({"code", "codes", "phrase", "phrases", "pin"})
_CODES_OF = frozenset(
    {
        *("recovery", "backup", "verification", "security", "seed", "access", "pairing", "unlock", "otp", "login"),
        *("mfa", "tfa", "auth", "device"),
    }
)
MAYBE_WORDS = frozenset({"key", "keys", "pat", "signature", "sig", "license", "licence", "session", "sid", "ticket"})
ABOUT = frozenset(
    (  # noqa: SIM905 - see above
        "file path dir folder type length len size count limit name field url mode policy manager provider helper "
        "source status error class expiry expires expiration ttl timeout required enabled version rotation method "
        "backend store"
    ).split()
)
_FILE = re.compile(
    r".*\.(?:jpe?g|png|bmp|tiff?|txt|py|ya?ml|json|pt|onnx|cfg|ini|log|csv|zip|cache|mp4)", re.IGNORECASE
)
NUMBER = re.compile(r"[+-]?\d[\d.,]{0,11}(?:e[+-]?\d+)?(?:[kKmMbBgGtT]|ms|s|%)?")
NOTHING = frozenset({"", "null", "none", "~", "true", "false", "yes", "no", "on", "off", "0", "1", "(null)", "nil"})
_PLAIN = re.compile(
    r"(?:[A-Za-z][a-z]*|\d{1,6})?(?:[-_.,/ ](?:[A-Za-z][a-z]*|\d{1,6})?)*"
)  # words, numbers, lists of them
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_a-zA-Z]+")
_VARIABLE = re.compile(r"\$(?:\{\{?[\w. ]{0,60}\}?\}?|[A-Z_][A-Z0-9_]*|\(.*)?|%[A-Z_]+%", re.DOTALL)
_LONG_PIN = re.compile(r"\d{6,12}")  # a smart card's: a processor's pins have fewer digits
_PRODUCT_KEY = re.compile(r"(?=[A-Z\-]*\d)[A-Z0-9]{4,6}(?:-[A-Z0-9]{4,6}){3,}")


def is_secret_name(name: str) -> bool:
    """Tell whether what stands under a name is a secret, whatever it looks like."""
    words = words_of(name)
    while len(words) > 1 and words[-1] in ASIDES and words[-2] in LAST_WORDS | SECRET_WORDS:
        words.pop()
    if not words or words[-1] in ABOUT or _FILE.fullmatch(name):
        return False
    if words[-1] in {"key", "keys"}:
        return len(words) > 1 and words[-2] in SECRET_KEYS
    if words[-1] in LAST_WORDS:
        return len(words) == 1 or words[-2] not in HARMLESS_BEFORE
    if words[-1] in _CODES and len(words) > 1:
        return words[-2] in _CODES_OF
    return any(word in SECRET_WORDS for word in words) or _ends_as_secret(words[-1])


def _ends_as_secret(word: str) -> bool:
    return word.endswith(SECRET_ENDS) and NO_SECRETS.fullmatch(word) is None


def words_of(name: str) -> list[str]:
    """Return the words of a name, small: HF_TOKEN, hfToken and hf-token have the same two."""
    return [word.lower() for word in _WORD.findall(name)]


def hides(name: str, value: str) -> bool:
    """Tell whether a value under a name is to be hidden."""
    bare = value.strip().strip("\"'")
    words = words_of(name)
    if not words or bare.lower() in NOTHING or not bare.strip("*") or _VARIABLE.fullmatch(bare):
        return False
    if not is_secret_name(name):
        return (may_hide(name) and looks_random(bare)) or (words[-1] == "pin" and _LONG_PIN.fullmatch(bare) is not None)
    if words[-1] in {"token", "tokens", "pass", "passe", "pw"} and _is_numbers(bare):
        return bare.isdigit() and words[-1] != "tokens" and len(bare) >= (6 if len(words) == 1 else 4)
    return not (words[-1] in {"pwd", "key", "keys", "credentials"} and _is_path(bare))


def _is_numbers(value: str) -> bool:
    return all(map(NUMBER.fullmatch, re.split(r"[\s,\[\]()/]+", value.strip("[]()"))))


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
    """Tell whether a value is a key by its looks: long hexadecimal, letters and digits mixed, a product key."""
    bare = value.rstrip("=")
    if re.fullmatch(r"(?:0x)?[0-9a-fA-F-]{24,}", bare):
        return any(map(str.isalpha, bare)) and any(map(str.isdigit, bare))
    mixed = any(len(run) >= 12 and _is_mixed(run) for run in re.split(r"[^A-Za-z0-9]+", bare))
    return mixed or _PRODUCT_KEY.fullmatch(bare) is not None


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
    words = words_of(name)
    is_of_a_model = words[-1] == "tokens" or (len(words) == 1 and words[-1] in {"token", "pass"})
    is_secret = is_secret_name(name) or words[-1] in {"license", "licence"}
    return is_secret and not (is_of_a_model and _is_plain(value))


def without_value(found: Match[str]) -> str:
    """Return what is found with its `value` hidden; what quotes it stays.

    Such functions stand where templates could: those would stay in `re`'s table, and push out the user's own.
    """
    quote = found["value"][0] if found["value"][0] in "\"'" else ""
    return f"{found['before']}{quote}{HIDDEN}{quote}"
