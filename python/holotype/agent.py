"""The loop of an agent with a governed memory (HELM): steps, ``<recall>`` requests, memories with checked citations.

>>> loop = MemoryLoop(db, "trip-42")
>>> _ = loop.step("UA123 price=$450", tool="search_flights", status="success")
>>> outcome = loop.step(request="price of UA123")
>>> "$450" in outcome.memory.text, outcome.memory.verdict
(True, 'valid')
>>> answered = answer_recalls(db, "I need <recall>price of UA123</recall>.", episode="trip-42")
>>> answered.text.startswith("I need <memory>UA123 price=$450 [[CITE tool=search_flights")
True
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from . import _native
from .roles import Fills, native

if TYPE_CHECKING:
    from ._database import Database
    from ._native import Answer

__all__ = ["Answered", "Attempt", "Memory", "MemoryLoop", "Outcome", "answer_recalls", "cited_recall"]


@dataclass(frozen=True)
class Attempt:
    """One try of the generator; ``diagnostic`` is what was wrong with it, ``None`` for the one that was taken."""

    prompt: str
    output: str
    diagnostic: str | None


@dataclass(frozen=True)
class Memory:
    """A ``<memory>`` block and how it came about (HELM Algorithm 2)."""

    text: str
    """The block, with its tags."""
    fell_back: bool
    """No try was valid, and the text is spans with their citations."""
    verdict: str | None
    """``valid`` or the diagnostic of Algorithm 1; ``None`` in mode ``plain``, and without evidence."""
    coverage: float | None
    """The share of sentences with a valid citation."""
    validity: float | None
    """The share of citations that resolve."""
    tokens: int
    """Tokens of the text without its citations."""
    attempts: tuple[Attempt, ...]
    evidence: Answer
    refresh: tuple[str, int | None] | None
    """The tool to call again because the best row is stale, and the step of its last call."""

    @classmethod
    def _of(cls, given: dict[str, Any]) -> Memory:
        attempts = tuple(Attempt(*attempt) for attempt in given.pop("attempts"))
        checked = {name: given.pop(name, None) for name in ("verdict", "coverage", "validity", "refresh")}
        return cls(attempts=attempts, **checked, **given)


@dataclass(frozen=True)
class Answered:
    """A text with its requests answered, and the memories in their order."""

    text: str
    memories: tuple[Memory, ...]


@dataclass(frozen=True)
class Outcome:
    """The effect of a step on the memory."""

    operations: tuple[str, ...]
    """The decision: ``READ``, ``WRITE``, ``CONSOLIDATE``, ``PRUNE``."""
    done: tuple[str, ...]
    refused: tuple[str, ...]
    """What the limits did not allow, or had nothing to work on."""
    query: str | None
    controller_error: str | None
    memory: Memory | None
    written: int | None
    """The number of the trace."""
    refined: int | None
    pruned: int | None
    """The number of items that were retired, if it pruned."""


def cited_recall(
    db: Database,
    request: str,
    *,
    model: Fills | None = None,
    episode: str | Sequence[str] | None = None,
    mode: str = "cited",
    tokens: int | None = None,
    tries: int | None = None,
    step: int | None = None,
    time: datetime | date | str | int | None = None,
    version: str | None = None,
    path: str | None = None,
    where: str | None = None,
    profile: str | None = None,
    exclude: Sequence[str] = (),
    quarantined: bool = False,
    receipt: bool = False,
) -> Memory:
    """Recalls evidence, has the model write a memory from it, and checks every citation (HELM A.8).

    Without a model the memory is spans with their citations.

    :param mode: ``plain`` (A0), ``cited`` (A1) or ``extractive`` (A2).
    :param tries: tries of the model, 3 by default; then the spans come as they are.
    :param path: as ``through`` of the language, ``where`` and ``exclude`` as its clauses of that name.
    :param quarantined: takes text as evidence that instructs its reader.
    """
    options = _asking(episode, mode=mode, tokens=tokens, tries=tries, step=step, time=time, version=version, path=path,
                      where=where, profile=profile, exclude=list(exclude), quarantined=quarantined, receipt=receipt)
    return Memory._of(_native.cited_recall(db._native, request, options, native(model)))


def answer_recalls(
    db: Database,
    text: str,
    *,
    model: Fills | None = None,
    episode: str | Sequence[str] | None = None,
    mode: str = "cited",
    tokens: int | None = None,
    tries: int | None = None,
    receipt: bool = False,
) -> Answered:
    """Replaces each ``<recall>…</recall>`` of a text by a ``<memory>…</memory>`` block (HELM 3.1).

    :param tokens: what all memories of the text may have together, 1,500 by default.
    """
    options = _asking(episode, mode=mode, tokens=tokens, tries=tries, receipt=receipt)
    answered, memories = _native.answer_recalls(db._native, text, options, native(model))
    return Answered(answered, tuple(Memory._of(memory) for memory in memories))


class MemoryLoop:
    """The loop over one episode: at each step a controller decides, and the loop does what its limits allow (Table 11).

    :param model: fills the controller and the generator; without one the controller is the paper's fixed schedule, and
        memories are spans with their citations.
    :param items: active traces, recalls and themes of the episode beyond which it prunes.
    :param consolidations: of the episode, counted from the log, so that a restart gives no new ones.
    """

    def __init__(
        self,
        db: Database,
        episode: str,
        *,
        model: Fills | None = None,
        mode: str = "cited",
        tokens: int = 1500,
        tries: int = 3,
        exclude: Sequence[str] = (),
        writes_per_step: int = 1,
        consolidations: int = 5,
        items: tuple[int, int, int] = (200, 50, 20),
        consolidate_every: int = 10,
        refine_from: int = 200,
    ) -> None:
        asking = {"mode": mode, "tokens": tokens, "tries": tries, "exclude": list(exclude)}
        limits = {"writes_per_step": writes_per_step, "consolidations": consolidations, "items": list(items),
                  "consolidate_every": consolidate_every, "refine_from": refine_from}
        self._db = db
        self.episode = episode
        self._native = _native.Loop(episode, asking, limits, native(model))

    def step(self, observation: str | None = None, *, request: str | None = None, **attributes: Any) -> Outcome:
        """One step: what was observed, and what is wanted to be known.

        :param attributes: of the observation, as for ``Transaction.record``: ``tool``, ``status``, ``step``.
        """
        trace = None
        if observation is not None:
            kind = {"kind": "call"} if "tool" in attributes else {}
            trace = {**kind, **attributes, "text": observation, "episode": self.episode}
        given = self._native.step(self._db._native, trace, request)
        memory = given.pop("memory", None)
        lists: dict[str, Any] = {name: tuple(given.pop(name)) for name in ("operations", "done", "refused")}
        return Outcome(memory=None if memory is None else Memory._of(memory), **lists, **given)

    def decisions(self) -> list[dict[str, Any]]:
        """The decisions about the steps of the episode so far: what a controller is trained on."""
        return [json.loads(line) for line in _native.decisions(self._db._native, self.episode)]


def _asking(episode: str | Sequence[str] | None, **options: Any) -> dict[str, Any]:
    episodes = [] if episode is None else [episode] if isinstance(episode, str) else list(episode)
    return {"episodes": episodes, **options}
