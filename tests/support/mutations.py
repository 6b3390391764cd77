"""Mutations of the files of a run folder and of logs, by their structure: cells, columns, keys, values, lines, bytes.

All are drawn from a `Random`, so that its seed makes the same file again.
"""

import json
from collections.abc import Callable
from random import Random
from typing import Any

from support.odd_values import NUMBERS, TEXTS, VALUES, YAML

Mutation = Callable[[Random, bytes], bytes]

DEEP = 100_000  # of brackets: more than any parser of ours may recurse
NESTED = ("@@deep list@@", "@@deep object@@", "@@digits@@")  # what json.dumps could not write
FACTORS = (1e6, -1.0, 1e-6, 1e300, 0.0, 1e3, -1e-300, 1e12, 2.0)


def mutate(pick: Random, name: str, data: bytes) -> bytes:
    """Return a file with one mutation that suits its name."""
    suffix = name.rpartition(".")[2]
    by_structure = _STRUCTURED.get(suffix, (mutate_text,))
    mutation = pick.choice((*by_structure, *by_structure, *by_structure, mutate_bytes))
    try:
        return mutation(pick, data)
    except (ValueError, IndexError, AttributeError, TypeError, RecursionError):  # an earlier one left no structure
        return mutate_bytes(pick, data)


# --- bytes, whatever they are -------------------------------------------------------------------------------------


def mutate_bytes(pick: Random, data: bytes) -> bytes:
    """Return bytes cut, flipped, doubled, or in another encoding."""
    at, to = sorted(pick.randrange(len(data) + 1) for _ in range(2))
    text = data.decode("utf-8", "replace")
    odd = bytes(pick.randrange(256) for _ in range(pick.choice([1, 4, 64])))
    choices: tuple[Callable[[], bytes], ...] = (
        lambda: data[:at],
        lambda: data[at:],
        lambda: data[:at] + data[to:],
        lambda: data[:to] + data[at:],
        lambda: data[:at] + odd + data[at:],
        lambda: data[:at] + odd + data[at + len(odd) :],
        lambda: data[:at] + b"\0" * pick.choice([1, 512, 4096]) + data[to:],
        lambda: data * pick.choice([2, 5]),
        lambda: b"",
        lambda: odd,
        lambda: b"\xef\xbb\xbf" * pick.choice([1, 2]) + data,
        lambda: text.encode(pick.choice(["utf-16", "utf-16-be", "utf-32", "utf-7", "cp037"]), "replace"),
        lambda: text.replace("\n", pick.choice(["\r\n", "\r", "\n\n", "\u2028", "\x0b", ""])).encode(),
        lambda: data.replace(b'"', b"'"),
        lambda: data.rstrip(b"\n"),
    )
    return pick.choice(choices)()


def mutate_text(pick: Random, data: bytes) -> bytes:
    """Return lines dropped, doubled, shuffled or joined, or with an odd word or number in the place of one."""
    lines = data.decode("utf-8", "replace").split("\n")
    at = pick.randrange(len(lines))
    line = lines[at]
    words = line.split(" ")
    choices: tuple[Callable[[], list[str]], ...] = (
        lambda: [*lines[:at], *lines[at + 1 :]],
        lambda: [*lines[:at], *[line] * pick.choice([2, 500]), *lines[at + 1 :]],
        lambda: pick.sample(lines, len(lines)),
        lambda: lines[::-1],
        lambda: [*lines[:at], line + "".join(lines[at + 1 : at + 2]), *lines[at + 2 :]],
        lambda: [*lines[:at], pick.choice(TEXTS), *lines[at:]],
        lambda: [*lines[:at], _replaced(pick, words, " "), *lines[at + 1 :]],
        lambda: [*lines[:at], _with_number(pick, line), *lines[at + 1 :]],
        lambda: [*lines[:at], line[: pick.randrange(len(line) + 1)], *lines[at + 1 :]],
        lambda: [_with_number(pick, each) if pick.random() < 0.2 else each for each in lines],
    )
    return _encoded("\n".join(pick.choice(choices)()))


def _replaced(pick: Random, parts: list[str], joint: str) -> str:
    at = pick.randrange(len(parts))
    return joint.join([*parts[:at], pick.choice((*TEXTS, *NUMBERS)), *parts[at + 1 :]])


def _with_number(pick: Random, line: str) -> str:
    """Return a line with an odd number in the place of its digits from some place on."""
    starts = [at for at in range(len(line)) if line[at].isdigit() and not line[at - 1 : at].isdigit()]
    if not starts:
        return line + pick.choice(NUMBERS)
    begin = pick.choice(starts)
    end = next((at for at in range(begin, len(line)) if not line[at].isdigit()), len(line))
    return line[:begin] + pick.choice(NUMBERS) + line[end:]


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


# --- CSV ----------------------------------------------------------------------------------------------------------

Rows = list[list[str]]


def mutate_csv(pick: Random, data: bytes) -> bytes:
    """Return a table with an odd cell, column, row or header."""
    text = data.decode("utf-8", "replace")
    rows = [line.split(",") for line in text.rstrip("\n").split("\n")]
    header, body = rows[0], rows[1:]
    mutation = pick.choice((_cells, _column, _scaled, _rows, _header, _cells, _column))
    header, body = mutation(pick, header, body)
    joint = pick.choice([","] * 30 + [";", "\t", ", ", '","'])
    return _encoded("\n".join(joint.join(row) for row in [header, *body]) + pick.choice(["\n"] * 5 + [""]))


def _odd_cell(pick: Random) -> str:
    return pick.choice((*NUMBERS, *TEXTS))


def _cells(pick: Random, header: list[str], body: Rows) -> tuple[list[str], Rows]:
    share = pick.choice([0.0, 0.02, 0.3])
    hit = pick.randrange(max(sum(map(len, body)), 1))
    odd, count, changed = _odd_cell(pick), 0, []
    for row in body:
        changed.append([odd if count + n == hit or pick.random() < share else cell for n, cell in enumerate(row)])
        count += len(row)
    return header, changed


def _column(pick: Random, header: list[str], body: Rows) -> tuple[list[str], Rows]:
    at = pick.randrange(len(header))
    cells = [row[at] if at < len(row) else "" for row in body]
    one, other = _odd_cell(pick), _odd_cell(pick)
    columns: tuple[Callable[[], list[str]], ...] = (
        lambda: [one] * len(cells),
        lambda: pick.sample(cells, len(cells)),
        lambda: cells[::-1],
        lambda: [pick.choice([one, other, cell]) for cell in cells],
        lambda: [one if n % 2 else other for n in range(len(cells))],
        lambda: [str(n * n) for n in range(len(cells))],
        lambda: [cells[0]] * len(cells) if cells else [],
        lambda: [str(pick.gauss(0, 10.0 ** pick.randrange(-5, 20))) for _ in cells],
        lambda: [row[pick.randrange(len(row))] for row in body],
    )
    new = pick.choice(columns)()
    return header, [[*row[:at], cell, *row[at + 1 :]] for row, cell in zip(body, new, strict=True)]


def _scaled(pick: Random, header: list[str], body: Rows) -> tuple[list[str], Rows]:
    """Return columns times a number, or moved by one; mostly those of time."""
    times = [at for at, name in enumerate(header) if name in {"wall_s", "mono_s", "time", "timestamp"}]
    some = pick.sample(range(len(header)), min(3, len(header)))
    ats = pick.choice([times, times, times[:1], times[1:], some, range(len(header))])
    factor, offset = pick.choice(FACTORS), pick.choice([0.0, 0.0, 1e9, -1e12, 1e300, 3600.0])
    since = pick.choice([0, 0, pick.randrange(len(body) + 1)])

    def scaled(cell: str) -> str:
        try:
            return str(float(cell) * factor + offset)
        except ValueError:
            return cell

    return header, [
        [scaled(cell) if at in ats and n >= since else cell for at, cell in enumerate(row)]
        for n, row in enumerate(body)
    ]


def _rows(pick: Random, header: list[str], body: Rows) -> tuple[list[str], Rows]:
    at, to = sorted(pick.randrange(len(body) + 1) for _ in range(2))
    row = pick.choice(body)
    choices: tuple[Callable[[], Rows], ...] = (
        lambda: body[:at],
        lambda: body[at:],
        lambda: body[:at] + body[to:],
        lambda: body * pick.choice([2, 3]),
        lambda: [*body, *[row] * 300],
        lambda: pick.sample(body, len(body)),
        lambda: body[::-1],
        lambda: [*body[:at], row[: pick.randrange(len(row) + 1)], *body[at:]],
        lambda: [*body[:at], row * pick.choice([2, 50]), *body[at:]],
        lambda: [*body[:at], [_odd_cell(pick) for _ in row], *body[at:]],
        lambda: [*body[:at], header, *body[at:]],
        lambda: [[*each, *[_odd_cell(pick)] * pick.choice([1, 30])] for each in body],
        lambda: [each for each in body if pick.random() < 0.3],
        lambda: [[*each[:2], str(pick.randrange(300)), *each[3:]] for each in body],  # GPUs, or readings
        lambda: [row],
    )
    return header, pick.choice(choices)()


def _header(pick: Random, header: list[str], body: Rows) -> tuple[list[str], Rows]:
    at, to = pick.randrange(len(header)), pick.randrange(len(header))
    choices: tuple[Callable[[], tuple[list[str], Rows]], ...] = (
        lambda: ([*header[:at], *header[at + 1 :]], [[*row[:at], *row[at + 1 :]] for row in body]),
        lambda: ([*header[:at], *header[at + 1 :]], body),
        lambda: ([*header[:at], pick.choice(TEXTS), *header[at + 1 :]], body),
        lambda: ([*header[:at], header[to], *header[at + 1 :]], body),
        lambda: (pick.sample(header, len(header)), body),
        lambda: ([f" {name} " for name in header], body),
        lambda: ([f'"{name}"' for name in header], body),
        lambda: ([name.upper() for name in header], body),
        lambda: (header * 2, body),
        lambda: ([*header, *["c"] * 3000], body),
        lambda: (body[0] if body else [], body),
        lambda: ([""], [header, *body]),
    )
    return pick.choice(choices)()


# --- JSON ---------------------------------------------------------------------------------------------------------

Where = tuple[Any, Any]  # a list or an object, and an index or a key in it


def mutate_json(pick: Random, data: bytes) -> bytes:
    """Return an object with odd values, keys and types at any path."""
    value = json.loads(data)
    for _ in range(pick.choice([1, 1, 3, 10])):
        _mutate_value(pick, value)
    return _dumped(pick, value)


def mutate_jsonl(pick: Random, data: bytes) -> bytes:
    """Return lines of JSON with one mutated, or all of them in the same way."""
    lines: list[Any] = [json.loads(line) for line in data.decode("utf-8", "replace").splitlines() if line]
    at, key = pick.randrange(len(lines)), pick.choice([*pick.choice(lines)])
    odd, factor = pick.choice(VALUES), pick.choice(FACTORS)
    choices: tuple[Callable[[], object], ...] = (
        lambda: _mutate_value(pick, lines[at]),
        lambda: _mutate_value(pick, lines[at]),
        lambda: [_mutate_value(pick, line) for line in lines if line and pick.random() < 0.3],
        lambda: [line.update({key: odd}) for line in lines],
        lambda: [line.update({key: pick.choice(VALUES)}) for line in lines],
        lambda: [line.pop(key, None) for line in lines],
        lambda: [_scale(line, ("wall_s", "mono_s"), factor) for line in lines],
        lambda: [_scale(line, (key,), factor) for line in lines],
        lambda: pick.shuffle(lines),
        lines.reverse,
        lambda: lines.extend([lines[at]] * pick.choice([1, 400])),
        lambda: lines.insert(at, pick.choice(VALUES)),
        lambda: lines.insert(at, {**lines[at], **pick.choice(lines)}),
        lambda: [line.update({"kind": pick.choice(lines).get("kind")}) for line in lines[at:]],
        lambda: lines.__delitem__(slice(at, pick.randrange(at, len(lines)) + 1)),
    )
    pick.choice(choices)()
    return b"\n".join(_dumped(pick, line) for line in lines) + pick.choice([b"\n"] * 4 + [b""])


def _scale(line: dict[str, Any], names: tuple[str, ...], factor: float) -> None:
    line.update({name: line[name] * factor for name in names if isinstance(line.get(name), int | float)})


def _mutate_value(pick: Random, value: Any) -> None:
    """Change something within a list or an object, in its place."""
    places = _places(value)
    if not places:
        return
    (holder, at), (other, from_at) = pick.choice(places), pick.choice(places)
    old = holder[at]
    choices: tuple[Callable[[], object], ...] = (
        lambda: holder.__setitem__(at, pick.choice(VALUES)),
        lambda: holder.__setitem__(at, pick.choice(VALUES)),
        lambda: holder.__setitem__(at, pick.choice(NESTED)),
        lambda: holder.__delitem__(at),
        lambda: holder.__setitem__(at, json.loads(json.dumps(other[from_at]))),
        lambda: holder.__setitem__(at, [old]),
        lambda: holder.__setitem__(at, {"x": old}),
        lambda: holder.__setitem__(at, str(old)),
        lambda: holder.__setitem__(at, old * pick.choice(FACTORS) if isinstance(old, float) else old),
        lambda: holder.__setitem__(at, [old] * pick.choice([2, 1000])),
        lambda: holder.extend([old] * 300) if isinstance(holder, list) else holder.update({pick.choice(TEXTS): old}),
    )
    pick.choice(choices)()


def _places(value: Any) -> list[Where]:
    """Return every place within a value."""
    if not isinstance(value, list | dict):
        return []
    ats = range(len(value)) if isinstance(value, list) else list(value)
    here: list[Where] = [(value, at) for at in ats]
    return [*here, *(place for at in ats for place in _places(value[at]))]


def _dumped(pick: Random, value: object) -> bytes:
    text = json.dumps(value, ensure_ascii=pick.random() < 0.5)
    long_ones = "[" * DEEP + "]" * DEEP, '{"a":' * DEEP + "1" + "}" * DEEP, "9" * 5000
    for mark, long in zip(NESTED, long_ones, strict=True):
        text = text.replace(f'"{mark}"', long)
    return _encoded(text)


# --- YAML ---------------------------------------------------------------------------------------------------------


def mutate_yaml(pick: Random, data: bytes) -> bytes:
    """Return arguments with an odd value or key, or without one."""
    lines = data.decode("utf-8", "replace").splitlines()
    at = pick.randrange(len(lines))
    key, _, value = lines[at].partition(":")
    odd = pick.choice((*YAML, *NUMBERS, *TEXTS))
    choices: tuple[Callable[[], list[str]], ...] = (
        lambda: [*lines[:at], f"{key}: {odd}", *lines[at + 1 :]],
        lambda: [*lines[:at], f"{key}: {odd}", *lines[at + 1 :]],
        lambda: [*lines[:at], f"{odd}: {value}", *lines[at + 1 :]],
        lambda: [*lines[:at], *lines[at + 1 :]],
        lambda: [*lines, lines[at]],
        lambda: [f"{line.partition(':')[0]}: {odd}" for line in lines],
        lambda: [f"{line.partition(':')[0]}: {pick.choice(YAML)}" for line in lines],
        lambda: [f"{key}: {'[' * 3000}"],
        lambda: [*lines, *(f"k{n}: &k{n} [*k{n - 1}, *k{n - 1}]" if n else "k0: &k0 [1, 1]" for n in range(40))],
        lambda: ["  " + line if pick.random() < 0.3 else line for line in lines],
        lambda: [odd],
    )
    return _encoded("\n".join([*pick.choice(choices)(), ""]))


_STRUCTURED: dict[str, tuple[Mutation, ...]] = {
    "csv": (mutate_csv, mutate_csv, mutate_csv, mutate_text),
    "json": (mutate_json,),
    "jsonl": (mutate_jsonl, mutate_jsonl, mutate_jsonl, mutate_text),
    "yaml": (mutate_yaml,),
}
