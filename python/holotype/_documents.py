"""Records under keys that can be replaced and deleted, for adapters whose interfaces ask for that.

Items of the database are never changed. So a record's key has a revision: ``KEY@fffffffe`` is replaced by
``KEY@fffffffd``, and the item before is taken out of use. Revisions count down, so that the newest one is the first of
its key in order and is found without the others. Parts of a key are quoted, so that keys with a common beginning are
those whose first parts are equal.

Half of a surrogate pair, which frameworks let through, is kept: a text that has one is stored as bytes, and the text
that is searched has U+FFFD in its place.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import quote, unquote

from ._database import Database
from ._native import Item
from ._snapshot import Snapshot
from ._transaction import Transaction
from .errors import Error

if TYPE_CHECKING:
    from ._types import _Durability as Durability

__all__ = [
    "Documents", "Record", "field_bytes", "field_of", "key_of", "key_prefix", "parts_of", "read", "searchable",
    "text_of",
]  # fmt: skip

R = TypeVar("R")

_MAX_PART = 96
_FIRST_REVISION = 0xFFFFFFFE
_RAW_TEXT = "text.raw"


def key_of(*parts: str) -> str:
    """A key of parts, each of which may be any text."""
    return "/".join(_part(part) for part in parts)


def parts_of(key: str) -> list[str] | None:
    """The parts of a key; ``None`` if one was too long to be kept in it.

    >>> parts_of(key_of("a/b", "c"))
    ['a/b', 'c']
    """
    parts = key.split("/")
    if any("~" in part and len(part) == _MAX_PART for part in parts):
        return None
    return [unquote(part, errors="surrogatepass") for part in parts]


def key_prefix(text: str) -> str:
    """What the keys of parts that begin with ``text`` begin with. Keys of other parts may do so too."""
    return quote(text, safe="", errors="surrogatepass")[: _MAX_PART - 33]


def _part(part: str) -> str:
    quoted = quote(part, safe="", errors="surrogatepass")
    if len(quoted) <= _MAX_PART:
        return quoted
    digest = hashlib.blake2b(part.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return quoted[: _MAX_PART - 33] + "~" + digest


def read(database: Database, work: Callable[[Snapshot], R]) -> R:
    """Reads on the newest view; on another one if something was erased meanwhile."""
    while True:
        try:
            return work(database.snapshot())
        except Error as error:
            if error.code != "snapshot-forgotten":
                raise


def searchable(text: str) -> str:
    """The text with U+FFFD in the place of each half of a surrogate pair.

    >>> searchable("cut \\ud83d here")
    'cut \ufffd here'
    """
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def text_of(item: Item) -> str:
    """The text of a record, as it was put."""
    return field_of(item, _RAW_TEXT) if _RAW_TEXT in item.fields else item.text


def field_of(item: Item, name: str) -> str:
    """A field of a record that is a text, as it was put."""
    value = item.fields[name]
    return value if isinstance(value, str) else value.decode("utf-8", "surrogatepass")


def field_bytes(item: Item, name: str) -> bytes:
    """A field of a record that is bytes. Bytes that are UTF-8 come back from the database as text."""
    value = item.fields[name]
    return value.encode() if isinstance(value, str) else value


class Record(NamedTuple):
    """A record to put."""

    key: str
    text: str
    episode: str
    fields: Mapping[str, Any]
    log_id: str | None = None
    vector: Any = None


class Documents:
    """The records of one adapter in a database."""

    def __init__(self, database: Database, tool: str, *, erase: bool, durability: Durability) -> None:
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

    def put(self, tx: Transaction, record: Record) -> None:
        """Stores a record, in the place of the one with this key."""
        self.put_many(tx, [record])

    def put_many(self, tx: Transaction, records: Iterable[Record]) -> None:
        """Stores records, each in the place of the one with its key; of several with one key, the last.

        The keys are looked up before anything is written: a transaction reads slower the more it has written.
        """
        last = {record.key: record for record in records}
        newest = {key: _newest(tx, key) for key in last}
        for revision in newest.values():
            if revision is not None:
                tx.retract(revision, because="replaced")
        traces = [self._trace(record, newest[key]) for key, record in last.items()]
        if traces:
            tx.record_many(traces)

    def _trace(self, record: Record, before: str | None) -> dict[str, Any]:
        text = searchable(record.text)
        number = _FIRST_REVISION if before is None else int(before.rpartition("@")[2], 16) - 1
        fields = {name: _storable(value) for name, value in record.fields.items()}
        if text != record.text:
            fields[_RAW_TEXT] = record.text.encode("utf-8", "surrogatepass")
        return {
            "text": text, "episode": record.episode, "kind": "observation", "key": f"{record.key}@{number:08x}",
            "source": "system", "tool": self.tool, "log_id": record.log_id and searchable(record.log_id),
            "fields": fields, "vector": record.vector,
        }  # fmt: skip

    def get(self, view: Snapshot | Transaction, key: str) -> Item | None:
        """The record of a key; ``None`` if there is none."""
        revision = _newest(view, key)
        return None if revision is None else _live(view.get(revision))

    def get_many(self, view: Snapshot | Transaction, keys: Sequence[str]) -> list[Item | None]:
        """The records of keys, in their order."""
        revisions = [_newest(view, key) for key in keys]
        found = iter(view.get_many([revision for revision in revisions if revision is not None]))
        return [None if revision is None else _live(next(found)) for revision in revisions]

    def keys(self, view: Snapshot | Transaction, prefix: str) -> list[str]:
        """The keys with a prefix, in order, those of deleted records among them."""
        return list(dict.fromkeys(key.rpartition("@")[0] for key in view.keys(prefix)))

    def scan(self, view: Snapshot | Transaction, prefix: str) -> Iterator[tuple[str, Item]]:
        """The records whose keys have a prefix, in order of the keys."""
        newest: dict[str, str] = {}
        for revision in view.keys(prefix):
            newest.setdefault(revision.rpartition("@")[0], revision)
        for key, item in zip(newest, map(_live, view.get_many(newest.values()))):
            if item is not None:
                yield key, item

    def find(
        self,
        view: Snapshot | Transaction,
        *,
        episodes: Sequence[str] | None = None,
        where: tuple[str, dict[str, Any]] | None = None,
        most: int | None = None,
    ) -> list[Item]:
        """The records of episodes that fulfil a condition, as they were put; at most so many, if that is given."""
        condition, params = where or ("", {})
        scope = ""
        if episodes is not None:
            scope = f"in episode {', '.join(f'$episode{number}' for number in range(len(episodes)))} "
            params = {**params, **{f"episode{number}": episode for number, episode in enumerate(episodes)}}
        rest = f" and {condition}" if condition else ""
        limit = "" if most is None else f" limit {most}"
        live = "tool = $tool and active = true and not redacted"
        statement = f"find observations {scope}where {live}{rest}{limit} return item"
        try:
            rows = view.query(statement, {**params, "tool": self.tool})
        except Error as error:
            # Nothing was ever written to an episode that is not there.
            if error.code != "missing":
                raise
            return []
        return [item for item in view.get_many(row[0] for row in rows) if item is not None and not item.redacted]

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


def _newest(view: Snapshot | Transaction, key: str) -> str | None:
    found = view.keys(f"{key}@", most=1)
    return found[0] if found else None


def _storable(value: Any) -> Any:
    """A field as it is, or as bytes if the database stores no such text."""
    if isinstance(value, str) and searchable(value) != value:
        return value.encode("utf-8", "surrogatepass")
    return value


def _live(item: Item | None) -> Item | None:
    return item if item is not None and item.active and not item.redacted else None
