"""LangGraph's ``BaseStore`` in a Holotype database."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

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
from ._database import Database
from ._documents import Documents, key_of
from ._snapshot import Snapshot
from ._transaction import Transaction

__all__ = ["HolotypeStore"]

Place = tuple[tuple[str, ...], str]


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
        durability: str = "sync",
    ) -> None:
        self._documents = Documents(database, "langgraph-store", erase=erase, durability=durability)
        self._embeddings = ensure_embeddings(index.get("embed")) if index else None
        self._fields = list((index or {}).get("fields") or ["$"])

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Runs operations. Reads see the state before the writes, which are one transaction."""
        ops = list(ops)
        results = self._documents.read(lambda view: [self._read(view, op) for op in ops])
        writes: dict[Place, PutOp] = {(op.namespace, op.key): op for op in ops if isinstance(op, PutOp)}
        if writes:
            vectors = self._embed(writes)
            with self._documents.begin() as tx:
                for place, op in writes.items():
                    self._write(tx, place, op.value, vectors.get(place, []))
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
        found = [
            (item, _vectors(stored))
            for _, stored in self._documents.scan(view, _prefix(op.namespace_prefix))
            if _passes((item := _item(stored)).value, op.filter)
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
        places = {tuple(json.loads(item.fields["namespace"])) for _, item in self._documents.scan(view, "ls.d/")}
        places = {place for place in places if all(_matches(one, place) for one in op.match_conditions or ())}
        if op.max_depth is not None:
            places = {place[: op.max_depth] for place in places}
        return sorted(places)[op.offset : op.offset + op.limit]

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

    def _write(self, tx: Transaction, place: Place, value: Mapping[str, Any] | None, vectors: list[Any]) -> None:
        key = _key(*place)
        if value is None:
            self._documents.delete(tx, [key])
            return
        before = self._documents.get(tx, key)
        fields: dict[str, str | bytes] = {"namespace": json.dumps(place[0]), "key": place[1]}
        if before is not None:
            fields["created"] = _created(before).isoformat()
        if vectors:
            rows = np.asarray(vectors, dtype=np.float32)
            fields["vectors"] = rows.tobytes()
            fields["vectors.dim"] = str(rows.shape[1])
        text = json.dumps(value, ensure_ascii=False)
        self._documents.put(tx, key, text, episode="/".join(("langgraph-store", key_of(*place[0]))), fields=fields)


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
        value=json.loads(stored.text),
        key=str(stored.fields["key"]),
        namespace=tuple(json.loads(stored.fields["namespace"])),
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
    data = stored.fields.get("vectors", b"")
    # Bytes that happen to be UTF-8 come back as text.
    numbers = np.frombuffer(data.encode() if isinstance(data, str) else data, dtype=np.float32)
    return numbers.reshape(-1, int(stored.fields.get("vectors.dim", "1")))


def _cosine(a: Any, b: Any) -> float:
    lengths = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / lengths if lengths else 0.0


def _passes(value: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    return all(_equal(value.get(name), one) for name, one in (wanted or {}).items())


_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "$eq": lambda value, other: bool(value == other),
    "$ne": lambda value, other: bool(value != other),
    "$gt": lambda value, other: float(value) > float(other),
    "$gte": lambda value, other: float(value) >= float(other),
    "$lt": lambda value, other: float(value) < float(other),
    "$lte": lambda value, other: float(value) <= float(other),
}


def _equal(value: Any, wanted: Any) -> bool:
    """Compares as LangGraph's own stores do: operators, nested mappings, lists member by member."""
    if isinstance(wanted, dict):
        if any(name.startswith("$") for name in wanted):
            for name in wanted:
                if name not in _OPERATORS:
                    raise ValueError(f"unknown operator {name!r}: expected one of {', '.join(_OPERATORS)}")
            return all(_OPERATORS[name](value, other) for name, other in wanted.items())
        return isinstance(value, dict) and _passes(value, wanted)
    if isinstance(wanted, (list, tuple)):
        alike = isinstance(value, (list, tuple)) and len(value) == len(wanted)
        return alike and all(_equal(one, other) for one, other in zip(value, wanted))
    return bool(value == wanted)


def _matches(condition: MatchCondition, namespace: tuple[str, ...]) -> bool:
    path = tuple(condition.path)
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", own) for wanted, own in zip(path, part))
