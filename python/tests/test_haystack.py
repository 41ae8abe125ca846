"""The Haystack store: Haystack's own suites, its own store as the model, and a pipeline."""

from __future__ import annotations

import inspect
import os
import random
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import holotype
import pytest

# Haystack reports its use over the network otherwise.
os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"
pytest.importorskip("haystack.testing.document_store")

from haystack import Document, Pipeline, component  # noqa: E402
from haystack.dataclasses import ByteStream, SparseEmbedding  # noqa: E402
from haystack.document_stores.errors import DocumentStoreError, DuplicateDocumentError  # noqa: E402
from haystack.document_stores.in_memory import InMemoryDocumentStore  # noqa: E402
from haystack.document_stores.types import DuplicatePolicy, FilterPolicy  # noqa: E402
from haystack.errors import FilterError  # noqa: E402
from haystack.testing import document_store as suite  # noqa: E402
from haystack.testing import document_store_async as async_suite  # noqa: E402
from holotype.haystack import HolotypeDocumentStore, HolotypeRetriever  # noqa: E402


@pytest.fixture(params=[True, False], ids=["erase", "retract"])
def document_store(request: Any, tmp_path: Path) -> Iterator[HolotypeDocumentStore]:
    with holotype.create(tmp_path / "memory.holo", space=holotype.Space("fake", 768)) as db:
        yield HolotypeDocumentStore(db, erase=request.param, durability="none")
        assert db.verify()


class TestStore(
    suite.DocumentStoreBaseExtendedTests,
    suite.CountDocumentsByFilterTest,
    suite.CountUniqueMetadataByFilterTest,
    suite.GetMetadataFieldsInfoTest,
    suite.GetMetadataFieldMinMaxTest,
    suite.GetMetadataFieldUniqueValuesTest,
):
    """Haystack's suite of a store with all parts of the interface."""

    @pytest.fixture
    def document_store(self, document_store: HolotypeDocumentStore) -> HolotypeDocumentStore:  # type: ignore[override]
        return document_store

    def test_write_documents(self, document_store: Any) -> None:
        """The suite leaves this one to the store: what ``DuplicatePolicy.NONE`` means."""
        document = Document(content="test doc")
        assert document_store.write_documents([document]) == 1
        with pytest.raises(DuplicateDocumentError):
            document_store.write_documents([document], DuplicatePolicy.NONE)
        self.assert_documents_are_equal(document_store.filter_documents(), [document])


class TestAsyncStore(
    async_suite.DeleteAllAsyncTest,
    async_suite.CountDocumentsAsyncTest,
    async_suite.CountDocumentsByFilterAsyncTest,
    async_suite.CountUniqueMetadataByFilterAsyncTest,
    async_suite.DeleteByFilterAsyncTest,
    async_suite.UpdateByFilterAsyncTest,
    async_suite.WriteDocumentsAsyncTest,
    async_suite.DeleteDocumentsAsyncTest,
    async_suite.GetMetadataFieldsInfoAsyncTest,
    async_suite.GetMetadataFieldMinMaxAsyncTest,
    async_suite.GetMetadataFieldUniqueValuesAsyncTest,
    async_suite.FilterDocumentsAsyncTest,
):
    """The same for asyncio."""

    @pytest.mark.asyncio
    async def test_write_documents_async(self, document_store: Any) -> None:
        document = Document(content="test doc")
        assert await document_store.write_documents_async([document]) == 1
        with pytest.raises(DuplicateDocumentError):
            await document_store.write_documents_async([document], DuplicatePolicy.NONE)


@pytest.mark.parametrize(("module", "own"), [(suite, TestStore), (async_suite, TestAsyncStore)])
def test_no_suite_is_left_out(module: Any, own: type) -> None:
    suites = [one for name, one in vars(module).items() if inspect.isclass(one) and name.endswith(("Test", "Tests"))]
    assert len(suites) >= 12 and all(issubclass(own, one) for one in suites)


def test_every_part_of_a_document_comes_back(path: Path) -> None:
    documents = [
        Document(id="", content="ünïcode\n ✈", meta={"deep": {"list": [1, 2.5, None, True]}}, score=0.25),
        Document(id="a/b@c " + "long" * 100, content=None, blob=ByteStream(b"\xff\x00", {"n": 1}, "image/png")),
        Document(id="text blob", content="", blob=ByteStream(b"plain")),
        Document(id="vectors", embedding=[0.1, 1 / 3], sparse_embedding=SparseEmbedding([1, 7], [0.5, 0.1])),
        Document(id="no direction", embedding=[0.0, 0.0]),
        Document(id="empty", embedding=[]),
    ]
    with holotype.create(path) as db:
        assert HolotypeDocumentStore(db).write_documents(documents) == 6
    with holotype.open(path) as db:
        store = HolotypeDocumentStore(db)
        assert store.filter_documents() == documents
        with pytest.raises(ValueError, match=r"document 'x'\['meta'\]\['what'\] is of the type object"):
            store.write_documents([Document(id="x", content="x", meta={"what": object()})])
        with pytest.raises(DocumentStoreError, match="space"):
            store.embedding_retrieval([1.0, 0.0])
        # All or none.
        with pytest.raises(DuplicateDocumentError):
            store.write_documents([Document(id="new", content="new"), documents[2]])
        assert store.count_documents() == 6


def test_a_space_holds_embeddings_of_one_length(path: Path) -> None:
    with holotype.create(path, space=holotype.Space("fake", 2)) as db:
        store = HolotypeDocumentStore(db)
        with pytest.raises(DocumentStoreError, match="3 numbers"):
            store.write_documents([Document(id="1", content="x", embedding=[1.0, 2.0, 3.0])])
        store.write_documents([Document(id="1", content="x", embedding=[0.0, 0.0])])
        assert store.embedding_retrieval([1.0, 0.0]) == [] and store.count_documents() == 1


# ---- beside Haystack's own store ----

WORDS = ["flight", "hotel", "Lisbon", "Porto", "cheap", "late", "window", "bag"]


def draw_document(draw: random.Random, id: str) -> Document:
    when = f"2026-0{draw.randrange(1, 9)}-01"
    meta: dict[str, Any] = {"n": draw.randrange(5), "city": draw.choice(WORDS), "when": when}
    meta |= draw.choice([{}, {"deep": {"flag": draw.random() < 0.5}}, {"n": None}])
    embedding = draw.choice([None, [draw.uniform(-1, 1) for _ in range(4)]])
    return Document(id=id, content=" ".join(draw.choices(WORDS, k=6)), meta=meta, embedding=embedding)


def draw_filter(draw: random.Random, depth: int = 2) -> dict[str, Any]:
    if depth and draw.random() < 0.4:
        conditions = [draw_filter(draw, depth - 1) for _ in range(draw.randrange(1, 4))]
        return {"operator": draw.choice(["AND", "OR", "NOT"]), "conditions": conditions}
    field = draw.choice(["meta.n", "n", "meta.city", "meta.when", "meta.deep.flag", "meta.none", "id", "content"])
    number, when = draw.randrange(5), f"2026-0{draw.randrange(1, 9)}-01"
    operator = draw.choice(["==", "!=", ">", ">=", "<", "<=", "in", "not in", "like"])
    value = draw.choice([number, when, None, draw.choice(WORDS), [number, number + 1], True])
    return {"field": field, "operator": operator, "value": value}


def outcome(call: Any) -> Any:
    try:
        return call()
    except (FilterError, ValueError, DuplicateDocumentError, TypeError) as error:
        return type(error).__name__


def test_it_does_what_haystacks_own_store_does(path: Path) -> None:
    seed = 11
    print("seed", seed)
    draw = random.Random(seed)
    checks = 0
    with holotype.create(path, space=holotype.Space("fake", 4)) as db:
        own = HolotypeDocumentStore(db, durability="none")
        model = InMemoryDocumentStore(embedding_similarity_function="cosine", shared=False)
        stores: list[Any] = [model, own]
        for step in range(70):
            documents = [draw_document(draw, f"d{draw.randrange(30)}") for _ in range(draw.randrange(4))]
            policy, filters = draw.choice(list(DuplicatePolicy)), draw_filter(draw)
            query = [draw.uniform(-1, 1) for _ in range(4)]
            scale, count = draw.random() < 0.5, draw.randrange(1, 6)
            if policy in (DuplicatePolicy.FAIL, DuplicatePolicy.NONE):
                # Haystack's own store keeps what came before the duplicate; this one writes all or none.
                taken = {document.id for document in model.filter_documents()}
                different = {document.id: document for document in documents}
                documents = [document for id, document in different.items() if id not in taken]
            calls: list[Any] = [
                lambda store: store.write_documents(documents, policy),
                lambda store: store.delete_documents([f"d{step % 30}", "nobody"]),
                lambda store: store.delete_by_filter(filters) if step % 7 == 0 else None,
                lambda store: store.update_by_filter(filters, {"step": step}) if step % 5 == 0 else None,
                lambda store: sorted(document.id for document in store.filter_documents(filters)),
                lambda store: store.count_documents_by_filter(filters),
                lambda store: store.count_documents(),
                lambda store: store.count_unique_metadata_by_filter({}, ["city", "meta.n"]),
                lambda store: store.get_metadata_field_min_max("meta.n"),
                lambda store: sorted(store.get_metadata_fields_info()),
                lambda store: store.get_metadata_field_unique_values("city", "o", 1, 3, filters),
                lambda store: [
                    (document.id, round(document.score, 4))
                    for document in store.embedding_retrieval(query, filters, top_k=count, scale_score=scale)
                ],
            ]
            for number, call in enumerate(calls):
                expected, found = (outcome(lambda: call(store)) for store in stores)
                assert expected == found, (step, number, filters)
                checks += 1
            assert {one.id: one for one in model.filter_documents()} == {one.id: one for one in own.filter_documents()}
        assert db.verify() and checks == 70 * 12


def test_words_and_vectors_find_documents(path: Path) -> None:
    with holotype.create(path, space=holotype.Space("fake", 2)) as db:
        store, other = HolotypeDocumentStore(db), HolotypeDocumentStore(db, collection="other")
        other.write_documents([Document(id="1", content="cheap flight", embedding=[1.0, 0.0])])
        assert store.bm25_retrieval("flight") == [] and store.embedding_retrieval([1.0, 0.0]) == []
        store.write_documents([
            Document(id="1", content="a cheap flight to Lisbon", embedding=[0.0, 1.0], meta={"n": 1}),
            Document(id="2", content="a hotel", embedding=[1.0, 0.0], meta={"n": 2}),
            Document(id="3", content="a late flight", embedding=[0.6, 0.8], meta={"n": 3}),
        ])
        assert [document.id for document in store.bm25_retrieval("cheap flight")] == ["1", "3"]
        late = {"field": "meta.n", "operator": ">", "value": 1}
        assert [document.id for document in store.bm25_retrieval("cheap flight", late)] == ["3"]
        assert [document.id for document in store.embedding_retrieval([1.0, 0.0], late, top_k=5)] == ["2", "3"]
        assert store.embedding_retrieval([1.0, 0.0], {"field": "meta.n", "operator": ">", "value": 9}) == []
        both = store.recall("flight", [1.0, 0.0], top_k=1, return_embedding=True)
        assert both[0].id == "3" and both[0].embedding == [0.6, 0.8]
        assert store.embedding_retrieval([1.0, 0.0], top_k=1)[0].embedding is None
        # The same documents are found by the database itself.
        assert db.recall("hotel", episode="haystack/documents", limit=1)[0].text == "a hotel"


@component
class FakeEmbedder:
    @component.output_types(embedding=list[float])
    def run(self, text: str) -> dict[str, Any]:
        return {"embedding": [float(len(text)), 1.0]}


def test_a_pipeline_can_be_stored(path: Path) -> None:
    with holotype.create(path, space=holotype.Space("fake", 2)) as db:
        store = HolotypeDocumentStore(db)
        store.write_documents([Document(id=str(n), content=f"flight {n}", embedding=[float(n), 1.0]) for n in range(4)])
        only_even = {"field": "id", "operator": "in", "value": ["0", "2"]}
        retriever = HolotypeRetriever(store, top_k=2, filters=only_even, filter_policy=FilterPolicy.MERGE)
        pipeline = Pipeline()
        pipeline.add_component("embedder", FakeEmbedder())
        pipeline.add_component("retriever", retriever)
        pipeline.connect("embedder.embedding", "retriever.query_embedding")
        found = pipeline.run({"embedder": {"text": "ab"}})["retriever"]["documents"]
        assert [document.id for document in found] == ["2", "0"]
        assert retriever.run(query="flight 2")["documents"][0].id == "2"
        with pytest.raises(ValueError):
            retriever.run()
        text = pipeline.dumps()
    # Haystack makes objects of known modules alone.
    again = Pipeline.loads(text, allowed_modules=["holotype.haystack", __name__])
    found = again.run({"embedder": {"text": "ab"}})["retriever"]["documents"]
    assert [document.id for document in found] == ["2", "0"]
    again.get_component("retriever").document_store.database.close()
    own = HolotypeDocumentStore(path.parent / "new.holo", embedding_dim=2)
    own.write_documents([Document(id="1", embedding=[1.0, 0.0])])
    assert own.embedding_retrieval([1.0, 0.0])[0].id == "1"
    own.database.close()
