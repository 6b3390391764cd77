"""Where in a sentence a machine is named: beside a port, before an address, behind a word such as `host`."""

import re
from collections.abc import Iterator, Sequence

from gpu_report.render.redaction.yolo_arguments import YOLO_ARGUMENTS

REGISTERED_PORTS = 1024  # below them, `iter:12` is no host and its port ...
KNOWN_PORTS = frozenset({22, 80, 111, 443, 445, 873})  # ... but for these
LONGEST_HOST = 253

_NAME = r"[A-Za-z0-9][\w-]{0,62}(?:\.[\w-]{1,63}){0,8}"
# node1:29500, [node1]:29500, node1:4711:4720 (NCCL's lines: host, process, thread)
_BESIDE_PORT = re.compile(
    rf"(?<![\w.:\-])(?<!\w/)\[?(?P<host>{_NAME})\]?:(?P<port>\d{{2,5}})(?=(?::\d+)?(?![\w:]|\.\d))"
)
_OTHERWISE = (
    re.compile(rf"(?<![\w.:/\-])(?P<host>{_NAME})(?=/(?:\d{{1,3}}\.){{3}}\d)"),  # node1/10.0.0.4, as Java writes
    re.compile(rf"\(\s?['\"](?P<host>{_NAME})['\"],\s{{0,3}}\d{{2,5}}\s?\)"),  # ('node1', 29500)
    re.compile(
        rf"(?i)\b(?:host(?:_?name)?|server|master(?:_addr)?|endpoint|peer|node)\s?=\s?['\"]?(?P<host>{_NAME})(?![\w(])"
    ),
    re.compile(rf"(?<![\w.:/\-])(?P<host>{_NAME})(?=<\d{{2,5}}>)"),  # node1<43567>, as NCCL writes
    re.compile(
        r"(?i)\b(?:(?:resolve )?host:|resolve|lookup|host name|unknown host|server at)\s+['\"]?"
        rf"(?P<host>{_NAME})(?=['\"\s.,;:)]|$)"
    ),
    re.compile(rf"(?i)\b(?:host|to|server|with|on)\s+['\"]?(?P<host>{_NAME})['\"]?,?\s+(?:on )?port\s+\d"),
)
_OPTION = re.compile(r"--?[\w-]*?(?:addr|address|endpoint|host|hosts|hostname|nodelist|server)(?:=(?P<value>.+))?")
_FILE = re.compile(
    r".*\.(?:py|pyx|cu|cuh|c|cc|cpp|h|hpp|js|ts|html|css|rs|go|sh|ya?ml|json|md|txt|log|cfg|ini|toml|csv|so|pt)", re.I
)
_NO_HOST = re.compile(  # a time, a disk, a network's card, a program
    r"\d{4}-\d\d-\d\dt\d\d|sd[a-z]\d*|nvme\d+(?:n\d+(?:p\d+)?)?|(?:eth|eno|ib|cuda|rank|cpu)\d+|python[\d.]*"
)
# Fields of kernel lines and errors that a number follows, and words that stand before a host.
_NO_HOSTS = YOLO_ARGUMENTS | frozenset(
    (  # noqa: SIM905 - a word a line is seventy lines
        """
        addr address at bus bytes channel cmd code col column comm count cpu dev device engine errno error exit fd gid
        gpu group host id index info inode iter iteration job key lba len length level limit line lineno loc localhost
        lock md5 mem message name no node number offset op order page pci pid port ppid process qid queue rank reason
        remote request retry row sector sequence server session sha256 signal size slot socket state status step tag
        task temp the thread tid time token total type uid unit url user value version world xid
        """
    ).split()
)


def hosts_in_text(text: str, common: frozenset[str]) -> Iterator[str]:
    """Yield the names of machines that a text tells of; `common` are words of everyday use, which are none."""
    for found in _BESIDE_PORT.finditer(text):
        if _is_host(found["host"], int(found["port"]), common):
            yield found["host"]
    for pattern in _OTHERWISE:
        for found in pattern.finditer(text):
            if _is_host(found["host"], REGISTERED_PORTS, common):
                yield found["host"]


def hosts_in_command(words: Sequence[str], common: frozenset[str]) -> Iterator[str]:
    """Yield the names of machines that a command is given: --master_addr node1, --rdzv-endpoint=node1:29500."""
    for before, word in zip(("", *words), words, strict=False):
        option = _OPTION.fullmatch(word)
        is_value = _OPTION.fullmatch(before) and not word.startswith("-")
        value = option["value"] if option and option["value"] else word if is_value else ""
        for name in re.findall(rf"(?<![\w.:/\-]){_NAME}", value):
            if _is_host(name, REGISTERED_PORTS, common):
                yield name
        yield from hosts_in_text(word, common)


def _is_host(name: str, port: int, common: frozenset[str]) -> bool:
    """Tell whether a name before a port is a machine's: it has a letter, is no file, and no field of a kernel line."""
    word = name.lower()
    if len(name) > LONGEST_HOST or word in common or word in _NO_HOSTS:
        return False
    if _FILE.fullmatch(word) or _NO_HOST.fullmatch(word) or not any(map(str.isalpha, word)):
        return False
    return re.search(r"[\d.-]", word) is not None or port >= REGISTERED_PORTS or port in KNOWN_PORTS
