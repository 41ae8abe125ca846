"""Filters over metadata, as LangChain and LangGraph write them: a mapping of names to values or to comparisons.

| operator | holds when |
|---|---|
| `$eq`, `$ne` | the value equals, or does not equal; an absent one is unequal to everything but `None` |
| `$gt $gte $lt $lte` | both are numbers, both texts or both times, and the comparison holds |
| `$in`, `$nin` | the value is, or is not, one of a list |
| `$and`, `$or`, `$not` | all, one, or not one of these filters hold |

A value that cannot be compared passes no comparison; it is never an error.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from datetime import date, datetime, timezone
from numbers import Real
from typing import Any

__all__ = ["passes", "refuse_unknown"]

_ABSENT = object()


def passes(value: Any, wanted: Mapping[str, Any] | None) -> bool:
    """Whether the metadata ``value`` passes the filter ``wanted``.

    >>> passes({"lang": "de", "year": 2001}, {"lang": "de", "year": {"$gte": 2000}})
    True
    """
    return all(_condition(value, name, one) for name, one in (wanted or {}).items())


def refuse_unknown(wanted: Mapping[str, Any] | None) -> None:
    """Raises for a filter with an operator that there is not, before anything is searched.

    >>> refuse_unknown({"year": {"$above": 2000}})
    Traceback (most recent call last):
    ValueError: unknown operator '$above': expected one of $eq, $gt, $gte, $in, $lt, $lte, $ne, $nin, $and, $not, $or
    """
    if wanted is None:
        return
    if not isinstance(wanted, Mapping):
        raise TypeError(f"filter: expected a mapping of names to values, found {type(wanted).__name__}")
    for name, one in wanted.items():
        if name in ("$and", "$or"):
            if isinstance(one, (str, Mapping)) or not hasattr(one, "__iter__"):
                raise ValueError(f"{name}: expected a list of filters, found {type(one).__name__}")
            for part in one:
                refuse_unknown(part)
        elif name == "$not":
            refuse_unknown(one)
        elif str(name).startswith("$") and isinstance(one, (Mapping, list, tuple)):
            _refuse(name)
        elif isinstance(one, Mapping):
            for sign, other in one.items():
                if str(sign).startswith("$") and sign not in _OPERATORS:
                    _refuse(sign)
                if sign in ("$in", "$nin") and (isinstance(other, (str, bytes)) or not hasattr(other, "__iter__")):
                    raise ValueError(f"{sign}: expected a list of values, found {type(other).__name__}")


def _refuse(name: Any) -> None:
    known = ", ".join([*sorted(_OPERATORS), "$and", "$not", "$or"])
    raise ValueError(f"unknown operator {name!r}: expected one of {known}")


def _condition(value: Any, name: str, wanted: Any) -> bool:
    if name == "$and":
        return all(passes(value, one) for one in wanted)
    if name == "$or":
        return any(passes(value, one) for one in wanted)
    if name == "$not":
        return not passes(value, wanted)
    return _holds(_member(value, name), wanted)


def _member(value: Any, name: str) -> Any:
    """A member by its name, or by a path such as ``meta.topic``."""
    if not isinstance(value, Mapping):
        return _ABSENT
    if name in value:
        return value[name]
    first, dot, rest = name.partition(".")
    return _member(value[first], rest) if dot and first in value else _ABSENT


def _holds(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        if any(str(name).startswith("$") for name in wanted):
            return all(_OPERATORS[name](value, other) for name, other in wanted.items())
        return isinstance(value, Mapping) and passes(value, wanted)
    if isinstance(wanted, (list, tuple)):
        alike = isinstance(value, (list, tuple)) and len(value) == len(wanted)
        return alike and all(_holds(one, other) for one, other in zip(value, wanted))
    return _equal(value, wanted)


def _equal(value: Any, other: Any) -> bool:
    if value is _ABSENT:
        return other is None
    # True is 1 in Python, and neither is the other in JSON.
    if isinstance(value, bool) != isinstance(other, bool):
        return False
    pair = _comparable(value, other)
    return _is(operator.eq, *(pair if pair is not None else (value, other)))


def _compares(comparison: Callable[[Any, Any], Any]) -> Callable[[Any, Any], bool]:
    def holds(value: Any, other: Any) -> bool:
        pair = _comparable(value, other)
        return pair is not None and _is(comparison, *pair)

    return holds


def _is(comparison: Callable[[Any, Any], Any], value: Any, other: Any) -> bool:
    """Whether a comparison holds; an array has many answers, and is compared as the list of its numbers."""
    try:
        return bool(comparison(value, other))
    except (TypeError, ValueError, ArithmeticError):
        plain = [one.tolist() if hasattr(one, "tolist") else one for one in (value, other)]
        return comparison is operator.eq and type(plain[0]) is type(plain[1]) and repr(plain[0]) == repr(plain[1])


def _comparable(value: Any, other: Any) -> tuple[Any, Any] | None:
    """Both as numbers, texts or times; ``None`` if they have no order."""
    if isinstance(value, bool) or isinstance(other, bool):
        return None
    if isinstance(value, Real) and isinstance(other, Real):
        return value, other
    times = _time(value), _time(other)
    if isinstance(value, date) or isinstance(other, date):
        return times if None not in times else None
    if isinstance(value, str) and isinstance(other, str):
        return value, other
    # Beside a number, a text may be one.
    if isinstance(value, (str, Real)) and isinstance(other, (str, Real)):
        try:
            return float(value), float(other)
        except ValueError:
            return None
    return None


def _time(value: Any) -> datetime | None:
    """A moment in UTC of a time, a date or its text."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.replace("Z", "+00:00"))
        except ValueError:
            return None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if not isinstance(value, datetime):
        return None
    return value if value.tzinfo is not None else value.replace(tzinfo=timezone.utc)


_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "$eq": _equal,
    "$ne": lambda value, other: not _equal(value, other),
    "$gt": _compares(operator.gt),
    "$gte": _compares(operator.ge),
    "$lt": _compares(operator.lt),
    "$lte": _compares(operator.le),
    "$in": lambda value, others: any(_equal(value, other) for other in others),
    "$nin": lambda value, others: not any(_equal(value, other) for other in others),
}
