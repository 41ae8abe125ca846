"""The closed sets of names that arguments take, and the options of opening, for type checkers.

Nothing is checked by them when a program runs: the engine names what it knows.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, TypedDict

__all__ = ["OpenOptions", "RecallClauses"]

if TYPE_CHECKING:
    # Of no use to a running program, and private: `stubtest` takes no other alias of several literals.
    _TraceKind = Literal["turn", "call", "observation"]
    _RecallKind = Literal["fact", "summary", "procedure", "refined", "theme", "concept", "intent"]
    _Status = Literal["success", "failed", "unknown"]
    _Source = Literal["user", "assistant", "tool", "environment", "document", "system"]
    _Edge = Literal[
        "derived-from", "cites", "mentions", "solves", "sibling", "supersedes", "conflicts-with", "parent"
    ]
    _Durability = Literal["sync", "flush", "none"]
    _Profile = Literal["default", "agent", "archive", "helm"]
    _Metric = Literal["cosine", "dot", "l2"]
    _Encoding = Literal["f32", "f16", "i8"]
    _FieldType = Literal["text", "number", "bool", "none"]


class OpenOptions(TypedDict, total=False):
    """Options of :func:`holotype.create`, :func:`holotype.open` and their like, beside those that each names."""

    accept_damage: bool
    """Write to a database although its log is damaged."""
    witness: str | os.PathLike[str]
    """The file outside the database that keeps the newest head of the log."""
    accept_witness: bool
    """Take the database as it is although its witness is missing."""
    page_size: int
    """Traces of a memory page."""
    max_transaction_bytes: int
    checkpoint_bytes: int
    checkpoint_records: int
    cache_bytes: int
    memory_limit: int
    """The most bytes that the database keeps in memory."""
    max_tail_bytes: int
    max_unsealed_vectors: int
    max_live_segments: int
    snapshot_max_age: float
    """Seconds after which a snapshot ends."""
    write_timeout: float
    """The most seconds that a transaction waits to begin."""
    background_threads: int


class RecallClauses(TypedDict, total=False):
    """The clauses of :meth:`holotype.Database.recall`, for calls that hand them on."""

    episode: str | Sequence[str] | None
    through: str | None
    where: str | None
    filter: Mapping[str, Any] | None
    params: Mapping[str, Any] | None
    include: str | None
    exclude: str | None
    profile: Literal["default", "agent", "archive", "helm"] | None
    score: str | None
    relax_below: int | None
    escalate: bool | str | None
    expand: int | tuple[int, int] | None
    step: int | None
    time: datetime | str | int | None
    version: str | None
    as_of: int | datetime | str | None
    budget: int | None
    abstain_below: float | None
    limit: int | None
    skip: int | None
    page: str | Sequence[str] | None
    lines: Literal["all", "none"] | None
    receipt: bool
    returns: Sequence[str] | None
    timeout: float | None
    max_rows: int | None
    max_memory: int | None
