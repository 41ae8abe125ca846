"""Exceptions: each has a stable ``code``, a ``hint`` that says what to do, and the ``place`` it is about.

The classes group codes by what a program does about them::

    Error
    ├── InputError          the call, a statement or a file is wrong
    │   ├── WrongType       an argument is of another type; a ``TypeError``, too
    │   ├── QueryError      a statement; ``errors`` lists every mistake in it
    │   ├── Missing         no such item, episode, page, link or receipt
    │   ├── Duplicate       the key, or tool, log and step of a trace, is taken
    │   ├── PointerError    a pointer names no bytes, or other bytes
    │   ├── VectorError     a vector, or an embedder, does not fit the space
    │   ├── ReadOnly        the database is open for reading only
    │   ├── Closed          the database is closed
    │   └── TransactionError  this thread has one open, or it has ended
    ├── OpenError           the database cannot be opened
    │   ├── NotFound, Locked, Damaged
    ├── StorageError        reading or writing failed, or the disk is full
    └── LimitError          a limit ended the call
        ├── Timeout         of time
        ├── Busy            of memory or files; try again
        └── OutOfMemory     the system has no more memory; a ``MemoryError``, too
"""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = [
    "Busy",
    "Closed",
    "Damaged",
    "Duplicate",
    "Error",
    "InputError",
    "LimitError",
    "Locked",
    "Missing",
    "NotFound",
    "OpenError",
    "OutOfMemory",
    "Place",
    "PointerError",
    "QueryError",
    "ReadOnly",
    "StorageError",
    "TimeUnitWarning",
    "Timeout",
    "TransactionError",
    "VectorError",
    "WrongType",
]


class Place(NamedTuple):
    """The place an error is about. Parts that do not apply are ``None``."""

    file: str | None = None
    line: int | None = None
    column: int | None = None
    page: int | None = None
    offset: int | None = None


class Error(Exception):
    """An error of the database."""

    def __init__(
        self,
        message: str,
        *,
        code: str = "invalid",
        hint: str | None = None,
        place: Place | None = None,
        errors: list[dict[str, Any]] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        """The stable name of the sort of error, such as ``duplicate-key``."""
        self.hint = hint
        """What to do."""
        self.place = place
        """Where, if the error is about a place."""
        self.errors = errors or []
        """Every mistake of a statement, each a dict with ``code``, ``message``, ``line``, ``column`` and ``hint``."""


class InputError(Error, ValueError):
    """The call, a statement or an input file is wrong."""


class WrongType(InputError, TypeError):
    """An argument is of another type than the call takes."""


class QueryError(InputError):
    """A statement is wrong."""


class Missing(InputError):
    """There is no such item, episode, page, link or receipt."""


class Duplicate(InputError):
    """A key, or the tool, log and step of a trace, is taken."""


class PointerError(InputError):
    """A pointer names no bytes, or bytes with another hash."""


class VectorError(InputError):
    """A vector does not fit the database's space."""


class ReadOnly(InputError):
    """The database is open for reading only."""


class Closed(InputError):
    """The database is closed."""


class TransactionError(InputError):
    """This thread has a transaction open, or the transaction has ended."""


class OpenError(Error):
    """The database cannot be opened."""


class NotFound(OpenError):
    """There is no database."""


class Locked(OpenError):
    """Another process has the database open for writing."""


class Damaged(OpenError):
    """The log is damaged, or of a newer format."""


class StorageError(Error):
    """Reading or writing failed, or the disk is full."""


class LimitError(Error):
    """A limit ended the call."""


class Timeout(LimitError, TimeoutError):
    """The limit of time ended the statement."""


class OutOfMemory(LimitError, MemoryError):
    """The system has no more memory. The statement has ended; the database and the interpreter go on."""


class Busy(LimitError):
    """A limit of memory or files stayed reached. The call can be tried again."""


class TimeUnitWarning(UserWarning):
    """A number was taken as a time in seconds, milliseconds or nanoseconds, by its magnitude."""


_FAMILIES: dict[str, type[Error]] = {
    "input": InputError,
    "query": QueryError,
    "open": OpenError,
    "storage": StorageError,
    "limit": LimitError,
    "timeout": Timeout,
}

_CODES: dict[tuple[str, str], type[Error]] = {
    ("input", "type"): WrongType,
    ("input", "missing"): Missing,
    ("input", "duplicate-key"): Duplicate,
    ("input", "duplicate-trace"): Duplicate,
    ("input", "unresolved-pointer"): PointerError,
    ("input", "hash-mismatch"): PointerError,
    ("input", "vector"): VectorError,
    ("input", "other-embedder"): VectorError,
    ("query", "vector-length"): VectorError,
    ("input", "read-only"): ReadOnly,
    ("input", "closed"): Closed,
    ("input", "transaction-open"): TransactionError,
    ("input", "transaction-ended"): TransactionError,
    ("open", "not-found"): NotFound,
    ("open", "locked"): Locked,
    ("open", "damaged"): Damaged,
    ("limit", "busy"): Busy,
    ("limit", "out-of-memory"): OutOfMemory,
}


# What messages of the engine tell a user of the command line to do, as a user of this package does it.
_IN_PYTHON = {
    "run `holotype create` to make one": "`holotype.create(path)` makes one",
    "`Holotype::reembed` or `holotype reembed`": "`db.reembed(embedder)`",
    "`holotype rebuild`": "`holotype.rebuild(path)`",
    "with holotype rebuild": "with `holotype.rebuild(path)`",
    "`holotype salvage`": "`holotype.salvage(path, new_path)`",
    "`holotype verify`": "`db.verify()`",
    "`--accept-damage` writes": "`accept_damage=True` writes",
    "`--accept-witness`": "`accept_witness=True`",
}


def _in_python(message: str) -> str:
    """A message of the engine with the remedies of this package."""
    for said, meant in _IN_PYTHON.items():
        message = message.replace(said, meant)
    return message


def _of_engine(message: str, details: dict[str, Any]) -> Error:
    """The exception for an error of the engine."""
    code, family, hint = details["code"], details["family"], details.get("hint")
    if family != "query":
        # A statement is quoted as it was written.
        message, hint = _in_python(message), None if hint is None else _in_python(hint)
    kind = _CODES.get((family, code), _FAMILIES[family])
    parts = {name: details.get(name) for name in ("file", "line", "column", "page", "offset")}
    place = Place(**parts) if any(part is not None for part in parts.values()) else None
    return kind(message, code=code, hint=hint, place=place, errors=details.get("errors"))
