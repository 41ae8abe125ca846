"""Vectors: numpy in and out, other sequences, embedders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import holotype
import pytest

np = pytest.importorskip("numpy")


@pytest.fixture
def space() -> holotype.Space:
    return holotype.Space("test", 3)


@pytest.mark.parametrize(
    "vector",
    [
        [1.0, 2.0, 2.0],
        (1, 2, 2),
        np.array([1, 2, 2], dtype=np.float32),
        np.array([1, 2, 2], dtype=np.float64),
        np.array([1, 2, 2], dtype=np.float16),
        np.array([1, 2, 2]),
        np.array([1, 0, 2, 0, 2, 0], dtype=np.float32)[::2],
        np.asfortranarray(np.array([[1, 0], [2, 0], [2, 0]], dtype=np.float32))[:, 0],
    ],
)
def test_any_array_or_sequence_is_a_vector(path: Path, space: holotype.Space, vector: Any) -> None:
    with holotype.create(path, space=space) as db:
        with db.begin() as tx:
            tx.record("x", episode="e", key="t1", vector=vector, status="success")
        stored = db.vector("t1")
        assert stored is not None and stored.dtype == np.float32 and stored.tolist() == [1.0, 2.0, 2.0]
        assert db.recall(vector=vector)[0].score == pytest.approx(1.0, abs=1e-6)
        given = vector if isinstance(vector, (list, np.ndarray)) else list(map(float, vector))
        assert db.query("recall near $v", {"v": given})
        assert db.recall("x", vector=vector)[0].key == "t1"


@pytest.mark.parametrize(
    "matrix",
    [
        np.eye(3, dtype=np.float32),
        np.eye(3),
        np.asfortranarray(np.eye(3, dtype=np.float32)),
        [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    ],
)
def test_rows_of_a_matrix(path: Path, space: holotype.Space, matrix: Any) -> None:
    with holotype.create(path, space=space) as db:
        with db.begin() as tx:
            numbers = tx.record_many(({"text": f"text {n}", "episode": "e"} for n in range(3)), matrix)
        assert numbers == [0, 1, 2]
        assert db.snapshot().vectors(numbers).tolist() == np.eye(3).tolist()
        with db.begin() as tx, pytest.raises(holotype.InputError):
            tx.record_many([{"text": "one", "episode": "e"}], matrix)


def test_what_is_no_vector(path: Path, space: holotype.Space) -> None:
    with holotype.create(path, space=space) as db, db.begin() as tx:
        for wrong in ("abc", b"abc", np.zeros((2, 3)), np.array(["a", "b", "c"]), [1.0, "x", 2.0], 7):
            with pytest.raises((TypeError, ValueError)):
                tx.record("x", episode="e", vector=wrong)
        for wrong in ([0.0, 0.0, 0.0], [1.0, float("nan"), 0.0], [1.0]):
            with pytest.raises(holotype.errors.VectorError):
                tx.record("x", episode="e", vector=wrong)


def test_an_embedder_is_any_callable(path: Path, space: holotype.Space) -> None:
    calls = []

    def embedder(texts: list[str]) -> Any:
        calls.append(texts)
        return np.array([[len(text), text.count("a") + 1, 1] for text in texts], dtype=np.float32)

    with holotype.create(path, space=space, embedder=embedder) as db:
        with db.begin() as tx:
            tx.record("banana", episode="e", key="t1")
            tx.record_many([{"text": "kiwi", "episode": "e"}, {"text": "papaya", "episode": "e"}])
            tx.remember("fruit", sources=["t1"], key="r1")
        assert db["r1"].has_vector and db.vector("t1").tolist() == [6.0, 4.0, 1.0]
        assert db.recall("banana", score="similarity 1", limit=1)[0].key == "t1"
    assert calls == [["banana"], ["kiwi", "papaya"], ["fruit"], ["banana"]]
    with holotype.open(path, embedder=lambda texts: []) as db, db.begin() as tx:
        with pytest.raises(holotype.errors.VectorError):
            tx.record("x", episode="e")


def test_the_space_of_an_embedder(path: Path) -> None:
    with pytest.raises(holotype.InputError):
        holotype.create(path, embedder=lambda texts: texts)
    with holotype.create(path, embedder=holotype.HashingEmbedder(32)) as db:
        assert db.snapshot().space == holotype.Space("hashing-v1-32", 32)
    with pytest.raises(holotype.errors.VectorError):
        holotype.open(path, embedder=holotype.HashingEmbedder(64))
    # Refusing it closed the database.
    holotype.open(path).close()
    with pytest.raises(holotype.InputError):
        holotype.Space.of("all-MiniLM-L6-v2")


def test_the_built_in_embedder_needs_no_mention(path: Path) -> None:
    with holotype.create(path, space="hashing-v1-64") as db:
        with db.begin() as tx:
            tx.record("a flight to Lisbon", episode="e", key="t1")
            tx.record("   ", episode="e", key="blank")
        assert db.vector("t1").tolist() == pytest.approx(holotype.HashingEmbedder(64)(["a flight to Lisbon"])[0])
        assert db.vector("blank") is None
        assert db.recall("flights to Lisbon", limit=1)[0].parts["similarity"] > 0.3
