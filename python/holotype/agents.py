"""OpenAI Agents: a session. ``pip install 'holotype[agents]'``

>>> import asyncio
>>> from holotype.agents import HolotypeSession
>>> session = HolotypeSession("trip-42", db)
>>> asyncio.run(session.add_items([{"role": "user", "content": "Book UA123"}]))
>>> asyncio.run(session.get_items())
[{'role': 'user', 'content': 'Book UA123'}]
>>> db.recall("UA123", episode="agents/trip-42", limit=1)[0].source
'user'

Each item of the conversation is a trace of the episode ``agents/SESSION``, with its text to be recalled and its JSON
to be given back. What is popped or cleared is erased from the log; with ``erase=False`` it is only taken out of use.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from agents.memory.session_settings import SessionSettings, resolve_session_limit

from ._codec import dumps, loads
from ._database import Database
from ._documents import field_of, key_of, read, searchable
from ._native import Item
from ._snapshot import Snapshot
from ._transaction import Transaction
from ._values import listed

if TYPE_CHECKING:
    from ._types import _Durability as Durability, _Source as Source
    from agents.items import TResponseInputItem

__all__ = ["HolotypeSession"]

R = TypeVar("R")

_FIRST = 0xFFFFFFFFFFFF
_ALL = 1_000_000_000

_SOURCES: dict[str, Source] = {
    "user": "user", "assistant": "assistant", "system": "system", "developer": "system", "tool": "tool",
}  # fmt: skip


class HolotypeSession:
    """A session of the OpenAI Agents SDK in a Holotype database."""

    def __init__(
        self,
        session_id: str,
        database: Database,
        *,
        session_settings: SessionSettings | None = None,
        erase: bool = True,
        durability: Durability = "sync",
    ) -> None:
        self.session_id = session_id
        self.session_settings = session_settings if session_settings is not None else SessionSettings()
        self._database = database
        self._erase = erase
        self._durability = durability
        self._episode = f"agents/{key_of(session_id)}"
        self._prefix = f"as.i/{key_of(session_id)}/"

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The newest ``limit`` items of the conversation, or all, oldest first."""
        limit = resolve_session_limit(limit, self.session_settings)
        return await asyncio.to_thread(self._get, limit)

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Adds items to the conversation, all or none."""
        items = listed("items", items, "items")
        if items:
            await asyncio.to_thread(self._write, lambda tx: self._add(tx, items))

    async def pop_item(self) -> TResponseInputItem | None:
        """Removes the newest item of the conversation and returns it; ``None`` if there is none."""
        return await asyncio.to_thread(self._write, self._pop)

    async def clear_session(self) -> None:
        """Removes all items of the conversation."""
        await asyncio.to_thread(self._write, self._clear)

    def _get(self, limit: int | None) -> list[TResponseInputItem]:
        found = read(self._database, lambda view: [_loaded(item) for item in self._newest(view, limit)])
        return found[::-1]

    def _newest(self, view: Snapshot | Transaction, limit: int | None) -> list[Item]:
        """The newest items, newest first, or all. Keys count down, so that the newest are the first in order."""
        if limit is not None and limit <= 0:
            return []
        most = _ALL if limit is None else limit
        while True:
            keys = view.keys(self._prefix, most=most)
            found = [item for item in view.get_many(keys) if item is not None and item.active and not item.redacted]
            # Those that were removed and not erased are in the way.
            if len(keys) < most or limit is not None and len(found) >= limit:
                return found if limit is None else found[:limit]
            most *= 4

    def _write(self, work: Callable[[Transaction], R]) -> R:
        with self._database.begin(durability=self._durability) as tx:
            return work(tx)

    def _add(self, tx: Transaction, items: list[TResponseInputItem]) -> None:
        newest = tx.keys(self._prefix, most=1)
        first = int(newest[0][len(self._prefix) :], 16) - 1 if newest else _FIRST
        traces = []
        for number, item in enumerate(items):
            if not isinstance(item, dict):
                raise TypeError(f"items[{number}]: expected a dict, found {type(item).__name__}")
            role = item.get("role")
            source = _SOURCES.get(str(role), "tool" if str(item.get("type", "")).endswith("_output") else None)
            traces.append({
                "text": searchable(_text(item)), "episode": self._episode, "kind": "turn",
                "key": f"{self._prefix}{first - number:012x}", "source": source,
                "speaker": None if role is None else searchable(str(role)),
                "fields": {"item": dumps(item, f"items[{number}]")},
            })  # fmt: skip
        tx.record_many(traces)

    def _pop(self, tx: Transaction) -> TResponseInputItem | None:
        items = self._newest(tx, 1)
        if not items:
            return None
        self._remove(tx, items)
        return _loaded(items[0])

    def _clear(self, tx: Transaction) -> None:
        self._remove(tx, self._newest(tx, None))

    def _remove(self, tx: Transaction, items: list[Item]) -> None:
        if self._erase and items:
            tx.forget([item.id for item in items], because="removed from the session")
        elif not self._erase:
            for item in items:
                tx.retract(item.id, because="removed from the session")


def _loaded(item: Item) -> TResponseInputItem:
    loaded: TResponseInputItem = loads(field_of(item, "item"))
    return loaded


def _text(item: Any) -> str:
    """What an item says, for recall: its content, or what was called and came back."""
    content = item.get("content")
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, dict))
        return "\n".join(part for part in parts if isinstance(part, str))
    parts = (item.get(name) for name in ("name", "arguments", "output"))
    return " ".join(part for part in parts if isinstance(part, str))
