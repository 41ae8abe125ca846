"""Answers and tables through Arrow's C stream interface."""

from __future__ import annotations

from datetime import timedelta

import holotype
import pytest

pa = pytest.importorskip("pyarrow")


def test_a_table_is_a_table(db: holotype.Database) -> None:
    table = pa.table(db.query("find items return key, step, time, age, trust, active, text order by key"))
    assert table.column_names == ["key", "step", "time", "age", "trust", "active", "text"]
    assert table.schema.field("time").type == pa.timestamp("us", tz="UTC")
    assert table.schema.field("age").type == pa.duration("us")
    assert table.schema.field("step").type == pa.int64()
    rows = table.to_pylist()
    assert [row["key"] for row in rows] == ["r1", "t1"]
    assert rows[0]["time"] == db["r1"].time and isinstance(rows[0]["age"], timedelta)


def test_an_answer_is_a_table_with_citations(db: holotype.Database) -> None:
    answer = db.recall("UA123", episode="trip-42")
    rows = pa.table(answer).to_pylist()
    for row, plain in zip(rows, answer.to_dicts()):
        citation = {name: plain["citations"][0][name] for name in row["citations"][0]}
        assert row["citations"] == [citation]
        assert {name: row[name] for name in ("key", "step", "time", "path", "stale")} == {
            name: plain[name] for name in ("key", "step", "time", "path", "stale")
        }


def test_no_rows_and_chosen_columns(db: holotype.Database) -> None:
    empty = pa.table(db.query("find turns return key, text"))
    assert empty.num_rows == 0 and empty.column_names == ["key", "text"]
    assert pa.table(db.recall("zzz qqq", returns=["key"])).column_names == ["key"]


def test_pandas(db: holotype.Database) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame.from_arrow(db.query("find items return key, trust order by key"))
    assert list(frame["key"]) == ["r1", "t1"]
    assert list(pd.DataFrame(db.recall("UA123").to_dicts())["key"]) == ["t1", "r1"]


def test_a_schema_is_the_same_whatever_the_content(db: holotype.Database) -> None:
    with db.begin() as tx:
        tx.record("plain", episode="other", key="p1")
        tx.record("with all", episode="other", key="p2", speaker="ann", version="v1", fields={"n": "7"})
    attributes = "key, text, step, time, age, speaker, version, tool, active, trust, fields.n, tokens"
    schemas = {
        pa.table(db.query(f"find items where {test} return {attributes}")).schema
        for test in ("key = 'p1'", "key = 'p2'", "key = 'r1'", "key = 'nobody'", "active = true")
    }
    assert len(schemas) == 1 and not any(pa.types.is_null(field.type) for field in schemas.pop())
    answers = [db.recall(text) for text in ("UA123", "plain", "all", "zzz qqq")] + [db.recall("UA123", limit=0)]
    assert len({pa.table(answer).schema for answer in answers}) == 1
    assert pa.table(db.query("count items by kind")).schema == pa.table(db.query("count claims by name")).schema.set(
        0, pa.field("kind", pa.string())
    )
