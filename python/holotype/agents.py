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
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from agents.memory.session_settings import SessionSettings, resolve_session_limit

from ._database import Database
from ._documents import key_of, read
from ._native import Item
from ._snapshot import Snapshot
from ._transaction import Transaction

if TYPE_CHECKING:
    from agents.items import TResponseInputItem

__all__ = ["HolotypeSession"]

R = TypeVar("R")

_SOURCES = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system", "tool": "tool"}


class HolotypeSession:
    """A session of the OpenAI Agents SDK in a Holotype database."""

    def __init__(
        self,
        session_id: str,
        database: Database,
        *,
        session_settings: SessionSettings | None = None,
        erase: bool = True,
        durability: str = "sync",
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
        if items:
            await asyncio.to_thread(self._write, lambda tx: self._add(tx, items))

    async def pop_item(self) -> TResponseInputItem | None:
        """Removes the newest item of the conversation and returns it; ``None`` if there is none."""
        return await asyncio.to_thread(self._write, self._pop)

    async def clear_session(self) -> None:
        """Removes all items of the conversation."""
        await asyncio.to_thread(self._write, self._clear)

    def _get(self, limit: int | None) -> list[TResponseInputItem]:
        found = read(self._database, lambda view: [_loaded(item) for item in self._items(view)])
        return found if limit is None else found[max(len(found) - limit, 0) :]

    def _items(self, view: Snapshot | Transaction) -> list[Item]:
        found = view.get_many(view.keys(self._prefix))
        return [item for item in found if item is not None and item.active and not item.redacted]

    def _write(self, work: Callable[[Transaction], R]) -> R:
        with self._database.begin(durability=self._durability) as tx:
            return work(tx)

    def _add(self, tx: Transaction, items: list[TResponseInputItem]) -> None:
        keys = tx.keys(self._prefix)
        first = int(keys[-1][len(self._prefix) :], 16) + 1 if keys else 0
        for number, item in enumerate(items, first):
            role = item.get("role")
            tx.record(
                _text(item),
                episode=self._episode,
                kind="turn",
                key=f"{self._prefix}{number:012x}",
                source=_SOURCES.get(str(role), "tool" if str(item.get("type", "")).endswith("_output") else None),
                speaker=None if role is None else str(role),
                fields={"item": json.dumps(item, ensure_ascii=False)},
            )

    def _pop(self, tx: Transaction) -> TResponseInputItem | None:
        items = self._items(tx)
        if not items:
            return None
        self._remove(tx, items[-1:])
        return _loaded(items[-1])

    def _clear(self, tx: Transaction) -> None:
        self._remove(tx, self._items(tx))

    def _remove(self, tx: Transaction, items: list[Item]) -> None:
        if self._erase and items:
            tx.forget([item.id for item in items], because="removed from the session")
        elif not self._erase:
            for item in items:
                tx.retract(item.id, because="removed from the session")


def _loaded(item: Item) -> TResponseInputItem:
    loaded: TResponseInputItem = json.loads(str(item.fields["item"]))
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
