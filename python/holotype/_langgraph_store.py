"""LangGraph's ``BaseStore`` in a Holotype database."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from langgraph.store.base import (
    BaseStore,
    GetOp,
    IndexConfig,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    ensure_embeddings,
    get_text_at_path,
    tokenize_path,
)

from . import _native
from ._codec import dumps, loads
from ._database import Database, open_or_create
from ._documents import Documents, Record, field_bytes, field_of, key_of, text_of
from ._filters import passes, refuse_unknown
from ._snapshot import Snapshot

if TYPE_CHECKING:
    from ._types import _Durability as Durability

__all__ = ["HolotypeStore"]

Place = tuple[tuple[str, ...], str]

_EPISODES = "langgraph-store/"


class HolotypeStore(BaseStore):
    """A LangGraph store: values under a namespace and a key, found again by vectors if ``index`` says how to embed.

    >>> from holotype.langgraph import HolotypeStore
    >>> store = HolotypeStore(db)
    >>> store.put(("users", "ada"), "likes", {"food": "papaya"})
    >>> store.get(("users", "ada"), "likes").value
    {'food': 'papaya'}

    A search is exact: it compares the vectors of every value below its namespace prefix. Values are deleted as
    :class:`HolotypeSaver` deletes checkpoints.
    """

    def __init__(
        self,
        database: Database,
        *,
        index: IndexConfig | None = None,
        erase: bool = True,
        durability: Durability = "sync",
    ) -> None:
        self._documents = Documents(database, "langgraph-store", erase=erase, durability=durability)
        self._embeddings = ensure_embeddings(index.get("embed")) if index else None
        self._fields = list((index or {}).get("fields") or ["$"])

    @classmethod
    @contextmanager
    def from_conn_string(cls, conn_string: str, *, index: IndexConfig | None = None) -> Iterator[HolotypeStore]:
        """A store in the database at a path, which is created if there is none and closed at the end."""
        with open_or_create(conn_string) as database:
            yield cls(database, index=index)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Runs operations. Reads see the state before the writes, which are one transaction."""
        ops = list(ops)
        results = self._documents.read(lambda view: [self._read(view, op) for op in ops])
        writes: dict[Place, PutOp] = {(op.namespace, op.key): op for op in ops if isinstance(op, PutOp)}
        if writes:
            self._write(writes, self._embed(writes))
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """As :meth:`batch`."""
        return await asyncio.to_thread(self.batch, list(ops))

    # ---- reading ----

    def _read(self, view: Snapshot, op: Op) -> Result:
        if isinstance(op, GetOp):
            found = self._documents.get(view, _key(op.namespace, op.key))
            return None if found is None else _item(found)
        if isinstance(op, SearchOp):
            return list(self._search(view, op))
        if isinstance(op, ListNamespacesOp):
            return self._namespaces(view, op)
        if isinstance(op, PutOp):
            return None
        raise ValueError(f"unknown operation {type(op)}")

    def _search(self, view: Snapshot, op: SearchOp) -> Sequence[SearchItem]:
        refuse_unknown(op.filter)
        found = [
            (item, _vectors(stored))
            for _, stored in self._documents.scan(view, _prefix(op.namespace_prefix))
            if passes((item := _item(stored)).value, op.filter)
        ]
        # As they were put, and not in order of the keys.
        found.sort(key=lambda pair: pair[0].updated_at)
        if not (op.query and self._embeddings):
            return [_result(item, None) for item, _ in found[op.offset : op.offset + op.limit]]
        query = np.asarray(self._embeddings.embed_query(op.query), dtype=np.float32)
        scored = [(max(_cosine(query, row) for row in rows), item) for item, rows in found if len(rows)]
        scored.sort(key=lambda pair: pair[0], reverse=True)
        best = [_result(item, score) for score, item in scored[op.offset : op.offset + op.limit]]
        # What has no vector fills the rest.
        rest = [_result(item, None) for item, rows in found if not len(rows)]
        return best + rest[: op.limit - len(best)]

    def _namespaces(self, view: Snapshot, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        # Each namespace is an episode: only one value of each is read.
        namespaces = (episode[len(_EPISODES) :] for episode in view.episodes(_EPISODES))
        values = (self._any(view, f"ls.d/{namespace}//") for namespace in namespaces)
        places = {tuple(loads(field_of(value, "namespace"))) for value in values if value is not None}
        places = {place for place in places if all(_matches(one, place) for one in op.match_conditions or ())}
        if op.max_depth is not None:
            places = {place[: op.max_depth] for place in places}
        return sorted(places)[op.offset : op.offset + op.limit]

    def _any(self, view: Snapshot, prefix: str) -> _native.Item | None:
        """A value below a prefix; ``None`` if all were deleted."""
        first = view.keys(prefix, most=1)
        value = self._documents.get(view, first[0].rpartition("@")[0]) if first else None
        if value is not None or not first:
            return value
        return next((value for _, value in self._documents.scan(view, prefix)), None)

    # ---- writing ----

    def _embed(self, writes: Mapping[Place, PutOp]) -> dict[Place, list[Any]]:
        if self._embeddings is None:
            return {}
        texts: list[tuple[Place, str]] = []
        for place, op in writes.items():
            if op.value is None or op.index is False:
                continue
            for path in self._fields if op.index is None else op.index:
                parts = path if path == "$" else tokenize_path(path)
                texts += [(place, text) for text in get_text_at_path(op.value, parts)]
        vectors: dict[Place, list[Any]] = {}
        if texts:
            for (place, _), vector in zip(texts, self._embeddings.embed_documents([text for _, text in texts])):
                vectors.setdefault(place, []).append(vector)
        return vectors

    def _write(self, writes: Mapping[Place, PutOp], vectors: Mapping[Place, list[Any]]) -> None:
        keys = {place: _key(*place) for place in writes}
        values = {place: op.value for place, op in writes.items() if op.value is not None}
        texts = {place: dumps(value, f"the value of {place[1]!r}") for place, value in values.items()}
        with self._documents.begin() as tx:
            before = self._documents.get_many(tx, [keys[place] for place in values])
            fields = [_fields(place, old, vectors.get(place)) for place, old in zip(values, before)]
            episodes = [_EPISODES + key_of(*place[0]) for place in values]
            parts = zip([keys[place] for place in values], texts.values(), episodes, fields)
            self._documents.put_many(tx, [Record(*part) for part in parts])
            self._documents.delete(tx, [key for place, key in keys.items() if place not in values])


def _fields(place: Place, before: _native.Item | None, vectors: list[Any] | None) -> dict[str, str | bytes]:
    fields: dict[str, str | bytes] = {"namespace": dumps(list(place[0])), "key": place[1]}
    if before is not None:
        fields["created"] = _created(before).isoformat()
    if vectors:
        rows = np.asarray(vectors, dtype=np.float32)
        fields["vectors"] = rows.tobytes()
        fields["vectors.dim"] = str(rows.shape[1])
    return fields


def _key(namespace: tuple[str, ...], key: str) -> str:
    return f"ls.d/{key_of(*namespace)}//{key_of(key)}"


def _prefix(namespace: tuple[str, ...]) -> str:
    return f"ls.d/{key_of(*namespace)}/" if namespace else "ls.d/"


def _created(stored: _native.Item) -> datetime:
    created = stored.fields.get("created")
    if created is not None:
        return datetime.fromisoformat(str(created))
    assert stored.time is not None, "a trace has a time"
    return stored.time


def _item(stored: _native.Item) -> Item:
    return Item(
        value=loads(text_of(stored)),
        key=field_of(stored, "key"),
        namespace=tuple(loads(field_of(stored, "namespace"))),
        created_at=_created(stored),
        updated_at=stored.time or _created(stored),
    )


def _result(item: Item, score: float | None) -> SearchItem:
    return SearchItem(
        namespace=item.namespace,
        key=item.key,
        value=item.value,
        created_at=item.created_at,
        updated_at=item.updated_at,
        score=score,
    )


def _vectors(stored: _native.Item) -> Any:
    data = field_bytes(stored, "vectors") if "vectors" in stored.fields else b""
    numbers = np.frombuffer(data, dtype=np.float32)
    return numbers.reshape(-1, int(stored.fields.get("vectors.dim", "1")))


def _cosine(a: Any, b: Any) -> float:
    lengths = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / lengths if lengths else 0.0


def _matches(condition: MatchCondition, namespace: tuple[str, ...]) -> bool:
    path = tuple(condition.path)
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", own) for wanted, own in zip(path, part))
