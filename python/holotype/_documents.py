"""Records under keys that can be replaced and deleted, for adapters whose interfaces ask for that.

Items of the database are never changed. So a record's key has a revision: ``KEY@00000001`` is replaced by
``KEY@00000002``, and the item before is taken out of use. Parts of a key are quoted, so that keys with a common
beginning are those whose first parts are equal.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import quote

from ._database import Database
from ._native import Item
from ._snapshot import Snapshot
from ._transaction import Transaction
from .errors import Error

__all__ = ["Documents", "key_of", "key_prefix", "read"]

R = TypeVar("R")

_MAX_PART = 96


def key_of(*parts: str) -> str:
    """A key of parts, each of which may be any text."""
    return "/".join(_part(part) for part in parts)


def key_prefix(text: str) -> str:
    """What the keys of parts that begin with ``text`` begin with. Keys of other parts may do so too."""
    return quote(text, safe="")[: _MAX_PART - 33]


def _part(part: str) -> str:
    quoted = quote(part, safe="")
    if len(quoted) <= _MAX_PART:
        return quoted
    return quoted[: _MAX_PART - 33] + "~" + hashlib.blake2b(part.encode(), digest_size=16).hexdigest()


def read(database: Database, work: Callable[[Snapshot], R]) -> R:
    """Reads on the newest view; on another one if something was erased meanwhile."""
    while True:
        try:
            return work(database.snapshot())
        except Error as error:
            if error.code != "snapshot-forgotten":
                raise


class Documents:
    """The records of one adapter in a database."""

    def __init__(self, database: Database, tool: str, *, erase: bool, durability: str) -> None:
        self.database = database
        self.tool = tool
        self._erase = erase
        self._durability = durability

    def begin(self) -> Transaction:
        """A transaction to write in."""
        return self.database.begin(durability=self._durability)

    def read(self, work: Callable[[Snapshot], R]) -> R:
        """Reads on the newest view: see :func:`read`."""
        return read(self.database, work)

    def put(
        self,
        tx: Transaction,
        key: str,
        text: str,
        *,
        episode: str,
        fields: Mapping[str, str | bytes],
        log_id: str | None = None,
        vector: Any = None,
    ) -> None:
        """Stores a record, in the place of the one with this key."""
        revisions = tx.keys(f"{key}@")
        if revisions:
            tx.retract(revisions[-1], because="replaced")
        last = int(revisions[-1].rpartition("@")[2], 16) if revisions else 0
        tx.record(
            text,
            episode=episode,
            kind="observation",
            key=f"{key}@{last + 1:08x}",
            source="system",
            tool=self.tool,
            log_id=log_id,
            fields=fields,
            vector=vector,
        )

    def get(self, view: Snapshot | Transaction, key: str) -> Item | None:
        """The record of a key; ``None`` if there is none."""
        revisions = view.keys(f"{key}@")
        return _live(view.get(revisions[-1])) if revisions else None

    def keys(self, view: Snapshot | Transaction, prefix: str) -> list[str]:
        """The keys with a prefix, in order, those of deleted records among them."""
        return list(dict.fromkeys(key.rpartition("@")[0] for key in view.keys(prefix)))

    def scan(self, view: Snapshot | Transaction, prefix: str) -> Iterator[tuple[str, Item]]:
        """The records whose keys have a prefix, in order of the keys."""
        # Of the revisions of a key, which are in order, the last one counts.
        newest = {revision.rpartition("@")[0]: revision for revision in view.keys(prefix)}
        for key, item in zip(newest, map(_live, view.get_many(newest.values()))):
            if item is not None:
                yield key, item

    def delete(self, tx: Transaction, keys: Sequence[str], *, erase: bool | None = None) -> None:
        """Deletes records with all their revisions: erases them, or takes them out of use."""
        items = [revision for key in keys for revision in tx.keys(f"{key}@")]
        if not items:
            return
        if self._erase if erase is None else erase:
            tx.forget(items, because="deleted")
        else:
            for item in items:
                tx.retract(item, because="deleted")


def _live(item: Item | None) -> Item | None:
    return item if item is not None and item.active and not item.redacted else None
