"""Transactions: what is written becomes visible and durable at once, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any

from . import _native
from ._embedding import Embedder, embed
from ._frames import columns_of, rows_of, values_of
from ._native import Answer, Item, Table
from ._reading import Limits, Reading
from ._values import Commit, Pointer, listed
from .errors import InputError, WrongType

if TYPE_CHECKING:
    from ._types import _Durability as Durability, _Edge as Edge, _RecallKind as RecallKind
    from ._types import _FieldType as FieldType
    from ._types import _Source as Source, _Status as Status, _TraceKind as TraceKind

__all__ = ["Transaction"]

Time = datetime | str | int
Evidence = str | int | Pointer

_EVIDENCE = "keys, numbers or pointers"


class Transaction(Reading):
    """A write transaction. Leaving its ``with`` block commits it, or undoes it if the block raised.

    It sees what it has written. There is one at a time; :meth:`holotype.Database.begin` waits for the one before.

    >>> with db.begin() as tx:
    ...     number = tx.record("Is that with a bag?", episode="trip-42", key="t2", source="user")
    >>> tx.committed.number == db.head().commit
    True
    """

    def __init__(
        self,
        native: _native.Transaction,
        embedder: Embedder | None,
        durability: Durability,
        committed: Callable[[], None],
    ) -> None:
        self._native = native
        self._embedder = embedder
        self._is_noted = False
        self._durability = durability
        self._after_commit = committed
        self.committed: Commit | None = None
        """The commit, once there is one."""

    def _run(
        self, script: str, params: dict[str, Any] | None, limits: Limits | None, single: bool
    ) -> list[Answer | Table]:
        return self._native.run(script, params, limits)

    # ---- what it sees ----

    def get(self, item: str | int) -> Item | None:
        """The item of a key or number, as the transaction sees it; ``None`` if there is none."""
        return self._native.get(item)

    def get_many(self, items: Iterable[str | int]) -> list[Item | None]:
        """As :meth:`holotype.Snapshot.get_many`, as the transaction sees the items."""
        return self._native.get_many(listed("items", items))

    def keys(self, prefix: str = "", *, most: int = 1_000_000) -> list[str]:
        """The keys with a prefix, in order, as the transaction sees them."""
        return self._native.keys(prefix, most)

    # ---- items ----

    def record(
        self,
        text: str,
        *,
        episode: str,
        kind: TraceKind = "turn",
        key: str | None = None,
        step: int | None = None,
        time: Time | None = None,
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
    ) -> int:
        """Records a trace, verbatim: something that happened.

        :param episode: the session, conversation or trajectory it belongs to.
        :param kind: ``turn``, ``call`` or ``observation``.
        :param key: your own id, unique in the database.
        :param step: its step in the episode; the next one by default.
        :param time: a ``datetime`` with a zone, RFC 3339 text or microseconds; the time of the transaction by default.
        :param version: of task, environment or tool schema.
        :param status: ``success``, ``failed`` or ``unknown``.
        :param source: ``user``, ``assistant``, ``tool``, ``environment``, ``document`` or ``system``.
        :param log_id: the log it comes from; the episode by default.
        :param fields: named values beside the text: what JSON has, times, which become texts, or bytes. ``None`` is
            absent.
        :param labels: names that it carries, such as ``user:17``, which every database indexes.
        :param vector: its vector. Without one the database's embedder makes it.
        :param claims: values by name, such as ``{"UA123.price": 450}``.
        :returns: the number of the item.
        """
        return self._native.record({
            "text": text, "episode": episode, "kind": kind, "key": key, "step": step, "time": time, "version": version,
            "status": status, "source": source, "speaker": speaker, "tool": tool, "log_id": log_id,
            "fields": None if fields is None else _mapping("fields", fields),
            "labels": listed("labels", labels, "texts"), "vector": self._vector(_spoken(speaker, text), vector),
            "claims": _claims(claims),
        })  # fmt: skip

    def record_many(self, traces: Iterable[Mapping[str, Any]], vectors: Any = None) -> list[int]:
        """Records many traces at once; much faster than one by one.

        :param traces: mappings with the arguments of :meth:`record`, ``text`` among them.
        :param vectors: their vectors, such as a numpy array with one row for each trace.

        >>> with db.begin() as tx:
        ...     numbers = tx.record_many({"text": f"step {n}", "episode": "walk"} for n in range(3))
        >>> len(numbers)
        3
        """
        if isinstance(traces, Mapping):
            hint = "give a list of mappings, or record_columns the columns"
            raise WrongType(f"traces: expected mappings, found one; {hint}", code="type", hint=hint)
        given = [_trace(number, trace) for number, trace in enumerate(listed("traces", traces, "mappings"))]
        if vectors is None and self._embedder is not None and given:
            vectors = self._embedded(self._embedder, [_text(number, trace) for number, trace in enumerate(given)])
        return self._native.record_many(given, rows_of(vectors))

    def record_columns(
        self,
        text: Sequence[str] | Any,
        *,
        episode: str | Sequence[str] | Any = None,
        vectors: Any = None,
        kind: TraceKind | Sequence[TraceKind | None] | None = None,
        key: Sequence[str | None] | None = None,
        step: Sequence[int | None] | None = None,
        time: Time | Sequence[Time | None] | None = None,
        version: str | Sequence[str | None] | None = None,
        status: Status | Sequence[Status | None] | None = None,
        source: Source | Sequence[Source | None] | None = None,
        speaker: str | Sequence[str | None] | None = None,
        tool: str | Sequence[str | None] | None = None,
        log_id: str | Sequence[str | None] | None = None,
        fields: Mapping[str, Any] | Sequence[Mapping[str, Any] | None] | None = None,
        labels: Sequence[Sequence[str]] | None = None,
    ) -> list[int]:
        """Records many traces given as columns, the fastest way in. A column has a value for each text, or one for all.

        Columns are lists, numpy arrays, pandas or polars series, or Arrow arrays. In the place of the texts there may
        be a mapping, a pandas or polars frame, or an Arrow table with the columns, ``text`` and ``vector`` among them.

        :param vectors: the vectors, such as a numpy array with one row for each text.
        :param fields: a mapping of names to columns, or a mapping for each text. A text, a number or a mapping in the
            place of a column is the value of all.
        :param labels: a list of labels for each text.
        :returns: the numbers of the items. The other arguments are those of :meth:`record`.

        >>> with db.begin() as tx:
        ...     numbers = tx.record_columns(["one", "two"], episode="walk", key=["w1", "w2"], source="user")
        >>> db["w2"].text, db["w2"].source
        ('two', 'user')
        """
        columns: dict[str, Any] = {
            "episode": episode, "kind": kind, "key": key, "step": step, "time": time, "version": version,
            "status": status, "source": source, "speaker": speaker, "tool": tool, "log_id": log_id,
            "fields": fields, "labels": labels,
        }  # fmt: skip
        given = {name: column for name, column in columns.items() if column is not None}
        frame = columns_of(text)
        if frame is not None:
            vectors = _only("vector", vectors, frame)
            text = frame.pop("text", None)
            given = {**frame, **{name: _only(name, column, frame) for name, column in given.items()}}
            if text is None:
                hint = "name the column of the texts text"
                raise InputError(f"the frame has no column text; {hint}", hint=hint)
        texts: list[str] = listed("text", values_of(text), "texts")
        if vectors is None and self._embedder is not None and texts:
            vectors = self._embedded(self._embedder, _spoken_column(values_of(given.get("speaker")), texts))
        each_field: dict[str, Any] | None = None
        if isinstance(given.get("fields"), Mapping):
            named = _mapping("fields", given.pop("fields"))
            each_field = {name: _field_column(column, len(texts)) for name, column in named.items()}
        read = {name: values_of(column) for name, column in given.items()}
        return self._native.record_columns({"text": texts, **read}, rows_of(vectors), each_field)

    def remember(
        self,
        text: str,
        *,
        sources: Sequence[Evidence] = (),
        kind: RecallKind = "fact",
        key: str | None = None,
        children: Sequence[str] = (),
        ungrounded: bool = False,
        episode: str | None = None,
        step: int | None = None,
        time: Time | None = None,
        version: str | None = None,
        status: Status | None = None,
        source: Source | None = None,
        utility: float | None = None,
        return_score: int | None = None,
        fields: Mapping[str, Any] | None = None,
        labels: Sequence[str] = (),
        vector: Any = None,
        claims: Mapping[str, Any] | None = None,
    ) -> int:
        """Remembers something that was distilled, with the evidence it rests on.

        :param sources: keys, numbers or :class:`Pointer` values. One that does not resolve is refused.
        :param kind: ``fact``, ``summary``, ``procedure``, ``refined``, ``theme``, ``concept`` or ``intent``.
        :param children: keys of recalls below a theme.
        :param ungrounded: say so if there is no evidence.
        :param fields: as for :meth:`record`.
        :param labels: as for :meth:`record`; without any, those of the evidence.
        :returns: the number of the item.

        What is not given is inherited from the evidence.

        >>> with db.begin() as tx:
        ...     number = tx.remember("UA123 is a flight", sources=[Pointer("t1", quote="UA123")], key="r2")
        >>> db["r2"].support
        'supported'
        """
        return self._native.remember({
            "text": text, "sources": listed("sources", sources, _EVIDENCE), "kind": kind, "key": key,
            "children": listed("children", children, "keys"),
            "ungrounded": ungrounded, "episode": episode, "step": step, "time": time, "version": version,
            "status": status, "source": source, "utility": utility, "return_score": return_score,
            "fields": None if fields is None else _mapping("fields", fields),
            "labels": listed("labels", labels, "texts"), "vector": self._vector(text, vector),
            "claims": _claims(claims),
        })  # fmt: skip

    def update(
        self,
        key: str,
        text: str,
        *,
        sources: Sequence[Evidence] = (),
        kind: RecallKind = "fact",
        fields: Mapping[str, Any] | None = None,
        labels: Sequence[str] = (),
        vector: Any = None,
        claims: Mapping[str, Any] | None = None,
    ) -> int:
        """Puts a new item in the place of the one with this key, which is superseded. The key moves to the new one.

        The new item takes the union of the old pointers and ``sources``, and the old fields and labels that are not
        given.
        """
        recall = {
            "text": text, "sources": listed("sources", sources, _EVIDENCE), "kind": kind,
            "fields": None if fields is None else _mapping("fields", fields),
            "labels": listed("labels", labels, "texts"), "vector": self._vector(text, vector),
            "claims": _claims(claims),
        }  # fmt: skip
        return self._native.remember(recall, key)

    # ---- what holds of items ----

    def mark(self, item: str | int, status: Status, *, because: str | None = None) -> None:
        """Changes the status of an item: ``success``, ``failed`` or ``unknown``. What rests on it is weakened."""
        self._native.mark(item, status, because)

    def mark_utility(self, item: str | int, utility: float, *, reports: int = 1) -> None:
        """Changes the utility of an item, the mean of so many reported rewards."""
        self._native.mark_utility(item, utility, reports)

    def mark_credit(self, item: str | int, credit: float, *, rollouts: int = 1) -> None:
        """Changes the credit of an item, the mean over so many rollouts (HiMPO)."""
        self._native.mark_credit(item, credit, rollouts)

    def retract(self, item: str | int, *, because: str | None = None) -> None:
        """Takes an item out of use. It stays in the log; :meth:`forget` erases."""
        self._native.retract(item, because)

    def link(self, source: str | int, edge: Edge, target: str | int) -> None:
        """Links two items, for example ``tx.link("r2", "supersedes", "r1")``."""
        self._native.link((source, target), edge, True)

    def unlink(self, source: str | int, edge: Edge, target: str | int) -> None:
        """Ends a link."""
        self._native.link((source, target), edge, False)

    def cite(self, item: str | int, evidence: Evidence) -> None:
        """Adds a pointer to the evidence of an item."""
        self._native.cite(item, evidence)

    def claim(self, item: str | int, name: str, value: Any, *, is_global: bool = False) -> None:
        """States a claim of an item: a value under a name, for its episode or for all."""
        self._native.claim(item, name, _value(value), is_global)

    def forget(self, items: Iterable[str | int], *, because: str, cascade: bool = False) -> list[str]:
        """Erases items when the transaction commits, and with ``cascade`` what was derived from them.

        Returns the keys of what is erased. The log keeps hashes in their place, so that it can still be verified.
        """
        return self._native.forget(listed("items", items), because, cascade)

    # ---- the database itself ----

    def episode(
        self, id: str, *, task: str | None = None, version: str | None = None, open: bool | None = None
    ) -> None:
        """Opens, changes or closes an episode. What is not given stays."""
        self._native.episode(id, task, version, open)

    def set(self, name: str, value: str) -> None:
        """Changes a setting of the database."""
        self._native.set(name, value)

    def declare(self, field: str, type: FieldType) -> None:
        """Declares the type of a field, or of a member of one such as ``meta.topic``: filters on it read a column
        instead of each item. ``none`` ends that."""
        self._native.set(f"field.{field}", type)

    # ---- the end ----

    @property
    def is_open(self) -> bool:
        """True until it is committed or rolled back."""
        return self._native.is_open

    def commit(self, durability: Durability | None = None) -> Commit:
        """Commits. ``sync`` waits until it survives power loss, ``flush`` a crash of this process, ``none`` neither."""
        number, position, time = self._native.commit(self._durability if durability is None else durability)
        self.committed = Commit(number, position, time)
        self._after_commit()
        return self.committed

    def rollback(self) -> None:
        """Undoes everything. After the end of the transaction it does nothing."""
        self._native.rollback()

    def __enter__(self) -> Transaction:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None and self.is_open:
            self.commit()
        else:
            self.rollback()

    def __repr__(self) -> str:
        return f"<holotype.Transaction, {'open' if self.is_open else 'ended'}>"

    def _vector(self, text: str, vector: Any) -> Any:
        if vector is None and self._embedder is not None:
            return self._embedded(self._embedder, [text])[0]
        return vector

    def _embedded(self, embedder: Embedder, texts: list[str]) -> list[Any]:
        vectors = embed(embedder, texts)
        if not self._is_noted:
            self._native.note_embedder()
            self._is_noted = True
        return vectors


def _mapping(name: str, value: Any) -> dict[str, Any]:
    """A mapping as a dict of its own."""
    if not isinstance(value, Mapping):
        raise WrongType(f"{name}: expected a mapping of names to values, found {type(value).__name__}", code="type")
    return dict(value)


def _trace(number: int, trace: Any) -> dict[str, Any]:
    return trace if isinstance(trace, dict) else _mapping(f"traces[{number}]", trace)


def _spoken(speaker: Any, text: str) -> str:
    """A text as a model reads it: behind its speaker, as the engine gives it."""
    named = isinstance(speaker, str) and speaker.strip() and isinstance(text, str) and text.strip()
    return f"{speaker}: {text}" if named else text


def _spoken_column(speakers: Any, texts: list[str]) -> list[str]:
    """The texts of a column as a model reads them."""
    each = [speakers] * len(texts) if speakers is None or isinstance(speakers, str) else list(speakers)
    # A column of another length is refused where all columns are compared.
    return [_spoken(*pair) for pair in zip(each, texts)] if len(each) == len(texts) else texts


def _text(number: int, trace: dict[str, Any]) -> str:
    """The text of a trace for the embedder."""
    text = trace.get("text")
    if isinstance(text, str):
        return _spoken(trace.get("speaker"), text)
    found = "nothing" if text is None else type(text).__name__
    raise WrongType(f"traces[{number}]['text']: expected a str, found {found}", code="type")


def _only(name: str, argument: Any, frame: dict[str, Any]) -> Any:
    """A column that is given once: as an argument, or in the frame."""
    if argument is not None and name in frame:
        hint = "leave one of them out"
        raise InputError(f"{name} is a column of the frame and an argument; {hint}", hint=hint)
    return frame.pop(name, None) if argument is None else argument


def _field_column(column: Any, rows: int) -> Any:
    """A column of values for each text; what is no column is the value of all."""
    values = values_of(column)
    is_column = isinstance(values, (list, tuple)) or bool(hasattr(values, "dtype") and values.ndim)
    return values if is_column else [values] * rows


def _claims(claims: Mapping[str, Any] | None) -> dict[str, str] | None:
    return None if claims is None else {name: _value(value) for name, value in _mapping("claims", claims).items()}


def _value(value: Any) -> str:
    """A claim's value as the text that the engine compares."""
    if isinstance(value, str):
        return value
    try:
        return str(value).lower() if isinstance(value, bool) else str(value)
    except RecursionError:
        hint = "give a text or a number"
        raise InputError(f"the value of a claim is nested too deeply; {hint}", hint=hint) from None
