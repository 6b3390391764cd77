"""Values that a file should not hold: numbers, texts, JSON of any type, YAML."""

from math import inf, nan
from typing import Any

NUMBERS = (
    *("nan", "NaN", "inf", "-inf", "Infinity", "1e308", "-1e308", "1e400", "1e-300", "5e-324", "-0", "-0.0", "0", "-1"),
    *("9" * 400, "-" + "9" * 400, "0." + "0" * 400 + "1", "9" * 5000, "1e99999", "2147483648", "4294967296", "65536"),
    *("9223372036854775808", "1e15", "253402300800", "-62135596801", "1800000000000", "0x1f", "1_000", "1,5", "+5"),
    "٣",
)
TEXTS = (
    *("", " ", "[N/A]", "null", "None", "true", "x", "=1+1", "%s{}%n", "../../etc/passwd", "</script><b>"),
    *("\\", '"', "'", "0,1", "train"),
    *(
        "\x00",
        "\x1b[31m",
        "\u202egnp.exe\u2066",
        "\u2028\u0085",
        "\ufeff",
        "\r",
        "\n",
        "a,b\tc;d",
        "{{ 7*7 }}",
        "é训👩🏽",
    ),
    *("L" * 100_000, "\u0301" * 400, "-" * 5000, "!!python/object:os.system", "*a", "&a [*a]", "__proto__"),
)
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, -0.0, 0.5, nan, inf, -inf, 1e308, -1e308, 1e-300, 10**400, -(10**400), 2**63),
    *([], {}, [[]], [None], [{}], {"": None}, {"wall_s": nan}, [1, "x", None], list(range(2000)), {"a": {"b": []}}),
    *("\ud800", "0", "1", "-1", "nan", "9" * 400, *TEXTS),
)
YAML = (
    *("!!timestamp 2001-99-99", "!!binary x", "!!bool maybe", "!!int x", "!!float x", "!!set {a}", "!!omap [a: 1]"),
    *("&a [*a, *a]", "<<: *x", "{a: {b: [c, d]}}", "[[[[[[1]]]]]]", "|\n  text\n  more", ">-\n x", "2001-01-01"),
    *("'", '"', "[", "{", "- 1", "%TAG", "@", "`", "0b1", ".inf", "-.inf", ".nan", "~", "yes"),
    *("? a", "0o17", "1:30:00", "1e3", "!!python/name:os", "!x y"),
)
