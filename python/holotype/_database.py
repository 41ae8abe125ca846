"""Databases: opening them, asking and writing, looking after them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

from . import _native
from ._embedding import Embedder, as_embedder, engine_embedder, space_of
from ._native import Answer, Citation, Item, Table
from ._reading import Limits, Reading
from ._snapshot import Snapshot
from ._story import Difference, Story
from ._transaction import Transaction
from ._values import Change, EmbedReport, Head, ImportReport, ReembedReport, Space, VerifyReport, listed
from .errors import InputError, VectorError

if TYPE_CHECKING:
    from ._types import OpenOptions, _Durability as Durability, _FieldType as FieldType, _Profile as Profile
    from ._types import _Source as Source, _Status as Status, _TraceKind as TraceKind
    import numpy
    from typing_extensions import Unpack

__all__ = ["Database", "create", "open", "open_or_create", "rebuild", "salvage"]

Path = str | os.PathLike[str]


def create(
    path: Path,
    *,
    space: Space | str | None = None,
    profile: Profile | None = None,
    embedder: Embedder | str | os.PathLike[str] | None = None,
    fields: Mapping[str, FieldType] | None = None,
    **options: Unpack[OpenOptions],
) -> Database:
    """Creates a database at a path where nothing is, and opens it.

    :param space: the embedding space of its vectors. ``"hashing-v1-256"`` is built in and needs no model.
    :param profile: the score profile of statements that name none: ``agent`` or ``archive``.
    :param embedder: makes the vectors of texts that come without one.
    :param fields: the fields to declare, such as ``{"price": "number", "meta.topic": "text"}``: see
        :meth:`holotype.Transaction.declare`.
    :param options: ``shared`` as in :func:`open`, and those of the Rust interface by name, such as ``memory_limit`` or
        ``write_timeout`` (seconds).
    """
    embedder = as_embedder(embedder)
    given = {**options, "space": space_of(embedder, Space.of(space)), "profile": profile}
    return _declared(_open("create", path, embedder, given), fields)


def open(
    path: Path,
    *,
    read_only: bool = False,
    shared: bool = False,
    embedder: Embedder | str | os.PathLike[str] | None = None,
    **options: Unpack[OpenOptions],
) -> Database:
    """Opens a database. One process may have it open for writing, or any number with ``shared=True``, which write in
    turns; and any number for reading.

    :param shared: write by turns with other processes that open it so: each takes its turn for a transaction, and
        sees what the others have committed.
    :param options: as for :func:`create`. With ``shared=True``, ``write_timeout`` (5 seconds) is also how long a
        transaction waits for its turn; then it fails with ``Locked``, which names the process that has it.

    >>> with holotype.create(path, shared=True) as one, holotype.open(path, shared=True) as other:
    ...     with other.begin() as tx:
    ...         number = tx.record("Book it.", episode="trip-42", key="t1")
    ...     one["t1"].text
    'Book it.'
    """
    return _open("open", path, as_embedder(embedder), {**options, "read_only": read_only, "shared": shared})


def open_or_create(
    path: Path,
    *,
    space: Space | str | None = None,
    profile: Profile | None = None,
    embedder: Embedder | str | os.PathLike[str] | None = None,
    fields: Mapping[str, FieldType] | None = None,
    **options: Unpack[OpenOptions],
) -> Database:
    """Opens a database, or creates it if there is none: see :func:`open` and :func:`create`."""
    embedder = as_embedder(embedder)
    given = {**options, "space": space_of(embedder, Space.of(space)), "profile": profile}
    return _declared(_open("open_or_create", path, embedder, given), fields)


def rebuild(path: Path, *, embedder: Embedder | str | os.PathLike[str] | None = None, **options: Unpack[OpenOptions]) -> Database:
    """Opens a database after making everything that is derived from the log again."""
    embedder = as_embedder(embedder)
    return Database(_native.rebuild(path, {**options, "embedder": engine_embedder(embedder, None)}), embedder)


def salvage(source: Path, dest: Path) -> tuple[int, list[str]]:
    """Writes what can be read of a damaged database into a new one.

    Returns the number of its items, and what was lost, in sentences. Nothing at ``source`` is changed.
    """
    return _native.salvage(source, dest)


def _open(mode: str, path: Path, embedder: Embedder | None, options: dict[str, Any]) -> Database:
    space = options.get("space")
    options["space"] = space._parts() if isinstance(space, Space) else None
    options["embedder"] = engine_embedder(embedder, space)
    database = Database(_native.open(path, mode, options), embedder)
    try:
        _check_space(database.snapshot().space, getattr(embedder, "space", None))
    except BaseException:
        database.close()
        raise
    return database


def _declared(database: Database, fields: Mapping[str, FieldType] | None) -> Database:
    """The database once these fields are declared in it."""
    if fields:
        try:
            with database.begin() as tx:
                for field, type in fields.items():
                    tx.declare(field, type)
        except BaseException:
            database.close()
            raise
    return database


def _changes(native: _native.Changes) -> Iterator[Change]:
    while found := native.next():
        yield from (Change(*change) for change in found)


def _check_space(stored: Space | None, made: Any) -> None:
    """Refuses an embedder whose vectors belong to another space."""
    if stored is None or not isinstance(made, Space) or (made.model, made.dim) == (stored.model, stored.dim):
        return
    hint = "open it with the embedder it was filled with"
    raise VectorError(
        f"the database holds vectors of {stored.model} ({stored.dim}), and the embedder makes those of {made.model}"
        f" ({made.dim}); {hint}",
        code="vector",
        hint=hint,
    )


class Database(Reading):
    """An open database. Leaving its ``with`` block closes it.

    All its calls may be made from any thread, and none holds the interpreter while the engine works.

    >>> "r1" in db, len(db)
    (True, 2)
    """

    def __init__(self, native: _native.Database, embedder: Embedder | None) -> None:
        self._native = native
        self._embedder = embedder
        self._is_warned = False

    def _warn_of_pending(self) -> None:
        """Says once that what was written without the model of the database has no vectors yet."""
        if self._is_warned or self._embedder is not None:
            return
        if pending := self._native.pending():
            self._is_warned = True
            warnings.warn(
                f"{pending} texts wait for their vectors: the database was opened without its embedder; "
                "open it with embedder=... and call db.embed_pending()",
                stacklevel=3,
            )

    def _run(
        self, script: str, params: dict[str, Any] | None, limits: Limits | None, single: bool
    ) -> list[Answer | Table]:
        return self._native.run(script, params, limits, single)

    # ---- writing ----

    def begin(self, *, durability: Durability = "sync", timeout: float | None = None) -> Transaction:
        """Begins a transaction; waits for the one under way.

        It may be handed to another thread. The thread that used it last cannot begin a second one, which would wait for
        ever: that is a ``TransactionError``.

        :param durability: of its commit: ``sync`` survives power loss, ``flush`` a crash of this process, ``none``
            neither.
        :param timeout: the most seconds to wait for the transaction under way; ``Busy`` is raised then. 0 tries once.

        >>> with db.begin() as tx:
        ...     number = tx.record("Book it.", episode="trip-42", source="user")
        """
        return Transaction(self._native.begin(False, timeout), self._embedder, durability, self._warn_of_pending)

    def record(
        self,
        text: str,
        *,
        episode: str,
        kind: TraceKind = "turn",
        key: str | None = None,
        step: int | None = None,
        time: datetime | str | int | None = None,
        version: str | None = None,
        status: Status | None = None,
        source: Source | None = None,
        speaker: str | None = None,
        tool: str | None = None,
        log_id: str | None = None,
        fields: Mapping[str, Any] | None = None,
        labels: Sequence[str] = (),
        vector: Any = None,
        claims: Mapping[str, Any] | None = None,
        durability: Durability = "sync",
    ) -> int:
        """Records one trace in a transaction of its own: see :meth:`holotype.Transaction.record`.

        >>> number = db.record("Book it.", episode="trip-42", source="user", fields={"price": 450})
        >>> db[number].fields["price"]
        450
        """
        with self.begin(durability=durability) as tx:
            return tx.record(
                text, episode=episode, kind=kind, key=key, step=step, time=time, version=version, status=status,
                source=source, speaker=speaker, tool=tool, log_id=log_id, fields=fields, labels=labels,
                vector=vector, claims=claims,
            )  # fmt: skip

    def load(
        self,
        path: Path,
        *,
        map: Mapping[str, str] | None = None,
        episode: str | None = None,
        batch: int = 10_000,
        durability: Durability = "sync",
        progress: Callable[[int, int], None] | None = None,
    ) -> int:
        """Records the rows of a Parquet, Arrow or CSV file as traces, and returns their number. Needs pyarrow.

        :param map: where each column goes: ``text``, ``vector``, ``labels``, an attribute of
            :meth:`holotype.Transaction.record`, ``fields.NAME``, or ``""`` for nowhere. A column that is not named goes
            to the attribute of its name, or else to the field of its name.
        :param episode: of all rows, if no column has it.
        :param batch: rows of one transaction. Rows of batches that were committed stay if a later one fails.
        :param progress: called with the rows recorded and the rows of the file after each batch.
        """
        from ._load import load

        return load(self, path, map or {}, episode, batch, durability, progress)

    def _begin_shared(self, durability: Durability, timeout: float | None) -> Transaction:
        """A transaction that belongs to no one thread, for asyncio."""
        return Transaction(self._native.begin(True, timeout), self._embedder, durability, self._warn_of_pending)

    # ---- following ----

    def changes(self, since: int = 0) -> Iterator[Change]:
        """What was added, marked, linked, forgotten after a commit, in order; 0 is everything.

        It reads the log as it is now, a transaction at a time, and ends there.

        >>> [(change.what, change.details.get("key")) for change in db.changes(since=1)]
        [('episode', None), ('added', 't1'), ('added', 'r1')]
        """
        return _changes(self._native.changes(since))

    def subscribe(self, since: int | None = None, *, timeout: float | None = None) -> Iterator[Change]:
        """The changes after a commit, and then each new one as it is committed, by this process or another.

        A database that is open for reading follows its writer. To go on after a restart, keep ``commit`` of the last
        change of which all others of the same commit were handled too.

        :param since: the commit to begin after; without it, what is committed from now on.
        :param timeout: the seconds without a change after which it ends; without it, it never does.

        >>> news = db.subscribe(timeout=0)
        >>> with db.begin() as tx:
        ...     number = tx.record("Book it.", episode="trip-42", key="t2")
        >>> [change.details["key"] for change in news if change.what == "added"]
        ['t2']
        """
        return self._follow(self._native.head()[0] if since is None else since, timeout)

    def _follow(self, since: int, timeout: float | None) -> Iterator[Change]:
        while self._native.wait_for_changes(since, timeout):
            found = self._native.changes(since)
            yield from _changes(found)
            since = found.until

    # ---- reading ----

    def snapshot(self) -> Snapshot:
        """A view of what is committed now. It never changes and blocks nobody."""
        return Snapshot(self._native.snapshot(), self._embedder)

    def as_of(self, commit: int | None = None, *, time: datetime | str | int | None = None) -> Snapshot:
        """The view after an earlier commit, or after the last commit at or before a time."""
        return self.snapshot().as_of(commit, time=time)

    def get(self, item: str | int) -> Item | None:
        """The item of a key or number; ``None`` if there is none."""
        return self._native.snapshot().get(item)

    def get_many(self, items: Iterable[str | int]) -> list[Item | None]:
        """The items of keys or numbers, in their order; ``None`` for one that there is not."""
        return self._native.snapshot().get_many(listed("items", items))

    def why(self, item: str | int) -> Story:
        """The story of an item: what it says and rests on, what changed it, and what would fall with it."""
        return self.snapshot().why(item)

    def diff(self, commit: int, until: int | None = None) -> Difference:
        """The items added between two commits, and those whose standing changed; until now without ``until``."""
        return self.snapshot().diff(commit, until)

    def citations(self, item: str | int) -> list[Citation]:
        """The pointers of an item, each read and hashed again."""
        return self._native.snapshot().citations(item)

    def vector(self, item: str | int) -> numpy.ndarray[Any, Any] | None:
        """The vector of an item as a numpy array of ``float32``; ``None`` without one."""
        return self._native.snapshot().vector(item)

    def replay(self, receipt: str, *, without: Sequence[str] = ()) -> Answer:
        """The answer of a receipt again, as of its commit; its notes say whether anything differs.

        >>> answer = db.recall("UA123", receipt=True)
        >>> db.replay(answer.receipt).notes
        ['the answer of receipt rc-1, byte for byte']

        :param without: keys of items that are taken away before, with what rests on them alone: what the answer would
            have been. Nothing is written.

        >>> db.replay(answer.receipt, without=["t1"]).notes[0]
        'without t1 receipt rc-1 has other rows; gone: t1, r1'
        """
        params: dict[str, Any] = {"receipt": receipt}
        answer: Answer = self.query("replay $receipt" + _without(without, params), params)
        return answer

    def changed_answers(self, without: Sequence[str], *, last: int = 20) -> list[dict[str, Any]]:
        """The newest answers with receipts, and how they change if these items go: ``change`` is ``none``, ``rows``,
        ``order`` or ``answerable``; ``gone`` and ``new`` are keys.

        >>> _ = db.recall("UA123", receipt=True)
        >>> [answer["change"] for answer in db.changed_answers(["t1"])]
        ['answerable']
        """
        params: dict[str, Any] = {"last": last}
        rows: list[dict[str, Any]] = self.query("replay last $last" + _without(without, params), params).to_dicts()
        return rows

    def blame(self, receipt: str) -> list[dict[str, Any]]:
        """The sources of the answer of a receipt, each taken away in turn; those first that it changes most with.

        >>> answer = db.recall("UA123", receipt=True)
        >>> [source["key"] for source in db.blame(answer.receipt)]
        ['t1']
        """
        rows: list[dict[str, Any]] = self.query("replay $receipt without each", {"receipt": receipt}).to_dicts()
        return rows

    def __contains__(self, item: str | int) -> bool:
        return self.get(item) is not None

    def __getitem__(self, item: str | int) -> Item:
        return self.snapshot()[item]

    def __len__(self) -> int:
        """The number of items."""
        return len(self._native.snapshot())

    # ---- looking after it ----

    @property
    def path(self) -> str:
        """The directory of the database."""
        return os.fspath(self._native.path)

    @property
    def closed(self) -> bool:
        """True once it was closed."""
        return self._native.closed

    def head(self) -> Head:
        """The end of the log. Keep its hash elsewhere to see later that the past is still the same."""
        return Head(*self._native.head())

    def report(self) -> list[str]:
        """What opening found and did, in sentences; empty if there was nothing to do."""
        return self._native.report()

    def stats(self) -> dict[str, Any]:
        """Figures about content and files.

        >>> db.stats()["items_by_kind"]
        {'call': 1, 'fact': 1}
        """
        return self._native.stats()

    def verify(self, *, bytes_per_second: int | None = None) -> VerifyReport:
        """Checks every checksum, hash, pointer and derived row against the log.

        >>> bool(db.verify())
        True
        """
        return VerifyReport._of(self._native.verify(bytes_per_second))

    def checkpoint(self) -> None:
        """Writes a checkpoint now: the next opening has nothing to replay."""
        self._native.checkpoint()

    def compact(self) -> tuple[int, int]:
        """Rewrites the derived files without gaps. Returns their bytes before and after."""
        return self._native.compact()

    def backup(self, dest: Path) -> tuple[int, int]:
        """Copies the database to a path where nothing is, while others write. Returns its commit and its bytes."""
        return self._native.backup(dest)

    def refresh(self) -> bool:
        """Follows the writer, if the database is open for reading. Returns whether there was anything new."""
        return self._native.refresh()

    def export(self, path: Path, *, vectors: Path | None = None, history: bool = False) -> tuple[int, int]:
        """Writes the present state as JSON Lines: see :meth:`Snapshot.export`."""
        return self.snapshot().export(path, vectors=vectors, history=history)

    def import_file(
        self, path: Path, *, vectors: Path | None = None, durability: Durability = "sync", skip_bad: bool = False
    ) -> ImportReport:
        """Imports JSON Lines. It can be run again: what the database holds already is skipped.

        :param vectors: the ``.npy`` file that the lines' ``row`` counts in.
        :param skip_bad: report bad lines and go on, instead of stopping at the first one.
        """
        return ImportReport(**self._native.import_file(path, vectors, durability, skip_bad))

    def embed_pending(self, limit: int | None = None) -> EmbedReport:
        """Makes the vectors of texts that were written without the embedder of the database.

        Others may read and write meanwhile. ``answer.pending`` and ``db.stats()`` say how many wait.

        :param limit: the most texts; all of them by default.

        >>> db.embed_pending().pending
        0
        """
        return EmbedReport(*self._native.embed_pending(limit))

    def reembed(
        self,
        embedder: Embedder | str | os.PathLike[str],
        *,
        space: Space | str | None = None,
        batch: int = 256,
        durability: Durability = "flush",
    ) -> ReembedReport:
        """Makes the vectors of all items anew by another model, and puts them in force in one commit.

        Until then every recall sees the old vectors. A call that was interrupted goes on where it stopped. Open the
        database again with the new embedder afterwards.

        :param space: the space of the new vectors, if the embedder has no attribute ``space``.
        :param batch: texts of one call of the embedder, which are one commit too.
        :param durability: of the commits before the last one, which is always on the disk.

        >>> db.reembed(holotype.HashingEmbedder(64)).embedded
        2
        >>> db.snapshot().space
        Space(model='hashing-v1-64', dim=64, metric='cosine', encoding='f32')
        """
        embedder = cast("Embedder", as_embedder(embedder))
        target = space_of(embedder, Space.of(space))
        model = engine_embedder(embedder, target)
        if target is None:
            hint = "give a model, such as holotype.ModelEmbedder(folder)"
            raise InputError(f"there is no embedder to make vectors by; {hint}", hint=hint)
        return ReembedReport(*self._native.reembed(model, target._parts(), batch, durability))

    def close(self) -> None:
        """Ends open transactions and snapshots, writes a checkpoint and closes. Closing twice is no error."""
        self._native.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"commit {self.head().commit}"
        return f"<holotype.Database {self.path!r}, {state}>"


def _without(items: Sequence[str], params: dict[str, Any]) -> str:
    """The clause `without` of a replay, whose items become parameters."""
    for at, item in enumerate(items):
        params[f"without{at}"] = item
    return " without " + ", ".join(f"$without{at}" for at in range(len(items))) if items else ""
