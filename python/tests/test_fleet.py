"""Fleets: many databases asked together."""

from __future__ import annotations

from pathlib import Path

import holotype
import pytest
from holotype.errors import InputError, OpenError

TEXTS = {
    "ann": "the night train to Vienna costs 89 euros",
    "bob": "the boiler in the cellar was repaired",
    "eve": "tomatoes want sun and little water",
}


@pytest.fixture
def people(tmp_path: Path) -> Path:
    for name, text in TEXTS.items():
        with holotype.create(tmp_path / f"{name}.holo", space="hashing-v1-64") as db:
            db.record(text, episode="diary")
    return tmp_path


def names(answer: holotype.FleetAnswer) -> list[str]:
    return [Path(found.database).stem for found in answer]


def test_rows_are_those_of_each_database(people: Path) -> None:
    with holotype.fleet(people / "*.holo") as fleet:
        assert len(fleet) == 3 and not fleet.closed
        answer = fleet.recall("what does the train cost?", k=2)
        assert names(answer)[0] == "ann" and len(answer) == 2 and answer.answerable
        assert (len(answer.asked), answer.not_asked, answer.failed, answer.outdated) == (3, (), (), ())
        assert answer[0] == answer.rows[0] and answer[0].score >= answer[1].score
        with holotype.open(answer[0].database, read_only=True) as db:
            own = db.recall("what does the train cost?", limit=2)[0]
        row = answer[0].row
        assert isinstance(row, holotype.Row)
        assert (row.key, row.text, row.score) == (own.key, own.text, own.score)
        assert [(cited.verdict, cited.text) for cited in row.citations] == [("ok", TEXTS["ann"])]
    assert fleet.closed
    with pytest.raises(InputError, match="closed"):
        fleet.recall("x")


def test_a_router_chooses_and_is_brought_up_to_date(people: Path) -> None:
    pattern = str(people / "*.holo")
    router = people / "router.holo"
    with holotype.fleet(pattern) as fleet:
        report = fleet.build_router(router)
        assert (report.added, report.failed) == (3, ())
    with holotype.fleet(pattern, router=router) as fleet:
        answer = fleet.recall("little water for tomatoes", ask=1)
        assert names(answer)[0] == "eve" and len(answer.asked) == 1
        assert len(answer.not_asked) == 2 and all(one.expected is not None for one in answer.not_asked)
        with holotype.open(people / "bob.holo") as db:
            db.record("a lock for the shed", episode="diary")
        with holotype.fleet(pattern, router=router) as later:
            outdated = later.recall("little water", ask=1).outdated
        assert [(Path(one.database).stem, one.why) for one in outdated] == [("bob", "written")]
        report = fleet.update_router(router)
        assert (report.updated, report.unchanged) == (1, 2)
        assert names(fleet.recall("the lock of the shed", ask=1))[0] == "bob"
        entries = {Path(entry["database"]).stem: entry for entry in fleet.entries()}
        assert sorted(entries) == ["ann", "bob", "eve"]
        assert entries["bob"]["items"] == 2 and "shed" in entries["bob"]["words"].split()
        assert entries["ann"]["since"] is not None and entries["ann"]["since"] <= entries["ann"]["until"]


def test_what_cannot_be_read_is_named(people: Path) -> None:
    with holotype.fleet([people / "ann.holo", people / "gone.holo"]) as fleet:
        answer = fleet.recall("the train")
        assert names(answer) == ["ann"] and [Path(one.path).stem for one in answer.failed] == ["gone"]
        assert answer.failed[0].code == "not-found" and "gone" in answer.failed[0].message
        pytest.importorskip("pyarrow")
        with pytest.raises(OpenError, match="1 of 2 databases cannot be read: .*gone"):
            fleet.to_arrow()
    for wrong in ({"k": 0}, {"ask": 1}, {"profile": "none"}):
        with holotype.fleet(people / "*.holo") as fleet, pytest.raises(InputError):
            fleet.recall("x", **wrong)
    with pytest.raises(InputError):
        holotype.fleet(people / "none" / "*.holo")
    with pytest.raises(InputError):
        holotype.fleet([])


def test_the_items_of_all_are_one_table(people: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    with holotype.fleet(people / "*.holo", threads=2, max_open=2) as fleet:
        table = fleet.to_arrow()
        assert isinstance(table, pa.Table) and table.num_rows == 3
        assert table.column_names[:3] == ["database", "item", "key"]
        rows = {Path(row["database"]).stem: row["text"] for row in table.to_pylist()}
        assert rows == TEXTS
        chosen = fleet.to_arrow("find traces where text matches '*boiler*' return key")
        assert (chosen.num_rows, chosen.column_names) == (1, ["database", "key"])
        with pytest.raises(holotype.QueryError):
            fleet.to_arrow("find nothing at all")


def test_a_vector_is_a_question(people: Path) -> None:
    vector = holotype.HashingEmbedder(64)(["the boiler was repaired"])[0]
    with holotype.fleet(people / "*.holo") as fleet:
        assert names(fleet.recall(vector=vector, k=1)) == ["bob"]
        later = fleet.recall("the boiler", profile="agent", time="2999-01-01T00:00:00Z")
        assert later[0].row.parts["recency"] < 0.01
