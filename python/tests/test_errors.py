"""Errors are exceptions with code, hint and place."""

from __future__ import annotations

import pickle
from datetime import datetime
from pathlib import Path

import holotype
import pytest
from holotype import errors


def test_a_wrong_statement_shows_all_its_mistakes(db: holotype.Database) -> None:
    with pytest.raises(holotype.QueryError) as wrong:
        db.query("find traces where txt = 'x'\n  and stat = failed")
    error = wrong.value
    assert error.code == "unknown-attribute" and error.place == errors.Place(line=1, column=19)
    assert [one["line"] for one in error.errors] == [1, 2]
    assert error.errors[0]["nearest"] == "text"
    assert "^^^" in str(error)


def test_codes_and_classes(db: holotype.Database, path: Path, tmp_path: Path) -> None:
    def raised(kind: type[holotype.Error], code: str, call: object) -> holotype.Error:
        assert callable(call)
        with pytest.raises(kind) as caught:
            call()
        assert caught.value.code == code
        return caught.value

    missing = raised(errors.NotFound, "not-found", lambda: holotype.open(tmp_path / "none.holo"))
    assert missing.place is not None and missing.place.file == str(tmp_path / "none.holo")
    assert missing.hint is not None and "create" in missing.hint
    raised(holotype.InputError, "exists", lambda: holotype.create(path))
    raised(errors.Locked, "locked", lambda: holotype.open(path))
    raised(holotype.InputError, "missing-parameter", lambda: db.query("recall $q"))
    raised(holotype.InputError, "unknown-name", lambda: holotype.open(path, cache="big"))
    raised(holotype.InputError, "invalid", lambda: db.query("find calls; find facts"))
    raised(errors.VectorError, "vector-length", lambda: db.recall(vector=[1.0, 2.0]))
    raised(holotype.InputError, "empty-query", lambda: db.recall())
    tx = db.begin()
    raised(errors.PointerError, "unresolved-pointer", lambda: tx.remember("x", sources=["nobody"]))
    raised(errors.Duplicate, "duplicate-key", lambda: tx.record("x", episode="e", key="t1"))
    raised(errors.VectorError, "vector", lambda: tx.record("x", episode="e", vector=[1.0]))
    raised(holotype.InputError, "unknown-name", lambda: tx.record("x", episode="e", status="sucess"))
    raised(holotype.InputError, "unknown-name", lambda: tx.record_many([{"text": "x", "episode": "e", "kye": "t9"}]))
    raised(holotype.InputError, "invalid", lambda: tx.record("x", episode="e", time=datetime(2026, 1, 1)))
    raised(errors.Missing, "missing", lambda: tx.mark("nobody", "failed"))
    raised(errors.TransactionError, "transaction-open", db.begin)
    raised(errors.TransactionError, "transaction-open", lambda: db.query("mark 't1' failed"))
    raised(errors.TransactionError, "transaction-open", db.checkpoint)
    tx.rollback()
    raised(errors.TransactionError, "transaction-ended", tx.commit)


@pytest.mark.parametrize("call", [{"text": 7}, {"text": "x", "step": "one"}, {"text": "x", "fields": [1]}])
def test_wrong_types_name_the_argument(db: holotype.Database, call: dict[str, object]) -> None:
    with db.begin() as tx, pytest.raises(TypeError):
        tx.record(episode="e", **call)  # type: ignore[arg-type]


def test_read_only_and_closed(db: holotype.Database, path: Path) -> None:
    with holotype.open(path, read_only=True) as reader:
        with pytest.raises(errors.ReadOnly):
            reader.begin()
    snapshot, tx = db.snapshot(), db.begin()
    tx.record("lost", episode="e", key="lost")
    db.close()
    db.close()
    for call in (db.head, db.snapshot, lambda: snapshot.get("t1"), lambda: db.query("find calls")):
        with pytest.raises(errors.Closed):
            call()
    with pytest.raises(errors.TransactionError):
        tx.commit()
    assert db.closed and repr(db).endswith("closed>")
    # Nothing holds the files any more.
    with holotype.open(path) as again:
        assert "lost" not in again


def test_errors_can_be_pickled(db: holotype.Database) -> None:
    with pytest.raises(holotype.Error) as caught:
        db.query("fnd traces")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (type(copy), str(copy), copy.code) == (type(caught.value), str(caught.value), caught.value.code)


def test_damage_is_named(db: holotype.Database, path: Path) -> None:
    db.close()
    segment = next((path / "log").iterdir())
    content = bytearray(segment.read_bytes())
    at = content.index(b"price=$450")
    content[at] ^= 1
    segment.write_bytes(content)
    with holotype.open(path, read_only=True) as damaged:
        report = damaged.verify()
        assert not report and report.faults[0].page is not None
        assert all(row.key != "t1" for row in damaged.recall("What does UA123 cost?"))


def test_a_limit_of_time_is_a_timeout(db: holotype.Database) -> None:
    with pytest.raises(TimeoutError) as late:
        db.query("find items where text matches '*a*'", timeout=0)
    assert isinstance(late.value, holotype.LimitError) and late.value.code == "limit"
    with pytest.raises(holotype.LimitError):
        db.query("find items", max_rows=1)
