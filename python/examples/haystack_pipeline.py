"""Haystack: a document store and a retriever in a pipeline. Offline, with a fake model and the built-in embeddings."""

import os
import tempfile
from pathlib import Path
from typing import Any

# Haystack reports its use over the network otherwise.
os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"

import holotype  # noqa: E402
from haystack import Document, Pipeline, component  # noqa: E402
from haystack.components.builders import PromptBuilder  # noqa: E402
from holotype.haystack import HolotypeDocumentStore, HolotypeRetriever  # noqa: E402

embed = holotype.HashingEmbedder(256)


@component
class Embedder:
    """Embeds the question. A model's embedder would take its place."""

    @component.output_types(embedding=list[float])
    def run(self, text: str) -> dict[str, Any]:
        return {"embedding": embed([text])[0]}


@component
class FakeModel:
    """Repeats the first line of its prompt."""

    @component.output_types(replies=list[str])
    def run(self, prompt: str) -> dict[str, Any]:
        return {"replies": [prompt.strip().splitlines()[0]]}


with tempfile.TemporaryDirectory() as folder:
    with holotype.create(Path(folder) / "memory.holo", space=holotype.Space("words", 256)) as db:
        store = HolotypeDocumentStore(db)
        notes = {"UA123 to Lisbon costs $450": 2026, "UA123 to Lisbon costs $300": 2019, "Breakfast is at eight": 2026}
        store.write_documents([
            Document(content=text, meta={"year": year}, embedding=embed([text])[0]) for text, year in notes.items()
        ])

        pipeline = Pipeline()
        pipeline.add_component("embedder", Embedder())
        pipeline.add_component("retriever", HolotypeRetriever(store, top_k=1))
        template = "{% for document in documents %}{{ document.content }}\n{% endfor %}Question: {{ question }}"
        pipeline.add_component("prompt", PromptBuilder(template, required_variables="*"))
        pipeline.add_component("model", FakeModel())
        pipeline.connect("embedder.embedding", "retriever.query_embedding")
        pipeline.connect("retriever.documents", "prompt.documents")
        pipeline.connect("prompt.prompt", "model.prompt")

        question = "What does UA123 cost?"
        recent = {"field": "meta.year", "operator": ">=", "value": 2025}
        inputs: dict[str, Any] = {
            "embedder": {"text": question},
            "retriever": {"query": question, "filters": recent},
            "prompt": {"question": question},
        }
        reply = pipeline.run(inputs)["model"]["replies"][0]
        print(question, "->", reply)
        assert reply == "UA123 to Lisbon costs $450"
