"""Values of Python as JSON text and back, for adapters: what JSON lacks is kept with its type.

| value | JSON |
|---|---|
| `str`, `bool`, `int`, `float`, `None`, `list`, `dict` with names that are `str` | itself |
| numpy's numbers and arrays | numbers, lists |
| times, `timedelta`, `Decimal`, `UUID`, path, `bytes`, `set`, `tuple`, other `dict` | an object with `$type` and `$value` |

Half of a surrogate pair is written as an escape, which JSON has. Values are read to a depth of :data:`MAX_DEPTH`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import PurePath, PurePosixPath
from typing import Any
from uuid import UUID

from .errors import InputError, WrongType

__all__ = ["dumps", "jsonable", "loads"]

MAX_DEPTH = 200
"""The greatest depth of lists and dicts in a value."""

_TYPE, _VALUE = "$type", "$value"


def dumps(value: Any, what: str = "the value") -> str:
    """JSON text of a value. ``what`` names it in an error.

    >>> dumps({"when": date(2026, 1, 5)})
    '{"when": {"$type": "date", "$value": "2026-01-05"}}'
    """
    text = json.dumps(_encoded(value, what, 0), ensure_ascii=False)
    return text if _is_utf8(text) else json.dumps(json.loads(text))


def loads(text: str | bytes) -> Any:
    """The value of a JSON text that :func:`dumps` made.

    >>> loads(dumps((1, {2})))
    (1, {2})
    """
    return json.loads(text, object_hook=_decoded)


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _encoded(value: Any, what: str, depth: int) -> Any:
    if value is None or type(value) in (str, bool, int, float):
        return value
    if depth >= MAX_DEPTH:
        hint = "give one that is flatter, and that does not contain itself"
        raise InputError(f"{what} is nested deeper than {MAX_DEPTH}; {hint}", hint=hint)
    if isinstance(value, Mapping):
        if all(isinstance(name, str) for name in value) and _TYPE not in value:
            return {str(name): _encoded(one, f"{what}[{name!r}]", depth + 1) for name, one in value.items()}
        pairs = [[_encoded(part, what, depth + 1) for part in pair] for pair in value.items()]
        return {_TYPE: "dict", _VALUE: pairs}
    if isinstance(value, (list, tuple, set, frozenset)):
        members = [_encoded(one, f"{what}[{number}]", depth + 1) for number, one in enumerate(value)]
        sort = next(kind.__name__ for kind in (list, tuple, set, frozenset) if isinstance(value, kind))
        return members if sort == "list" else {_TYPE: sort, _VALUE: members}
    # Subclasses, such as enumerations of texts and numbers.
    for kind in (str, bool, int, float):
        if isinstance(value, kind):
            return kind(value)
    for kinds, sort, text in _KINDS:
        if isinstance(value, kinds):
            return {_TYPE: sort, _VALUE: text(value)}
    # Numbers and arrays of numpy, and of what is built on it.
    if hasattr(value, "dtype") and hasattr(value, "tolist"):
        return _encoded(value.tolist(), what, depth + 1)
    hint = "give values that JSON has, times, bytes, sets or numbers"
    message = f"{what} is of the type {type(value).__name__}, which is not stored; {hint}"
    raise WrongType(message, code="type", hint=hint)


_Kind = tuple[type | tuple[type, ...], str, Callable[[Any], Any]]

_KINDS: list[_Kind] = [
    (datetime, "datetime", datetime.isoformat),
    (date, "date", date.isoformat),
    (time, "time", time.isoformat),
    (timedelta, "timedelta", lambda value: [value.days, value.seconds, value.microseconds]),
    (Decimal, "decimal", str),
    (UUID, "uuid", str),
    (PurePath, "path", str),
    ((bytes, bytearray, memoryview), "bytes", lambda value: base64.b64encode(bytes(value)).decode()),
]

_MAKERS: dict[str, Callable[[Any], Any]] = {
    "dict": lambda pairs: {name: value for name, value in pairs},
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "timedelta": lambda parts: timedelta(parts[0], parts[1], parts[2]),
    "decimal": Decimal,
    "uuid": UUID,
    "path": PurePosixPath,
    "bytes": base64.b64decode,
}


def _decoded(value: dict[str, Any]) -> Any:
    make = _MAKERS.get(value.get(_TYPE, "")) if value.keys() == {_TYPE, _VALUE} else None
    return value if make is None else make(value[_VALUE])


def jsonable(value: Any) -> Any:
    """What ``json.dumps`` does not know, for its ``default``: answers, rows, tables, items, citations, times, bytes.

    >>> import json
    >>> answer = db.recall("What does UA123 cost?", limit=1)
    >>> json.loads(json.dumps(answer, default=holotype.jsonable))[0]["key"]
    't1'
    """
    if hasattr(value, "to_dicts"):
        return value.to_dicts()
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode()
    if hasattr(value, "dtype") and hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not of this package and not of JSON")
