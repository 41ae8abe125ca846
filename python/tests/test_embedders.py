"""Embedders as the engine's: statements, imports, fingerprints, static models, vectors made anew."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import holotype
import pytest
from holotype import aio

np = pytest.importorskip("numpy")

# Models that the engine's tests made, with the vectors that model2vec gives.
MODELS = Path(__file__).parents[2] / "engine/tests/it/embedder/static_model"


class Vowels:
    """Counts vowels."""

    space = holotype.Space("vowels", 5)
    fingerprint = "vowels-1"

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def __call__(self, texts: list[str]) -> list[list[float] | None]:
        self.calls.append(list(texts))
        counts = [[float(text.count(vowel)) for vowel in "aeiou"] for text in texts]
        return [vector if any(vector) else None for vector in counts]


def test_statements_and_imports_are_embedded(path: Path, tmp_path: Path) -> None:
    vowels = Vowels()
    with holotype.create(path, embedder=vowels) as db:
        assert db.snapshot().space == vowels.space
        db.query("record turn 'a tree' in episode 'e' with key = 't1'")
        db.query("record turn 'hm' in episode 'e' with key = 't2'")
        assert db.vector("t1").tolist() == [1, 2, 0, 0, 0]
        assert db.vector("t2") is None
        assert vowels.calls[:2] == [["a tree"], ["hm"]]
        assert db.query("recall 'a tree' limit 1")[0].key == "t1"
        db.export(tmp_path / "items.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "items.jsonl").read_text().splitlines()]
    for line in lines:
        line.get("trace", {}).pop("vector", None)
    (tmp_path / "items.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with holotype.create(tmp_path / "other.holo", embedder=Vowels()) as other:
        assert other.import_file(tmp_path / "items.jsonl").embedded == 1
        assert other.vector("t1").tolist() == [1, 2, 0, 0, 0]


def test_a_failing_embedder_is_an_error_and_nothing_is_written(path: Path) -> None:
    class Broken(Vowels):
        def __call__(self, texts: list[str]) -> list[list[float] | None]:
            raise RuntimeError("the model is not loaded")

    with holotype.create(path, embedder=Broken()) as db:
        with pytest.raises(holotype.Error, match="the model is not loaded") as raised:
            db.query("record turn 'a tree' in episode 'e'")
        assert raised.value.code == "embedder"
        assert len(db) == 0
        with db.begin() as tx:
            tx.record("a tree", episode="e", vector=[1, 2, 0, 0, 0])
        assert len(db) == 1


def test_another_model_is_refused(path: Path) -> None:
    class Newer(Vowels):
        fingerprint = "vowels-2"

    with holotype.create(path, embedder=Vowels()) as db, db.begin() as tx:
        tx.record("a tree", episode="e", key="t1")
    with pytest.raises(holotype.Error, match="vowels-1") as raised:
        holotype.open(path, embedder=Newer())
    assert raised.value.code == "other-embedder"
    with holotype.open(path) as db:
        report = db.reembed(Newer())
        assert (report.embedded, report.without) == (1, 0)
    with holotype.open(path, embedder=Newer()) as db:
        assert db.recall("a tree")[0].key == "t1"


@pytest.mark.parametrize("name", ["plain", "quantized"])
def test_static_models_give_the_vectors_of_model2vec(path: Path, name: str) -> None:
    embedder = holotype.ModelEmbedder(MODELS / name)
    lines = [json.loads(line) for line in (MODELS / f"{name}.jsonl").read_text().splitlines()]
    assert lines
    for line, vector in zip(lines, embedder([line["text"] for line in lines]), strict=True):
        if vector is None:
            assert not np.any(line["vector"])
        else:
            assert np.allclose(vector, line["vector"], atol=1e-5)
    known = next(line["text"] for line in lines if np.any(line["vector"]))
    with holotype.create(path, embedder=embedder) as db:
        with db.begin() as tx:
            tx.record(known, episode="e", key="own")
        db.query("record turn $text in episode 'e' with key = 'stated'", {"text": known + " "})
        assert np.allclose(db.vector("own"), db.vector("stated"))
        assert embedder.fingerprint.startswith("blake3:")


def test_a_folder_that_is_no_model_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(holotype.Error, match="config.json"):
        holotype.ModelEmbedder(tmp_path)


def test_vectors_are_made_anew_and_interruptions_resumed(path: Path) -> None:
    class Stops(Vowels):
        space = holotype.Space("vowels-large", 5)
        fingerprint = "vowels-3"
        after = 2

        def __call__(self, texts: list[str]) -> list[list[float] | None]:
            if len(self.calls) == self.after:
                raise RuntimeError("stopped")
            return super().__call__(texts)

    with holotype.create(path, space="hashing-v1-64") as db:
        with db.begin() as tx:
            tx.record_many({"text": f"a tree {n}", "episode": "e"} for n in range(10))
        old = db.vector(3)
        stops = Stops()
        with pytest.raises(holotype.Error, match="stopped"):
            db.reembed(stops, batch=3)
        assert db.vector(3).tolist() == old.tolist()
        stops.after = -1
        report = db.reembed(stops, batch=3)
        assert report.resumed == 6 and report.embedded + report.resumed == 10
        assert db.vector(3).tolist() == [1, 2, 0, 0, 0]
        assert db.snapshot().space.model == "vowels-large"


def test_no_embedder_is_refused(path: Path) -> None:
    with holotype.create(path, space="hashing-v1-64") as db, pytest.raises(holotype.InputError, match="no embedder"):
        db.reembed(None)  # type: ignore[arg-type]


def test_asyncio_makes_vectors_anew(path: Path) -> None:
    async def story() -> int:
        async with await aio.create(path, space="hashing-v1-64") as db:
            async with db.begin() as tx:
                await tx.record("a tree", episode="e")
            return (await db.reembed(Vowels())).embedded

    assert asyncio.run(story()) == 1
