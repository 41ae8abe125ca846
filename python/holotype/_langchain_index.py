"""LangChain's indexing in a Holotype database: a document index, and a record manager for ``index()``."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.indexing import DeleteResponse, DocumentIndex, RecordManager, UpsertResponse
from pydantic import ConfigDict

from ._database import Database
from ._documents import Documents, Record, field_of, key_of
from ._langchain_vectors import HolotypeVectorStore
from ._native import Item
from ._values import listed

if TYPE_CHECKING:
    from ._types import _Durability as Durability

__all__ = ["HolotypeDocumentIndex", "HolotypeRecordManager"]


class HolotypeDocumentIndex(DocumentIndex):
    """A LangChain document index over a :class:`HolotypeVectorStore`; it is a retriever too.

    >>> from holotype.langchain import HolotypeDocumentIndex, HolotypeVectorStore
    >>> from langchain_core.documents import Document
    >>> from langchain_core.embeddings import DeterministicFakeEmbedding
    >>> with holotype.create(path, space=holotype.Space("fake", 8)) as own:
    ...     store = HolotypeVectorStore(own, DeterministicFakeEmbedding(size=8))
    ...     index = HolotypeDocumentIndex(store=store, top_k=1)
    ...     done = index.upsert([Document("a flight to Lisbon", id="1"), Document("a hotel", id="2")])
    ...     index.invoke("a hotel")[0].id, index.delete(["1", "9"])["num_deleted"]
    ('2', 1)
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    store: HolotypeVectorStore
    """Where the documents are."""
    top_k: int = 4
    """The most documents of an answer."""

    def __init__(self, *, store: HolotypeVectorStore, top_k: int = 4, **options: Any) -> None:
        """
        :param store: where the documents are.
        :param top_k: the most documents of an answer.
        :param options: those of a LangChain retriever, such as ``tags``.
        """
        given: dict[str, Any] = {**options, "store": store, "top_k": top_k}
        super().__init__(**given)

    def upsert(self, items: Sequence[Document], /, **kwargs: Any) -> UpsertResponse:
        """Stores documents, all or none of them; one whose id is known takes the place of the document before."""
        ids = [item.id or str(uuid.uuid4()) for item in items]
        texts, metadatas = [item.page_content for item in items], [item.metadata for item in items]
        return UpsertResponse(succeeded=self.store.add_texts(texts, metadatas, ids=ids), failed=[])

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> DeleteResponse:
        """Deletes documents; unknown ids are no error."""
        if ids is None:
            raise ValueError("expected the ids of the documents to delete")
        deleted = self.store._delete(ids)
        return DeleteResponse(succeeded=deleted, num_deleted=len(deleted), failed=[], num_failed=0)

    def get(self, ids: Sequence[str], /, **kwargs: Any) -> list[Document]:
        """The documents of ids, without those that are unknown."""
        return self.store.get_by_ids(list(dict.fromkeys(listed("ids", ids, "ids"))))

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return self.store.similarity_search(query, self.top_k)


class HolotypeRecordManager(RecordManager):
    """A LangChain record manager: which documents ``langchain_core.indexing.index`` has written, and when.

    >>> from holotype.langchain import HolotypeRecordManager
    >>> manager = HolotypeRecordManager("documents", db)
    >>> manager.update(["a", "b"], group_ids=["file 1", "file 2"])
    >>> manager.exists(["a", "c"]), manager.list_keys(group_ids=["file 2"])
    ([True, False], ['b'])
    """

    def __init__(
        self, namespace: str, database: Database, *, erase: bool = True, durability: Durability = "sync"
    ) -> None:
        """
        :param namespace: the name under which the keys of this manager are kept apart from others.
        :param erase: erase deleted keys from the log, instead of taking them out of use.
        :param durability: of every write: ``sync`` survives power loss, ``flush`` a crash of the process.
        """
        super().__init__(namespace)
        self._documents = Documents(database, "langchain-records", erase=erase, durability=durability)
        self._episode = f"langchain-records/{key_of(namespace)}"
        self._prefix = f"lr.d/{key_of(namespace)}/"

    def create_schema(self) -> None:
        """Does nothing: a database needs no preparation."""

    async def acreate_schema(self) -> None:
        """Does nothing: a database needs no preparation."""

    def get_time(self) -> float:
        """The time of this machine in seconds."""
        return time.time()

    async def aget_time(self) -> float:
        """As :meth:`get_time`."""
        return self.get_time()

    def update(
        self,
        keys: Sequence[str],
        *,
        group_ids: Sequence[str | None] | None = None,
        time_at_least: float | None = None,
    ) -> None:
        """Stores keys with the present time, all or none of them.

        :param group_ids: the group of each key, such as its file.
        :param time_at_least: refuse to write if the clock is behind this time.
        """
        keys = listed("keys", keys, "keys")
        groups = listed("group_ids", group_ids, "groups") if group_ids else [None] * len(keys)
        if len(groups) != len(keys):
            raise ValueError(f"expected one group id for each of {len(keys)} keys, found {len(groups)}")
        now = self.get_time()
        if time_at_least is not None and time_at_least > now:
            raise ValueError(f"the clock is at {now}, before time_at_least {time_at_least}; set the clock")
        records = []
        for key, group in zip(keys, groups):
            fields: dict[str, str | bytes] = {"key": key, "updated": repr(now)}
            if group is not None:
                fields["group"] = group
            records.append(Record(self._prefix + key_of(key), key, self._episode, fields))
        with self._documents.begin() as tx:
            self._documents.put_many(tx, records)

    def exists(self, keys: Sequence[str]) -> list[bool]:
        """Whether each key is there."""
        places = [self._prefix + key_of(key) for key in listed("keys", keys, "keys")]
        found = self._documents.read(lambda view: self._documents.get_many(view, places))
        return [item is not None for item in found]

    def list_keys(
        self,
        *,
        before: float | None = None,
        after: float | None = None,
        group_ids: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> list[str]:
        """The keys that were updated between these times and are of one of the groups, as they were written."""

        wanted = listed("group_ids", group_ids, "groups") if group_ids else None

        def passes(item: Item) -> bool:
            updated = float(field_of(item, "updated"))
            group = field_of(item, "group") if "group" in item.fields else None
            is_timely = not (before and updated >= before) and not (after and updated <= after)
            return is_timely and (wanted is None or group in wanted)

        items = self._documents.read(lambda view: [item for _, item in self._documents.scan(view, self._prefix)])
        found = [field_of(item, "key") for item in sorted(items, key=lambda item: item.id) if passes(item)]
        return found[:limit] if limit else found

    def delete_keys(self, keys: Sequence[str]) -> None:
        """Deletes keys; unknown ones are no error."""
        with self._documents.begin() as tx:
            self._documents.delete(tx, [self._prefix + key_of(key) for key in listed("keys", keys, "keys")])

    async def aupdate(
        self,
        keys: Sequence[str],
        *,
        group_ids: Sequence[str | None] | None = None,
        time_at_least: float | None = None,
    ) -> None:
        """As :meth:`update`."""
        await asyncio.to_thread(lambda: self.update(keys, group_ids=group_ids, time_at_least=time_at_least))

    async def aexists(self, keys: Sequence[str]) -> list[bool]:
        """As :meth:`exists`."""
        return await asyncio.to_thread(self.exists, keys)

    async def alist_keys(
        self,
        *,
        before: float | None = None,
        after: float | None = None,
        group_ids: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> list[str]:
        """As :meth:`list_keys`."""
        return await asyncio.to_thread(
            lambda: self.list_keys(before=before, after=after, group_ids=group_ids, limit=limit)
        )

    async def adelete_keys(self, keys: Sequence[str]) -> None:
        """As :meth:`delete_keys`."""
        await asyncio.to_thread(self.delete_keys, keys)
