"""Mem0's calls over a Holotype database: a program of that shape runs with its import changed. No extra is needed.

>>> from holotype.mem0 import Memory
>>> memory = Memory(db)
>>> added = memory.add("I am a vegetarian", user_id="ada", metadata={"topic": "food"})
>>> [one["memory"] for one in memory.search("What does she eat? vegetarian", user_id="ada")["results"]]
['I am a vegetarian']
>>> done = memory.update(added["results"][0]["id"], "I am a vegan")
>>> [(one["event"], one["new_memory"]) for one in memory.history(added["results"][0]["id"])]
[('ADD', 'I am a vegetarian'), ('UPDATE', 'I am a vegan')]
>>> memory.get_all(user_id="ada", filters={"topic": "food"})["results"][0]["memory"]
'I am a vegan'

What was said is recorded verbatim, and each memory is a fact that points at it, so that ``db`` shows where a memory
comes from. User, agent and run are labels. Nothing here calls a model: without ``extract`` a message of the user or the
assistant is a memory as it stands.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ._database import Database
from ._documents import read, searchable
from ._native import Item
from ._snapshot import Snapshot
from ._transaction import Transaction
from ._where import Where
from .errors import InputError

if TYPE_CHECKING:
    from ._types import _Durability as Durability, _Source as Source

__all__ = ["Memory"]

Messages = str | Mapping[str, Any] | Sequence[Mapping[str, Any]]
Extract = Callable[[list[dict[str, Any]]], Sequence[str]]

_SOURCES: dict[str, Source] = {"user": "user", "assistant": "assistant", "system": "system", "tool": "tool"}
_KEY = "mem0/"


class Memory:
    """Memories of users, agents and runs, with the calls of ``mem0.Memory``."""

    def __init__(
        self,
        database: Database,
        *,
        extract: Extract | None = None,
        erase: bool = False,
        durability: Durability = "sync",
    ) -> None:
        """
        :param database: an open database; with an embedder, memories are found by meaning too.
        :param extract: gives the facts to keep of messages, such as a call of a model; each fact points at all of them.
        :param erase: erase deleted memories from the log, instead of taking them out of use, so that
            :meth:`history` forgets them too.
        :param durability: of every write: ``sync`` survives power loss, ``flush`` a crash of the process.
        """
        self.database = database
        self._extract = extract
        self._erase = erase
        self._durability: Durability = durability

    # ---- writing ----

    def add(
        self,
        messages: Messages,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        infer: bool = True,
    ) -> dict[str, Any]:
        """Adds memories of messages, and returns them as ``results`` with their ids.

        :param messages: a text of the user, a message with ``role`` and ``content``, or a list of messages.
        :param infer: use ``extract``, if there is one; ``False`` keeps each message as it stands.
        """
        labels = _labels(user_id, agent_id, run_id)
        said = _messages(messages)
        facts = None if self._extract is None or not infer else [str(fact) for fact in self._extract(said)]
        episode = _KEY + "/".join(labels)
        results = []
        with self.database.begin(durability=self._durability) as tx:
            traces = [
                tx.record(
                    searchable(message["content"]), episode=episode, labels=labels,
                    source=_SOURCES.get(message["role"], "user"),
                    speaker=searchable(str(message.get("name") or message["role"])),
                )  # fmt: skip
                for message in said
            ]
            pairs = [(message["content"], [trace], message["role"]) for message, trace in zip(said, traces)]
            if facts is not None:
                pairs = [(fact, traces, None) for fact in facts]
            for text, sources, role in pairs:
                if role == "system" or not text.strip():
                    continue
                id = str(uuid.uuid4())
                fields = {"metadata": dict(metadata or {}), "role": role}
                tx.remember(searchable(text), sources=sources, key=_KEY + id, fields=fields, labels=labels)
                results.append({"id": id, "memory": text, "event": "ADD"})
        return {"results": results}

    def update(self, memory_id: str, data: str) -> dict[str, str]:
        """Replaces the text of a memory; its history keeps the old one."""
        with self.database.begin(durability=self._durability) as tx:
            self._present(tx, memory_id)
            tx.update(_KEY + memory_id, searchable(data))
        return {"message": "Memory updated successfully!"}

    def delete(self, memory_id: str) -> dict[str, str]:
        """Deletes a memory."""
        with self.database.begin(durability=self._durability) as tx:
            self._remove(tx, [self._present(tx, memory_id).id])
        return {"message": "Memory deleted successfully!"}

    def delete_all(
        self, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, str]:
        """Deletes all memories of a user, an agent or a run."""
        labels = _labels(user_id, agent_id, run_id)
        with self.database.begin(durability=self._durability) as tx:
            where, params = _where(labels, None)
            rows = tx.query(f"find facts where {where} return item", params)
            self._remove(tx, [row[0] for row in rows])
        return {"message": "Memories deleted successfully!"}

    def _remove(self, tx: Transaction, items: Sequence[int]) -> None:
        if self._erase and items:
            tx.forget(items, because="deleted")
        elif not self._erase:
            for item in items:
                tx.retract(item, because="deleted")

    # ---- reading ----

    def get(self, memory_id: str) -> dict[str, Any] | None:
        """A memory; ``None`` if there is none."""
        item = read(self.database, lambda view: view.get(_KEY + memory_id))
        return _memory(item) if item is not None and item.active and not item.redacted else None

    def get_all(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        filters: Mapping[str, Any] | None = None,
        limit: int = 100,
    ) -> dict[str, Any]:
        """The memories of a user, an agent or a run, oldest first.

        :param filters: conditions on the metadata: see ``filter`` of :meth:`holotype.Database.recall`.
        """
        where, params = _where(_labels(user_id, agent_id, run_id), filters)

        def work(view: Snapshot) -> list[dict[str, Any]]:
            rows = view.query(f"find facts where {where} limit $most return item", {**params, "most": limit})
            found = view.get_many(row[0] for row in rows)
            return [_memory(item) for item in found if item is not None]

        return {"results": read(self.database, work)}

    def search(
        self,
        query: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        limit: int = 100,
        filters: Mapping[str, Any] | None = None,
        threshold: float | None = None,
    ) -> dict[str, Any]:
        """The memories that answer a question, best first, with their scores.

        :param threshold: only memories of at least this score.
        """
        where, params = _where(_labels(user_id, agent_id, run_id), filters)

        def work(view: Snapshot) -> list[dict[str, Any]]:
            answer = view.recall(
                searchable(query), through=f"facts {limit}", where=where, params=params, lines="none", limit=limit
            )
            items = view.get_many(row.item for row in answer)
            return [{**_memory(item), "score": row.score} for item, row in zip(items, answer) if item is not None]

        found = read(self.database, work)
        return {"results": [one for one in found if threshold is None or one["score"] >= threshold]}

    def history(self, memory_id: str) -> list[dict[str, Any]]:
        """What became of a memory, oldest first: ``ADD``, ``UPDATE`` and ``DELETE`` with the texts before and after."""

        def work(view: Snapshot) -> list[dict[str, Any]]:
            item = view.get(_KEY + memory_id)
            texts: list[Item] = []
            while item is not None:
                texts.append(item)
                before = view.linked(item.id, "supersedes")
                item = view.get(before[0]) if before else None
            told = []
            for place, version in enumerate(reversed(texts)):
                old = None if place == 0 else texts[len(texts) - place].text
                told.append(_event(memory_id, "UPDATE" if place else "ADD", old, version.text, version))
            if texts and not texts[0].active:
                told.append(_event(memory_id, "DELETE", texts[0].text, None, texts[0]))
            return told

        return read(self.database, work)

    def reset(self) -> None:
        """Deletes all memories."""
        with self.database.begin(durability=self._durability) as tx:
            rows = tx.query("find facts where key matches $prefix and active = true and not redacted return item",
                            {"prefix": f"{_KEY}*"})
            self._remove(tx, [row[0] for row in rows])

    def _present(self, tx: Transaction, memory_id: str) -> Item:
        item = tx.get(_KEY + memory_id)
        if item is None or not item.active or item.redacted:
            raise InputError(f"there is no memory {memory_id!r}", code="missing")
        return item


def _labels(user_id: str | None, agent_id: str | None, run_id: str | None) -> list[str]:
    given = (("user", user_id), ("agent", agent_id), ("run", run_id))
    labels = [f"{sort}:{id}" for sort, id in given if id is not None]
    if not labels:
        hint = "give user_id, agent_id or run_id"
        raise InputError(f"the memories of nobody; {hint}", hint=hint)
    return labels


def _messages(messages: Messages) -> list[dict[str, Any]]:
    if isinstance(messages, str):
        return [{"role": "user", "content": messages}]
    given = [messages] if isinstance(messages, Mapping) else list(messages)
    found = []
    for number, message in enumerate(given):
        content = message.get("content") if isinstance(message, Mapping) else None
        if not isinstance(content, str):
            hint = 'give {"role": "user", "content": "…"}'
            raise InputError(f"messages[{number}] has no text as its content; {hint}", hint=hint)
        found.append({**message, "role": str(message.get("role", "user"))})
    return found


def _where(labels: Sequence[str], filters: Mapping[str, Any] | None) -> tuple[str, dict[str, Any]]:
    where = Where()
    parts = ["active = true and not redacted", *(f"labels = {where.value(label)}" for label in labels)]
    parts.append("key matches 'mem0/*'")
    if filters:
        parts.append(where.filter(_of_metadata(filters)))
    return " and ".join(parts), where.params


def _of_metadata(filters: Any) -> Any:
    """The filter with its names as members of the metadata."""
    if not isinstance(filters, Mapping):
        return filters
    found: dict[str, Any] = {}
    for name, one in filters.items():
        if name in ("$and", "$or") and not isinstance(one, (str, Mapping)):
            found[name] = [_of_metadata(part) for part in one]
        elif name == "$not":
            found[name] = _of_metadata(one)
        else:
            found[name if str(name).startswith("$") else f"metadata.{name}"] = one
    return found


def _memory(item: Item) -> dict[str, Any]:
    assert item.key.startswith(_KEY), "a memory has a key of its own"
    created = item.time.isoformat() if item.time is not None else None
    memory: dict[str, Any] = {
        "id": item.key[len(_KEY) :],
        "memory": item.text,
        "hash": hashlib.md5(item.text.encode(), usedforsecurity=False).hexdigest(),
        "metadata": item.fields.get("metadata") or None,
        "created_at": created,
        "updated_at": created,
    }
    for label in item.fields.get("labels", []):
        sort, _, id = label.partition(":")
        memory[f"{sort}_id"] = id
    if "role" in item.fields:
        memory["role"] = item.fields["role"]
    return memory


def _event(memory_id: str, event: str, old: str | None, new: str | None, item: Item) -> dict[str, Any]:
    return {
        "id": f"{memory_id}/{item.id}/{event}",
        "memory_id": memory_id,
        "old_memory": old,
        "new_memory": new,
        "event": event,
        "created_at": item.time.isoformat() if item.time is not None else None,
        "is_deleted": event == "DELETE",
    }
