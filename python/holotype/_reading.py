"""Reading: the calls that a database, a snapshot and a transaction share."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, cast

from . import _native
from ._embedding import Embedder, embed_queries
from ._native import Answer, Table
from ._values import listed
from ._where import field_name, predicate
from .errors import InputError, WrongType

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._types import RecallClauses, _Profile as Profile

__all__ = ["Reading"]

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")

Limits = tuple[float | None, int | None, int | None]


class Reading:
    """Statements of the recall language, and recalls."""

    _embedder: Embedder | None

    def _run(
        self, script: str, params: dict[str, Any] | None, limits: Limits | None, single: bool
    ) -> list[Answer | Table]:
        raise NotImplementedError

    def query(
        self,
        statement: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        max_rows: int | None = None,
        max_memory: int | None = None,
    ) -> Any:
        """Runs one statement of the recall language.

        :param statement: the statement; ``$name`` in it is a parameter.
        :param params: the values of the parameters. Text in them never becomes syntax.
        :param timeout: the most seconds it may take.
        :param max_rows: the most rows it may examine.
        :param max_memory: the most bytes it may keep.
        :returns: an :class:`Answer` for a recall, a :class:`Table` for everything else.

        >>> table = db.query("find calls where tool = $tool return key, text", {"tool": "search_flights"})
        >>> table.to_dicts()
        [{'key': 't1', 'text': 'UA123 price=$450'}]
        """
        return self._run(statement, _dict(params), _limits(timeout, max_rows, max_memory), True)[0]

    def script(
        self,
        statements: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
    ) -> list[Answer | Table]:
        """Runs several statements, separated by semicolons, as one transaction if one of them writes.

        >>> [len(output) for output in db.script("find calls; find facts")]
        [1, 1]
        """
        return self._run(statements, _dict(params), _limits(timeout, None, None), False)

    def recall(
        self,
        text: str | None = None,
        *,
        vector: Any = None,
        like: str | int | None = None,
        episode: str | Sequence[str] | None = None,
        through: str | None = None,
        where: str | None = None,
        filter: Mapping[str, Any] | None = None,
        params: Mapping[str, Any] | None = None,
        include: str | None = None,
        exclude: str | None = None,
        profile: Profile | None = None,
        score: str | None = None,
        relax_below: int | None = None,
        escalate: bool | str | None = None,
        expand: int | tuple[int, int] | None = None,
        step: int | None = None,
        time: datetime | str | int | None = None,
        version: str | None = None,
        as_of: int | datetime | str | None = None,
        budget: int | None = None,
        abstain_below: float | None = None,
        limit: int | None = None,
        skip: int | None = None,
        page: str | Sequence[str] | None = None,
        lines: Literal["all", "none"] | None = None,
        receipt: bool = False,
        returns: Sequence[str] | None = None,
        timeout: float | None = None,
        max_rows: int | None = None,
        max_memory: int | None = None,
    ) -> Answer:
        """Finds what answers a question, with its evidence.

        :param text: the question.
        :param vector: its vector, a numpy array or a sequence of numbers. Without one the database's embedder makes it.
        :param like: the key or number of an item that rows are to be like, in the place of a question.
        :param episode: the episodes to search.
        :param through: the path, such as ``"themes 3 -> recalls 5 -> traces 5"``.
        :param where: a predicate of the recall language, with ``$names`` from ``params``.
        :param filter: conditions on fields: ``{"lang": "de", "year": {"$gte": 2000}}``, with ``$eq $ne $gt $gte $lt
            $lte $in $nin $exists`` and ``$and``, ``$or``, ``$not``. A declared field is read from its column.
        :param include: flaws to let in, such as ``"failed, stale"``.
        :param exclude: flaws to keep out, such as ``"stale(200 steps)"``.
        :param profile: the score profile: ``default``, ``agent``, ``archive`` or ``helm``.
        :param score: terms of the score, such as ``"similarity 1, words 1"``.
        :param relax_below: let excluded items back in, marked, if there are fewer rows than this.
        :param escalate: read raw pages where summaries do not suffice: ``True``, or the words of the clause, such as
            ``"always up to 2 rounds"``.
        :param expand: tokens of evidence under the rows, or depth and tokens.
        :param step: where the reader stands, in steps; ``time`` and ``version`` likewise.
        :param as_of: the commit, or the time, as of which the database is asked.
        :param budget: as many rows as fit into this many tokens.
        :param abstain_below: no rows if the best one is weaker than this.
        :param limit: at most this many rows, after the first ``skip``.
        :param page: the memory pages to search, in the place of episodes.
        :param lines: whether other statements of a row's frame are lines below it: ``all`` or ``none``.
        :param receipt: keep a receipt, by which the answer can be replayed.
        :param returns: the columns of ``to_dicts`` and of Arrow.
        :param timeout: the most seconds it may take; ``max_rows`` and ``max_memory`` as for :meth:`query`.

        >>> answer = db.recall("What does UA123 cost?", episode="trip-42", limit=1)
        >>> answer[0].key, answer[0].citations[0].verdict
        ('t1', 'ok')
        """
        if text is not None and vector is None and self._embedder is not None:
            vector = embed_queries(self._embedder, [text])[0]
        statement = _Statement(text, vector, like, params)
        if episode is not None:
            statement.scope("episode", episode)
        if page is not None:
            if episode is not None:
                raise InputError("recall: episode and page exclude each other; give one of them")
            statement.scope("page", page)
        # Most recalls have few clauses; the others cost no call.
        if through is not None:
            statement.written("through", through)
        if where is not None or filter is not None:
            statement.conditions(where, filter)
        if include is not None:
            statement.written("include", include)
        if exclude is not None:
            statement.written("exclude", exclude)
        if profile is not None or score is not None:
            statement.score(profile, score)
        if relax_below is not None:
            statement.number("relax below", relax_below)
        if escalate is not None and escalate is not False:
            statement.escalate(escalate)
        if expand is not None:
            statement.expand(expand)
        if not (step is time is version is None):
            statement.reader(step, time, version)
        if as_of is not None:
            statement.as_of(as_of)
        if budget is not None:
            statement.number("budget", budget)
            statement.clause("tokens")
        if abstain_below is not None:
            statement.number("abstain below", abstain_below)
        if limit is not None:
            statement.number("limit", limit)
            if skip is not None:
                statement.number("skip", skip)
        elif skip is not None:
            raise InputError("recall: skip needs a limit; give limit= too")
        if lines is not None:
            statement.clause(f"lines {_name('lines', lines)}")
        if receipt:
            statement.clause("with receipt")
        if returns is not None:
            names = listed("returns", returns, "names of columns")
            statement.clause("return " + ", ".join(_column(name) for name in names))
        limits = _limits(timeout, max_rows, max_memory)
        return cast(Answer, self._run(" ".join(statement.words), statement.params, limits, True)[0])

    def recall_many(
        self, texts: Sequence[str | None], *, vectors: Any = None, **clauses: Unpack[RecallClauses]
    ) -> list[Answer]:
        """The answers to several questions, with the same clauses; the embedder is called once for all of them.

        :param texts: the questions.
        :param vectors: their vectors, such as a numpy array with one row for each question.
        :param clauses: the arguments of :meth:`recall`.

        >>> [len(answer) for answer in db.recall_many(["What does UA123 cost?", "a flight"], limit=1)]
        [1, 1]
        """
        asked = listed("texts", texts, "questions")
        if vectors is None and self._embedder is not None and asked and None not in asked:
            vectors = embed_queries(self._embedder, cast("list[str]", asked))
        rows = [None] * len(asked) if vectors is None else list(vectors)
        if len(rows) != len(asked):
            hint = "give one vector for each question"
            raise InputError(f"vectors: {len(rows)} for {len(asked)} questions; {hint}", hint=hint)
        return [self.recall(text, vector=vector, **clauses) for text, vector in zip(asked, rows)]


class _Statement:
    """A recall in the making. Values become parameters, so that the same clauses give the same text."""

    __slots__ = ("params", "words")

    def __init__(
        self, text: str | None, vector: Any, like: str | int | None, params: Mapping[str, Any] | None
    ) -> None:
        self.params = _dict(params) or {}
        self.words = ["recall"]
        if text is not None:
            self.words.append("$holotype_text")
            self.params["holotype_text"] = text
        if vector is not None:
            self.words.append("near $holotype_vector")
            self.params["holotype_vector"] = {"vector": vector}
        if like is not None:
            if text is not None or vector is not None:
                raise InputError("recall: like takes the place of a text and a vector; give one of them")
            self.words.append(f"like {self.value('like', like)}")
        elif text is None and vector is None:
            raise InputError("a recall needs a text, a vector or an item to be like", code="empty-query")

    def value(self, name: str, value: Any) -> str:
        name = f"holotype_{name}"
        self.params[name] = value
        return f"${name}"

    def clause(self, text: str) -> None:
        self.words.append(text)

    def written(self, keyword: str, given: str) -> None:
        """A clause in the words of the recall language."""
        if not isinstance(given, str):
            raise WrongType(f"{keyword}: expected a str, found {type(given).__name__}", code="type")
        self.words.append(f"{keyword} {given}")

    def number(self, keyword: str, value: float) -> None:
        self.words.append(f"{keyword} {self.value(keyword.partition(' ')[0], value)}")

    def scope(self, sort: str, given: str | Sequence[str]) -> None:
        ids = [given] if isinstance(given, str) else listed(sort, given, f"ids of {sort}s")
        if not ids:
            hint = f"leave the argument out to search all {sort}s"
            raise InputError(f"{sort}: it names none; {hint}", hint=hint)
        names = [self.value(f"{sort}{number}", id) for number, id in enumerate(ids)]
        self.words.append(f"in {sort} {', '.join(names)}")

    def conditions(self, where: str | None, filter: Mapping[str, Any] | None) -> None:
        """The clause `where` of a predicate, a filter or both."""
        if filter is None:
            self.written("where", cast(str, where))
            return
        text, params = predicate(filter)
        self.params.update(params)
        if where is not None:
            if not isinstance(where, str):
                raise WrongType(f"where: expected a str, found {type(where).__name__}", code="type")
            text = f"({where}) and {text}"
        self.clause(f"where {text}")

    def escalate(self, given: bool | str) -> None:
        if given is True:
            self.clause("escalate")
        else:
            self.written("escalate", cast(str, given))

    def as_of(self, given: int | datetime | str) -> None:
        if isinstance(given, bool):
            raise WrongType("as_of: expected a commit or a time, found bool", code="type")
        # numpy's whole numbers are commits, too.
        unit = "commit" if hasattr(given, "__index__") else "time"
        self.clause(f"as of {unit} {self.value('as_of', given if unit == 'commit' else _moment(given))}")

    def expand(self, given: int | tuple[int, int]) -> None:
        if isinstance(given, tuple) and len(given) != 2:
            raise WrongType("expand: expected a number of tokens, or a pair of depth and tokens", code="type")
        depth, tokens = given if isinstance(given, tuple) else (None, given)
        self.words.append("expand")
        if depth is not None:
            self.number("depth", depth)
        self.number("within", tokens)
        self.words.append("tokens")

    def score(self, profile: str | None, terms: str | None) -> None:
        base = [] if profile is None else [f"profile {_name('profile', profile)}"]
        self.clause("score " + ", ".join(base + ([] if terms is None else [terms])))

    def reader(self, step: int | None, time: Any, version: str | None) -> None:
        given = (("step", step), ("time", None if time is None else _moment(time)), ("version", version))
        moments = [(unit, value) for unit, value in given if value is not None]
        self.clause("at " + ", ".join(f"{unit} {self.value(unit, value)}" for unit, value in moments))


def _dict(params: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if params is not None and not isinstance(params, Mapping):
        raise WrongType(f"params: expected a mapping of names to values, found {type(params).__name__}", code="type")
    return None if params is None else dict(params)


def _moment(time: Any) -> Any:
    """A time as a parameter: a text as it is, anything else in microseconds."""
    return time if isinstance(time, str) else _native.micros(time)


def _limits(timeout: float | None, rows: int | None, memory: int | None) -> Limits | None:
    return None if timeout is None and rows is None and memory is None else (timeout, rows, memory)


def _column(name: str) -> str:
    """A column, or a field by its path; ``fields.*`` is all fields."""
    if isinstance(name, str) and name.startswith("fields.") and name != "fields.":
        return name if name == "fields.*" else field_name(name[len("fields.") :])
    return _name("column", name)


def _name(what: str, name: str) -> str:
    if not _NAME.fullmatch(name):
        raise InputError(f"{what} {name!r} is no name", code="unknown-name")
    return name
