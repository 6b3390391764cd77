"""Which words of a command line are secrets by their place: behind a program's flag, after `login`, at the end."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .names import HIDDEN, hides, is_secret_name, looks_random, mixes, words_of

# Programs by the flag behind which, or glued to which, they take a password.
_PASSWORD_FLAGS = {
    "-p": (
        "mysql mysqldump mysqladmin mysqlimport mysqlsh mariadb mariadb-dump mariadb-admin sshpass mongo mongosh "
        "mongodump "
        "mongorestore mongoexport mongoimport 7z 7za 7zr 7zz rar unrar cqlsh ncftpget ncftpput twine "
        "useradd usermod rdesktop"
    ),
    "-P": "zip unzip zipcloak sqlcmd bcp ipmitool mosquitto_pub mosquitto_sub",
    "-a": "redis-cli",
    "-w": "ldapsearch ldapadd ldapmodify ldapwhoami ldapdelete",
    "-pw": "plink pscp psftp putty",
    "-k": "openssl",
    "-K": "openssl",
    "-A": "snmpget snmpwalk",
    "-X": "snmpget snmpwalk",
}
# Programs that take a login as name:password (name%password, name,password), and the options before it.
_LOGIN_PROGRAMS = frozenset(
    {"curl", "wget", "http", "https", "xh", "lftp", "smbclient", "smbget", "rpcclient", "cvat-cli", "ab", "siege"}
)
_LOGIN_FLAGS = frozenset({"-u", "-a", "-A", "-U", "-E", "--cert", "--user", "--proxy-user", "--userpwd"})
_ANY_LOGIN_FLAGS = frozenset({"-u", "--user", "--login", "--userpass"})
_USER_AND_GROUP = frozenset(  # ... while -u of these takes a user and a group
    {"docker", "podman", "nerdctl", "kubectl", "chroot", "apptainer", "singularity", "enroot", "sudo", "runuser", "su"}
)
_ORACLE = frozenset({"sqlplus", "expdp", "impdp", "sqlldr", "rman"})
_LOGGING_IN = frozenset({"login", "auth", "authorize", "authorize-account", "signin", "relogin", "activate"})
# Programs that keep secrets, and what they are told to do with one.
_KEEPERS = frozenset(
    {
        *("kubectl", "oc", "k", "vault", "gh", "fly", "flyctl", "modal", "doppler", "az", "aws", "gcloud", "heroku"),
        *("docker", "podman", "wrangler", "consul", "op", "bw"),
    }
)
_KEPT = frozenset({"secret", "secrets", "kv", "secretsmanager", "ssm", "keyvault", "auth", "write"})
_KEEPING = frozenset(
    {"create", "put", "set", "write", "update", "patch", "add", "put-parameter", "create-secret", "edit"}
)
_KEPT_VALUE = re.compile(r"((?:--(?:from-literal|body|value|data|secret-string|string)=)?(?!-)(?:[\w.\-/]+=)?)(.+)")
_KEPT_FLAGS = frozenset({"-b", "--body", "--value", "--data", "--string", "--secret-string", "--from-literal"})
# Programs whose last word is a secret, and the words that tell that they take one.
_LAST_OF = {
    **dict.fromkeys(("mc", "mcli"), frozenset({"alias", "host", "user", "svcacct"})),
    "b2": frozenset({"authorize", "authorize-account"}),
    "rclone": frozenset({"obscure"}),
    "ngrok": frozenset({"authtoken", "add-authtoken"}),
    "consul": frozenset({"put"}),
    "htpasswd": frozenset({"-b", "-nb", "-bn", "-nbB", "-Bbn", "-cb", "-bc", "-bB", "-cbB"}),
    "wpa_passphrase": frozenset({"wpa_passphrase"}),
    "mega-login": frozenset({"mega-login"}),
    "keyctl": frozenset({"add", "padd", "update"}),
    "net": frozenset({"use"}),
}
_SETTING = frozenset({"set", "config", "configure", "modify", "update", "setx"})
PROGRAMS = frozenset(
    {
        *(name for names in _PASSWORD_FLAGS.values() for name in names.split()),
        *(_LOGIN_PROGRAMS | _ORACLE | _KEEPERS | set(_LAST_OF)),
        *("wandb", "hf", "huggingface-cli", "yolo", "comet", "clearml-init", "dvc", "poetry", "npm", "yarn", "pip"),
        *("conda", "git", "nmcli", "skopeo", "helm"),
    }
)
_ENDS = frozenset({"|", "||", "&&", "&", ";", "\n"})
_SIGNS = frozenset({"=", ":", ":=", "=="})  # between a name and its value
_BARE_NAME = re.compile(r"[A-Za-z_][\w.\-:/]{0,80}")
_WINDOWS = re.compile(r"(/(?P<name>[A-Za-z]{1,20}):)(?P<value>[^/\\].*)", re.DOTALL)
_LOGIN_VALUE = re.compile(r"([^\s:%,/=]+[:%,])\S+")
_ANY_LOGIN_VALUE = re.compile(r"([A-Za-z][^\s:/=,]*:)(?!\d+$)[^\s/\\:]\S*")
_LOGIN_WORD = re.compile(r"(-u(?=[^\s:]*:)[^\s:]+:|--(?:proxy-)?user=[^\s:]+:)\S+")
_ORACLE_VALUE = re.compile(r"([A-Za-z]\w*/)[^\s/]\S*")
_SPECIFIED = re.compile(r"(?:id|src|type|source|target)=")  # docker build --secret id=...
_SETTING_WORD = re.compile(r"[a-z][a-z_.]+\d?=[\w.\-/\[\],]+")  # epochs=3 after a flag without a value
_SIGNED_KEY = re.compile(r"(?=.*[A-Za-z0-9])[^\s/:,=()\[\]]*[!@#$^&%?][^\s/:=()\[\]]*|[\w\-+.=]{12,}")


def hide_by_place(words: Sequence[str]) -> list[str | None]:
    """Return, for each word of a command line, what stands for it where its place makes it a secret, else None."""
    safe: list[str | None] = []
    command: list[str] = []
    for word in words:
        command.append(word)
        if word in _ENDS:
            safe += _Command(command).hidden() if len(command) > 1 else [None]
            command = []
    return safe + _Command(command).hidden()


class _Command:
    """One command of a line: its words, and what its programs and subcommands say of how they are read."""

    def __init__(self, words: list[str]) -> None:
        self._words = words
        said = set(words)
        programs = {word.rsplit("/", 1)[-1] for word in words if word and not word.startswith("-")}
        self._flags = {flag for flag, takers in _PASSWORD_FLAGS.items() if not programs.isdisjoint(takers.split())}
        self._takes_login = not programs.isdisjoint(_LOGIN_PROGRAMS)
        self._takes_group = not programs.isdisjoint(_USER_AND_GROUP)
        self._is_oracle = not programs.isdisjoint(_ORACLE)
        self._logs_in = not said.isdisjoint(_LOGGING_IN)
        self._is_docker_login = "login" in said
        kept = not programs.isdisjoint(_KEEPERS) and not said.isdisjoint(_KEPT)
        self._keeps = kept and not said.isdisjoint(_KEEPING)
        self._sets = not set(words[1:6]).isdisjoint(_SETTING)
        takes_last = any(name in programs and not said.isdisjoint(told) for name, told in _LAST_OF.items())
        self._last = self._last_place() if takes_last else None

    def hidden(self) -> list[str | None]:
        """Return what stands for each word that is a secret by its place."""
        safe: list[str | None] = []
        before = ""
        for at, word in enumerate(self._words):
            safe.append(self._hide(at, before, word))
            many = before.endswith("s") and safe[-1] == HIDDEN  # --tokens A B
            before = before if many or word in _SIGNS else word
        return safe

    def _last_place(self) -> int | None:
        """Return where the last word stands that is neither an option nor one's value; a URL is no secret."""
        places = [
            at
            for at, word in enumerate(self._words)
            if at > 1
            and not word.startswith(("-", "@", "%:", "/", "\\\\"))
            and not self._words[at - 1].startswith("--")
        ]
        return places[-1] if places and "://" not in self._words[places[-1]] else None

    def _hide(self, at: int, before: str, word: str) -> str | None:
        if not word or word in _ENDS or word in _SIGNS or word == HIDDEN:
            return None
        if at == self._last:
            return HIDDEN
        glued = next((flag for flag in self._flags if word.startswith(flag) and len(word) > len(flag)), None)
        if glued is not None and word not in self._flags and not word.startswith("--"):
            return f"{glued}{HIDDEN}"
        part = self._login(before, word) or self._kept(before, word) or _windows(word)
        if part is not None:
            return part
        is_option = word.startswith("--") or re.fullmatch(r"-[A-Za-z]", word) is not None
        return HIDDEN if not is_option and self._is_secret(at, before, word) else None

    def _login(self, before: str, word: str) -> str | None:
        """Return a name with its password hidden."""
        if self._is_oracle and not word.startswith("/"):
            return _all_but_first(_ORACLE_VALUE.fullmatch(word))
        if not self._takes_login:
            is_login = before in _ANY_LOGIN_FLAGS and not self._takes_group
            return _all_but_first(_ANY_LOGIN_VALUE.fullmatch(word)) if is_login else None
        if before in {"-b", "--cookie"} and "=" in word:
            return HIDDEN
        if re.match(r"-b[^=\s]+=", word):
            return f"-b{HIDDEN}"
        if before in _LOGIN_FLAGS or re.fullmatch(r"-[a-zA-Z]*u", before):
            return _all_but_first(_LOGIN_VALUE.fullmatch(word))
        return _all_but_first(_LOGIN_WORD.fullmatch(word))

    def _kept(self, before: str, word: str) -> str | None:
        """Return name=value without the value, where a program is to keep it as a secret."""
        found = _KEPT_VALUE.fullmatch(word) if self._keeps else None
        return _all_but_first(found) if found and (found[1] or before in _KEPT_FLAGS) else None

    def _is_secret(self, at: int, before: str, word: str) -> bool:
        """Tell whether a word that is no option is a secret by what stands before it."""
        if before in self._flags or (before == "-p" and self._is_docker_login) or _follows_option(before, word):
            return True
        if _SETTING_WORD.fullmatch(word):
            return False
        earlier = self._words[at - 2] if at > 2 else ""
        if before in {"-v", "--value"} and self._follows_name(earlier, word):
            return True
        if self._follows_name(before, word) or (self._sets and earlier.startswith("http-basic")):
            return True
        return self._logs_in and ":" not in word and "/" not in word and looks_random(word)

    def _follows_name(self, before: str, word: str) -> bool:
        """Tell whether a word is the value of the bare name before it: set aws_secret_access_key X, password X."""
        if before == "bearer":
            return mixes(word) or looks_random(word)
        if self._sets:
            before = re.split(r"[/:]", before)[-1]  # npm config set //registry/:_authToken
        if _BARE_NAME.fullmatch(before) is None or not (names := _named(before, deep=self._sets)):
            return False
        is_password = any("password" in name or name in {"passwd", "passphrase"} for name in words_of(names))
        return hides(names, word) and (self._sets or is_password or mixes(word) or looks_random(word))


def _named(name: str, *, deep: bool) -> str:
    """Return a name if it is a secret's, or what of it is (`deep`: pypi-token.lab), empty for none."""
    if is_secret_name(name):
        return name
    above = name.rsplit(".", 1)[0]
    return above if deep and above != name and is_secret_name(above) and words_of(above)[-1] != "credential" else ""


def _follows_option(before: str, word: str) -> bool:
    """Tell whether a word is the value of a secret's option; -p of any program takes one where it looks like one."""
    if before in {"-p", "-P", "-k"} and _SIGNED_KEY.fullmatch(word):
        return looks_random(word) or not re.fullmatch(r"[\w\-+.=]*", word)
    is_option = before.startswith("-") and len(before) > 2 and "=" not in before
    return is_option and _is_value_of(before.lstrip("-"), word)


def _is_value_of(option: str, word: str) -> bool:
    if not hides(option, word) or (_SPECIFIED.match(word) and words_of(option)[-1] in {"secret", "secrets"}):
        return False
    return "pass" in option.lower() or not _SETTING_WORD.fullmatch(word)


def _windows(word: str) -> str | None:
    """Return /p:X and /password:X without X."""
    found = _WINDOWS.fullmatch(word)
    is_secret = found and (found["name"] in {"p", "rp", "gp"} or hides(found["name"], found["value"]))
    return _all_but_first(found) if is_secret else None


def _all_but_first(found: re.Match[str] | None) -> str | None:
    return None if found is None else f"{found[1]}{HIDDEN}"
