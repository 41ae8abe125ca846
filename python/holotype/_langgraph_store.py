"""LangGraph's ``BaseStore`` in a Holotype database."""

from __future__ import annotations

import asyncio
import time
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
    TTLConfig,
    ensure_embeddings,
    get_text_at_path,
    tokenize_path,
)

from . import _native
from ._codec import dumps, loads
from ._database import Database, open_or_create
from ._documents import Documents, Record, field_bytes, field_of, key_of, parts_of, text_of
from ._filters import passes, refuse_unknown
from ._index import Declared, condition, members
from ._snapshot import Snapshot
from ._transaction import Transaction

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

    supports_ttl = True

    def __init__(
        self,
        database: Database,
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        erase: bool = True,
        durability: Durability = "sync",
    ) -> None:
        """
        :param index: how values are embedded.
        :param ttl: how long values live: ``default_ttl`` in minutes, and ``refresh_on_read``.
        :param erase: erase deleted values from the log, instead of taking them out of use.
        :param durability: of every write: ``sync`` survives power loss, ``flush`` a crash of the process.
        """
        self._documents = Documents(database, "langgraph-store", erase=erase, durability=durability)
        self._declared = Declared()
        self.ttl_config = ttl
        self._embeddings = ensure_embeddings(index.get("embed")) if index else None
        self._fields = list((index or {}).get("fields") or ["$"])

    @classmethod
    @contextmanager
    def from_conn_string(
        cls, conn_string: str, *, index: IndexConfig | None = None, ttl: TTLConfig | None = None
    ) -> Iterator[HolotypeStore]:
        """A store in the database at a path, which is created if there is none and closed at the end."""
        with open_or_create(conn_string) as database:
            yield cls(database, index=index, ttl=ttl)

    @property
    def _has_ttl(self) -> bool:
        """Whether reading may have to let a value live on."""
        return bool(self.ttl_config and self.ttl_config.get("refresh_on_read", True))

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Runs operations. Reads see the state before the writes, which are one transaction."""
        ops = list(ops)
        results = self._documents.read(lambda view: [self._read(view, op) for op in ops])
        writes = self._refresh(ops, results) if self._has_ttl else {}
        writes.update({(op.namespace, op.key): op for op in ops if isinstance(op, PutOp)})
        if writes:
            self._write(writes, self._embed(writes))
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """As :meth:`batch`."""
        return await asyncio.to_thread(self.batch, list(ops))

    def sweep_ttl(self) -> int:
        """Deletes the values that expired, and returns their number."""
        with self._documents.begin() as tx:
            if not self._expires(tx):
                return 0
            rows = tx.query(
                "find observations where tool = $tool and active = true and not redacted"
                " and fields.expires <= $now return key",
                {"tool": self._documents.tool, "now": time.time()},
            )
            keys = list(dict.fromkeys(str(row[0]).rpartition("@")[0] for row in rows))
            self._documents.delete(tx, keys)
        return len(keys)

    def _stored(self, key: str) -> Any:
        return self._documents.read(lambda view: self._documents.get(view, key))

    def _refresh(self, ops: Sequence[Op], results: Sequence[Result]) -> dict[Place, PutOp]:
        """The writes that let what was read live on."""
        writes: dict[Place, PutOp] = {}
        for op, result in zip(ops, results):
            if not isinstance(op, (GetOp, SearchOp)) or not op.refresh_ttl or not result:
                continue
            for item in result if isinstance(result, list) else [result]:
                if not isinstance(item, Item):
                    continue
                stored = self._stored(_key(item.namespace, item.key))
                if stored is not None and "ttl" in stored.fields:
                    op = PutOp(item.namespace, item.key, item.value, ttl=float(stored.fields["ttl"]))
                    writes[(item.namespace, item.key)] = op
        return writes

    # ---- reading ----

    def _read(self, view: Snapshot, op: Op) -> Result:
        if isinstance(op, GetOp):
            found = self._documents.get(view, _key(op.namespace, op.key))
            return None if found is None or _is_over(found) else _item(found)
        if isinstance(op, SearchOp):
            return list(self._search(view, op))
        if isinstance(op, ListNamespacesOp):
            return self._namespaces(view, op)
        if isinstance(op, PutOp):
            return None
        raise ValueError(f"unknown operation {type(op)}")

    def _search(self, view: Snapshot, op: SearchOp) -> Sequence[SearchItem]:
        refuse_unknown(op.filter)
        wanted = op.offset + op.limit
        # A search without a filter and a question reads no value behind its last one. Others look at all that may pass.
        most = None if op.filter or (op.query and self._embeddings) else wanted
        found = [
            (item, _vectors(stored))
            for stored in self._candidates(view, op, most)
            if passes((item := _item(stored)).value, op.filter)
        ]
        if not (op.query and self._embeddings):
            return [_result(item, None) for item, _ in found[op.offset : wanted]]
        query = np.asarray(self._embeddings.embed_query(op.query), dtype=np.float32)
        scored = [(max(_cosine(query, row) for row in rows), item) for item, rows in found if len(rows)]
        scored.sort(key=lambda pair: pair[0], reverse=True)
        best = [_result(item, score) for score, item in scored[op.offset : wanted]]
        # What has no vector fills the rest.
        rest = [_result(item, None) for item, rows in found if not len(rows)]
        return best + rest[: op.limit - len(best)]

    def _candidates(self, view: Snapshot, op: SearchOp, most: int | None) -> list[_native.Item]:
        """The values below a namespace that may pass the filter, as they were put, without those that expired."""
        places = self._places(view, op.namespace_prefix)
        if not places:
            return []
        text, params = condition(op.filter) or ("", {})
        if self._expires(view):
            text, params = f"{text + ' and ' if text else ''}not fields.expires <= $now", {**params, "now": time.time()}
        episodes = places if op.namespace_prefix else None
        return self._documents.find(view, episodes=episodes, where=(text, params), most=most)

    def _places(self, view: Snapshot, namespace: tuple[str, ...]) -> list[str]:
        """The episodes of a namespace and of those below it."""
        if not namespace:
            return view.episodes(_EPISODES, most=1)
        own = _EPISODES + key_of(*namespace)
        return [*(name for name in view.episodes(own, most=1) if name == own), *view.episodes(f"{own}/")]

    def _expires(self, view: Snapshot | Transaction) -> bool:
        """Whether a value of the database may expire: the field is declared with the first that does."""
        return any(row[0] == "field.expires" for row in view.query("show settings"))

    def _namespaces(self, view: Snapshot, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        # Each namespace is an episode.
        counted = view.query(
            "count observations where tool = $tool and active = true and not redacted by episode",
            {"tool": self._documents.tool},
        )
        names = (str(row[0])[len(_EPISODES) :] for row in counted if str(row[0]).startswith(_EPISODES))
        places = {self._namespace(view, name) for name in names}
        places = {place for place in places if all(_matches(one, place) for one in op.match_conditions or ())}
        if op.max_depth is not None:
            places = {place[: op.max_depth] for place in places}
        return sorted(places)[op.offset : op.offset + op.limit]

    def _namespace(self, view: Snapshot, name: str) -> tuple[str, ...]:
        """The namespace of an episode's name. Parts that are too long for a key are read from a value."""
        if (parts := parts_of(name)) is not None:
            return tuple(parts)
        rows = view.query(
            "find observations in episode $episode where active = true and not redacted limit 1 return item",
            {"episode": _EPISODES + name},
        )
        value = view.get_many([rows[0][0]])[0]
        return () if value is None else tuple(loads(field_of(value, "namespace")))

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
            fields = [
                {**_fields(place, old, vectors.get(place)), **members(values[place]), **_expiry(writes[place])}
                for place, old in zip(values, before)
            ]
            for one in fields:
                self._declared.declare(tx, one)
            if any("expires" in one for one in fields):
                tx.declare("expires", "number")
            episodes = [_EPISODES + key_of(*place[0]) for place in values]
            parts = zip([keys[place] for place in values], texts.values(), episodes, fields)
            self._documents.put_many(tx, [Record(*part) for part in parts])
            self._documents.delete(tx, [key for place, key in keys.items() if place not in values])


def _expiry(op: PutOp) -> dict[str, Any]:
    """When a value ends, in seconds since 1970, and how many minutes it lives."""
    return {} if op.ttl is None else {"expires": time.time() + op.ttl * 60, "ttl": float(op.ttl)}


def _fields(place: Place, before: _native.Item | None, vectors: list[Any] | None) -> dict[str, Any]:
    fields: dict[str, Any] = {"namespace": dumps(list(place[0])), "key": place[1]}
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


def _is_over(stored: _native.Item) -> bool:
    """Whether a value expired."""
    return float(stored.fields.get("expires", "inf")) <= time.time()


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
