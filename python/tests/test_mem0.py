"""The calls of Mem0 over a database: the shape of its results, scopes, history, deletion."""

from __future__ import annotations

from pathlib import Path

import holotype
import pytest
from holotype.mem0 import Memory


def texts(found: dict[str, list[dict[str, object]]]) -> list[object]:
    return [one["memory"] for one in found["results"]]


@pytest.fixture
def memory(db: holotype.Database) -> Memory:
    return Memory(db)


def test_a_program_of_that_shape(memory: Memory) -> None:
    messages = [{"role": "user", "content": "I live in Oslo"}, {"role": "assistant", "content": "Noted: Oslo."}]
    added = memory.add(messages, user_id="ada", metadata={"topic": "home"})["results"]
    assert [one["event"] for one in added] == ["ADD", "ADD"]
    memory.add("I live in Rome", user_id="bo", agent_id="a1")
    assert texts(memory.search("Where do I live?", user_id="ada"))[0] == "I live in Oslo"
    assert set(texts(memory.get_all(user_id="ada"))) == {"I live in Oslo", "Noted: Oslo."}
    assert texts(memory.get_all(agent_id="a1")) == ["I live in Rome"]
    assert texts(memory.get_all(user_id="bo", agent_id="a2")) == []
    assert texts(memory.get_all(user_id="ada", filters={"$or": [{"topic": "work"}, {"topic": "home"}]}, limit=1)) == [
        "I live in Oslo"
    ]
    id = str(added[0]["id"])
    one = memory.get(id)
    assert one is not None and one["user_id"] == "ada" and one["metadata"] == {"topic": "home"}
    memory.update(id, "I live in Bergen")
    memory.delete(id)
    assert memory.get(id) is None
    told = [(one["event"], one["old_memory"], one["new_memory"]) for one in memory.history(id)]
    assert told == [
        ("ADD", None, "I live in Oslo"), ("UPDATE", "I live in Oslo", "I live in Bergen"),
        ("DELETE", "I live in Bergen", None),
    ]  # fmt: skip
    memory.delete_all(user_id="ada")
    assert texts(memory.get_all(user_id="ada")) == [] and texts(memory.get_all(user_id="bo")) == ["I live in Rome"]
    with pytest.raises(holotype.Error):
        memory.update(id, "x")
    with pytest.raises(holotype.Error):
        memory.get_all()
    memory.reset()
    assert texts(memory.get_all(user_id="bo")) == []


def test_facts_that_are_extracted_point_at_what_was_said(db: holotype.Database) -> None:
    memory = Memory(db, extract=lambda messages: [f"fact of {len(messages)}"], erase=True)
    added = memory.add([{"role": "user", "content": "a"}, {"role": "user", "content": "b"}], run_id="r")["results"]
    assert [one["memory"] for one in added] == ["fact of 2"]
    assert [one.text for one in db.citations(f"mem0/{added[0]['id']}")] == ["a", "b"]
    memory.delete(str(added[0]["id"]))
    assert memory.get(str(added[0]["id"])) is None


def test_it_is_there_after_reopening(path: Path) -> None:
    with holotype.create(path, space="hashing-v1-256") as db:
        Memory(db).add("I like figs", user_id="u,1".replace(",", "-"))
    with holotype.open(path) as db:
        assert texts(Memory(db).search("figs", user_id="u-1")) == ["I like figs"]
