"""LangChain's vector store in a Holotype database."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Sequence
from typing import Any

import holotype
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

from ._database import Database
from ._documents import Documents, key_of
from ._native import Item
from ._snapshot import Snapshot

__all__ = ["HolotypeVectorStore"]


class HolotypeVectorStore(VectorStore):
    """A LangChain vector store in a Holotype database whose space is that of the embeddings."""

    def __init__(
        self,
        database: Database,
        embedding: Embeddings,
        *,
        collection: str = "documents",
        erase: bool = True,
        durability: str = "sync",
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
        """Stores texts; one whose id is known takes the place of the text before. Returns the ids."""
        texts = list(texts)
        metadatas = metadatas or [{} for _ in texts]
        given = list(ids) if ids else [None] * len(texts)
        if not len(texts) == len(metadatas) == len(given):
            raise ValueError("expected one id and one metadata for each text")
        named = [id or str(uuid.uuid4()) for id in given]
        vectors = self._embedding.embed_documents(texts)
        with self._documents.begin() as tx:
            for id, text, metadata, vector in zip(named, texts, metadatas, vectors):
                fields: dict[str, str | bytes] = {"id": id, "metadata": json.dumps(metadata, ensure_ascii=False)}
                self._documents.put(tx, self._key(id), text, episode=self._episode, fields=fields, vector=vector)
        return named

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool:
        """Deletes documents; unknown ids are no error. Without ids it deletes all."""
        self._delete(ids)
        return True

    def _delete(self, ids: list[str] | None) -> list[str]:
        """Deletes documents and returns the ids of those that there were; unknown without ``ids``."""
        with self._documents.begin() as tx:
            if ids is None:
                self._documents.delete(tx, self._documents.keys(tx, self._key("")))
                return []
            known = [id for id in dict.fromkeys(ids) if self._documents.get(tx, self._key(id)) is not None]
            self._documents.delete(tx, [self._key(id) for id in ids])
            return known

    # ---- reading ----

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """The documents of ids, without those that are unknown."""
        keys = [self._key(id) for id in ids]
        found = self._documents.read(lambda view: [self._documents.get(view, key) for key in keys])
        return [_document(item) for item in found if item is not None]

    def similarity_search(self, query: str, k: int = 4, *, words: float = 0.0, **kwargs: Any) -> list[Document]:
        """The ``k`` nearest documents. ``words`` is the weight of the words that they share with the query."""
        return [document for document, _ in self.similarity_search_with_score(query, k, words=words, **kwargs)]

    def similarity_search_with_score(
        self, query: str, k: int = 4, *, words: float = 0.0, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """The ``k`` nearest documents with their scores; greater is nearer."""
        return self._search(self._embedding.embed_query(query), k, query if words else None, words, **kwargs)

    def similarity_search_by_vector(self, embedding: list[float], k: int = 4, **kwargs: Any) -> list[Document]:
        """The ``k`` documents nearest to a vector."""
        return [document for document, _ in self._search(embedding, k, None, 0.0, **kwargs)]

    def _search(
        self,
        vector: list[float],
        k: int,
        text: str | None,
        words: float,
        *,
        where: str | None = None,
        params: dict[str, Any] | None = None,
    ) -> list[tuple[Document, float]]:
        """``where`` is a predicate of the recall language with its ``params``."""

        def search(view: Snapshot) -> list[tuple[Document, float]]:
            if self._episode not in view.episodes(self._episode, most=1):
                return []
            answer = view.recall(
                text,
                vector=vector,
                episode=self._episode,
                through=f"traces {k} by near, words pool {max(64, 10 * k)}" if text else f"traces {k} by near",
                where=where,
                params=params,
                score=f"similarity 1, words {words}" if text else "similarity 1",
                relax_below=0,
                limit=k,
            )
            return [(_document(view[row.item]), row.score) for row in answer]

        return self._documents.read(search)

    def _select_relevance_score_fn(self) -> Any:
        # The score of a cosine space, from -1 to 1.
        return lambda score: (score + 1.0) / 2.0

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


def _document(item: Item) -> Document:
    return Document(
        id=str(item.fields["id"]), page_content=item.text, metadata=json.loads(str(item.fields["metadata"]))
    )
