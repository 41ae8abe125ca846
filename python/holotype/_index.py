"""Members of values that a framework stores, as fields that the database filters by.

A framework's value may hold anything, and its filters follow the rules of :mod:`holotype._filters`. So the value is
kept as it is, and beside it, in the field ``m``, those of its members that a column can hold: texts, numbers and truth
values, in dicts too. The names of the other members are in the field ``odd``. A filter becomes a condition on these
fields that lets through every value that passes it, and few others, which the filter itself then tests.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ._where import field_name

if TYPE_CHECKING:
    from ._transaction import Transaction
    from ._types import _FieldType as FieldType

__all__ = ["Declared", "condition", "members"]

_MEMBERS = "m"
_ODD = "odd"
_MAX_TEXT = 128
_MAX_DEPTH = 4
_MAX_WHOLE = 2**53
# Fields of a store that have columns; a framework may give each value other names.
_MAX_DECLARED = 64


def members(value: Any) -> dict[str, Any]:
    """The fields by which a value is filtered.

    >>> members({"lang": "de", "year": 2001, "tags": ["a"], "meta": {"topic": "x"}})
    {'m': {'lang': 'de', 'year': 2001, 'meta': {'topic': 'x'}}, 'odd': ['tags']}
    """
    if not isinstance(value, Mapping):
        return {}
    odd: list[str] = []
    kept = _kept(value, "", odd, 0)
    return {**({_MEMBERS: kept} if kept else {}), **({_ODD: odd} if odd else {})}


def _kept(value: Mapping[Any, Any], path: str, odd: list[str], depth: int) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name, one in value.items():
        if not _is_plain_name(name):
            # A path through it could mean something else.
            odd.append(path + str(name).partition(".")[0].encode("utf-8", "replace").decode())
        elif one is None:
            continue
        elif _is_plain(one):
            kept[name] = one
        elif isinstance(one, dict) and depth < _MAX_DEPTH:
            if below := _kept(one, f"{path}{name}.", odd, depth + 1):
                kept[name] = below
        else:
            odd.append(path + name)
    return kept


def _is_plain_name(name: Any) -> bool:
    return isinstance(name, str) and bool(name) and "." not in name and "\0" not in name and _is_text(name)


def _is_text(text: str) -> bool:
    if len(text) > _MAX_TEXT:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_plain(value: Any) -> bool:
    if type(value) is str:
        return _is_text(value)
    if type(value) is float:
        return math.isfinite(value)
    return type(value) is bool or type(value) is int and abs(value) < _MAX_WHOLE


class Declared:
    """The members that were declared in a database through one store, so that each is declared once."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def declare(self, tx: Transaction, fields: Mapping[str, Any]) -> None:
        """Declares the members among these fields that are not."""
        if _ODD not in self._known:
            self._known.add(_ODD)
            tx.declare(_ODD, "text")
        self._declare(tx, fields.get(_MEMBERS, {}), _MEMBERS)

    def _declare(self, tx: Transaction, value: Mapping[str, Any], path: str) -> None:
        for name, one in value.items():
            below = f"{path}.{name}"
            if isinstance(one, dict):
                self._declare(tx, one, below)
            elif below not in self._known and len(self._known) <= _MAX_DECLARED:
                self._known.add(below)
                form: FieldType = "number" if type(one) in (int, float) else "text"
                tx.declare(below, form)


def condition(wanted: Mapping[str, Any] | None) -> tuple[str, dict[str, Any]] | None:
    """The condition that every value that passes the filter fulfils, with its parameters; ``None`` if there is none.

    >>> condition({"lang": "de"})
    ('(fields.m.lang = $holotype_m0 or fields.odd = $holotype_m1)', {'holotype_m0': 'de', 'holotype_m1': 'lang'})
    """
    params: dict[str, Any] = {}
    text = _all(wanted or {}, params)
    return None if text is None else (text, params)


def _param(params: dict[str, Any], value: Any) -> str:
    name = f"holotype_m{len(params)}"
    params[name] = value
    return f"${name}"


def _all(wanted: Any, params: dict[str, Any]) -> str | None:
    if not isinstance(wanted, Mapping):
        return None
    parts = [part for name, one in wanted.items() if (part := _part(name, one, params)) is not None]
    return f"({' and '.join(parts)})" if len(parts) > 1 else parts[0] if parts else None


def _part(name: Any, wanted: Any, params: dict[str, Any]) -> str | None:
    if name == "$and":
        parts = [part for one in wanted if (part := _all(one, params)) is not None]
        return f"({' and '.join(parts)})" if parts else None
    if name == "$or":
        any_of = [_all(one, params) for one in wanted]
        # One that says nothing lets everything through.
        return f"({' or '.join(filter(None, any_of))})" if any_of and None not in any_of else None
    if not isinstance(name, str) or name.startswith("$") or not all(_is_plain_name(part) for part in name.split(".")):
        return None
    field = field_name(f"{_MEMBERS}.{name}")
    signs = wanted if isinstance(wanted, Mapping) else {"$eq": wanted}
    if not all(isinstance(sign, str) and sign.startswith("$") for sign in signs):
        return None
    parts = [part for sign, one in signs.items() if (part := _compared(field, sign, one, params)) is not None]
    if not parts:
        return None
    beginnings = [name[: place] for place, letter in enumerate(name) if letter == "."] + [name]
    odd = [f"fields.{_ODD} = {_param(params, one)}" for one in beginnings]
    return f"({' or '.join([' and '.join(parts), *odd])})"


def _compared(field: str, sign: str, value: Any, params: dict[str, Any]) -> str | None:
    if sign == "$eq" and _is_plain(value):
        return f"{field} = {_param(params, value)}"
    if sign == "$in" and not isinstance(value, (str, bytes, Mapping)):
        values = list(value)
        if values and all(_is_plain(one) for one in values):
            return f"{field} in {_param(params, values)}"
    signs = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
    if sign in signs and type(value) in (int, float) and _is_plain(value):
        return f"{field} {signs[sign]} {_param(params, value)}"
    return None
