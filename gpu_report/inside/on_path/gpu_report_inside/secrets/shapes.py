"""Secrets that are known by their shape: keys as services write them, private keys, password hashes, addresses."""

from __future__ import annotations

import re
from re import Match

from .names import HIDDEN, NOTHING, hides, looks_random, without_value, words_of

_PEM = re.compile(
    r"(-----BEGIN [A-Z0-9 ]{0,20}PRIVATE KEY[A-Z ]{0,20}-----).*?(-----END [A-Z0-9 ]{0,40}-----|$)", re.DOTALL
)
_PUTTY = re.compile(r"(Private-Lines: \d+\s).*?(Private-MAC: \w+|$)", re.DOTALL)
_SHAPES = re.compile(
    r"(?<![A-Za-z0-9])(?:hf_[A-Za-z0-9]{8,}|api_org_[A-Za-z0-9]{16,}|(?:sk|rk|pk)_(?:live|test)_\w{8,}|"
    r"sk-[A-Za-z0-9_\-]{8,}|(?:AKIA|ASIA|ABIA|ACCA|AROA|AIDA)[A-Z0-9]{12,}|gh[pousr]_[A-Za-z0-9]{8,}|github_pat_\w{8,}|"
    r"gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|imt|ffct)-[\w\-]{8,}|xox[abeoprs]-[\w\-]{8,}|xoxe\.[\w\-.]{8,}|xapp-[\w\-]{8,}|"
    r"(?:FwoG|FQoG|IQoJ)[\w+/=]{16,}|AIza[\w\-]{20,}|ya29\.[\w\-]{8,}|1//0[\w\-]{16,}|4/0A[\w\-]{16,}|GOCSPX-[\w\-]{8,}|"
    r"eyJ[\w\-]{8,}\.[\w\-]{8,}(?:\.[\w\-]*){0,3}|wandb_v\d+_\w{8,}|pypi-[\w\-]{16,}|npm_[A-Za-z0-9]{16,}|"
    r"dckr_(?:pat|oat)_[\w\-]{8,}|SG\.[\w\-]{12,}\.[\w\-]{12,}|rpa_[A-Za-z0-9]{12,}|r8_[A-Za-z0-9]{16,}|gsk_[A-Za-z0-9]{16,}|"
    r"xai-[A-Za-z0-9]{16,}|nvapi-[\w\-]{16,}|key-[0-9a-f]{32}|do[opr]_v1_[0-9a-f]{16,}|shp(?:at|ca|pa|ss)_[0-9a-fA-F]{16,}|"
    r"lin_api_\w{16,}|hv[sbr]\.[\w\-]{16,}|tfp_\w{16,}|sq0[a-z]{3}-[\w\-]{16,}|EAA[A-Za-z0-9]{24,}|"
    r"AGE-SECRET-KEY-1[A-Z0-9]{20,}|AGE-PLUGIN-[A-Z0-9\-]{20,}|\d{8,10}:AA[\w\-]{30,}|tskey-[a-z]+-[\w\-]{8,}|glsa_\w{16,}|"
    r"glc_[\w=]{16,}|dapi[0-9a-f]{32}|dp\.[a-z]{2}\.[\w.\-]{16,}|sntry[su]_[\w=+/]{16,}|lsv2_[a-z]{2}_\w{16,}|pplx-\w{16,}|"
    r"tvly-[\w\-]{16,}|jina_\w{16,}|sbp_[0-9a-f]{16,}|ntn_\w{16,}|figd_[\w\-]{16,}|PMAK-[\w\-]{16,}|ATATT3[\w\-=]{16,}|"
    r"ATBB[A-Za-z0-9]{16,}|NRAK-[A-Z0-9]{16,}|pscale_\w{3,8}_[\w\-.]{16,}|whsec_[\w+/=]{12,}|nf[pco]_\w{16,}|AKCp8\w{16,}|"
    r"cmVmdGtu\w{16,}|SK[0-9a-f]{32}|LTAI[A-Za-z0-9]{12,}|ops_eyJ[\w\-]{16,}|rnd_\w{16,}|fo1_[\w\-]{16,}|"
    r"FlyV1 [\w\-,/+=]{16,}|"
    r"a[ks]-[A-Za-z0-9]{20,}|sgp_\w{16,}|sl\.[\w\-]{40,}|vastai_\w{16,}|"
    r"b3BlbnNzaC1rZXkt[\w+/=]{16,}|LS0tLS1CRUdJTi(?!BDRVJU|BQVUJM)[\w+/=]{8,})"
)
# What a password is kept as: crypt, bcrypt, argon2, Django, LDAP, Jupyter.
_HASHES = re.compile(
    r"\$(?:[156y7]|apr1|2[abxy]|argon2\w{1,3}|scrypt|pbkdf2[\w\-]*)\$[\w./,=$+\-]{12,}|"
    r"(?:pbkdf2_sha\d+|bcrypt_sha256|scrypt|argon2)\$[\w./,=$+:\-]{12,}|\{S?(?:SHA|MD5)\d*\}[\w+/=]{16,}|"
    r"\bsha1:[0-9a-f]{12}:[0-9a-f]{40}"
)
# A scheme has two letters at least, a drive one; `pathlib` makes one slash of two.
_URL = re.compile(r"(?<![A-Za-z0-9+.\-])(?P<scheme>[A-Za-z][A-Za-z0-9+.\-]{1,30}:/{1,3})(?P<rest>[^\s\"'<>]+)")
_PLACE = re.compile(r"(?<=\burl: )(?P<scheme>)(?P<rest>/[^\s\"'<>]+)")  # requests writes host and path apart
# ... within another URL, in which its signs are written as numbers: https%3A%2F%2Fme%3A...%40host
_ENCODED_LOGIN = re.compile(
    r"(?i)(?P<before>%3a%2f%2f[\w.\-~+]{0,80}%3a)(?P<value>(?:(?!%2f|%40)[^\s&\"'<>]){1,200})(?=%40)"
)
# A password with a blank or a quote in it, up to its @: what stands before the first blank is no port.
_BROKEN_LOGIN = re.compile(
    r"([A-Za-z][A-Za-z0-9+.\-]{1,30}://)[^\s/:@\"'<>]{0,80}:(?!\d{1,5}(?:[/?#\s,;)]|$))"
    r"[^/\n@]{1,100}[\s\"'<>][^/\n@]{0,100}@(?=[\w\[])"
)
_QUERY_PAIR = re.compile(r"(?P<name>[\w.\-\[\]%]{1,80})=(?P<value>[^&;#]*)")
# Addresses whose path is the secret: of hooks, of bots, of a package server's users.
_HOOKS = re.compile(
    r"(?i)(?P<before>hooks\.slack\.com/(?:services|workflows|triggers)/|discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d+/|"
    r"webhook\.office\.com/webhookb2/|api\.telegram\.org/(?:file/)?bot|hooks\.zapier\.com/hooks/catch/|"
    r"chat\.googleapis\.com/v1/spaces/[^/\s]+/messages\?|app\.roboflow\.com/ds/[^\s?]+\?|hc-ping\.com/|"
    r"/services/T\w{3,}/B\w{3,}/|/api/(?:v\d+/)?webhooks/\d{5,}/)[^\s\"'<>]+"
)
_TELLING_PART = re.compile(
    r"(?i)t|token|tokens|key|keys|secret|api[_-]?key|auth|(?:web)?hooks?(?:b2)?|hook|bot|sas|invite"
)
_TELLING_HOST = re.compile(r"(?i)(?:web)?hooks?\d*\.|hc-ping\.com$|.*\.(?:web)?hooks?\.|hook\.")


def hide_keys(text: str) -> str:
    """Return a text without private keys; their frames stay."""
    return _PUTTY.sub(_body, _PEM.sub(_body, text))


def hide_shapes(text: str) -> str:
    """Return a text without what has the shape of a service's key, or of a password's hash."""
    return _HASHES.sub(HIDDEN, _SHAPES.sub(HIDDEN, text))


def hide_in_urls(text: str) -> str:
    """Return a text without the logins and signatures of its URLs, and without URLs that are secrets themselves."""
    text = _ENCODED_LOGIN.sub(without_value, text)
    if "/" not in text:
        return text
    text = _BROKEN_LOGIN.sub(lambda found: f"{found[1]}{HIDDEN}@", text)
    return _PLACE.sub(_url, _URL.sub(_url, _HOOKS.sub(lambda found: f"{found[1]}{HIDDEN}", text)))


def _body(found: Match[str]) -> str:
    """Return the frame of a private key without the key."""
    return f"{found[1]}{HIDDEN}{found[2]}"


def _url(found: Match[str]) -> str:
    """Return a URL without its login, and without what in its path, query and fragment is a secret."""
    rest = _without_login(found["rest"])
    place, mark, query = _split_query(rest)
    return f"{found['scheme']}{_place(place)}{mark}{_QUERY_PAIR.sub(_query_pair, query)}"


def _without_login(rest: str) -> str:
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    login, at, _ = authority.rpartition("@")
    cut = len(login) if at and (":" in login or looks_random(login)) else -1  # a name alone is none: git@github.com
    if not at and (part := re.search(r"^[^\[]*?:(?!\d*\W*$)", authority)):  # a password with / ? or # in it, or cut off
        cut = rest.rfind("@")
        if cut < 0 and len(rest) == len(authority) and "{" not in rest and not rest.endswith(":"):
            return f"{rest[: part.end()]}{HIDDEN}"
    return f"{HIDDEN}{rest[cut:]}" if cut >= 0 else rest


def _place(place: str) -> str:
    """Return host and path, the path's parts hidden that look random behind one that tells what they are."""
    host, *parts = place.split("/")
    telling = _TELLING_HOST.match(host) is not None
    for at, part in enumerate(parts):
        if telling and looks_random(part):
            parts[at] = HIDDEN
        telling = telling or _TELLING_PART.fullmatch(part) is not None
    return "/".join([host, *parts])


def _split_query(rest: str) -> tuple[str, str, str]:
    at = min((at for at in (rest.find("?"), rest.find("#")) if at >= 0), default=len(rest))
    return rest[:at], rest[at : at + 1], rest[at + 1 :]


def _query_pair(found: Match[str]) -> str:
    name = found["name"]
    signed = words_of(name)[-1:] in (["key"], ["sig"], ["signature"], ["code"])
    hidden = hides(name, found["value"]) or (signed and found["value"].lower() not in NOTHING)
    return f"{name}={HIDDEN if hidden else found['value']}"
