"""Gates as they are written: `epoch_time:+5%`, `util.mean:-10pp`, `xid.fatal:0` (the grammar is in docs/compare.md).

Every limit has its unit, but what is counted has none. A gate that nothing could fail, or nothing could pass, is none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Literal

from gpu_report.analyse.compare.metrics import ALSO_CALLED, METRICS, UTILISATION, WORK, Metric
from gpu_report.errors import UsageError
from gpu_report.model import Gate

Level = Literal["fail", "warn"]
Kind = Literal["share", "amount", "most", "least"]

# Counted of a run as a whole (analyse/compare/gate_counts.py): what may follow the dot, the first where nothing does.
COUNTS: Mapping[str, tuple[str, ...]] = {
    "xid": ("fatal", "any"),
    "findings": ("critical", "warning", "new"),
    "coverage": ("share",),
}
UNITS: Mapping[str, Mapping[str, float]] = {
    "s": {"s": 1, "ms": 0.001, "min": 60, "h": 3600},
    "ms": {"ms": 1, "s": 1000},
    "MiB": {"MiB": 1, "GiB": 1024},
    "J": {"J": 1, "kJ": 1000, "Wh": 3600, "kWh": 3_600_000},
    "J/image": {"J": 1, "mJ": 0.001, "J/image": 1},
    "images/s": {"images/s": 1},
    "%": {"%": 1},
}
WHOLE = 100.0  # percent: no share of a run is more

# What is asked of a run where nobody says otherwise: the first of each may not go unmeasured.
COMPARE_FAILS_ON = ("epoch_time:+5%", "data_wait_share:+5pp", "xid.fatal:0", "findings.critical:0")
COMPARE_WARNS_ON = ("util:-10%", "energy:+10%", "validation_time:+25%", "memory_peak:+10%", "findings.new:0")
CHECK_FAILS_ON = ("findings.critical:0", "xid.fatal:0")
# Whoever names a limit of his own does not ask for crashes to go through: these stay beside all others.
CRASHES = frozenset({("findings", "critical"), ("xid", "fatal")})
CHECK_WARNS_ON = ("util:40%", "coverage:95%", "findings.warning:0")
# Of runs that call models. How many images come a second is the callers' doing, too: that only warns.
CALLS_FAIL_ON = ("latency.p95:+5%", "xid.fatal:0", "findings.critical:0")
CALLS_WARN_ON = ("images_per_s:-10%", "energy.per_image:+10%", "memory_peak:+10%", "findings.new:0")
CALLS_ALONE_WARN_ON = ("coverage:95%", "findings.warning:0")

_EXPRESSION = re.compile(
    r"(?P<metric>[a-z_]+)(?:\.(?P<statistic>[a-z0-9_]+))?\s*:\s*"
    r"(?P<sign><=|>=|[+\-\u2212])?\s*(?P<number>\d{1,12}(?:\.\d{1,9})?)\s*(?P<unit>[A-Za-z%/]*)"
)


def parse_gates(fail_on: Sequence[str], warn_on: Sequence[str]) -> tuple[Gate, ...]:
    """Return the gates of two lists of expressions; UsageError for one that cannot be understood."""
    return (*(parse_gate(text, "fail") for text in fail_on), *(parse_gate(text, "warn") for text in warn_on))


def default_gates(*, baseline: bool, of_calls: bool = False) -> tuple[Gate, ...]:
    """Return the gates of `compare` or, without a baseline, those of `check`; `of_calls` of a run that calls models."""
    fails = (CALLS_FAIL_ON if of_calls else COMPARE_FAILS_ON) if baseline else CHECK_FAILS_ON
    warns_alone = CALLS_ALONE_WARN_ON if of_calls else CHECK_WARNS_ON
    warns = (CALLS_WARN_ON if of_calls else COMPARE_WARNS_ON) if baseline else warns_alone
    must, *may = [parse_gate(text, "fail") for text in fails]
    return (must, *map(_optional, may), *(_optional(parse_gate(text, "warn")) for text in warns))


def chosen_gates(
    fail_on: Sequence[str], warn_on: Sequence[str], *, baseline: bool, of_calls: bool = False
) -> tuple[Gate, ...]:
    """Return the gates of both levels; a level for which nothing is named keeps its defaults, and its failures with it.

    Crashes fail whatever else is named. A default gives way to a gate on the same quantity that is named: who wants the
    epoch time to warn does not want it to fail.
    """
    named = parse_gates(fail_on, warn_on)
    taken = {_quantity(gate) for gate in named}
    levels = {gate.level for gate in named}
    defaults = [
        g
        for g in default_gates(baseline=baseline, of_calls=of_calls)
        if g.level not in levels or (g.metric, g.statistic) in CRASHES
    ]
    kept = [gate for gate in defaults if _quantity(gate) not in taken]
    return tuple(sorted((*named, *kept), key=lambda gate: gate.level != "fail"))


def _quantity(gate: Gate) -> tuple[str, str, bool]:
    """Return what a gate limits: a statistic of a metric, or the change of one from the baseline."""
    return gate.metric, gate.statistic, gate.limits_change


def parse_gate(text: str, level: Level = "fail") -> Gate:
    """Return a gate; UsageError that says what is wrong with it and what would be right."""
    found = _EXPRESSION.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"{text!r} is no gate: write METRIC:LIMIT, such as 'epoch_time:+5%' or 'xid.fatal:0'")
    name, statistic = _quantity_of(found)
    sign = (found["sign"] or "").replace("\u2212", "-")
    number, unit = float(found["number"]), found["unit"]
    if name in COUNTS:
        return _count(text, level, found, sign, number, unit)
    if name not in METRICS:
        near = get_close_matches(name, [*METRICS, *COUNTS], 1)
        hint = f"did you mean {near[0]}?" if near else f"known are {', '.join([*METRICS, *COUNTS])}"
        raise UsageError(f"gate {text!r}: there is no metric {name}; {hint}")
    metric = METRICS[name]
    statistic = _statistic(text, metric, statistic)
    kind, limit = (
        _change(text, metric, sign, number, unit) if sign in {"+", "-"} else _bound(text, metric, sign, number, unit)
    )
    gate = Gate(text.strip(), name, statistic, kind, limit, level)
    _check_range(gate, metric.unit)
    return gate


def _quantity_of(found: re.Match[str]) -> tuple[str, str | None]:
    """Return the metric and the statistic that are named; some metrics have a dot of their own: energy.per_image."""
    whole = f"{found['metric']}.{found['statistic']}"
    return (whole, None) if whole in METRICS else (found["metric"], found["statistic"])


def _check_range(gate: Gate, unit: str) -> None:
    """Refuse a limit that no run can break, or that every run breaks; UsageError."""
    is_share = unit == "%"
    if gate.kind in {"share", "amount"}:
        farthest = -1.0 if gate.kind == "share" else -WHOLE if is_share else None
        out = farthest is not None and gate.limit <= farthest
        if out or (gate.kind == "amount" and is_share and gate.limit >= WHOLE):
            raise UsageError(f"gate {gate.text!r} can never fail: nothing changes by that much")
        return
    least = gate.kind == "least"
    if gate.limit <= 0:
        never = "fail: nothing is less than none" if least else "pass: there is always some"
        raise UsageError(f"gate {gate.text!r} can never {never}")
    if is_share and (gate.limit > WHOLE or (gate.limit == WHOLE and not least)):
        never = "pass" if least else "fail"
        raise UsageError(f"gate {gate.text!r} can never {never}: there is no more than 100 %")


def _optional(gate: Gate) -> Gate:
    return Gate(gate.text, gate.metric, gate.statistic, gate.kind, gate.limit, gate.level, optional=True)


def _statistic(text: str, metric: Metric, named: str | None) -> str:
    if named is None:
        return metric.statistic
    statistic = ALSO_CALLED.get(named, named)
    if statistic not in metric.statistics:
        known = ", ".join(metric.statistics)
        raise UsageError(f"gate {text!r}: {metric.name} has no statistic {named}; it has {known}")
    return statistic


def _change(text: str, metric: Metric, sign: str, number: float, unit: str) -> tuple[Kind, float]:
    """Return a limit on the change from the baseline: a share of it, or an amount in the metric's unit."""
    if (metric.better, sign) in {("lower", "-"), ("higher", "+")}:
        other = "+" if sign == "-" else "-"
        raise UsageError(
            f"gate {text!r} would fail on an improvement, for {metric.name} is better {metric.better}: write {other}"
        )
    limit = -number if sign == "-" else number
    if unit == "%":
        return "share", limit / 100
    if unit == "pp" and metric.unit == "%":
        return "amount", limit
    if unit == "pp" or not unit or metric.unit == "%":
        units = "% (of the baseline) or pp" if metric.unit == "%" else _one_of(("%", *UNITS[metric.unit]))
        raise UsageError(f"gate {text!r}: say {units} after the number")
    return "amount", limit * _factor(text, metric.unit, unit)


def _bound(text: str, metric: Metric, sign: str, number: float, unit: str) -> tuple[Kind, float]:
    """Return a limit on the value itself; utilisation is wanted high, the cost of work low, the rest as it is."""
    if unit == "pp" or (unit == "%" and metric.unit != "%"):
        falls = metric.better == "higher" or metric.name == UTILISATION
        change = f"for a change from the baseline write {'-' if falls else '+'}{number:g}{unit}"
        raise UsageError(f"gate {text!r}: {change}, for a limit on the value itself say {_units(metric)}")
    if not unit:
        raise UsageError(f"gate {text!r}: say {_units(metric)} after the number")
    limit = number * _factor(text, metric.unit, unit)
    if sign:
        return ("most" if sign == "<=" else "least"), limit
    return ("most" if metric.better == "lower" or metric.name in WORK else "least"), limit


def _factor(text: str, unit: str, written: str) -> float:
    if written not in UNITS[unit]:
        raise UsageError(f"gate {text!r}: {written} is no unit of it; write {_one_of(tuple(UNITS[unit]))}")
    return UNITS[unit][written]


def _units(metric: Metric) -> str:
    return _one_of(tuple(UNITS[metric.unit]))


def _one_of(names: Sequence[str]) -> str:
    return " or ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def _count(text: str, level: Level, found: re.Match[str], sign: str, number: float, unit: str) -> Gate:  # noqa: PLR0913, PLR0917
    """Return a gate on what is counted of the run as a whole."""
    name, statistic = found["metric"], found["statistic"] or COUNTS[found["metric"]][0]
    if statistic not in COUNTS[name]:
        raise UsageError(f"gate {text!r}: {name} has {', '.join(COUNTS[name])}, no {statistic}")
    if name == "coverage":
        return _coverage(text, level, sign, number, unit)
    right = f"{name}.{statistic}:{number if sign == '+' else 0:g}"
    if unit:
        raise UsageError(
            f"gate {text!r}: {name}.{statistic} is counted and has no unit; write {name}.{statistic}:{number:g}"
        )
    if sign in {"+", "-"}:
        raise UsageError(f"gate {text!r}: how many there may be at most has no sign; write {right}")
    if sign == ">=":
        raise UsageError(
            f"gate {text!r} would fail on an improvement: write {name}.{statistic}:{number:g}, for at most"
        )
    if number != int(number):
        raise UsageError(f"gate {text!r}: {name}.{statistic} is counted in whole numbers; write {right}")
    return Gate(text.strip(), name, statistic, "most", number, level)


def _coverage(text: str, level: Level, sign: str, number: float, unit: str) -> Gate:
    """Return a gate on how much of the time was measured: at least so many percent."""
    if sign not in {"", ">="} or unit != "%":
        raise UsageError(f"gate {text!r}: coverage is wanted high; write it in %, such as coverage:95%")
    gate = Gate(text.strip(), "coverage", "share", "least", number, level)
    _check_range(gate, "%")
    return gate
