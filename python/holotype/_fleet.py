"""Fleets: many databases asked one question."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, overload

from . import _native
from ._embedding import Embedder, as_embedder, engine_embedder
from ._native import Row
from .errors import InputError, OpenError

if TYPE_CHECKING:
    from ._types import _Profile as Profile

__all__ = ["Asked", "Failed", "Fleet", "FleetAnswer", "FleetRow", "NotAsked", "Outdated", "RouteReport", "fleet"]

Path = str | os.PathLike[str]

ITEMS = "find items return item, key, layer, kind, episode, step, status, source, time, text"
"""The items of a database: what :meth:`Fleet.to_arrow` asks unless it is told."""


class FleetRow(NamedTuple):
    """A row of one database."""

    database: str
    """Its path, as the fleet names it."""
    score: float
    """The score by which rows of several databases are compared: ``row.score``, in which the words count as much as the
    rows of that database cover the question."""
    row: Row
    """The row, as its database gives it."""


class Asked(NamedTuple):
    """A database that answered."""

    database: str
    commit: int
    """The commit that was asked."""
    rows: int
    """Its rows, those that are not among the best of all included."""
    expected: float | None
    """The score that the router expected; ``None`` if it does not know the database."""


class NotAsked(NamedTuple):
    """A database that was not asked because others promised more."""

    database: str
    expected: float | None


class Failed(NamedTuple):
    """A database or folder that could not be read, and why."""

    path: str
    code: str
    message: str


class Outdated(NamedTuple):
    """A database of which the router has not the newest."""

    database: str
    why: str
    """``written``, ``unknown`` (the router has no entry of it) or ``gone``."""
    routed: int | None
    """The commit that the router knows."""
    now: int | None
    """The present commit, where the database was asked."""


@dataclass(frozen=True)
class FleetAnswer(Sequence[FleetRow]):
    """The answer of a fleet: a sequence of rows, best first, and all that they do not rest on."""

    rows: tuple[FleetRow, ...]
    answerable: bool
    """False if no database that was asked may answer the question."""
    asked: tuple[Asked, ...]
    not_asked: tuple[NotAsked, ...]
    failed: tuple[Failed, ...]
    outdated: tuple[Outdated, ...]
    notes: tuple[str, ...]
    micros: int

    @overload
    def __getitem__(self, index: int) -> FleetRow: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[FleetRow, ...]: ...
    def __getitem__(self, index: int | slice) -> FleetRow | tuple[FleetRow, ...]:
        return self.rows[index]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[FleetRow]:
        return iter(self.rows)


@dataclass(frozen=True)
class RouteReport:
    """The outcome of writing a router: databases that were new, written to, gone, or as they were."""

    added: int
    updated: int
    removed: int
    unchanged: int
    other_spaces: int
    """Databases whose vectors are of another space than the router's: it knows them by their words."""
    erased: int
    """Items of the router that were erased, because a database erased something or left the fleet."""
    failed: tuple[Failed, ...]
    """Databases and folders that could not be read; their entries stay as they were."""


class Fleet:
    """Databases that are asked together: see :func:`fleet`."""

    def __init__(self, native: _native.Fleet) -> None:
        self._native = native

    @property
    def paths(self) -> list[str]:
        """The paths of its databases, in order."""
        return self._native.paths

    @property
    def closed(self) -> bool:
        """True once it was closed."""
        return self._native.closed

    def recall(
        self,
        text: str | None = None,
        *,
        vector: Any = None,
        k: int = 10,
        ask: int | None = None,
        profile: Profile | None = None,
        time: datetime | str | int | None = None,
    ) -> FleetAnswer:
        """Finds what answers a question in all databases, with the evidence.

        A database that cannot be read is named in the answer, and the others answer.

        :param vector: the vector of the question. Databases without an embedding space are asked by the words alone.
        :param k: the number of rows.
        :param ask: the databases to ask, at most: those of which the router expects most. Without a number, a fleet with
            a router asks one in twenty, and 16 at least; one without asks all.
        :param profile: the score profile, in place of each database's own.
        :param time: where the reader stands, in every database.
        """
        moment = None if time is None else _native.micros(time)
        told = self._native.recall((text, vector, k, ask, profile, moment))
        return FleetAnswer(
            rows=tuple(FleetRow(*row) for row in told["rows"]),
            answerable=told["answerable"],
            asked=tuple(Asked(*one) for one in told["asked"]),
            not_asked=tuple(NotAsked(*one) for one in told["not_asked"]),
            failed=tuple(Failed(*one) for one in told["failed"]),
            outdated=tuple(Outdated(*one) for one in told["outdated"]),
            notes=tuple(told["notes"]),
            micros=told["micros"],
        )

    def to_arrow(self, statement: str = ITEMS) -> Any:
        """The rows of a statement of all databases as a ``pyarrow.Table``, with the database in the first column.

        :param statement: a statement that gives a table, such as ``"find facts where status = success return text"``.
        :raises OpenError: if a database cannot be read; it names all that cannot.
        """
        try:
            pyarrow = import_module("pyarrow")
        except ImportError:
            raise InputError("to_arrow needs pyarrow", hint="install pyarrow") from None
        tables, failed = self._native.tables(statement)
        if failed:
            what = "; ".join(f"{path}: {message}" for path, _, message in failed)
            raise OpenError(f"{len(failed)} of {len(self.paths)} databases cannot be read: {what}")
        columns = [pyarrow.table(table) for _, table in tables]
        named = [
            rows.add_column(0, "database", pyarrow.array([path] * rows.num_rows, pyarrow.string()))
            for (path, _), rows in zip(tables, columns)
        ]
        return pyarrow.concat_tables(named)

    def build_router(self, router: Path, *, parts: int | None = None) -> RouteReport:
        """Makes the router of this fleet: an ordinary database that says what each database is about.

        :param parts: centroids of a database, at most.
        """
        return self._route(router, True, parts)

    def update_router(self, router: Path, *, parts: int | None = None) -> RouteReport:
        """Brings a router up to date: databases that were written to, that are new or gone are looked at again."""
        return self._route(router, False, parts)

    def _route(self, router: Path, is_new: bool, parts: int | None) -> RouteReport:
        told = self._native.route(router, is_new, parts)
        failed = tuple(Failed(*one) for one in told.pop("failed"))
        return RouteReport(failed=failed, **told)

    def entries(self) -> list[dict[str, Any]]:
        """What the router says of each database: path, commit, counts, times and words."""
        return self._native.entries()

    def close(self) -> None:
        """Closes its databases."""
        self._native.close()

    def __enter__(self) -> Fleet:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self.paths)

    def __repr__(self) -> str:
        return "<Fleet, closed>" if self.closed else f"<Fleet of {len(self)} databases>"


def fleet(
    paths: Path | Sequence[Path],
    *,
    router: Path | None = None,
    embedder: Embedder | str | os.PathLike[str] | None = None,
    max_open: int | None = None,
    threads: int | None = None,
) -> Fleet:
    """A fleet of the databases that paths and patterns name. None is opened before it is asked.

    :param paths: paths, or patterns such as ``"users/*.holo"`` and ``"teams/**/*.holo"``.
    :param router: the router by which the databases to ask are chosen: see :meth:`Fleet.build_router`.
    :param embedder: makes the vectors of questions.
    :param max_open: databases that are open at once, at most; the least recently used is closed first.
    :param threads: threads that ask.

    >>> with holotype.fleet([db.path]) as databases:
    ...     answer = databases.recall("What does UA123 cost?", k=1)
    >>> answer[0].database == db.path, answer[0].row.key, len(answer.asked)
    (True, 't1', 1)
    """
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    options = {"embedder": engine_embedder(as_embedder(embedder), None)}
    return Fleet(_native.Fleet([os.fspath(path) for path in given], router, (max_open, threads), options))
