"""Knowledge out of experience (PlugMem) and memory in tiers (TierMem), with a model or without.

>>> created = structure(db, [{"observation": "The shop Lumora sells 40 lamps.", "action": "open lamps"}],
...                     episode="shop", goal="buy a lamp")
>>> len(created.facts), len(created.procedures)
(1, 1)
>>> "sells 40 lamps" in ask(db, "What does Lumora sell?").text
True
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any

from . import _native
from ._values import Pointer
from .roles import Fills, native

if TYPE_CHECKING:
    import numpy
    from typing_extensions import Self

    from ._database import Database
    from ._native import Answer

__all__ = ["Created", "Epoch", "Guidance", "Learned", "answer", "ask", "choose_mode", "extract_pages", "guidance",
           "judge", "learn", "routed", "structure", "summarise"]


@dataclass(frozen=True)
class Created:
    """The numbers of the items that :func:`structure` wrote, and what it left out, with the reasons."""

    traces: list[int]
    facts: list[int]
    concepts: list[int]
    procedures: list[int]
    intents: list[int]
    segments: int
    notes: list[str]


@dataclass(frozen=True)
class Guidance:
    """One text for an agent, and the keys of the rows that it rests on."""

    text: str
    cites: list[str]
    mode: str
    answer: Answer


@dataclass(frozen=True)
class Learned:
    """The fate of a finding: ``add``, ``update``, ``skip`` or ``refused``."""

    op: str
    item: int | None
    replaced: int | None
    notes: list[str]


def structure(
    db: Database,
    steps: Iterable[Mapping[str, Any]],
    *,
    episode: str,
    goal: str = "",
    model: Fills | None = None,
) -> Created:
    """Structures a trajectory: traces, facts with concepts, procedures with intents (PlugMem 3.1).

    A step is a dict with ``observation`` and, where known, ``action``, ``state``, ``subgoal``, ``reward`` (0 to 1),
    ``time``, ``speaker``, ``source``, ``status``, ``tool`` and ``key``. Without a goal it is a conversation, whose
    actions are what the assistant said. The model is asked before anything is written, so that no other writer waits.
    """
    written = _native.structure(db._native, episode, goal, [dict(step) for step in steps], native(model))
    return Created(**written)


def choose_mode(question: str, *, task: str = "", model: Fills | None = None) -> str:
    """The memory that a question asks for: ``episodic``, ``semantic`` or ``procedural`` (Listing 8)."""
    return _native.choose_mode(task, question, native(model))[0]


def ask(
    db: Database,
    question: str,
    *,
    task: str = "",
    mode: str | None = None,
    episode: str | None = None,
    limit: int = 10,
    model: Fills | None = None,
) -> Guidance:
    """Answers a question from the memory that it asks for, in one guidance with citations (PlugMem 3.2, 3.3)."""
    chosen, path = _native.choose_mode(task, question, native(model))
    if mode is not None:
        chosen, path = mode, _PATHS.get(mode, path)
    scope = "" if episode is None else " in episode $e"
    params = {"q": question} if episode is None else {"q": question, "e": episode}
    lines = " lines none" if model is None else ""
    answer = db.query(f"recall $q{scope} through {path} limit {limit}{lines}", params)
    return guidance(db, answer, question, mode=chosen, model=model)


def guidance(
    db: Database, answer: Any, question: str, *, mode: str = "semantic", model: Fills | None = None, sentences: int = 8
) -> Guidance:
    """One guidance out of the rows of an answer (PlugMem 3.3)."""
    text, cites = _native.guidance(db._native, answer, question, mode, native(model), sentences)
    return Guidance(text, cites, mode, answer)


def routed(
    db: Database,
    question: str,
    *,
    model: Fills | None = None,
    escalate: str = "auto",
    episode: str | None = None,
    budget: int | None = None,
    vector: Sequence[float] | numpy.ndarray[Any, Any] | None = None,
    receipt: bool = False,
) -> Answer:
    """Answers from summaries, or from raw pages where the router says so (TierMem Algorithm 1).

    The model is the router, the planner, the integrator and the reranker. ``answer.escalation`` tells what they did;
    its ``facts`` are what :func:`learn` takes.
    """
    options = {"escalate": escalate, "episode": episode, "budget": budget, "vector": vector, "receipt": receipt}
    return _native.routed(db._native, question, options, native(model))


def learn(
    db: Database,
    findings: Iterable[tuple[str, Sequence[Pointer | str]]] | Answer,
    *,
    model: Fills | None = None,
    add_only: bool = False,
) -> list[Learned]:
    """Writes findings back, each with its evidence, if they are not known yet (TierMem B.6).

    ``findings`` are pairs of a text and pointers, or an answer of :func:`routed`, whose facts are learned.
    """
    if not isinstance(findings, Iterable) or hasattr(findings, "escalation"):
        facts = (findings.escalation or {}).get("facts", [])
        findings = [(fact["text"], [Pointer(fact["trace"], quote=fact["quote"])]) for fact in facts]
    drafts = [(text, list(sources)) for text, sources in findings]
    return [Learned(*learned) for learned in _native.learn(db._native, drafts, add_only, native(model))]


def summarise(db: Database, model: Fills, *, most: int = 100) -> tuple[list[str], list[tuple[str, str]]]:
    """Summarises the pages that are due (TierMem B.3): their keys, and those that failed with the reasons."""
    return _native.summarise(db._native, native(model), most)


def extract_pages(db: Database, model: Fills, *, most: int = 100) -> tuple[list[tuple[str, int]], list[tuple[str, str]]]:
    """Writes the facts of pages that are due, each with what the page says (TierMem Figure 6): the pages with their
    numbers of facts, and what was left out with the reasons."""
    return _native.extract_pages(db._native, native(model), most)


def answer(rows: Any, question: str, *, model: Fills) -> tuple[str | None, list[str]]:
    """The model's answer to a question from the rows of an answer (TierMem Figure 10), ``None`` where they do not say
    it, and the keys of the rows that it rests on."""
    return _native.answer_from(rows, question, native(model))


def judge(question: str, right: Sequence[str], answer: str, *, model: Fills) -> bool:
    """True if an answer says what one of the right ones says (TierMem D.3)."""
    return _native.judge(question, list(right), answer, native(model))


@dataclass
class Epoch:
    """Questions answered while nothing is written back; what they taught is learned at the end (TierMem Table 8).

    >>> with Epoch(db) as epoch:
    ...     answer = epoch.ask("What does UA123 cost?")
    >>> epoch.asked, len(epoch.learned)
    (1, 0)
    """

    db: Database
    model: Fills | None = None
    add_only: bool = False
    asked: int = 0
    from_summaries: int = 0
    """Those answered from the first tier (S-traffic)."""
    tokens: int = 0
    learned: list[Learned] = field(default_factory=list)
    _answers: list[Answer] = field(default_factory=list, repr=False)

    def ask(self, question: str, **options: Any) -> Answer:
        """As :func:`routed`; its facts wait for the end of the epoch."""
        answer = routed(self.db, question, model=self.model, **options)
        record = answer.escalation or {}
        self.asked += 1
        self.from_summaries += record.get("router", {}).get("action") == "answer"
        self.tokens += record.get("router", {}).get("tokens", 0)
        self._answers.append(answer)
        return answer

    def end(self) -> list[Learned]:
        """Learns what was found."""
        for answer in self._answers:
            self.learned += learn(self.db, answer, model=self.model, add_only=self.add_only)
        self._answers = []
        return self.learned

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.end()


_PATHS = {
    "episodic": "facts 30 -> lift to episodes 3 -> traces 20",
    "semantic": "facts 20 -> (concepts 8 -> facts 20) up to 1 hops",
    "procedural": "intents 5 -> procedures 5",
}

