"""Haystack: a document store and a retriever. ``pip install 'holotype[haystack]'``

>>> from haystack import Document
>>> from holotype.haystack import HolotypeDocumentStore
>>> with holotype.create(path, space=holotype.Space("fake", 2)) as own:
...     store = HolotypeDocumentStore(own)
...     flight = Document(id="1", content="a flight to Lisbon", meta={"price": 450}, embedding=[1.0, 0.0])
...     hotel = Document(id="2", content="a hotel", meta={"price": 80}, embedding=[0.0, 1.0])
...     count = store.write_documents([flight, hotel])
...     cheap = store.filter_documents({"field": "meta.price", "operator": "<", "value": 100})
...     near = store.embedding_retrieval([1.0, 0.0], top_k=1)
>>> cheap[0].id, near[0].id
('2', '1')

A document is a trace of the database, with all its parts as they were given. Haystack's own rules decide what a filter
lets through. ``db.recall`` finds the same traces with everything else that the database knows.
"""

from __future__ import annotations

import asyncio
import math
import operator
import os
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from haystack import Document, component, default_from_dict, default_to_dict
from haystack.core.component.component import ComponentMeta
from haystack.dataclasses import ByteStream, SparseEmbedding
from haystack.document_stores.errors import DocumentStoreError, DuplicateDocumentError
from haystack.document_stores.types import DuplicatePolicy, FilterPolicy, apply_filter_policy
from haystack.errors import FilterError
from haystack.utils.filters import document_matches_filter

from ._codec import dumps, loads
from ._database import Database, open_or_create
from ._documents import Documents, Record, field_bytes, field_of, key_of, text_of
from ._index import Declared, condition, members
from ._native import Item
from ._snapshot import Snapshot
from ._transaction import Transaction
from ._values import Space, listed

if TYPE_CHECKING:
    from ._types import _Durability as Durability

__all__ = ["HolotypeDocumentStore", "HolotypeRetriever"]

Filters = dict[str, Any]
_Path = str | os.PathLike[str]

# What Haystack's own store divides a dot product by before it maps it to 0..1.
_DOT_SCALE = 100


class HolotypeDocumentStore:
    """A Haystack document store in a Holotype database, sync and async."""

    def __init__(
        self,
        database: Database | _Path,
        *,
        embedding_dim: int | None = None,
        collection: str = "documents",
        erase: bool = True,
        durability: Durability = "sync",
    ) -> None:
        """
        :param database: an open database, or the path of one, which is opened, or created, at the first use.
        :param embedding_dim: the length of the embeddings in a database that is created. Embeddings are compared in the
            space of the database; without one they are stored and not compared.
        :param collection: the name under which the documents of this store are kept apart from others.
        :param erase: erase deleted documents from the log, instead of taking them out of use.
        :param durability: of every write: ``sync`` survives power loss, ``flush`` a crash of the process.
        """
        self._options: dict[str, Any] = {
            "database": database.path if isinstance(database, Database) else os.fspath(database),
            "embedding_dim": embedding_dim,
            "collection": collection,
            "erase": erase,
            "durability": durability,
        }
        self._database = database if isinstance(database, Database) else None
        self._opened: Documents | None = None
        self._declared = Declared()
        self._episode = f"haystack/{key_of(collection)}"
        self._prefix = f"hs.d/{key_of(collection)}/"

    @property
    def database(self) -> Database:
        """The database of the store."""
        if self._database is None:
            dim = self._options["embedding_dim"]
            space = None if dim is None else Space("haystack", dim)
            self._database = open_or_create(self._options["database"], space=space)
        return self._database

    @property
    def _documents(self) -> Documents:
        if self._opened is None:
            erase, durability = self._options["erase"], self._options["durability"]
            self._opened = Documents(self.database, "haystack", erase=erase, durability=durability)
        return self._opened

    def to_dict(self) -> dict[str, Any]:
        """The store as a dictionary, with the path of its database."""
        data: dict[str, Any] = default_to_dict(self, **self._options)
        return data

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> HolotypeDocumentStore:
        """The store of a dictionary. It opens the database at its first use."""
        store: HolotypeDocumentStore = default_from_dict(cls, data)
        return store

    # ---- writing ----

    def write_documents(self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE) -> int:
        """Writes documents, all or none of them, and returns the number written.

        :param policy: of an id that is known: ``OVERWRITE`` replaces the document, ``SKIP`` keeps it, ``FAIL`` and
            ``NONE`` raise :class:`DuplicateDocumentError`.
        """
        if not isinstance(documents, Iterable) or isinstance(documents, str):
            raise ValueError(f"expected a list of documents, found {type(documents).__name__}")
        given = list(documents)
        for document in given:
            if not isinstance(document, Document):
                raise ValueError(f"expected a document, found {type(document).__name__}")
        space = self._space()
        records = [self._record(document, space) for document in given]
        with self._documents.begin() as tx:
            for record in records:
                self._declared.declare(tx, record.fields)
            if policy == DuplicatePolicy.OVERWRITE:
                self._documents.put_many(tx, records)
                return len(records)
            known = self._documents.get_many(tx, [record.key for record in records])
            new: dict[str, Record] = {}
            for document, record, before in zip(given, records, known):
                if before is None and record.key not in new:
                    new[record.key] = record
                elif policy != DuplicatePolicy.SKIP:
                    hint = "write it with DuplicatePolicy.OVERWRITE"
                    raise DuplicateDocumentError(f"ID '{document.id}' already exists; {hint}")
            self._documents.put_many(tx, new.values())
            return len(new)

    def _record(self, document: Document, space: Space | None) -> Record:
        vector = _vector(document, space)
        return Record(
            self._key(document.id), document.content or "", self._episode, _fields(document), vector=vector
        )

    def update_by_filter(self, filters: Filters, meta: dict[str, Any]) -> int:
        """Merges ``meta`` into the metadata of all documents that pass the filters, and returns their number."""
        space = self._space()
        with self._documents.begin() as tx:
            found = self._passing(tx, filters)
            changed = (replace(document, meta={**document.meta, **meta}) for document in found)
            self._documents.put_many(tx, [self._record(document, space) for document in changed])
        return len(found)

    def delete_documents(self, document_ids: list[str]) -> None:
        """Deletes documents; unknown ids are no error."""
        with self._documents.begin() as tx:
            self._documents.delete(tx, [self._key(id) for id in listed("document_ids", document_ids, "ids")])

    def delete_by_filter(self, filters: Filters) -> int:
        """Deletes all documents that pass the filters, and returns their number."""
        with self._documents.begin() as tx:
            found = self._passing(tx, filters)
            self._documents.delete(tx, [self._key(document.id) for document in found])
        return len(found)

    def delete_all_documents(self, recreate_index: bool = False) -> None:
        """Deletes all documents of the store.

        :param recreate_index: erase them from the log also if the store only takes documents out of use, and with them
            those that were deleted before.
        """
        with self._documents.begin() as tx:
            keys = self._documents.keys(tx, self._prefix)
            self._documents.delete(tx, keys, erase=True if recreate_index else None)

    # ---- reading ----

    def count_documents(self) -> int:
        """The number of documents."""
        return self._documents.read(lambda view: len(self._documents.find(view, episodes=[self._episode])))

    def count_documents_by_filter(self, filters: Filters) -> int:
        """The number of documents that pass the filters."""
        return len(self.filter_documents(filters))

    def filter_documents(self, filters: Filters | None = None) -> list[Document]:
        """The documents that pass the filters, or all, in the order in which they were written."""
        return self._documents.read(lambda view: self._passing(view, filters))

    def embedding_retrieval(
        self,
        query_embedding: list[float],
        filters: Filters | None = None,
        top_k: int = 10,
        scale_score: bool = False,
        return_embedding: bool = False,
    ) -> list[Document]:
        """The documents nearest to an embedding that pass the filters, with their scores.

        :param scale_score: map the scores of a cosine or dot product space to 0..1.
        """
        space = self._space()
        if space is None:
            raise DocumentStoreError("the database has no embedding space; create it with space=Space(model, dim)")
        found = self._recall(None, query_embedding, "near", "similarity 1", filters, top_k, return_embedding)
        return [replace(one, score=_scaled(one.score, space)) for one in found] if scale_score else found

    def bm25_retrieval(
        self, query: str, filters: Filters | None = None, top_k: int = 10, *, return_embedding: bool = False
    ) -> list[Document]:
        """The documents that share words with a question and pass the filters, with their scores."""
        if not query:
            raise ValueError("expected a query with at least one character")
        found = self._recall(query, None, "words", "words 1", filters, top_k, return_embedding)
        return [document for document in found if document.score]

    def recall(
        self,
        query: str,
        query_embedding: list[float] | None = None,
        filters: Filters | None = None,
        top_k: int = 10,
        *,
        score: str = "similarity 1, words 1",
        return_embedding: bool = False,
    ) -> list[Document]:
        """The documents found by words and, if there is an embedding, by vector.

        :param score: terms of the score, as in :meth:`holotype.Database.recall`.
        """
        by = "words" if query_embedding is None else "near, words"
        return self._recall(query, query_embedding, by, score, filters, top_k, return_embedding)

    def _recall(
        self,
        text: str | None,
        vector: list[float] | None,
        by: str,
        score: str,
        filters: Filters | None,
        top_k: int,
        return_embedding: bool,
    ) -> list[Document]:
        pool = f" pool {max(64, 10 * top_k)}" if text is not None else ""

        def search(view: Snapshot) -> list[Document]:
            if top_k <= 0 or self._episode not in view.episodes(self._episode, most=1):
                return []
            where, params = None, None
            if filters:
                keys = [key for key, _ in self._scan(view, filters)]
                if not keys:
                    return []
                where, params = "key in $keys", {"keys": keys}
            answer = view.recall(
                text,
                vector=vector,
                episode=self._episode,
                through=f"traces {top_k} by {by}{pool}",
                where=where,
                params=params,
                score=score,
                relax_below=0,
                limit=top_k,
            )
            items = view.get_many(row.item for row in answer)
            pairs = [(item, row.score) for item, row in zip(items, answer) if item is not None]
            return [_document(item, score, return_embedding) for item, score in pairs]

        return self._documents.read(search)

    def _space(self) -> Space | None:
        return self.database.snapshot().space

    def _passing(self, view: Snapshot | Transaction, filters: Filters | None) -> list[Document]:
        return [document for _, document in self._scan(view, filters)]

    def _scan(self, view: Snapshot | Transaction, filters: Filters | None) -> list[tuple[str, Document]]:
        """The keys and documents that pass the filters, in the order in which they were written."""
        if filters and "operator" not in filters and "conditions" not in filters:
            raise ValueError("invalid filter; see https://docs.haystack.deepset.ai/docs/metadata-filtering")
        if filters:
            # Haystack's rules refuse a wrong filter when they look at a document, whether one is read or not.
            document_matches_filter(filters=filters, document=Document(content=""))
        where = condition(_as_metadata(filters)) if filters and not _refuses(filters) else None
        items = self._documents.find(view, episodes=[self._episode], where=where)
        found = ((item.key, _document(item)) for item in items)
        return [pair for pair in found if not filters or document_matches_filter(filters=filters, document=pair[1])]

    # ---- metadata ----

    def get_metadata_fields_info(self) -> dict[str, dict[str, str]]:
        """The metadata fields with their types: ``boolean``, ``int``, ``float`` or ``keyword``."""
        names = {bool: "boolean", int: "int", float: "float"}
        metas = [document.meta for document in self.filter_documents()]
        pairs = ((name, value) for meta in metas for name, value in meta.items() if value is not None)
        return {name: {"type": names.get(type(value), "keyword")} for name, value in pairs}

    def get_metadata_field_min_max(self, metadata_field: str) -> dict[str, Any]:
        """The least and the greatest value of a metadata field, as ``min`` and ``max``; ``None`` without any."""
        values = [value for value in self._values(metadata_field) if isinstance(value, (int, float, str))]
        try:
            return {"min": min(values, default=None), "max": max(values, default=None)}
        except TypeError:
            # Numbers and texts have no order.
            return {"min": None, "max": None}

    def get_metadata_field_unique_values(
        self,
        metadata_field: str,
        search_term: str | None = None,
        from_: int = 0,
        size: int = 10,
        filters: Filters | None = None,
    ) -> tuple[list[Any], int]:
        """A page of the different values of a metadata field in documents that pass the filters, and their number.

        :param search_term: only values that contain it, in any case.
        """
        unique = {_identity(value): value for value in self._values(metadata_field, filters)}
        term = (search_term or "").lower()
        values = [value for value in unique.values() if term in str(value).lower()]
        values.sort(key=lambda value: (str(value), type(value).__name__))
        return values[from_ : from_ + size], len(values)

    def count_unique_metadata_by_filter(self, filters: Filters, metadata_fields: list[str]) -> dict[str, int]:
        """How many different values each of these metadata fields has in documents that pass the filters."""
        documents = self.filter_documents(filters)
        names = [name.removeprefix("meta.") for name in metadata_fields]
        return {name: len({_identity(value) for value in _values(documents, name)}) for name in names}

    def _values(self, field: str, filters: Filters | None = None) -> list[Any]:
        return _values(self.filter_documents(filters), field.removeprefix("meta."))

    # ---- asyncio ----

    async def write_documents_async(
        self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE
    ) -> int:
        """As :meth:`write_documents`."""
        return await asyncio.to_thread(self.write_documents, documents, policy)

    async def update_by_filter_async(self, filters: Filters, meta: dict[str, Any]) -> int:
        """As :meth:`update_by_filter`."""
        return await asyncio.to_thread(self.update_by_filter, filters, meta)

    async def delete_documents_async(self, document_ids: list[str]) -> None:
        """As :meth:`delete_documents`."""
        await asyncio.to_thread(self.delete_documents, document_ids)

    async def delete_by_filter_async(self, filters: Filters) -> int:
        """As :meth:`delete_by_filter`."""
        return await asyncio.to_thread(self.delete_by_filter, filters)

    async def delete_all_documents_async(self, recreate_index: bool = False) -> None:
        """As :meth:`delete_all_documents`."""
        await asyncio.to_thread(self.delete_all_documents, recreate_index)

    async def count_documents_async(self) -> int:
        """As :meth:`count_documents`."""
        return await asyncio.to_thread(self.count_documents)

    async def count_documents_by_filter_async(self, filters: Filters) -> int:
        """As :meth:`count_documents_by_filter`."""
        return await asyncio.to_thread(self.count_documents_by_filter, filters)

    async def filter_documents_async(self, filters: Filters | None = None) -> list[Document]:
        """As :meth:`filter_documents`."""
        return await asyncio.to_thread(self.filter_documents, filters)

    async def embedding_retrieval_async(self, query_embedding: list[float], **options: Any) -> list[Document]:
        """As :meth:`embedding_retrieval`."""
        return await asyncio.to_thread(self.embedding_retrieval, query_embedding, **options)

    async def bm25_retrieval_async(self, query: str, **options: Any) -> list[Document]:
        """As :meth:`bm25_retrieval`."""
        return await asyncio.to_thread(self.bm25_retrieval, query, **options)

    async def recall_async(self, query: str, **options: Any) -> list[Document]:
        """As :meth:`recall`."""
        return await asyncio.to_thread(self.recall, query, **options)

    async def get_metadata_fields_info_async(self) -> dict[str, dict[str, str]]:
        """As :meth:`get_metadata_fields_info`."""
        return await asyncio.to_thread(self.get_metadata_fields_info)

    async def get_metadata_field_min_max_async(self, metadata_field: str) -> dict[str, Any]:
        """As :meth:`get_metadata_field_min_max`."""
        return await asyncio.to_thread(self.get_metadata_field_min_max, metadata_field)

    async def get_metadata_field_unique_values_async(
        self, metadata_field: str, **options: Any
    ) -> tuple[list[Any], int]:
        """As :meth:`get_metadata_field_unique_values`."""
        return await asyncio.to_thread(self.get_metadata_field_unique_values, metadata_field, **options)

    async def count_unique_metadata_by_filter_async(
        self, filters: Filters, metadata_fields: list[str]
    ) -> dict[str, int]:
        """As :meth:`count_unique_metadata_by_filter`."""
        return await asyncio.to_thread(self.count_unique_metadata_by_filter, filters, metadata_fields)

    def _key(self, id: str) -> str:
        return self._prefix + key_of(id)


@component
class HolotypeRetriever(metaclass=ComponentMeta):
    """Finds documents of a :class:`HolotypeDocumentStore` in a pipeline: by words, by an embedding, or by both."""

    def __init__(
        self,
        document_store: HolotypeDocumentStore,
        *,
        filters: Filters | None = None,
        top_k: int = 10,
        filter_policy: FilterPolicy = FilterPolicy.REPLACE,
    ) -> None:
        """
        :param filters: of every search.
        :param top_k: the most documents of an answer.
        :param filter_policy: whether the filters of a run replace those given here or are added to them.
        """
        if top_k <= 0:
            raise ValueError(f"top_k is {top_k}; expected a number from 1")
        self.document_store = document_store
        self.filters = filters
        self.top_k = top_k
        self.filter_policy = filter_policy
        component.set_output_types(self, documents=list[Document])

    def to_dict(self) -> dict[str, Any]:
        """The retriever as a dictionary, with its store."""
        data: dict[str, Any] = default_to_dict(
            self,
            document_store=self.document_store.to_dict(),
            filters=self.filters,
            top_k=self.top_k,
            filter_policy=self.filter_policy.value,
        )
        return data

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> HolotypeRetriever:
        """The retriever of a dictionary."""
        given = dict(data["init_parameters"])
        # Haystack may have made the store already.
        if isinstance(given["document_store"], dict):
            given["document_store"] = HolotypeDocumentStore.from_dict(given["document_store"])
        given["filter_policy"] = FilterPolicy.from_str(given.get("filter_policy", "replace"))
        retriever: HolotypeRetriever = default_from_dict(cls, {**data, "init_parameters": given})
        return retriever

    def run(
        self,
        query: str | None = None,
        query_embedding: list[float] | None = None,
        filters: Filters | None = None,
        top_k: int | None = None,
    ) -> dict[str, list[Document]]:
        """Finds documents.

        :param query: the question, for its words.
        :param query_embedding: the embedding of the question.
        """
        filters = apply_filter_policy(self.filter_policy, self.filters, filters)
        count = self.top_k if top_k is None else top_k
        if query is None:
            if query_embedding is None:
                raise ValueError("expected a query, a query_embedding, or both")
            return {"documents": self.document_store.embedding_retrieval(query_embedding, filters, count)}
        if query_embedding is None:
            return {"documents": self.document_store.bm25_retrieval(query, filters, count)}
        return {"documents": self.document_store.recall(query, query_embedding, filters, count)}

    async def run_async(
        self,
        query: str | None = None,
        query_embedding: list[float] | None = None,
        filters: Filters | None = None,
        top_k: int | None = None,
    ) -> dict[str, list[Document]]:
        """As :meth:`run`."""
        return await asyncio.to_thread(self.run, query, query_embedding, filters, top_k)


def _vector(document: Document, space: Space | None) -> Any:
    """The vector by which a document is found; ``None`` without one, or if its direction is none."""
    if document.embedding is None or space is None:
        return None
    if len(document.embedding) != space.dim:
        found = f"the embedding of document '{document.id}' has {len(document.embedding)} numbers"
        hint = "embed all documents with one model"
        raise DocumentStoreError(f"{found}, and vectors of {space.model} have {space.dim}; {hint}")
    vector = np.asarray(document.embedding, dtype=np.float32)
    return vector if space.metric != "cosine" or np.any(vector) else None


def _fields(document: Document) -> dict[str, Any]:
    """The parts of a document beside its text."""
    parts: dict[str, Any] = {"id": document.id, "meta": document.meta, "score": document.score}
    fields: dict[str, Any] = {}
    if document.content is None:
        parts["content"] = None
    if document.embedding is not None:
        fields["embedding"] = np.asarray(document.embedding, dtype="<f8").tobytes()
    if document.sparse_embedding is not None:
        parts["sparse_embedding"] = document.sparse_embedding.to_dict()
    if document.blob is not None:
        parts["blob"] = {"meta": document.blob.meta, "mime_type": document.blob.mime_type}
        fields["blob"] = document.blob.data
    fields["document"] = dumps(parts, f"document '{document.id}'")
    return {**fields, **members(document.meta)}


def _document(item: Item, score: float | None = None, with_embedding: bool = True) -> Document:
    parts = loads(field_of(item, "document"))
    has_embedding = with_embedding and "embedding" in item.fields
    blob, sparse = parts.get("blob"), parts.get("sparse_embedding")
    return Document(
        id=parts["id"],
        content=parts.get("content", text_of(item)),
        meta=parts["meta"],
        score=parts["score"] if score is None else score,
        embedding=np.frombuffer(field_bytes(item, "embedding"), "<f8").tolist() if has_embedding else None,
        sparse_embedding=None if sparse is None else SparseEmbedding.from_dict(sparse),
        blob=None if blob is None else ByteStream(data=field_bytes(item, "blob"), **blob),
    )


def _scaled(score: float | None, space: Space) -> float | None:
    """The score as a number from 0 to 1, as Haystack's own store scales it."""
    if score is None or space.metric == "l2":
        return score
    return (score + 1) / 2 if space.metric == "cosine" else 1 / (1 + math.exp(-score / _DOT_SCALE))


_SIGNS = {"==": "$eq", "in": "$in", ">": "$gt", ">=": "$gte", "<": "$lt", "<=": "$lte"}

_COMPARED = {"$gt": operator.gt, "$gte": operator.ge, "$lt": operator.lt, "$lte": operator.le}


def _as_metadata(filters: Filters) -> dict[str, Any]:
    """A filter on the metadata that every document passes which passes this one."""
    if "conditions" in filters:
        sign = {"AND": "$and", "OR": "$or"}.get(filters.get("operator", ""))
        return {} if sign is None else {sign: [_as_metadata(one) for one in filters["conditions"]]}
    field, sign, value = filters.get("field", ""), _SIGNS.get(filters.get("operator", "")), filters.get("value")
    if sign is None or not isinstance(field, str) or not field.startswith("meta."):
        return {}
    if sign == "$in" and not isinstance(value, list):
        return {}
    if any(_has_equals(one) for one in (value if isinstance(value, list) else [value])):
        return {}
    # For Haystack truth values are the numbers 0 and 1 in comparisons, too.
    if sign in _COMPARED and isinstance(value, (int, float)) and any(_COMPARED[sign](truth, value) for truth in (0, 1)):
        return {}
    return {field[len("meta.") :]: {sign: value}}


def _refuses(filters: Filters) -> bool:
    """Whether Haystack's rules refuse a part of a filter, which they tell only when they come to it: then every
    document is looked at as they do."""
    if "conditions" in filters:
        return any(_refuses(one) for one in filters["conditions"])
    try:
        document_matches_filter(filters=filters, document=Document(content=""))
    except FilterError:
        return True
    return False


def _has_equals(value: Any) -> bool:
    """Whether other values equal it for Haystack and not in the database: True equals 1, and times may be written in
    several ways."""
    return value in (0, 1) if isinstance(value, (int, float)) else isinstance(value, str) and value[:4].isdigit()


def _values(documents: list[Document], field: str) -> list[Any]:
    return [value for document in documents if (value := document.meta.get(field)) is not None]


def _identity(value: Any) -> tuple[str, str]:
    """Equal for values that are the same in type and content."""
    return type(value).__name__, dumps(value)
