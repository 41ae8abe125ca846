"""LangChain's vector store in a Holotype database."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import holotype
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

from ._codec import dumps, loads
from ._database import Database
from ._documents import Documents, Record, field_of, key_of, text_of
from ._filters import passes, refuse_unknown
from ._index import Declared, condition, members
from ._native import Item
from ._snapshot import Snapshot
from ._values import listed

if TYPE_CHECKING:
    from ._types import _Durability as Durability

__all__ = ["HolotypeVectorStore"]

Filter = Mapping[str, Any] | Callable[[Document], bool]
Scored = tuple[Item, float]

# A filtered search looks at this many times as many documents as are wanted, and at eight times as many each time that
# too few of them pass.
_FIRST_POOL = 4
_POOL_GROWTH = 8


class HolotypeVectorStore(VectorStore):
    """A LangChain vector store in a Holotype database whose space is that of the embeddings.

    Searches take ``filter=``, a mapping of metadata to values or to comparisons (``$eq $ne $gt $gte $lt $lte $in
    $nin``, with ``$and``, ``$or`` and ``$not``), or a function of the document; and ``where=`` with ``params=``, a
    predicate of the recall language.
    """

    def __init__(
        self,
        database: Database,
        embedding: Embeddings,
        *,
        collection: str = "documents",
        erase: bool = True,
        durability: Durability = "sync",
    ) -> None:
        """
        :param database: an open database with the space of the embeddings.
        :param collection: the name under which the documents of this store are kept apart from others.
        :param erase: erase deleted documents from the log, instead of taking them out of use.
        :param durability: of every write: ``sync`` survives power loss, ``flush`` a crash of the process.
        """
        self._embedding = embedding
        self._collection = collection
        self._episode = f"langchain/{key_of(collection)}"
        self._documents = Documents(database, "langchain", erase=erase, durability=durability)
        self._declared = Declared()

    @property
    def embeddings(self) -> Embeddings:
        """The embeddings of the store."""
        return self._embedding

    # ---- writing ----

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Stores texts; one whose id is known takes the place of the text before. Returns the ids.

        Metadata comes back as it was given, numbers and arrays of numpy as Python's.
        """
        texts = listed("texts", texts, "texts")
        metadatas = metadatas or [{} for _ in texts]
        given = listed("ids", ids, "ids") if ids else [None] * len(texts)
        if not len(texts) == len(metadatas) == len(given):
            raise ValueError("expected one id and one metadata for each text")
        named = [id or str(uuid.uuid4()) for id in given]
        for number, text in enumerate(texts):
            if not isinstance(text, str):
                raise TypeError(f"texts[{number}]: expected a str, found {type(text).__name__}")
        fields = [
            {"id": id, "metadata": dumps(metadata or {}, f"metadatas[{number}]"), **members(metadata)}
            for number, (id, metadata) in enumerate(zip(named, metadatas))
        ]
        vectors = self._embedding.embed_documents(texts)
        records = [
            Record(self._key(id), text, self._episode, parts, vector=vector)
            for id, text, parts, vector in zip(named, texts, fields, vectors)
        ]
        with self._documents.begin() as tx:
            for record in records:
                self._declared.declare(tx, record.fields)
            self._documents.put_many(tx, records)
        return named

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool:
        """Deletes documents; unknown ids are no error. Without ids it deletes all."""
        self._delete(ids)
        return True

    def _delete(self, ids: list[str] | None) -> list[str]:
        """Deletes documents and returns the ids of those that there were; unknown without ``ids``."""
        wanted = None if ids is None else list(dict.fromkeys(listed("ids", ids, "ids")))
        with self._documents.begin() as tx:
            if wanted is None:
                self._documents.delete(tx, self._documents.keys(tx, self._key("")))
                return []
            found = self._documents.get_many(tx, [self._key(id) for id in wanted])
            self._documents.delete(tx, [self._key(id) for id in wanted])
            return [id for id, item in zip(wanted, found) if item is not None]

    # ---- reading ----

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """The documents of ids, without those that are unknown."""
        keys = [self._key(id) for id in listed("ids", ids, "ids")]
        found = self._documents.read(lambda view: self._documents.get_many(view, keys))
        return [_document(item) for item in found if item is not None]

    def similarity_search(self, query: str, k: int = 4, *, words: float = 0.0, **kwargs: Any) -> list[Document]:
        """The ``k`` nearest documents. ``words`` is the weight of the words that they share with the query."""
        return [document for document, _ in self.similarity_search_with_score(query, k, words=words, **kwargs)]

    def similarity_search_with_score(
        self, query: str, k: int = 4, *, words: float = 0.0, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """The ``k`` nearest documents with their scores; greater is nearer."""
        found = self._search(self._embedding.embed_query(query), k, query if words else None, words, **kwargs)
        return [(_document(item), score) for item, score in found]

    def similarity_search_by_vector(self, embedding: list[float], k: int = 4, **kwargs: Any) -> list[Document]:
        """The ``k`` documents nearest to a vector."""
        return [_document(item) for item, _ in self._search(embedding, k, None, 0.0, **kwargs)]

    def max_marginal_relevance_search(
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """Documents that are near and differ from each other: ``k`` of the ``fetch_k`` nearest.

        :param lambda_mult: from 0, as different as possible, to 1, the nearest.
        """
        vector = self._embedding.embed_query(query)
        return self.max_marginal_relevance_search_by_vector(vector, k, fetch_k, lambda_mult, **kwargs)

    def max_marginal_relevance_search_by_vector(
        self, embedding: list[float], k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """As :meth:`max_marginal_relevance_search`, near a vector."""
        import numpy
        from langchain_core.vectorstores.utils import maximal_marginal_relevance

        def search(view: Snapshot) -> list[Document]:
            found = self._search_in(view, embedding, max(fetch_k, k), None, 0.0, **kwargs)
            if not found or k <= 0:
                return []
            vectors = list(view.vectors([item.id for item, _ in found]))
            near = numpy.asarray(embedding, dtype=numpy.float32)
            chosen = maximal_marginal_relevance(near, vectors, lambda_mult=lambda_mult, k=k)
            return [_document(found[place][0]) for place in chosen]

        return self._documents.read(search)

    def _search(
        self, vector: list[float], k: int, text: str | None, words: float, **kwargs: Any
    ) -> list[Scored]:
        return self._documents.read(lambda view: self._search_in(view, vector, k, text, words, **kwargs))

    def _search_in(
        self,
        view: Snapshot,
        vector: list[float],
        k: int,
        text: str | None,
        words: float,
        *,
        filter: Filter | None = None,
        where: str | None = None,
        params: dict[str, Any] | None = None,
    ) -> list[Scored]:
        """The nearest documents that pass ``filter`` and ``where``, with their scores."""
        if not callable(filter):
            refuse_unknown(filter)
        if k <= 0 or self._episode not in view.episodes(self._episode, most=1):
            return []
        found = None if callable(filter) else condition(filter)
        if found is not None:
            where = found[0] if where is None else f"({where}) and {found[0]}"
            params = {**(params or {}), **found[1]}
        wanted = k if filter is None else _FIRST_POOL * k
        while True:
            channels = f"near, words pool {max(64, 10 * wanted)}" if text else "near"
            answer = view.recall(
                text,
                vector=vector,
                episode=self._episode,
                through=f"traces {wanted} by {channels}",
                where=where,
                params=params,
                score=f"similarity 1, words {words}" if text else "similarity 1",
                relax_below=0,
                limit=wanted,
            )
            items = view.get_many(row.item for row in answer)
            pairs = [(item, row.score) for item, row in zip(items, answer) if item is not None]
            passing = [pair for pair in pairs if filter is None or _passes(pair[0], filter)]
            if len(passing) >= k or len(answer) < wanted:
                return passing[:k]
            wanted *= _POOL_GROWTH

    def _similarity_search_with_relevance_scores(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        # The words that are shared add to the score as much as they weigh.
        most = 1.0 + float(kwargs.get("words") or 0.0)
        relevance = self._select_relevance_score_fn()
        found = self.similarity_search_with_score(query, k, **kwargs)
        return [(document, relevance(score / most)) for document, score in found]

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        """From the score of the space to 0..1, where what has nothing to do with the query is near 0."""
        space = self._documents.database.snapshot().space
        if space is not None and space.metric == "dot":
            # Dot products have no bound.
            return lambda score: max(score, 0.0) / (1.0 + max(score, 0.0))
        return lambda score: min(max(score, 0.0), 1.0)

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        path: str = "langchain.holo",
        **kwargs: Any,
    ) -> HolotypeVectorStore:
        """A store with these texts in the database at ``path``, which is created if there is none."""
        dim = len(embedding.embed_query("holotype"))
        space = holotype.Space(type(embedding).__name__, dim)
        store = cls(holotype.open_or_create(path, space=space), embedding, **kwargs)
        store.add_texts(texts, metadatas, ids=ids)
        return store

    def _key(self, id: str) -> str:
        return f"lc.d/{key_of(self._collection)}/" + (key_of(id) if id else "")


def _passes(item: Item, filter: Filter) -> bool:
    if callable(filter):
        return bool(filter(_document(item)))
    return passes(loads(field_of(item, "metadata")), filter)


def _document(item: Item) -> Document:
    metadata = loads(field_of(item, "metadata"))
    return Document(id=field_of(item, "id"), page_content=text_of(item), metadata=metadata)
