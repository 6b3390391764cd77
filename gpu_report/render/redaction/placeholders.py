"""Words for what must not be told: the same thing gets the same placeholder, so that two can still be distinguished.

A placeholder says what stood there and which one it was: [host 1], [folder 2]/[file 1].yaml. What is looked for is
known either from a field that holds it (a host, a command, a path) or by its looks (an address, a serial number, a path
in a sentence). Words of everyday use are never looked for in sentences: a machine called `train` must not blank the
word.
"""

import contextlib
import ipaddress
import re
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath

from gpu_report.catalogue import CAUSES
from gpu_report.render.recorder_events import WHAT
from gpu_report.render.redaction.hosts import hosts_in_command, hosts_in_text
from gpu_report.render.redaction.yolo_arguments import YOLO_ARGUMENTS
from gpu_report.wording import exception_words

LEAST_LETTERS = 3  # a shorter name is hidden where it stands, but not looked for within sentences
LONGEST_TEXT = 8192  # characters: a longer text is no sentence of anybody, and is hidden as a whole
_KERNEL_NAME_LETTERS = 15  # of a process's name, which is all that the kernel keeps

# Places that every machine has: they tell nothing about whose it is.
_COMMON_PLACES = re.compile(
    r"/(?:proc|sys)(?:/[\w.:-]+)*|/(?:usr/)?(?:s?bin|lib|lib64)(?:/[\w.+-]+)?|/dev(?:/[\w.-]+)?|/var/log(?:/[\w.-]+)?"
    r"|/(?:tmp|etc|mnt|home|root|usr|data|datasets|workspace)/?"
)
_COMMON_SOURCES = frozenset({"none", "overlay", "tmpfs", "shm", "udev", "rootfs", "devtmpfs", "systemd-1"})
_COMMON_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
        and batch bin busy cache call calls checkpoint cloud computer conda cpu cuda data dataset datasets
        default detect dev disk docker drop energy epoch exp file files gpu gpus home host idle image images
        inference job jobs kernel labels laptop latency loader localhost log logs loss machine main memory mnt
        model models name names node none nvidia oom output postprocess power predict preprocess process
        project projects python root run runs server share slow src storage test tests the time tmp track
        train trainer training ubuntu user users val validation venv vm weights work worker workers workspace
        workstation xid yolo
        """,
    )
)
_OUR_CAUSES = [text for cause in CAUSES.values() if cause.of_findings for text in (cause.id, cause.name)]
_OUR_WORDS = frozenset(re.findall(r"[a-z]+", " ".join((*_OUR_CAUSES, *WHAT.values())).lower()))
_KNOWN_PROGRAMS = re.compile(
    r"(?:python[\d.]*|pt_main_thread|yolo|torchrun|accelerate|(?:ba|z|da)?sh|uv|conda|jupyter|ipython|gpu-report"
    r"|nvidia-smi|Xorg)"
)
_PLAIN_VALUE = re.compile(
    r"""
      [-+\d.,eE\[\]\ :]* | \d+(?:\.\w+)*(?:\+\w+)?             # numbers, lists of them; versions
    | cuda(?::\d+)? | cpu | mps | auto | true | false | none | null | ram | disk | default
    | train | val | test | predict | track | export | detect | segment | classify | pose | obb
    | sgd | musgd | adam | adamw | adamax | nadam | radam | rmsprop | randaugment | autoaugment | augmix | flip | mixup
    | pt | torchscript | onnx | openvino | engine | coreml | ncnn | tflite | saved_model | pb | paddle | mnn | rknn
    | \w{2,20}ExecutionProvider                                # of ONNX Runtime
    | bicubic | bilinear | nearest
    | yolo[\w-]*\.(?:pt|yaml) | coco[\w-]*\.yaml | (?:bot|byte|track)\w*\.yaml
    | NVIDIA\ [\w\ -]+ | Tesla\ [\w\ -]+                       # a GPU's model
    """,
    re.VERBOSE | re.IGNORECASE,
)
_STEP = r"[^\s/\\'\"<>|:;,()\[\]{}=*?`]{1,255}"  # of a path: what stands between two slashes
_PATH = re.compile(
    rf"(?<![\w.\]/])(?:~[\w-]*|\.{{1,2}}|[A-Za-z]:)?(?:[/\\]{{1,2}}{_STEP})+[/\\]?"  # from the root, home or here
    rf"|(?<![\w/\]])(?:{_STEP}/)+[\w.@+-]{{1,255}}\.[A-Za-z]\w{{0,5}}(?!\w)"  # runs/detect/best.pt, but not images/s
    rf"|(?<![\w/\]])(?:{_STEP}/){{2,}}{_STEP}"
)
_HOME = re.compile(r"[/\\](?:home|Users)[/\\]{1,2}([^/\\\s'\"]{1,64})")
_URL = re.compile(r"\b[a-z][a-z0-9+.-]{1,20}://[^\s'\"<>]+", re.IGNORECASE)
_MAIL = re.compile(r"[\w.+-]{1,64}@[A-Za-z0-9][\w.-]{0,253}")
_UUID = re.compile(r"\b(?:GPU-|MIG-){0,2}[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE)
_LONG_HEX = re.compile(r"\b[0-9a-f]{24,}\b", re.IGNORECASE)
_SERIAL = re.compile(
    r"(\b(?:serial(?:[ _-]?(?:number|no\.?))?|s/n)\s{0,3}[:=]?\s{0,3})([A-Z0-9-]{0,32}\d[A-Z0-9-]{3,})", re.I
)
_MAC = re.compile(r"\b(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}\b", re.IGNORECASE)
_IP = re.compile(  # a port may follow
    r"(?<![\w:.])(?:(?:\d{1,3}\.){3}\d{1,3}|[0-9a-f:]{0,39}::(?:[0-9a-f]{1,4}:){0,5}(?:\d{1,3}\.){3}\d{1,3}"
    r"|[0-9a-f:]{0,39}::[0-9a-f:]{0,39}|(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4})(?!\w)(?!:(?!\d{1,5}(?!\w)))",
    re.IGNORECASE,
)
_WITH_PORT = re.compile(r"(\[(?:host|address) \d+\]\]?):(\d{1,5})(?!\d)")
_DOMAIN = re.compile(
    r"\b(?:[a-z0-9][a-z0-9-]{0,62}\.){1,8}"
    r"(?:com|org|net|edu|gov|io|ai|local|lan|internal|intranet|corp|home|arpa|example)\b",
    re.IGNORECASE,
)
_REMOTE = re.compile(r"(?<![\w/.])[A-Za-z0-9][\w.-]{1,253}(?=:/(?!/))")  # filer:/export
_SERVER = re.compile(r"(?<=server )[A-Za-z0-9][\w.-]{0,253}(?= (?:not responding|OK|timed out)|:)")
_LOGGED_BY = re.compile(
    r"^((?:\w{3} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-][\d:]+)?) )(\S+)(?= \S+: )", re.M
)
_KEY = re.compile(r"[\"']([A-Za-z_]\w{2,80})[\"']\s?:")  # of a mapping, which is a value as text
_FILE = re.compile(r".+\.[A-Za-z]\w{0,5}", re.DOTALL)


class Hider:
    """Hides what it is told of of and what it finds, in text after text."""

    def __init__(self) -> None:
        self._placeholders: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}
        self._paths: dict[str, str] = {}  # by what they were, in small letters
        self._words: dict[str, str] = {}
        self._exceptions: dict[str, str] = {}

    # --- what a field is known to hold ----------------------------------------------------------------------

    def host(self, name: str) -> str:
        """Return the placeholder of a machine's name, which is then looked for everywhere, also without its domain."""
        short = name.lower().split(".")[0]
        hidden = self._placeholders.get(("host", short)) or self._hidden("host", name.lower())
        self._placeholders["host", short] = hidden
        self._learn(name, hidden)
        self._learn(short, hidden)
        return hidden

    def user(self, name: str) -> str:
        """Return the placeholder of a person's account."""
        hidden = self._hidden("user", name)
        self._learn(name, hidden)
        return hidden

    def name(self, name: str) -> str:
        """Return the placeholder of a name that somebody gave: of a run, a project.

        One made of letters alone is not looked for in sentences, whose words it may be (`healthy`); in paths and
        commands it is hidden with them.
        """
        hidden = self._hidden("name", name)
        if not name.isalpha():
            self._learn(name, hidden)
        return hidden

    def command(self, words: tuple[str, ...]) -> tuple[str, ...]:
        """Return a command line as its program and one placeholder for all of its arguments."""
        if not words:
            return ()
        for host in hosts_in_command(words, _COMMON_WORDS):
            self.host(host)
        for word in words[1:]:
            if PurePosixPath(word).suffix and not _PLAIN_VALUE.fullmatch(word):
                self._learn(word, self._file(PurePosixPath(word).name) if "/" not in word else self.path(word))
        arguments = (self._hidden("arguments", " ".join(words[1:])),) if words[1:] else ()
        return (self.program(words[0]), *arguments)

    def process(self, name: str) -> str:
        """Return a process's name, which may be its whole command line, without what tells more than its program."""
        hidden = " ".join(self.command(tuple(name.split())))
        self._learn(name, hidden)
        return hidden

    def function(self, name: str) -> str:
        """Return a placeholder for a function of the user's."""
        hidden = self._hidden("function", name)
        self._learn(name, hidden)
        return hidden

    def code_file(self, path: str) -> str:
        """Return a placeholder for a file of the user's code, which sentences call by its last part."""
        hidden = self.path(path)
        name = PurePosixPath(path.replace("\\", "/")).name
        self._learn(name, PurePosixPath(hidden).name or hidden)
        return hidden

    def program(self, path: str) -> str:
        """Return a program's name where it is one that everybody has, else its placeholder."""
        name = PurePosixPath(path.replace("\\", "/")).name or path
        if _KNOWN_PROGRAMS.fullmatch(name):
            return name
        hidden = self._hidden("program", name)
        self._learn(name, hidden)
        self._learn(name[:_KERNEL_NAME_LETTERS], hidden)
        return hidden

    def program_of(self, who: str, name: str, user: str) -> tuple[str, str]:
        """Return the placeholders of a program and of its user, who are looked for as sentences call them (`who`).

        A short name, a number or a word of everyday use is hidden there, too.
        """
        hidden, of = self.program(name) if name else "", self.user(user) if user else ""
        if user:
            self._learn(who, f"{hidden or 'a program'} of user {of}")
        return hidden, of

    def path(self, path: str) -> str:
        """Return a path as the placeholders of its folder and its file; the file's ending stays."""
        if _COMMON_PLACES.fullmatch(path):
            return path
        for home in _HOME.finditer(path):
            self.user(home[1])
        steps = [step for step in re.split(r"[/\\]+", path) if step]
        has_file = bool(steps) and bool(_FILE.fullmatch(steps[-1]))
        folder, file = (steps[:-1], steps[-1]) if has_file else (steps, "")
        root = "/" if path.startswith("/") else ""
        where = self._hidden("folder", root + "/".join(folder)) if folder else ""
        hidden = "/".join(part for part in (where, self._file(file)) if part)
        if "/" in path or "\\" in path:
            self._learn(path.rstrip("/\\"), hidden)
        return hidden or path

    def source(self, source: str) -> str:
        """Return where a filesystem comes from: a disk such as every machine has, else the placeholder of all of it.

        It may be a pool, a bucket or a folder of a server, whose names look like any word; the server's is known by
        itself, too.
        """
        if _COMMON_PLACES.fullmatch(source) or source.lower() in _COMMON_SOURCES:
            return source
        self.text(source)
        hidden = self._hidden("filesystem", source)
        if _is_identifying(source.lower()):
            self._paths.setdefault(source.lower(), hidden)  # looked for before the parts of it are
        return hidden

    def value(self, value: str) -> str:
        """Return the value of an argument: a number or a word of YOLO's own stays, a path or a name is hidden."""
        if len(value) > LONGEST_TEXT:
            return self._hidden("text", value)
        for host in hosts_in_text(value, _COMMON_WORDS):
            self.host(host)
        if _URL.fullmatch(value) or _UUID.fullmatch(value) or _is_addresses(value):
            return self.text(value)
        for key in _KEY.findall(value) if value.startswith("{") else ():
            self.argument(key)
        if _PLAIN_VALUE.fullmatch(value) or value.lower() in _COMMON_WORDS:
            return value
        return self.path(value) if "/" in value or "\\" in value or _FILE.fullmatch(value) else self.name(value)

    def argument(self, name: str) -> str:
        """Return an argument's name: YOLO's own and ours stay, any other is one that somebody gave."""
        if name in YOLO_ARGUMENTS:
            return name
        hidden = self._hidden("argument", name)
        self._learn(name, hidden)
        return hidden

    def change(self, before: str, after: str) -> None:
        """Learn how a sentence tells of an argument that was changed: its values may be words like any other."""
        self._learn(f"{before} \u2192 {after}", f"{self.value(before)} \u2192 {self.value(after)}")

    # --- what is found in sentences -----------------------------------------------------------------------------

    def text(self, text: str) -> str:
        """Return a text without what was learned, and without what looks like an address, a path or a serial number."""
        if len(text) > LONGEST_TEXT:
            return self._hidden("text", text)
        for said, kept in self._exceptions.items():  # first: what is found in its words would break them up
            text = text.replace(said, kept)
        for home in _HOME.finditer(text):
            self.user(home[1])
        text = _replaced(self._paths, text)
        text = _LOGGED_BY.sub(lambda found: found[1] + self.host(found[2]), text)
        for pattern, kind in ((_URL, "address"), (_MAIL, "address"), (_UUID, "id"), (_MAC, "address")):
            text = pattern.sub(self._replacement(kind), text)
        text = _SERIAL.sub(lambda found: found[1] + self._hidden("serial", found[2]), text)
        for host in hosts_in_text(text, _COMMON_WORDS):
            text = re.sub(rf"(?<![\w.-]){re.escape(host)}(?![\w-])", self.host(host), text)
        text = _IP.sub(self._address, text)
        for pattern in (_REMOTE, _SERVER, _DOMAIN):
            text = pattern.sub(lambda found: self.host(found[0]), text)
        text = _WITH_PORT.sub(lambda found: f"{found[1]}:{self._hidden('port', found[2])}", text)
        text = _PATH.sub(lambda found: self._path_in_text(found[0]), text)
        text = _LONG_HEX.sub(self._replacement("id"), text)
        return _replaced(self._words, text)

    def _path_in_text(self, path: str) -> str:
        bare = path.rstrip(".")  # of the sentence, not of the path
        return self.path(bare) + path[len(bare) :]

    def _address(self, found: re.Match[str]) -> str:
        address, _, port = found[0].rpartition(":")
        for known, rest in ((found[0], ""), (address, f":{port}")):  # an IPv6 address may have a port behind it
            with contextlib.suppress(ValueError):
                ipaddress.ip_address(known)
                return self._hidden("address", known) + rest
        return found[0]

    def _replacement(self, kind: str) -> Callable[[re.Match[str]], str]:
        return lambda found: self._hidden(kind, found[0])

    def exception(self, error: str | None, message: str) -> None:
        """Learn what an exception said: in sentences its type stays, for its words may quote a path or data."""
        said = exception_words(error, message)
        for each in {said, said.replace("`", "'")} if message else ():
            self._exceptions[each] = exception_words(error, "")

    # --- the placeholders ----------------------------------------------------------------------------------------

    def _file(self, name: str) -> str:
        return self._hidden("file", name) + PurePosixPath(name).suffix if name else ""

    def _hidden(self, kind: str, secret: str) -> str:
        if (kind, secret) not in self._placeholders:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._placeholders[kind, secret] = f"[{kind} {self._counts[kind]}]"
        return self._placeholders[kind, secret]

    def _learn(self, secret: str, hidden: str) -> None:
        word = secret.lower()
        if not _is_identifying(word):
            return
        learned = self._paths if re.search(r"[/\\\s]", word) else self._words
        if secret != hidden:
            learned.setdefault(word, hidden)


def _is_addresses(value: str) -> bool:
    """Tell whether a value is a list of addresses, with ports or without, and nothing else."""
    return _IP.search(value) is not None and not _IP.sub("", value).strip(" \t[]:,;0123456789")


def _is_identifying(word: str) -> bool:
    """Tell whether a word, in small letters, may be looked for in sentences: it is none of everyday use."""
    apart = word not in _COMMON_WORDS and word not in _OUR_WORDS
    return LEAST_LETTERS <= len(word) <= LONGEST_TEXT and not word.isdigit() and apart


def _replaced(learned: Mapping[str, str], text: str) -> str:
    """Return a text with placeholders for what was learned, the longest first; a path goes on where a slash follows."""
    found = sorted((secret for secret in learned if secret in text.lower()), key=len, reverse=True)
    if not found:
        return text
    pattern = rf"(?<![\w\[])(?:{'|'.join(map(re.escape, found))})(?![\w\]]|[/\\]\w)"
    return re.sub(pattern, lambda match: learned[match[0].lower()], text, flags=re.IGNORECASE)
