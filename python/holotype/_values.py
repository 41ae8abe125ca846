"""The small values of the interface: spaces, pointers, commits, reports."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from .errors import InputError

__all__ = ["Commit", "Fault", "Head", "ImportReport", "Pointer", "Space", "VerifyReport"]


@dataclass(frozen=True)
class Space:
    """An embedding space: the vectors of one model.

    >>> Space("all-MiniLM-L6-v2", 384)
    Space(model='all-MiniLM-L6-v2', dim=384, metric='cosine', encoding='f32')
    """

    model: str
    dim: int
    metric: str = "cosine"
    """``cosine``, ``dot`` or ``l2``."""
    encoding: str = "f32"
    """``f32``, ``f16`` or ``i8``, in the index."""

    @classmethod
    def of(cls, space: Space | str | None) -> Space | None:
        """A space, or the built-in one of a name such as ``hashing-v1-256``."""
        if space is None or isinstance(space, Space):
            return space
        prefix, _, dim = space.rpartition("-")
        if prefix == "hashing-v1" and dim.isdecimal():
            return cls(space, int(dim))
        hint = f'write Space("{space}", dim=…); hashing-v1-256 alone is built in'
        raise InputError(f"the dimension of the space {space!r} is missing; {hint}", hint=hint)

    def _parts(self) -> tuple[str, int, str, str]:
        return self.model, self.dim, self.metric, self.encoding


@dataclass(frozen=True)
class Pointer:
    """A pointer to evidence: an item or a memory page, and the span of it that counts.

    Without a span it is the whole field, and without a field the field ``text``.

    >>> Pointer("t1", quote="price=$450").item
    't1'
    """

    item: str | int | None = None
    """The key or number of the item."""
    quote: str | None = None
    """The unique occurrence of this text."""
    bytes: tuple[int, int] | None = None
    """Bytes from and to, in UTF-8."""
    chars: tuple[int, int] | None = None
    """Characters from and to."""
    field: str | None = None
    """Another field than ``text``."""
    page: str | None = None
    """The key of a memory page, instead of an item."""
    hash: str | None = None
    """The expected BLAKE3 of the bytes, checked if given."""
    _target: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if (self.item is None) == (self.page is None):
            raise InputError("a pointer names an item or a page; give one of them")
        if sum(span is not None for span in (self.quote, self.bytes, self.chars)) > 1:
            raise InputError("a pointer has one span; give quote, bytes or chars")


@dataclass(frozen=True)
class Commit:
    """A committed transaction."""

    number: int
    """Its number, counted from 1."""
    position: int
    """The position of the log after it."""
    time: datetime
    """Its time, in UTC."""


@dataclass(frozen=True)
class Head:
    """The end of the log. Kept elsewhere, its hash shows later whether the past was changed."""

    commit: int
    position: int
    hash: str


@dataclass(frozen=True)
class Fault:
    """One thing that is not as it was written."""

    file: str
    page: int | None
    offset: int | None
    what: str


@dataclass(frozen=True)
class VerifyReport:
    """What a verification found. It is true if nothing is wrong."""

    verdict: str
    faults: list[Fault]
    checked: list[tuple[str, int]]
    not_checked: list[str]
    commit: int

    def __bool__(self) -> bool:
        return not self.faults

    @classmethod
    def _of(cls, report: dict[str, Any]) -> VerifyReport:
        return cls(**{**report, "faults": [Fault(**fault) for fault in report["faults"]]})


@dataclass(frozen=True)
class ImportReport:
    """What an import did."""

    transactions: int
    """Transactions that were committed."""
    split: int
    """How many of them hold the lines before the first commit line, if those became more than one; else 0."""
    added: int
    """Lines that said something new."""
    known: int
    """Lines that the database held already."""
    skipped: int
    """Lines that were skipped."""
    embedded: int
    """Items whose text was embedded."""
    errors: list[str]
    """Why lines were skipped."""
