"""LangChain: retrieval from a Holotype database, indexing, and a cache. Offline, with a fake model."""

import tempfile
from pathlib import Path

import holotype
from holotype.langchain import HolotypeCache, HolotypeRecordManager, HolotypeVectorStore
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.globals import set_llm_cache
from langchain_core.indexing import index
from langchain_core.language_models.fake import FakeListLLM
from langchain_core.prompts import PromptTemplate


class WordEmbeddings(Embeddings):
    """The embeddings that are built in: words, hashed. A model's would take their place."""

    embed = holotype.HashingEmbedder(256)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [vector or [] for vector in self.embed(texts)]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


with tempfile.TemporaryDirectory() as folder:
    with holotype.create(Path(folder) / "memory.holo", space=holotype.Space("words", 256)) as db:
        store = HolotypeVectorStore(db, WordEmbeddings())
        notes = ["UA123 to Lisbon costs $450", "The hotel in Porto costs $80", "Breakfast is at eight"]
        documents = [Document(note, metadata={"source": "notes.txt"}) for note in notes]
        for expected in (3, 0):
            # Run again, it writes what is new.
            done = index(documents, HolotypeRecordManager("notes", db), store, key_encoder="sha256")
            assert done["num_added"] == expected

        set_llm_cache(HolotypeCache(db))
        model = FakeListLLM(responses=["It costs $450.", "another answer, which the cache keeps away"])
        prompt = PromptTemplate.from_template("{context}\n\n{question}")
        question = "What does the flight UA123 cost?"
        for _ in range(2):
            context = store.as_retriever(search_kwargs={"k": 1}).invoke(question)[0].page_content
            answer = (prompt | model).invoke({"context": context, "question": question})
            print(context, "->", answer)
            assert (context, answer) == (notes[0], "It costs $450.")
        set_llm_cache(None)

        # The database knows the notes as traces, with everything else.
        vector = WordEmbeddings().embed_query(question)
        row = db.recall(question, vector=vector, episode="langchain/documents", limit=1)[0]
        assert row.text == notes[0] and row.citations[0].verdict == "ok"
