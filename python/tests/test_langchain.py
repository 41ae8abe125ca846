"""LangChain: its suites of vector store, retriever, indexer, key-value store and cache, and its own record manager."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Generator, Iterator
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import holotype
import pytest

pytest.importorskip("langchain_tests")

from holotype.langchain import (  # noqa: E402
    HolotypeByteStore,
    HolotypeCache,
    HolotypeDocumentIndex,
    HolotypeRecordManager,
    HolotypeVectorStore,
)
from langchain_core.documents import Document  # noqa: E402
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings  # noqa: E402
from langchain_core.indexing import InMemoryRecordManager, index  # noqa: E402
from langchain_core.messages import AIMessage  # noqa: E402
from langchain_core.outputs import ChatGeneration  # noqa: E402
from langchain_core.retrievers import BaseRetriever  # noqa: E402
from langchain_core.vectorstores import VectorStoreRetriever  # noqa: E402
from langchain_tests.integration_tests import (  # noqa: E402
    AsyncCacheTestSuite,
    BaseStoreAsyncTests,
    BaseStoreSyncTests,
    RetrieversIntegrationTests,
    SyncCacheTestSuite,
    VectorStoreIntegrationTests,
)
from langchain_tests.integration_tests.indexer import (  # noqa: E402
    AsyncDocumentIndexTestSuite,
    DocumentIndexerTestSuite,
)


class TestVectorStore(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self, tmp_path: Path) -> Generator[HolotypeVectorStore, None, None]:  # type: ignore[override]
        embedding = self.get_embeddings()
        space = holotype.Space("fake", len(embedding.embed_query("x")))
        with holotype.create(tmp_path / "memory.holo", space=space) as db:
            yield HolotypeVectorStore(db, embedding, durability="none")
            assert db.verify()


class Retriever(VectorStoreRetriever):
    """The store's retriever, made as the suite makes one: with ``k``."""

    def __init__(self, **options: Any) -> None:
        k = options.pop("k", None)
        super().__init__(**options, **({} if k is None else {"search_kwargs": {"k": k}}))


class TestRetriever(RetrieversIntegrationTests):
    store: HolotypeVectorStore

    @pytest.fixture(autouse=True)
    def fill(self, tmp_path: Path) -> Generator[None, None, None]:
        with holotype.create(tmp_path / "memory.holo", space=holotype.Space("fake", 8)) as db:
            self.store = HolotypeVectorStore(db, DeterministicFakeEmbedding(size=8))
            self.store.add_texts([f"text {n}" for n in range(6)])
            yield

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return Retriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"vectorstore": self.store}

    @property
    def retriever_query_example(self) -> str:
        return "text 3"


def test_a_store_from_texts_with_a_predicate_and_words(tmp_path: Path) -> None:
    texts = ["red apple", "green pear", "red car"]
    store = HolotypeVectorStore.from_texts(
        texts, DeterministicFakeEmbedding(size=8), [{"n": n} for n in range(3)], path=str(tmp_path / "memory.holo")
    )
    found = store.similarity_search("red car", k=3, where="text contains $word", params={"word": "red"})
    assert {document.page_content for document in found} == {"red apple", "red car"}
    assert store.similarity_search("pear", k=1, words=10.0)[0].page_content == "green pear"
    assert store.similarity_search_with_relevance_scores("red car", k=1)[0][1] == pytest.approx(1.0, abs=1e-4)
    assert store.delete() and store.similarity_search("red car") == []


# ---- indexing ----


@pytest.fixture
def vectors(tmp_path: Path) -> Generator[HolotypeVectorStore, None, None]:
    with holotype.create(tmp_path / "memory.holo", space=holotype.Space("fake", 8)) as db:
        yield HolotypeVectorStore(db, DeterministicFakeEmbedding(size=8), durability="none")
        assert db.verify()


class TestIndexer(DocumentIndexerTestSuite):
    @pytest.fixture
    def index(self, vectors: HolotypeVectorStore) -> Generator[HolotypeDocumentIndex, None, None]:
        yield HolotypeDocumentIndex(store=vectors)


class TestAsyncIndexer(AsyncDocumentIndexTestSuite):
    @pytest.fixture
    async def index(self, vectors: HolotypeVectorStore) -> AsyncGenerator[HolotypeDocumentIndex, None]:
        yield HolotypeDocumentIndex(store=vectors)


def test_langchains_indexing_writes_what_is_new_alone(vectors: HolotypeVectorStore) -> None:
    manager = HolotypeRecordManager("files", vectors._documents.database)
    documents = [Document(f"text {n}", metadata={"source": f"file {n // 2}"}) for n in range(4)]

    def run(documents: list[Document]) -> list[int]:
        done = index(documents, manager, vectors, cleanup="incremental", source_id_key="source", key_encoder="sha256")
        return [done["num_added"], done["num_skipped"], done["num_deleted"]]

    assert run(documents) == [4, 0, 0] and run(documents) == [0, 4, 0]
    assert run([documents[0], Document("new", metadata={"source": "file 0"})]) == [1, 1, 1]
    found = {document.page_content for document in vectors.similarity_search("x", k=9)}
    assert found == {"text 0", "text 2", "text 3", "new"}


def test_the_record_manager_does_what_langchains_own_does(path: Path) -> None:
    draw = random.Random(5)
    times = iter(range(1, 10_000))
    with holotype.create(path) as db:
        managers: list[Any] = [InMemoryRecordManager("n"), HolotypeRecordManager("n", db, durability="none")]
        HolotypeRecordManager("other", db).update(["k0"])
        for _ in range(60):
            keys = [f"k{n}" for n in draw.sample(range(12), 3)]
            groups = draw.choice([None, [draw.choice([None, "a", "b"]) for _ in keys]])
            before, after = draw.choice([None, draw.randrange(1, 60)]), draw.choice([None, draw.randrange(1, 60)])
            wanted, limit, choice = draw.choice([None, ["a"], ["a", "b"]]), draw.choice([None, 2]), draw.randrange(3)
            now, seen = float(next(times)), []
            for manager in managers:
                manager.get_time = lambda: now
                if choice == 0:
                    manager.delete_keys(keys)
                else:
                    manager.update(keys, group_ids=groups, time_at_least=now - 1)
                # LangChain's own manager keeps the place of a key that is updated.
                found = manager.list_keys(before=before, after=after, group_ids=wanted)
                seen.append([manager.exists(keys), sorted(found)])
                assert len(manager.list_keys(limit=limit)) <= (limit or 12)
            assert seen[0] == seen[1]
        for manager in managers:
            with pytest.raises(ValueError):
                manager.update(["x"], time_at_least=1e12)
            with pytest.raises(ValueError):
                manager.update(["x"], group_ids=["a", "b"])
            assert asyncio.run(manager.aexists(["x"])) == [False]


# ---- key-value store and cache ----


@pytest.fixture
def empty(tmp_path: Path) -> Generator[holotype.Database, None, None]:
    with holotype.create(tmp_path / "memory.holo") as database:
        yield database
        assert database.verify()


class TestByteStore(BaseStoreSyncTests[bytes]):
    @pytest.fixture
    def kv_store(self, empty: holotype.Database) -> HolotypeByteStore:
        return HolotypeByteStore(empty)

    @pytest.fixture
    def three_values(self) -> tuple[bytes, bytes, bytes]:
        return b"text", b"\xff\x00", b""


class TestAsyncByteStore(BaseStoreAsyncTests[bytes]):
    @pytest.fixture
    async def kv_store(self, empty: holotype.Database) -> HolotypeByteStore:
        return HolotypeByteStore(empty, erase=False)

    @pytest.fixture
    def three_values(self) -> tuple[bytes, bytes, bytes]:
        return b"text", b"\xff\x00", b""


class TestCache(SyncCacheTestSuite):
    @pytest.fixture
    def cache(self, empty: holotype.Database) -> HolotypeCache:
        return HolotypeCache(empty)


class TestAsyncCache(AsyncCacheTestSuite):
    @pytest.fixture
    async def cache(self, empty: holotype.Database) -> HolotypeCache:
        return HolotypeCache(empty, erase=False)


def test_keys_may_be_any_text_and_collections_are_apart(empty: holotype.Database) -> None:
    store, other = HolotypeByteStore(empty), HolotypeByteStore(empty, collection="a/b")
    keys = ["", "a", "a/b", "a@1", "ä ✈", "long" * 100, "long" * 100 + "er", "%41"]
    store.mset([(key, key.encode()) for key in keys])
    other.mset([("a", b"other")])
    assert store.mget(keys) == [key.encode() for key in keys] and other.mget(["a", ""]) == [b"other", None]
    for prefix in ["", "a", "ä", "long" * 99, "long" * 100 + "e", "%", "z"]:
        assert list(store.yield_keys(prefix=prefix)) == sorted(key for key in keys if key.startswith(prefix))
    store.mdelete(keys)
    assert list(store.yield_keys()) == [] and list(other.yield_keys()) == ["a"]


def test_the_cache_keeps_messages_of_chat_models(empty: holotype.Database) -> None:
    answers = [ChatGeneration(message=AIMessage("$450", tool_calls=[{"name": "f", "args": {"n": 1}, "id": "1"}]))]
    HolotypeCache(empty).update("What does UA123 cost? " * 50, "model " * 50, answers)
    assert HolotypeCache(empty).lookup("What does UA123 cost? " * 50, "model " * 50) == answers
    assert HolotypeCache(empty).lookup("What does UA123 cost? " * 50, "other") is None


class Lengths(Embeddings):
    """Texts of the same length have the same vector."""

    def embed_query(self, text: str) -> list[float]:
        return [float(len(text)), 5.0, -3.0]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]


@pytest.fixture
def years(path: Path) -> Iterator[HolotypeVectorStore]:
    with holotype.create(path, space=holotype.Space("lengths", 3)) as db:
        store = HolotypeVectorStore(db, Lengths())
        metadata = [{"year": 2000 + n, "lang": "de" if n % 2 else "en"} for n in range(40)]
        store.add_texts([f"{'x' * n} text" for n in range(40)], [*metadata[:-1], {"lang": None}])
        yield store


@pytest.mark.parametrize(
    ("wanted", "count"),
    [
        ({"lang": "de"}, 19),
        ({"lang": {"$ne": "de"}}, 21),
        ({"year": {"$gt": 2030}}, 8),
        ({"year": {"$gte": 2010, "$lt": 2012}}, 2),
        ({"year": {"$lte": 2000}}, 1),
        ({"year": {"$in": [2001, 2002, 1]}}, 2),
        ({"year": {"$nin": [2001, 2002]}}, 38),
        ({"$and": [{"lang": "en"}, {"year": {"$lt": 2004}}]}, 2),
        ({"$or": [{"year": 2003}, {"year": 2005}]}, 2),
        ({"$not": {"lang": "de"}}, 21),
        ({"year": "2001"}, 1),
        ({"year": {"$gt": "a"}}, 0),
        ({"nothing": 1}, 0),
        (lambda document: document.metadata.get("year") == 2007, 1),
        (None, 40),
    ],
)
def test_a_filter_finds_all_that_pass(years: HolotypeVectorStore, wanted: Any, count: int) -> None:
    assert len(years.similarity_search("text", k=50, filter=wanted)) == count
    nearest = years.similarity_search("text", k=2, filter=wanted)
    assert len(nearest) == min(count, 2)
    differing = years.max_marginal_relevance_search("text", k=2, fetch_k=10, filter=wanted)
    assert len(differing) == min(count, 2)
    assert len(years.as_retriever(search_kwargs={"k": 3, "filter": wanted}).invoke("text")) == min(count, 3)


@pytest.mark.parametrize(
    "wrong", [{"year": {"$above": 1}}, {"$xor": [{}]}, {"year": {"$in": 5}}, {"$or": {"a": 1}}, "de"]
)
def test_a_wrong_filter_is_named(years: HolotypeVectorStore, wrong: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        years.similarity_search("text", filter=wrong)


@pytest.mark.parametrize("metric", ["cosine", "dot", "l2"])
def test_relevance_is_from_0_to_1(path: Path, metric: Any) -> None:
    with holotype.create(path, space=holotype.Space("lengths", 3, metric=metric)) as db:
        store = HolotypeVectorStore(db, Lengths())
        store.add_texts(["a", "abcdef", "x" * 30, "y" * 100])
        for words in (0.0, 2.0):
            found = store.similarity_search_with_relevance_scores("abcdef", k=4, words=words)
            assert len(found) == 4 and all(0 <= score <= 1 for _, score in found)
        threshold = {"score_threshold": 0.5, "k": 1}
        assert store.as_retriever(search_type="similarity_score_threshold", search_kwargs=threshold).invoke("abcdef")
    away = path.with_name("away.holo")
    with holotype.create(away, space=holotype.Space("lengths", 3)) as db:
        store = HolotypeVectorStore(db, Lengths())
        # At a right angle: it has nothing to do with the question.
        with db.begin() as tx:
            fields = {"id": "o", "metadata": "{}"}
            tx.record("other", episode="langchain/documents", vector=[0.0, 3.0, 5.0], fields=fields)
        assert store.similarity_search_with_relevance_scores("", k=1)[0][1] == pytest.approx(0, abs=1e-6)


def test_metadata_comes_back_as_it_was(path: Path) -> None:
    np = pytest.importorskip("numpy")
    metadata = {
        "when": datetime(2026, 1, 5, tzinfo=timezone.utc), "day": date(2026, 1, 5), "set": {1}, "tuple": (1, 2),
        "bytes": b"\xff", "$type": "x", "$value": 1, "none": None, "half": "cut \ud83d", "deep": {"a": [{"b": None}]},
    }  # fmt: skip
    numbers = {"int": np.int64(3), "float": np.float32(0.5), "bool": np.bool_(True), "array": np.arange(3)}
    with holotype.create(path, space=holotype.Space("lengths", 3)) as db:
        store = HolotypeVectorStore(db, Lengths())
        store.add_texts(["cut \ud83d here"], [{**metadata, **numbers}], ids=["\udc88"])
        found = store.get_by_ids(["\udc88"])[0]
        assert found.page_content == "cut \ud83d here" and found.id == "\udc88"
        assert found.metadata == {**metadata, "int": 3, "float": 0.5, "bool": True, "array": [0, 1, 2]}
        assert store.similarity_search("x", filter={"when": {"$gte": "2026-01-01"}})
        for wrong, message in (({"a": object()}, r"metadatas\[0\]\['a'\]"), ({"a": cycle()}, "nested")):
            with pytest.raises(holotype.InputError, match=message):
                store.add_texts(["x"], [wrong])
        with pytest.raises(TypeError, match=r"texts\[1\]"):
            store.add_texts(["x", 7])  # type: ignore[list-item]
        for call in (store.add_texts, store.delete, store.get_by_ids):
            with pytest.raises(TypeError, match="expected a list of"):
                call("abc")  # type: ignore[arg-type]


def cycle() -> Any:
    members: list[Any] = []
    members.append(members)
    return members


def test_of_texts_with_one_id_the_last_counts(path: Path) -> None:
    with holotype.create(path, space=holotype.Space("lengths", 3)) as db:
        store = HolotypeVectorStore(db, Lengths())
        for n in range(5):
            store.add_texts(["a", f"b{n}"], ids=["1", "1"])
        assert [document.page_content for document in store.get_by_ids(["1"])] == ["b4"]
        assert len(store.similarity_search("b", k=9)) == 1
        store.delete(["1"])
        store.add_texts(["again"], ids=["1"])
        assert store.get_by_ids(["1"])[0].page_content == "again"
