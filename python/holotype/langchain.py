"""LangChain: vector store, retriever, indexing, key-value store and cache. ``pip install 'holotype[langchain]'``

>>> from holotype.langchain import HolotypeVectorStore
>>> from langchain_core.embeddings import DeterministicFakeEmbedding
>>> with holotype.create(path, space=holotype.Space("fake", 8)) as own:
...     store = HolotypeVectorStore(own, DeterministicFakeEmbedding(size=8))
...     ids = store.add_texts(["a flight to Lisbon", "a hotel"], ids=["1", "2"])
...     store.similarity_search("a hotel", k=1)[0].id
'2'

A document is a trace of the database, found by its vector alone. ``similarity_search(..., words=1.0)`` adds words, and
``db.recall`` finds the same traces with everything else that the database knows.
"""

from __future__ import annotations

from ._langchain_index import HolotypeDocumentIndex, HolotypeRecordManager
from ._langchain_store import HolotypeByteStore, HolotypeCache
from ._langchain_vectors import HolotypeVectorStore

__all__ = [
    "HolotypeByteStore",
    "HolotypeCache",
    "HolotypeDocumentIndex",
    "HolotypeRecordManager",
    "HolotypeVectorStore",
]
