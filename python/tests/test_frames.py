"""Columns from numpy, pandas, polars and Arrow, and Arrow back out."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import holotype
import pytest

np = pytest.importorskip("numpy")
pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

START = datetime(2026, 1, 5, 9, tzinfo=timezone.utc)
COLUMNS: dict[str, list[Any]] = {
    "text": ["one", "two", "three"],
    "episode": ["e", "e", "f"],
    "key": ["a", None, "c"],
    "step": [7, 8, None],
    "time": [START, START + timedelta(hours=1), None],
    "speaker": ["ann", None, "bob"],
    "status": ["success", "failed", None],
}
VECTORS = np.arange(1, 13, dtype=np.float32).reshape(3, 4)


class Stream:
    """An object that speaks Arrow and nothing else."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


def with_vectors(kind: Any) -> Any:
    return pa.table({**COLUMNS, "vector": pa.array(VECTORS.tolist(), type=kind)})


FRAMES: dict[str, Callable[[], Any]] = {
    "mapping": lambda: {**COLUMNS, "vector": VECTORS},
    "arrow table": lambda: with_vectors(pa.list_(pa.float32(), 4)),
    "arrow lists": lambda: with_vectors(pa.list_(pa.float64())),
    "arrow halves": lambda: with_vectors(pa.list_(pa.float16(), 4)),
    "arrow chunks": lambda: pa.concat_tables(
        [with_vectors(pa.list_(pa.float32(), 4))[part] for part in (slice(1), slice(1, 3))]
    ),
    "arrow slice": lambda: pa.concat_tables([with_vectors(pa.list_(pa.float32(), 4))] * 2)[3:],
    "arrow batch": lambda: with_vectors(pa.list_(pa.float32(), 4)).to_batches()[0],
    "arrow nanoseconds": lambda: with_vectors(pa.list_(pa.float32())).set_column(
        4, "time", pa.array(COLUMNS["time"], type=pa.timestamp("ns", tz="UTC"))
    ),
    "arrow stream": lambda: Stream(with_vectors(pa.list_(pa.float32(), 4))),
    "pandas": lambda: pd.DataFrame({**COLUMNS, "vector": list(VECTORS)}),
    "pandas with another index": lambda: pd.DataFrame({**COLUMNS, "vector": list(VECTORS)}, index=[9, 8, 7]),
    "polars": lambda: pl.DataFrame({**COLUMNS, "vector": VECTORS.tolist()}),
    "polars arrays": lambda: pl.DataFrame(
        {**COLUMNS, "vector": VECTORS.tolist()}, schema_overrides={"vector": pl.Array(pl.Float32, 4)}
    ),
}


@pytest.mark.parametrize("frame", FRAMES)
def test_a_frame_is_recorded(path: Path, frame: str) -> None:
    with holotype.create(path, space=holotype.Space("m", 4)) as db:
        with db.begin() as tx:
            numbers = tx.record_columns(FRAMES[frame](), source="user", fields=[{"n": str(n)} for n in range(3)])
        items = [db.get(number) for number in numbers]
        for n, item in enumerate(items):
            assert item is not None and item.text == COLUMNS["text"][n] and item.episode == COLUMNS["episode"][n]
            assert item.speaker == COLUMNS["speaker"][n] and item.fields["n"] == str(n) and item.source == "user"
            assert db.vector(item.id).tolist() == VECTORS[n].tolist()
            for name in ("key", "step", "time"):
                assert COLUMNS[name][n] is None or getattr(item, name) == COLUMNS[name][n]
        assert [item.status for item in items] == ["success", "failed", "unknown"]


@pytest.mark.parametrize(
    "column", [np.array, pd.Series, pl.Series, pa.array, lambda values: pa.chunked_array([values])]
)
def test_an_array_is_a_column(path: Path, column: Callable[[list[Any]], Any]) -> None:
    with holotype.create(path) as db:
        with db.begin() as tx:
            keys, steps = column(["a", "b"]), column([3, 4])
            tx.record_columns(column(["one", "two"]), episode=column(["e", "f"]), step=steps, key=keys)
        assert [(db[key].text, db[key].episode, db[key].step) for key in "ab"] == [("one", "e", 3), ("two", "f", 4)]


def test_what_is_wrong_with_a_frame_is_named(path: Path) -> None:
    with holotype.create(path, space=holotype.Space("m", 4)) as db, db.begin() as tx:
        wrong = [
            ({"texts": ["x"]}, {"episode": "e"}, "no column text"),
            ({"text": ["x"], "price": [1]}, {"episode": "e"}, "price"),
            ({"text": ["x"], "episode": ["e"]}, {"episode": "e"}, "episode is a column of the frame and an argument"),
            (pd.DataFrame([["x", "y"]], columns=["text", "text"]), {"episode": "e"}, "several columns 'text'"),
            ({"text": ["x"], "episode": ["e"], "time": [datetime(2026, 1, 5)]}, {}, "time zone"),
            (pa.table({"text": ["x"], "vector": [[1.0, 2.0]]}), {"episode": "e"}, "2"),
            (pa.table({"text": ["x", "y"], "vector": [[1.0] * 4, [1.0]]}), {"episode": "e"}, "vector"),
            ({"text": ["x", 7], "episode": "e"}, {}, r"text\[1\]"),
        ]
        for frame, arguments, message in wrong:
            with pytest.raises(holotype.InputError, match=message):
                tx.record_columns(frame, **arguments)


def test_vectors_of_other_libraries(path: Path) -> None:
    given = [pd.DataFrame(VECTORS), pl.DataFrame(VECTORS), pa.array(VECTORS.tolist()), pl.Series(VECTORS.tolist()),
             pd.Series(list(VECTORS))]  # fmt: skip
    with holotype.create(path, space=holotype.Space("m", 4)) as db:
        for number, vectors in enumerate(given):
            with db.begin() as tx:
                tx.record_columns(["a", "b", "c"], episode="e", key=[f"{number}{n}" for n in range(3)], vectors=vectors)
            assert [db.vector(f"{number}{n}").tolist() for n in range(3)] == VECTORS.tolist()
        row = VECTORS[1]
        for vector in (pd.Series(row), pl.Series(row), pa.array(row)):
            assert db.recall(vector=vector, score="similarity 1", limit=1)[0].text == "b"
