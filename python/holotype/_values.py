"""The small values of the interface: spaces, pointers, commits, reports.

They are named tuples, or written out, and no data classes: importing ``dataclasses`` alone would take as long as the
rest of the package.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from .errors import InputError, WrongType

if TYPE_CHECKING:
    from ._types import _Encoding as Encoding, _Metric as Metric

__all__ = [
    "Change",
    "Commit",
    "EmbedReport",
    "Fault",
    "Head",
    "ImportReport",
    "Pointer",
    "ReembedReport",
    "Space",
    "VerifyReport",
    "listed",
]

T = TypeVar("T")


def listed(name: str, values: Iterable[T], expected: str = "keys or numbers") -> list[T]:
    """The values of an argument that takes several. A text is one value, and not the list of its letters.

    >>> listed("items", ("t1", "r1"))
    ['t1', 'r1']
    """
    if isinstance(values, (str, bytes, bytearray, int, Pointer)):
        shown = repr(values) if len(repr(values)) <= 60 else f"{repr(values)[:60]}…"
        raise WrongType(f"{name}: expected a list of {expected}, found one {type(values).__name__}; give [{shown}]",
                        code="type", hint=f"give [{shown}]")
    try:
        return list(values)
    except TypeError:
        if hasattr(values, "__iter__"):
            raise
    raise WrongType(f"{name}: expected a list of {expected}, found {type(values).__name__}", code="type")


class Space(NamedTuple):
    """An embedding space: the vectors of one model.

    >>> Space("all-MiniLM-L6-v2", 384)
    Space(model='all-MiniLM-L6-v2', dim=384, metric='cosine', encoding='f32')
    """

    model: str
    dim: int
    metric: Metric = "cosine"
    """``cosine``, ``dot`` or ``l2``."""
    encoding: Encoding = "f32"
    """``f32``, ``f16`` or ``i8``, in the index."""

    @classmethod
    def of(cls, space: Space | str | None) -> Space | None:
        """A space, or the built-in one of a name such as ``hashing-v1-256``."""
        if space is None or isinstance(space, Space):
            return space
        if not isinstance(space, str):
            raise WrongType(f"space: expected a Space or its name, found {type(space).__name__}", code="type")
        prefix, _, dim = space.rpartition("-")
        if prefix == "hashing-v1" and dim.isdecimal():
            return cls(space, int(dim))
        hint = f'write Space("{space}", dim=…); hashing-v1-256 alone is built in'
        raise InputError(f"the dimension of the space {space!r} is missing; {hint}", hint=hint)

    def _parts(self) -> tuple[str, int, Metric, Encoding]:
        return self.model, self.dim, self.metric, self.encoding


class Pointer:
    """A pointer to evidence: an item or a memory page, and the span of it that counts.

    Without a span it is the whole field, and without a field the field ``text``.

    >>> Pointer("t1", quote="price=$450").item
    't1'
    """

    __slots__ = ("bytes", "chars", "field", "hash", "item", "page", "quote")
    _target = True

    def __init__(
        self,
        item: str | int | None = None,
        quote: str | None = None,
        bytes: tuple[int, int] | None = None,
        chars: tuple[int, int] | None = None,
        field: str | None = None,
        page: str | None = None,
        hash: str | None = None,
    ) -> None:
        """
        :param item: the key or number of the item.
        :param quote: the unique occurrence of this text.
        :param bytes: bytes from and to, in UTF-8.
        :param chars: characters from and to.
        :param field: another field than ``text``.
        :param page: the key of a memory page, instead of an item.
        :param hash: the expected BLAKE3 of the bytes, checked if given.
        """
        if (item is None) == (page is None):
            raise InputError("a pointer names an item or a page; give one of them")
        if sum(span is not None for span in (quote, bytes, chars)) > 1:
            raise InputError("a pointer has one span; give quote, bytes or chars")
        self.item, self.page, self.field, self.hash = item, page, field, hash
        self.quote, self.bytes, self.chars = quote, bytes, chars

    def _given(self) -> dict[str, Any]:
        names = ("item", "page", "quote", "bytes", "chars", "field", "hash")
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pointer) and self._given() == other._given()

    def __hash__(self) -> int:
        return hash(tuple(self._given().items()))

    def __repr__(self) -> str:
        return f"Pointer({', '.join(f'{name}={value!r}' for name, value in self._given().items())})"


class Commit(NamedTuple):
    """A committed transaction."""

    number: int
    """Its number, counted from 1."""
    position: int
    """The position of the log after it."""
    time: datetime
    """Its time, in UTC."""


class Change(NamedTuple):
    """One change of a database."""

    commit: int
    """The number of the commit that made it: the place to go on from."""
    time: datetime
    """The time of the commit, in UTC."""
    what: str
    """``added``, ``marked``, ``retired``, ``restored``, ``forgotten``, ``linked``, ``unlinked``, ``cited``, ``uncited``,
    ``claimed``, ``rekeyed``; or, about no item, ``episode``, ``page``, ``set``, ``space``, ``reembedded``, ``receipt``."""
    item: int | None
    """The number of the item, which :meth:`Database.get` takes; a link begins at it."""
    details: dict[str, Any]
    """What else there is to say, such as ``key`` and ``kind`` of an item that was added, or ``because``."""


class Head(NamedTuple):
    """The end of the log. Kept elsewhere, its hash shows later whether the past was changed."""

    commit: int
    position: int
    hash: str


class Fault(NamedTuple):
    """One thing that is not as it was written."""

    file: str
    page: int | None
    offset: int | None
    what: str


class VerifyReport(NamedTuple):
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


class ImportReport(NamedTuple):
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


class EmbedReport(NamedTuple):
    """The outcome of making pending vectors."""

    embedded: int
    """Items that got their vector."""
    without: int
    """Items whose text has none, as the model says."""
    pending: int
    """Items that are still pending."""


class ReembedReport(NamedTuple):
    """The outcome of making vectors anew."""

    embedded: int
    """Items with a new vector."""
    without: int
    """Items without one: their text says nothing, or was forgotten."""
    resumed: int
    """Items whose vectors an earlier call had written before it was interrupted."""
    commit: int
    """The commit from which on the new vectors are seen."""
