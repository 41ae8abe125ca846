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
from collections.abc import AsyncIterator, Callable, Coroutine
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from . import _database, _native, _reading, _snapshot, _transaction
from ._values import Change, Commit, Head, Space
from .errors import Busy, TransactionError

if TYPE_CHECKING:
    from ._types import _Durability as Durability

__all__ = ["Database", "Snapshot", "Transaction", "create", "open", "open_or_create", "rebuild"]

_WAITS_FOR_THE_WRITER = {
    "query", "script", "recall", "replay", "changed_answers", "blame", "stats", "verify", "checkpoint", "compact", "backup", "import_file",
    "reembed", "embed_pending", "wait_for_changes", "record", "load", "recall_many",
}  # fmt: skip

_SLICE = 1.0
"""Seconds that a thread waits for changes before it looks whether anybody still does."""

P = ParamSpec("P")
R = TypeVar("R")


def _opens(call: Callable[P, _database.Database]) -> Callable[P, Coroutine[Any, Any, Database]]:
    """A function that opens a database, on a thread."""

    async def opened(*args: P.args, **kwargs: P.kwargs) -> Database:
        return Database(await asyncio.to_thread(call, *args, **kwargs))

    opened.__name__ = opened.__qualname__ = call.__name__
    opened.__doc__ = f"As :func:`holotype.{call.__name__}`."
    return opened


class _Mirrored(Generic[P, R]):
    """A call of an object of the package ``holotype`` as a coroutine, with the same arguments."""

    def __init__(self, call: Callable[Concatenate[Any, P], R]) -> None:
        self.name = call.__name__
        self.__doc__ = f"As :meth:`holotype.{call.__qualname__}`."

    @overload
    def __get__(self, mirror: None, kind: type[Any]) -> _Mirrored[P, R]: ...
    @overload
    def __get__(self, mirror: _Mirror, kind: type[Any]) -> Callable[P, Coroutine[Any, Any, R]]: ...
    def __get__(
        self, mirror: _Mirror | None, kind: type[Any]
    ) -> _Mirrored[P, R] | Callable[P, Coroutine[Any, Any, R]]:
        if mirror is None:
            return self
        call: Callable[P, R] = getattr(mirror.sync, self.name)

        async def mirrored(*args: P.args, **kwargs: P.kwargs) -> R:
            return await mirror._call(call, *args, **kwargs)

        return mirrored


class _Mirror:
    """An object whose calls run on threads."""

    def __init__(self, sync: Any) -> None:
        self.sync = sync
        """The object of the package ``holotype`` behind this one."""

    async def _call(self, call: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await asyncio.to_thread(call, *args, **kwargs)


class _Reading(_Mirror):
    query = _Mirrored(_reading.Reading.query)
    script = _Mirrored(_reading.Reading.script)
    recall = _Mirrored(_reading.Reading.recall)
    recall_many = _Mirrored(_reading.Reading.recall_many)


class Snapshot(_Reading):
    """As :class:`holotype.Snapshot`."""

    sync: _snapshot.Snapshot

    @property
    def commit(self) -> int:
        """The commit of the view."""
        return self.sync.commit

    get = _Mirrored(_snapshot.Snapshot.get)
    get_many = _Mirrored(_snapshot.Snapshot.get_many)
    keys = _Mirrored(_snapshot.Snapshot.keys)
    episodes = _Mirrored(_snapshot.Snapshot.episodes)
    citations = _Mirrored(_snapshot.Snapshot.citations)
    why = _Mirrored(_snapshot.Snapshot.why)
    diff = _Mirrored(_snapshot.Snapshot.diff)
    linked = _Mirrored(_snapshot.Snapshot.linked)
    vector = _Mirrored(_snapshot.Snapshot.vector)
    vectors = _Mirrored(_snapshot.Snapshot.vectors)
    export = _Mirrored(_snapshot.Snapshot.export)
    prove = _Mirrored(_snapshot.Snapshot.prove)
    signed_checkpoint = _Mirrored(_snapshot.Snapshot.signed_checkpoint)

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

    def __init__(self, database: Database, durability: Durability, timeout: float | None) -> None:
        self._database = database
        self._durability: Durability = durability
        self._timeout = timeout

    @property
    def committed(self) -> Commit | None:
        """The commit, once there is one."""
        return self.sync.committed

    record = _Mirrored(_transaction.Transaction.record)
    record_many = _Mirrored(_transaction.Transaction.record_many)
    record_columns = _Mirrored(_transaction.Transaction.record_columns)
    remember = _Mirrored(_transaction.Transaction.remember)
    update = _Mirrored(_transaction.Transaction.update)
    mark = _Mirrored(_transaction.Transaction.mark)
    mark_utility = _Mirrored(_transaction.Transaction.mark_utility)
    mark_credit = _Mirrored(_transaction.Transaction.mark_credit)
    retract = _Mirrored(_transaction.Transaction.retract)
    link = _Mirrored(_transaction.Transaction.link)
    unlink = _Mirrored(_transaction.Transaction.unlink)
    cite = _Mirrored(_transaction.Transaction.cite)
    claim = _Mirrored(_transaction.Transaction.claim)
    forget = _Mirrored(_transaction.Transaction.forget)
    episode = _Mirrored(_transaction.Transaction.episode)
    set = _Mirrored(_transaction.Transaction.set)
    declare = _Mirrored(_transaction.Transaction.declare)
    get = _Mirrored(_transaction.Transaction.get)
    get_many = _Mirrored(_transaction.Transaction.get_many)
    keys = _Mirrored(_transaction.Transaction.keys)
    rollback = _Mirrored(_transaction.Transaction.rollback)
    commit = _Mirrored(_transaction.Transaction.commit)

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

    record = _Mirrored(_database.Database.record)
    load = _Mirrored(_database.Database.load)
    get = _Mirrored(_database.Database.get)
    stats = _Mirrored(_database.Database.stats)
    verify = _Mirrored(_database.Database.verify)
    checkpoint = _Mirrored(_database.Database.checkpoint)
    reembed = _Mirrored(_database.Database.reembed)
    embed_pending = _Mirrored(_database.Database.embed_pending)
    backup = _Mirrored(_database.Database.backup)
    get_many = _Mirrored(_database.Database.get_many)
    citations = _Mirrored(_database.Database.citations)
    why = _Mirrored(_database.Database.why)
    diff = _Mirrored(_database.Database.diff)
    vector = _Mirrored(_database.Database.vector)
    replay = _Mirrored(_database.Database.replay)
    changed_answers = _Mirrored(_database.Database.changed_answers)
    blame = _Mirrored(_database.Database.blame)
    compact = _Mirrored(_database.Database.compact)
    refresh = _Mirrored(_database.Database.refresh)
    export = _Mirrored(_database.Database.export)
    import_file = _Mirrored(_database.Database.import_file)

    def begin(self, *, durability: Durability = "sync", timeout: float | None = None) -> Transaction:
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


create = _opens(_database.create)
open = _opens(_database.open)
open_or_create = _opens(_database.open_or_create)
rebuild = _opens(_database.rebuild)
