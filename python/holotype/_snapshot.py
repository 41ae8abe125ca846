"""Snapshots: a view of a database that never changes."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from . import _native
from ._embedding import Embedder
from ._native import Answer, Citation, Item, Table
from ._reading import Limits, Reading
from ._story import Difference, Story
from ._values import Space, listed

if TYPE_CHECKING:
    from ._types import _Edge as Edge
    import numpy

    from .proof import SigningKey

__all__ = ["Snapshot"]


class Snapshot(Reading):
    """A view of a database that never changes and blocks nobody.

    >>> snapshot = db.snapshot()
    >>> snapshot["t1"].text
    'UA123 price=$450'
    >>> "t9" in snapshot
    False
    """

    def __init__(self, native: _native.Snapshot, embedder: Embedder | None) -> None:
        self._native = native
        self._embedder = embedder

    def _run(
        self, script: str, params: dict[str, Any] | None, limits: Limits | None, single: bool
    ) -> list[Answer | Table]:
        return self._native.run(script, params, limits)

    @property
    def commit(self) -> int:
        """The commit of the view."""
        return self._native.commit

    def get(self, item: str | int) -> Item | None:
        """The item of a key or number; ``None`` if there is none."""
        return self._native.get(item)

    def get_many(self, items: Iterable[str | int]) -> list[Item | None]:
        """The items of keys or numbers, in their order; ``None`` for one that there is not.

        >>> [item and item.text for item in db.snapshot().get_many(["t1", "t9"])]
        ['UA123 price=$450', None]
        """
        return self._native.get_many(listed("items", items))

    def keys(self, prefix: str = "", *, most: int = 1_000_000) -> list[str]:
        """The keys with a prefix, in order.

        >>> db.snapshot().keys("t")
        ['t1']
        """
        return self._native.keys(prefix, most)

    def episodes(self, prefix: str = "", *, most: int = 1_000_000) -> list[str]:
        """The ids of episodes with a prefix, in order."""
        return self._native.episodes(prefix, most)

    @property
    def space(self) -> Space | None:
        """The embedding space, if the database has one."""
        parts = self._native.space()
        return None if parts is None else Space(*parts)

    def vector(self, item: str | int) -> numpy.ndarray[Any, Any] | None:
        """The vector of an item as a numpy array of ``float32``; ``None`` without one."""
        return self._native.vector(item)

    def vectors(self, items: Iterable[str | int]) -> numpy.ndarray[Any, Any]:
        """The vectors of items as the rows of a numpy array of ``float32``."""
        return self._native.vectors(listed("items", items))

    def why(self, item: str | int) -> Story:
        """The story of an item: what it says and rests on, what changed it, and what would fall with it.

        >>> print(db.snapshot().why("r1"))  # doctest: +ELLIPSIS
        r1  fact, trip-42 step 0, ..., success
          UA123 costs $450
        rests on
          t1  call, success
            text[6..16] "price=$450"  ok
        changed
        ...
        """
        return Story(*self._native.why(item))

    def diff(self, commit: int, until: int | None = None) -> Difference:
        """The items added between two commits, and those whose standing changed.

        :param until: the later commit; the commit of this view without it.

        >>> print(db.snapshot().diff(0))  # doctest: +ELLIPSIS
        commit 0 to commit ...
        """
        return Difference(*self._native.diff(commit, until))

    def citations(self, item: str | int) -> list[Citation]:
        """The pointers of an item, each read and hashed again.

        >>> [(citation.text, citation.verdict) for citation in db.snapshot().citations("r1")]
        [('price=$450', 'ok')]
        """
        return self._native.citations(item)

    def linked(self, item: str | int, edge: Edge, *, incoming: bool = False) -> list[int]:
        """The numbers of the items that edges lead to, or ``incoming`` ones come from."""
        return self._native.linked(item, edge, incoming)

    def as_of(self, commit: int | None = None, *, time: datetime | str | int | None = None) -> Snapshot:
        """The view after an earlier commit, or after the last commit at or before a time.

        >>> len(db.snapshot().as_of(1))
        0
        """
        return Snapshot(self._native.as_of(commit, time), self._embedder)

    def export(
        self,
        path: str | os.PathLike[str],
        *,
        vectors: str | os.PathLike[str] | None = None,
        history: bool = False,
    ) -> tuple[int, int]:
        """Writes the view as JSON Lines, and the vectors as ``.npy`` if a path is given for them.

        With ``history`` it is the log in commit order. Returns the numbers of lines and of vectors. The file appears
        whole or not at all.
        """
        return self._native.export(path, vectors, history)

    @property
    def origin(self) -> str:
        """The name for signing keys of this database."""
        return self._native.origin()

    def prove(self, item: str | int, key: SigningKey) -> str:
        """A proof that an item is in the log, as JSON text that :func:`holotype.check_proof` checks elsewhere."""
        return self._native.prove(item, key.secret)

    def signed_checkpoint(self, key: SigningKey) -> str:
        """The size and hash of the log at this view, signed."""
        return self._native.signed_checkpoint(key.secret)

    def __contains__(self, item: str | int) -> bool:
        return self.get(item) is not None

    def __getitem__(self, item: str | int) -> Item:
        found = self.get(item)
        if found is None:
            raise KeyError(item)
        return found

    def __len__(self) -> int:
        """The number of items."""
        return len(self._native)

    def __repr__(self) -> str:
        return f"<holotype.Snapshot of commit {self.commit}>"
