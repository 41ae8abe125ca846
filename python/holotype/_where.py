"""Filters on fields as mappings, turned into predicates of the recall language.

A filter names fields, or members of fields by a path such as ``meta.topic``, and gives a value or comparisons for each:
``{"lang": "de", "year": {"$gte": 2000}}``. The operators are ``$eq $ne $gt $gte $lt $lte $in $nin $exists``, and
``$and``, ``$or`` and ``$not`` join filters. ``labels`` are the labels of an item. An absent field is unequal to every
value but ``None``, and passes no comparison.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .errors import InputError, WrongType

__all__ = ["Where", "field_name", "predicate"]

_SIGNS = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
_KNOWN = "$eq, $ne, $gt, $gte, $lt, $lte, $in, $nin, $exists, $and, $or, $not"
_MAX_DEPTH = 32


class Where:
    """A predicate in the making, and the values of its parameters."""

    __slots__ = ("_prefix", "params")

    def __init__(self, prefix: str = "holotype_f") -> None:
        self._prefix = prefix
        self.params: dict[str, Any] = {}

    def value(self, value: Any) -> str:
        """The parameter that stands for a value."""
        name = f"{self._prefix}{len(self.params)}"
        self.params[name] = value
        return f"${name}"

    def filter(self, wanted: Mapping[str, Any], depth: int = 0) -> str:
        """The predicate of a filter."""
        if not isinstance(wanted, Mapping):
            raise WrongType(f"filter: expected a mapping of fields to values, found {type(wanted).__name__}",
                            code="type")
        if depth == _MAX_DEPTH:
            raise InputError(f"filter: nested deeper than {_MAX_DEPTH}, or containing itself; give a flatter one")
        parts = [self._part(name, one, depth) for name, one in wanted.items()]
        return _joined(" and ", parts) if parts else "not redacted"

    def _part(self, name: Any, wanted: Any, depth: int) -> str:
        if name in ("$and", "$or"):
            if isinstance(wanted, (str, bytes, Mapping)) or not isinstance(wanted, Iterable):
                raise WrongType(f"{name}: expected a list of filters, found {type(wanted).__name__}", code="type")
            parts = [self.filter(one, depth + 1) for one in wanted]
            if not parts:
                raise InputError(f"{name}: the list is empty; leave it out")
            return _joined(" and " if name == "$and" else " or ", parts)
        if name == "$not":
            return f"not ({self.filter(wanted, depth + 1)})"
        if not isinstance(name, str):
            raise WrongType(f"filter: the name of a field is a str, found {type(name).__name__}", code="type")
        if name.startswith("$"):
            raise _unknown(name)
        field = "labels" if name == "labels" else field_name(name)
        if isinstance(wanted, Mapping):
            if not wanted or not all(isinstance(sign, str) and sign.startswith("$") for sign in wanted):
                hint = "name the member by its path, as in 'meta.topic'"
                raise InputError(f"filter: {name}: expected a value or comparisons; {hint}", hint=hint)
            return _joined(" and ", [self._compared(field, sign, one) for sign, one in wanted.items()])
        return self._compared(field, "$eq", wanted)

    def _compared(self, field: str, sign: str, value: Any) -> str:
        if sign in _SIGNS:
            return f"{field} {_SIGNS[sign]} {self.value(value)}"
        if sign == "$exists":
            return f"has {field}" if value else f"not has {field}"
        if sign in ("$eq", "$ne"):
            equal = f"not has {field}" if value is None else f"{field} = {self.value(value)}"
            return equal if sign == "$eq" else f"not ({equal})"
        if sign in ("$in", "$nin"):
            found = self._member(field, sign, value)
            return found if sign == "$in" else f"not ({found})"
        raise _unknown(sign)

    def _member(self, field: str, sign: str, values: Any) -> str:
        if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
            raise WrongType(f"{sign}: expected a list of values, found {type(values).__name__}", code="type")
        values = list(values)
        parts = [f"not has {field}"] if None in values else []
        present = [value for value in values if value is not None]
        if present:
            parts.append(f"{field} in {self.value(present)}")
        # Nothing is in an empty list.
        return _joined(" or ", parts) if parts else f"(has {field} and not has {field})"


def field_name(path: str) -> str:
    """The name of a field in the recall language.

    >>> field_name("meta.odd name")
    "fields.meta.'odd name'"
    """
    return "fields." + ".".join(_quoted(part) for part in path.split("."))


def _quoted(part: str) -> str:
    if part.isidentifier() and part.isascii():
        return part
    escaped = part.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


def _joined(sign: str, parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"({sign.join(parts)})"


def _unknown(name: str) -> InputError:
    hint = f"the operators are {_KNOWN}"
    return InputError(f"filter: unknown operator {name!r}; {hint}", hint=hint)


def predicate(wanted: Mapping[str, Any], prefix: str = "holotype_f") -> tuple[str, dict[str, Any]]:
    """The predicate of a filter, and the values of its parameters.

    >>> predicate({"lang": "de", "year": {"$gte": 2000}})
    ('(fields.lang = $holotype_f0 and fields.year >= $holotype_f1)', {'holotype_f0': 'de', 'holotype_f1': 2000})
    """
    where = Where(prefix)
    return where.filter(wanted), where.params
