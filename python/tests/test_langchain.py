"""The LangChain vector store: LangChain's own suites."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import holotype
import pytest

pytest.importorskip("langchain_tests")

from holotype.langchain import HolotypeVectorStore  # noqa: E402
from langchain_core.embeddings import DeterministicFakeEmbedding  # noqa: E402
from langchain_core.retrievers import BaseRetriever  # noqa: E402
from langchain_core.vectorstores import VectorStoreRetriever  # noqa: E402
from langchain_tests.integration_tests import RetrieversIntegrationTests, VectorStoreIntegrationTests  # noqa: E402


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
