"""The same for asyncio: each call runs on a thread of asyncio's pool, so the event loop goes on.

>>> import asyncio
>>> from holotype import aio
>>> async def story():
...     async with await aio.open_or_create(path, space="hashing-v1-256") as db:
...         async with db.begin() as tx:
...             await tx.record("UA123 price=$450", episode="trip-42", key="t1")
...         return (await db.recall("UA123", episode="trip-42"))[0].key
>>> asyncio.run(story())
't1'

Transactions of one database wait for each other without a thread. Cancelling a task does not stop a call that runs
already; give long statements a ``timeout``.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from . import _database, _native, _snapshot, _transaction
from ._native import Answer, Citation, Item
from ._values import Change, Commit, Head, ImportReport, ReembedReport, Space, VerifyReport
from .errors import Busy, TransactionError

if TYPE_CHECKING:
    import numpy

    from ._embedding import Embedder
    from .proof import SigningKey

__all__ = ["Database", "Snapshot", "Transaction", "create", "open", "open_or_create", "rebuild"]

_WAITS_FOR_THE_WRITER = {
    "query", "script", "recall", "replay", "stats", "verify", "checkpoint", "compact", "backup", "import_file",
    "reembed", "wait_for_changes",
}  # fmt: skip

_SLICE = 1.0
"""Seconds that a thread waits for changes before it looks whether anybody still does."""

P = ParamSpec("P")
R = TypeVar("R")


async def create(path: _database.Path, **options: Any) -> Database:
    """As :func:`holotype.create`."""
    return Database(await asyncio.to_thread(_database.create, path, **options))


async def open(path: _database.Path, **options: Any) -> Database:
    """As :func:`holotype.open`."""
    return Database(await asyncio.to_thread(_database.open, path, **options))


async def open_or_create(path: _database.Path, **options: Any) -> Database:
    """As :func:`holotype.open_or_create`."""
    return Database(await asyncio.to_thread(_database.open_or_create, path, **options))


async def rebuild(path: _database.Path, **options: Any) -> Database:
    """As :func:`holotype.rebuild`."""
    return Database(await asyncio.to_thread(_database.rebuild, path, **options))


class _Mirror:
    """An object whose calls run on threads."""

    def __init__(self, sync: Any) -> None:
        self.sync = sync
        """The object of the package ``holotype`` behind this one."""

    async def _call(self, call: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await asyncio.to_thread(call, *args, **kwargs)


class _Reading(_Mirror):
    async def query(self, statement: str, params: Any = None, **options: Any) -> Any:
        """As :meth:`holotype.Database.query`."""
        return await self._call(self.sync.query, statement, params, **options)

    async def script(self, statements: str, params: Any = None, **options: Any) -> list[Any]:
        """As :meth:`holotype.Database.script`."""
        outputs: list[Any] = await self._call(self.sync.script, statements, params, **options)
        return outputs

    async def recall(self, text: str | None = None, **options: Any) -> Answer:
        """As :meth:`holotype.Database.recall`."""
        answer: Answer = await self._call(self.sync.recall, text, **options)
        return answer


class Snapshot(_Reading):
    """As :class:`holotype.Snapshot`."""

    sync: _snapshot.Snapshot

    @property
    def commit(self) -> int:
        """The commit of the view."""
        return self.sync.commit

    async def get(self, item: str | int) -> Item | None:
        """As :meth:`holotype.Snapshot.get`."""
        return await self._call(self.sync.get, item)

    async def keys(self, prefix: str = "", *, most: int = 1_000_000) -> list[str]:
        """As :meth:`holotype.Snapshot.keys`."""
        return await self._call(self.sync.keys, prefix, most=most)

    async def get_many(self, items: Iterable[str | int]) -> list[Item | None]:
        """As :meth:`holotype.Snapshot.get_many`."""
        return await self._call(self.sync.get_many, list(items))

    async def episodes(self, prefix: str = "", *, most: int = 1_000_000) -> list[str]:
        """As :meth:`holotype.Snapshot.episodes`."""
        return await self._call(self.sync.episodes, prefix, most=most)

    async def citations(self, item: str | int) -> list[Citation]:
        """As :meth:`holotype.Snapshot.citations`."""
        return await self._call(self.sync.citations, item)

    async def linked(self, item: str | int, edge: str, *, incoming: bool = False) -> list[int]:
        """As :meth:`holotype.Snapshot.linked`."""
        return await self._call(self.sync.linked, item, edge, incoming=incoming)

    async def vector(self, item: str | int) -> numpy.ndarray[Any, Any] | None:
        """As :meth:`holotype.Snapshot.vector`."""
        return await self._call(self.sync.vector, item)

    async def vectors(self, items: Iterable[str | int]) -> numpy.ndarray[Any, Any]:
        """As :meth:`holotype.Snapshot.vectors`."""
        return await self._call(self.sync.vectors, list(items))

    async def export(self, path: _database.Path, **options: Any) -> tuple[int, int]:
        """As :meth:`holotype.Snapshot.export`."""
        return await self._call(self.sync.export, path, **options)

    async def prove(self, item: str | int, key: SigningKey) -> str:
        """As :meth:`holotype.Snapshot.prove`."""
        return await self._call(self.sync.prove, item, key)

    async def signed_checkpoint(self, key: SigningKey) -> str:
        """As :meth:`holotype.Snapshot.signed_checkpoint`."""
        return await self._call(self.sync.signed_checkpoint, key)

    async def as_of(self, commit: int | None = None, *, time: datetime | str | int | None = None) -> Snapshot:
        """As :meth:`holotype.Snapshot.as_of`."""
        return Snapshot(await self._call(self.sync.as_of, commit, time=time))

    @property
    def space(self) -> Space | None:
        """The embedding space, if the database has one."""
        return self.sync.space

    @property
    def origin(self) -> str:
        """The name for signing keys of this database."""
        return self.sync.origin


class Transaction(_Reading):
    """As :class:`holotype.Transaction`; it begins when its ``async with`` block is entered."""

    sync: _transaction.Transaction

    def __init__(self, database: Database, durability: str, timeout: float | None) -> None:
        self._database = database
        self._durability = durability
        self._timeout = timeout

    @property
    def committed(self) -> Commit | None:
        """The commit, once there is one."""
        return self.sync.committed

    async def record(self, text: str, **options: Any) -> int:
        """As :meth:`holotype.Transaction.record`."""
        return await self._call(self.sync.record, text, **options)

    async def record_many(self, traces: Any, vectors: Any = None) -> list[int]:
        """As :meth:`holotype.Transaction.record_many`."""
        return await self._call(self.sync.record_many, traces, vectors)

    async def record_columns(self, text: Any, **columns: Any) -> list[int]:
        """As :meth:`holotype.Transaction.record_columns`."""
        return await self._call(self.sync.record_columns, text, **columns)

    async def remember(self, text: str, **options: Any) -> int:
        """As :meth:`holotype.Transaction.remember`."""
        return await self._call(self.sync.remember, text, **options)

    async def update(self, key: str, text: str, **options: Any) -> int:
        """As :meth:`holotype.Transaction.update`."""
        return await self._call(self.sync.update, key, text, **options)

    async def mark(self, item: str | int, status: str, *, because: str | None = None) -> None:
        """As :meth:`holotype.Transaction.mark`."""
        await self._call(self.sync.mark, item, status, because=because)

    async def retract(self, item: str | int, *, because: str | None = None) -> None:
        """As :meth:`holotype.Transaction.retract`."""
        await self._call(self.sync.retract, item, because=because)

    async def link(self, source: str | int, edge: str, target: str | int) -> None:
        """As :meth:`holotype.Transaction.link`."""
        await self._call(self.sync.link, source, edge, target)

    async def get(self, item: str | int) -> Item | None:
        """As :meth:`holotype.Transaction.get`."""
        return await self._call(self.sync.get, item)

    async def get_many(self, items: Iterable[str | int]) -> list[Item | None]:
        """As :meth:`holotype.Transaction.get_many`."""
        return await self._call(self.sync.get_many, list(items))

    async def keys(self, prefix: str = "", *, most: int = 1_000_000) -> list[str]:
        """As :meth:`holotype.Transaction.keys`."""
        return await self._call(self.sync.keys, prefix, most=most)

    async def mark_utility(self, item: str | int, utility: float, *, rollouts: int = 1) -> None:
        """As :meth:`holotype.Transaction.mark_utility`."""
        await self._call(self.sync.mark_utility, item, utility, rollouts=rollouts)

    async def unlink(self, source: str | int, edge: str, target: str | int) -> None:
        """As :meth:`holotype.Transaction.unlink`."""
        await self._call(self.sync.unlink, source, edge, target)

    async def cite(self, item: str | int, evidence: _transaction.Evidence) -> None:
        """As :meth:`holotype.Transaction.cite`."""
        await self._call(self.sync.cite, item, evidence)

    async def claim(self, item: str | int, name: str, value: Any, *, is_global: bool = False) -> None:
        """As :meth:`holotype.Transaction.claim`."""
        await self._call(self.sync.claim, item, name, value, is_global=is_global)

    async def forget(self, items: Sequence[str | int], *, because: str, cascade: bool = False) -> list[str]:
        """As :meth:`holotype.Transaction.forget`."""
        return await self._call(self.sync.forget, items, because=because, cascade=cascade)

    async def episode(self, id: str, **change: Any) -> None:
        """As :meth:`holotype.Transaction.episode`."""
        await self._call(self.sync.episode, id, **change)

    async def set(self, name: str, value: str) -> None:
        """As :meth:`holotype.Transaction.set`."""
        await self._call(self.sync.set, name, value)

    async def rollback(self) -> None:
        """As :meth:`holotype.Transaction.rollback`."""
        await self._call(self.sync.rollback)

    async def commit(self, durability: str | None = None) -> Commit:
        """As :meth:`holotype.Transaction.commit`."""
        return await self._call(self.sync.commit, durability)

    @property
    def is_open(self) -> bool:
        """True until it is committed or rolled back."""
        return self.sync.is_open

    async def __aenter__(self) -> Transaction:
        began = time.monotonic()
        await self._database._take_turn(self._timeout)
        try:
            left = None if self._timeout is None else max(self._timeout - (time.monotonic() - began), 0.0)
            self.sync = await self._call(self._database.sync._begin_shared, self._durability, left)
        except BaseException:
            self._database._give_turn()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            await self._call(self.sync.__exit__, kind, error, traceback)
        finally:
            self._database._give_turn()


class Database(_Reading):
    """As :class:`holotype.Database`."""

    sync: _database.Database

    def __init__(self, sync: _database.Database) -> None:
        super().__init__(sync)
        self._turn = asyncio.Lock()
        self._writer: asyncio.Task[Any] | None = None

    def begin(self, *, durability: str = "sync", timeout: float | None = None) -> Transaction:
        """A transaction, to be entered with ``async with``, which waits for others for ``timeout`` seconds at most."""
        return Transaction(self, durability, timeout)

    async def changes(self, since: int = 0) -> AsyncIterator[Change]:
        """As :meth:`holotype.Database.changes`, for ``async for``."""
        async for change in self._read(await self._call(self.sync._native.changes, since)):
            yield change

    async def _read(self, changes: _native.Changes) -> AsyncIterator[Change]:
        while batch := await self._call(changes.next):
            for change in batch:
                yield Change(*change)

    async def subscribe(self, since: int | None = None, *, timeout: float | None = None) -> AsyncIterator[Change]:
        """As :meth:`holotype.Database.subscribe`, for ``async for``; but without ``since`` it begins with the first
        step of the loop. A task that is cancelled leaves a thread waiting for a second at most."""
        since = self.sync.head().commit if since is None else since
        quiet = time.monotonic()
        while True:
            left = _SLICE if timeout is None else quiet + timeout - time.monotonic()
            if await self._call(self.sync._native.wait_for_changes, since, min(max(left, 0.0), _SLICE)):
                found = await self._call(self.sync._native.changes, since)
                async for change in self._read(found):
                    yield change
                since = found.until
                quiet = time.monotonic()
            elif left <= _SLICE and timeout is not None:
                return

    async def _call(self, call: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        self._refuse_own_transaction(call)
        return await super()._call(call, *args, **kwargs)

    def _refuse_own_transaction(self, call: Callable[..., Any]) -> None:
        """A call that may write would wait for ever for the transaction of its own task."""
        if self._writer is not None and self._writer is asyncio.current_task():
            if getattr(call, "__name__", "") in _WAITS_FOR_THE_WRITER:
                hint = "use the transaction, or leave its block first"
                raise TransactionError(f"this task has a transaction open; {hint}", code="transaction-open", hint=hint)

    async def _take_turn(self, timeout: float | None) -> None:
        if self._writer is not None and self._writer is asyncio.current_task():
            hint = "leave its block first"
            raise TransactionError(f"this task has a transaction open; {hint}", code="transaction-open", hint=hint)
        try:
            # A free lock is taken at once, whatever the time; `wait_for` may give up without a look.
            acquired = self._turn.acquire()
            await (asyncio.wait_for(acquired, timeout) if self._turn.locked() else acquired)
        except (TimeoutError, asyncio.TimeoutError):
            hint = "retry, or wait longer"
            message = f"another task's transaction is under way and did not end in the given time; {hint}"
            raise Busy(message, code="busy", hint=hint) from None
        self._writer = asyncio.current_task()

    def _give_turn(self) -> None:
        self._writer = None
        self._turn.release()

    async def snapshot(self) -> Snapshot:
        """As :meth:`holotype.Database.snapshot`."""
        return Snapshot(await self._call(self.sync.snapshot))

    async def get(self, item: str | int) -> Item | None:
        """As :meth:`holotype.Database.get`."""
        return await self._call(self.sync.get, item)

    async def stats(self) -> dict[str, Any]:
        """As :meth:`holotype.Database.stats`."""
        return await self._call(self.sync.stats)

    async def verify(self, *, bytes_per_second: int | None = None) -> VerifyReport:
        """As :meth:`holotype.Database.verify`."""
        return await self._call(self.sync.verify, bytes_per_second=bytes_per_second)

    async def checkpoint(self) -> None:
        """As :meth:`holotype.Database.checkpoint`."""
        await self._call(self.sync.checkpoint)

    async def reembed(self, embedder: Embedder, **options: Any) -> ReembedReport:
        """As :meth:`holotype.Database.reembed`."""
        return await self._call(self.sync.reembed, embedder, **options)

    async def backup(self, dest: _database.Path) -> tuple[int, int]:
        """As :meth:`holotype.Database.backup`."""
        return await self._call(self.sync.backup, dest)

    async def get_many(self, items: Iterable[str | int]) -> list[Item | None]:
        """As :meth:`holotype.Database.get_many`."""
        return await self._call(self.sync.get_many, list(items))

    async def citations(self, item: str | int) -> list[Citation]:
        """As :meth:`holotype.Database.citations`."""
        return await self._call(self.sync.citations, item)

    async def vector(self, item: str | int) -> numpy.ndarray[Any, Any] | None:
        """As :meth:`holotype.Database.vector`."""
        return await self._call(self.sync.vector, item)

    async def replay(self, receipt: str) -> Answer:
        """As :meth:`holotype.Database.replay`."""
        return await self._call(self.sync.replay, receipt)

    async def compact(self) -> tuple[int, int]:
        """As :meth:`holotype.Database.compact`."""
        return await self._call(self.sync.compact)

    async def refresh(self) -> bool:
        """As :meth:`holotype.Database.refresh`."""
        return await self._call(self.sync.refresh)

    async def export(self, path: _database.Path, **options: Any) -> tuple[int, int]:
        """As :meth:`holotype.Database.export`."""
        return await self._call(self.sync.export, path, **options)

    async def import_file(self, path: _database.Path, **options: Any) -> ImportReport:
        """As :meth:`holotype.Database.import_file`."""
        return await self._call(self.sync.import_file, path, **options)

    async def as_of(self, commit: int | None = None, *, time: datetime | str | int | None = None) -> Snapshot:
        """As :meth:`holotype.Database.as_of`."""
        return Snapshot(await self._call(self.sync.as_of, commit, time=time))

    def head(self) -> Head:
        """As :meth:`holotype.Database.head`; it waits for nothing."""
        return self.sync.head()

    def report(self) -> list[str]:
        """As :meth:`holotype.Database.report`; it waits for nothing."""
        return self.sync.report()

    @property
    def path(self) -> str:
        """The directory of the database."""
        return self.sync.path

    @property
    def closed(self) -> bool:
        """True once it was closed."""
        return self.sync.closed

    async def close(self) -> None:
        """As :meth:`holotype.Database.close`."""
        await asyncio.to_thread(self.sync.close)

    async def __aenter__(self) -> Database:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()
