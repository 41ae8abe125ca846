"""Fields of any JSON value, labels, filters, and loading of files: what goes in comes back, and is found."""

from __future__ import annotations

import copy
import json
import math
import pickle
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import holotype
import numpy
import pytest

VALUES: dict[str, Any] = {
    "str": "é键", "int": 5, "big": 2**63, "float": 0.1, "yes": True, "no": False, "list": [1, "a", [None, {"b": 2}]],
    "dict": {"a": {"b": [1.5]}}, "empty": {}, "bytes": b"\xff\x00", "odd name": 1, "a.b": 2,
}  # fmt: skip


def test_fields_come_back_as_they_were_given(db: holotype.Database) -> None:
    with db.begin() as tx:
        tx.record("a", episode="e", key="a", fields={**VALUES, "none": None})
        tx.remember("b", sources=["a"], key="b", fields=VALUES)
        tx.update("b", "c", fields={"int": 6})
    for key in ("a", "b"):
        fields = {name: value for name, value in db[key].fields.items() if name != "text"}
        assert fields == {**VALUES, "int": 5 if key == "a" else 6}
    assert all(type(db["a"].fields[name]) is type(value) for name, value in VALUES.items())


def test_values_of_numpy_and_times_become_values_of_json(db: holotype.Database) -> None:
    when = datetime(2026, 1, 5, 10, tzinfo=timezone.utc)
    given = {"i": numpy.int64(4), "f": numpy.float32(0.5), "b": numpy.bool_(True), "a": numpy.arange(3), "t": when}
    number = db.record("x", episode="e", fields=given)
    assert {n: db[number].fields[n] for n in given} == {
        "i": 4, "f": 0.5, "b": True, "a": [0, 1, 2], "t": "2026-01-05T10:00:00Z",
    }  # fmt: skip


def test_what_json_lacks_is_refused_with_its_place(db: holotype.Database) -> None:
    cyclic: list[Any] = []
    cyclic.append(cyclic)
    deep: Any = 1
    for _ in range(100_000):
        deep = {"a": deep}
    for value in (math.nan, math.inf, 2**64, object(), {1: 2}, {"x": {1, 2}}, cyclic, deep, [b"nested"]):
        with pytest.raises(holotype.Error) as error:
            db.record("x", episode="e", fields={"v": value})
        assert str(error.value).startswith("v")
    with pytest.raises(holotype.Error, match="surrogate"):
        db.record("x", episode="e", fields={"v": {"a": "cut \ud83d"}})
    with pytest.raises(holotype.errors.WrongType):
        db.record("x", episode="e", labels="user:17")


def rows(db: holotype.Database, **clauses: Any) -> set[str]:
    return {row.key for row in db.recall("note", limit=100, through="traces 100", lines="none", **clauses)}


@pytest.fixture
def notes(path: Path) -> Any:
    with holotype.create(path, space="hashing-v1-256", fields={"year": "number", "meta.lang": "text"}) as db:
        with db.begin() as tx:
            for n in range(20):
                meta = {"lang": "de" if n % 2 else "en"} if n % 5 else None
                fields = {"year": 2000 + n, "meta": meta, "name": f"n{n}", "tags": ["x", f"y{n % 3}"]}
                tx.record(f"note {n}", episode="e", key=f"k{n}", fields=fields, labels=[f"user:{n % 4}"])
        yield db


def test_filters_of_a_recall(notes: holotype.Database) -> None:
    def expected(test: Any) -> set[str]:
        return {f"k{n}" for n in range(20) if test(n, None if n % 5 == 0 else ("de" if n % 2 else "en"))}

    cases: list[tuple[dict[str, Any], Any]] = [
        ({"meta.lang": "de"}, lambda n, lang: lang == "de"),
        ({"meta.lang": {"$ne": "de"}}, lambda n, lang: lang != "de"),
        ({"meta.lang": None}, lambda n, lang: lang is None),
        ({"meta.lang": {"$exists": True}}, lambda n, lang: lang is not None),
        ({"meta.lang": {"$in": ["de", None]}}, lambda n, lang: lang != "en"),
        ({"meta.lang": {"$nin": ["de", "fr"]}}, lambda n, lang: lang != "de"),
        ({"year": {"$gte": 2005, "$lt": 2010}}, lambda n, lang: 5 <= n < 10),
        ({"year": {"$in": []}}, lambda n, lang: False),
        ({"$or": [{"year": 2003}, {"name": "n4"}], "meta.lang": "de"}, lambda n, lang: n == 3),
        ({"$not": {"$and": [{"year": {"$gt": 2003}}, {"meta.lang": {"$ne": "en"}}]}},
         lambda n, lang: not (n > 3 and lang != "en")),
        ({"tags": "y2"}, lambda n, lang: n % 3 == 2),
        ({"labels": "user:3"}, lambda n, lang: n % 4 == 3),
    ]  # fmt: skip
    for wanted, test in cases:
        assert rows(notes, filter=wanted) == expected(test), wanted
    assert rows(notes, filter={"year": {"$lt": 2004}}, where="fields.name != $n", params={"n": "n1"}) == {
        "k0", "k2", "k3",
    }  # fmt: skip
    wrongs = ({"year": {"$above": 1}}, {"$xor": []}, {"$or": {}}, {"year": {"$in": "1"}}, {"meta": {"lang": "de"}}, [])
    for wrong in wrongs:
        with pytest.raises(holotype.Error):
            notes.recall("note", filter=wrong)  # type: ignore[arg-type]


def test_rows_carry_their_fields_and_are_values(notes: holotype.Database) -> None:
    answer = notes.recall("note 3", filter={"year": 2003}, returns=["key", "fields.year", "fields.*", "labels"])
    row = answer[0]
    assert (row.fields["year"], row.fields["meta"], row.labels) == (2003, {"lang": "de"}, ["user:3"])
    for other in (pickle.loads(pickle.dumps(answer)), copy.deepcopy(answer)):
        assert other == answer and other[0].fields == row.fields
    told = json.loads(json.dumps(answer, default=holotype.jsonable))[0]
    assert told["fields"]["name"] == "n3" and told["fields.year"] == 2003 and told["labels"] == ["user:3"]
    table = notes.query("find traces where fields.year = 2003 return key, fields.*")
    assert table[0][1]["tags"] == ["x", "y0"]


def test_every_clause_has_an_argument(notes: holotype.Database) -> None:
    everything = notes.recall("note", limit=4, through="traces 20", lines="none")
    assert notes.recall("note", limit=2, skip=2, through="traces 20", lines="none")[0].key == everything[2].key
    assert notes.recall(like="k3", limit=1, through="traces 20")[0].text.startswith("note")
    assert notes.recall("note 3", escalate="never", lines="none", max_rows=10_000).escalation is not None
    with pytest.raises(holotype.Error):
        notes.recall("note", skip=2)
    with pytest.raises(holotype.Error):
        notes.recall("note", like="k1")
    many = notes.recall_many(["note 3", "note 4"], limit=1, filter={"year": {"$gt": 2002}})
    assert [answer[0].key for answer in many] == [notes.recall(t, limit=1)[0].key for t in ("note 3", "note 4")]


def test_columns_of_fields(db: holotype.Database) -> None:
    pandas = pytest.importorskip("pandas")
    with db.begin() as tx:
        given = {"n": numpy.array([1, 2]), "s": pandas.Series(["a", None]), "same": "x", "d": [{"a": 1}, None]}
        tx.record_columns(["one", "two"], episode="e", key=["c1", "c2"], fields=given, labels=[["l:1"], []])
        tx.record_columns(["three"], episode="e", key=["c3"], fields=[{"n": 3}])
    fields = [{n: v for n, v in db[k].fields.items() if n != "text"} for k in ("c1", "c2", "c3")]
    assert fields == [
        {"n": 1, "s": "a", "same": "x", "d": {"a": 1}, "labels": ["l:1"]}, {"n": 2, "same": "x"}, {"n": 3},
    ]  # fmt: skip
    with pytest.raises(holotype.Error, match="1 values for 2 texts"):
        with db.begin() as tx:
            tx.record_columns(["one", "two"], episode="e", fields={"n": [1]})


def test_a_file_of_columns_is_loaded(db: holotype.Database, tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    vectors = numpy.random.default_rng(7).standard_normal((25, 256)).astype("f4")
    columns = {
        "body": [f"row {n}" for n in range(25)], "id": [f"p{n}" for n in range(25)],
        "price": [float(n) for n in range(25)], "junk": list(range(25)), "vector": list(vectors),
    }  # fmt: skip
    file = tmp_path / "rows.parquet"
    parquet.write_table(pyarrow.table(columns), file)
    told: list[tuple[int, int]] = []
    places = {"body": "text", "id": "key", "junk": ""}
    done = db.load(file, map=places, episode="file", batch=10, progress=lambda *at: told.append(at))
    assert (done, told) == (25, [(10, 25), (20, 25), (25, 25)])
    assert (db["p7"].text, db["p7"].fields["price"], "junk" in db["p7"].fields) == ("row 7", 7.0, False)
    stored = db.vector("p7")
    assert stored is not None
    cosine = numpy.dot(stored, vectors[7]) / numpy.linalg.norm(vectors[7]) / numpy.linalg.norm(stored)
    assert cosine > 0.99
    for wrong in ({"body": "texts"}, {"nobody": "text"}, {}, {"body": "text", "id": "text"}):
        with pytest.raises(holotype.Error):
            db.load(file, map=wrong, episode="file")


async def test_one_call_of_asyncio(path: Path) -> None:
    from holotype import aio

    async with await aio.create(path, space="hashing-v1-256") as db:
        number = await db.record("it rained", episode="e", fields={"mm": 4})
        item = await db.get(number)
        assert item is not None and item.fields["mm"] == 4
        assert [len(answer) for answer in await db.recall_many(["rained"], limit=1)] == [1]
