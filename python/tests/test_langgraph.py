"""The LangGraph checkpointer and store: LangGraph's own suite, its own store as the model, and a graph."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator
from datetime import datetime
from pathlib import Path
from typing import Any

import holotype
import pytest

pytest.importorskip("langgraph.checkpoint.base")

from holotype.langgraph import HolotypeSaver, HolotypeStore  # noqa: E402
from langgraph.checkpoint.base import empty_checkpoint  # noqa: E402

CONFIG = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}


@pytest.mark.parametrize("erase", [True, False])
def test_the_conformance_suite(tmp_path: Path, erase: bool) -> None:
    conformance = pytest.importorskip("langgraph.checkpoint.conformance")
    count = 0

    @conformance.checkpointer_test(name="HolotypeSaver")
    async def saver() -> AsyncGenerator[HolotypeSaver, None]:
        nonlocal count
        count += 1
        with holotype.create(tmp_path / f"{count}.holo") as db:
            yield HolotypeSaver(db, erase=erase, durability="none")
            assert db.verify()

    report = asyncio.run(conformance.validate(saver))
    failures = {name: result.failures for name, result in report.results.items() if not result.passed}
    assert not failures and len(report.results) == 8 and report.passed_all()


def test_pruning_keeps_what_a_delta_channel_is_made_from(db: holotype.Database) -> None:
    saver, config = HolotypeSaver(db), {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    ids = []
    for step in range(5):
        checkpoint = {**empty_checkpoint(), "channel_values": {"log": ["snapshot"]} if step == 2 else {"other": step}}
        metadata: Any = {"step": step, "counters_since_delta_snapshot": {"log": [1, 1]}}
        config = saver.put(config, checkpoint, metadata, {})
        saver.put_writes(config, [("log", step)], f"task{step}")
        ids.append(checkpoint["id"])
    saver.prune(["t"])
    left = [found.checkpoint["id"] for found in saver.list({"configurable": {"thread_id": "t"}})]
    assert left == [ids[4], ids[3], ids[2]]
    history = saver.get_delta_channel_history(config=config, channels=["log"])["log"]
    assert history["seed"] == ["snapshot"] and [write[2] for write in history["writes"]] == [2, 3]


def test_checkpoints_survive_a_restart_and_deleted_ones_are_gone(path: Path) -> None:
    thread = {"configurable": {"thread_id": "a/b@c " + "long" * 200, "checkpoint_ns": "x|y"}}
    with holotype.create(path) as db:
        checkpoint = {**empty_checkpoint(), "channel_values": {"secret": "swordfish"}}
        config = HolotypeSaver(db).put(thread, checkpoint, {"step": 1}, {})
    with holotype.open(path) as db:
        saver = HolotypeSaver(db)
        found = saver.get_tuple(config)
        assert found is not None and found.checkpoint["channel_values"] == {"secret": "swordfish"}
        saver.delete_thread(thread["configurable"]["thread_id"])
        assert saver.get_tuple(config) is None and list(saver.list(None)) == []
        # The key can be used again.
        saver.put(thread, checkpoint, {"step": 2}, {})
        saver.delete_thread(thread["configurable"]["thread_id"])
        assert db.verify()
    assert not any(b"swordfish" in file.read_bytes() for file in path.rglob("*") if file.is_file())


def test_a_graph_goes_on_where_it_stopped(path: Path) -> None:
    graph_module = pytest.importorskip("langgraph.graph")

    def build(saver: HolotypeSaver) -> Any:
        graph = graph_module.StateGraph(dict)
        graph.add_node("count", lambda state: {"n": state.get("n", 0) + 1})
        graph.add_edge(graph_module.START, "count")
        return graph.compile(checkpointer=saver)

    config = {"configurable": {"thread_id": "t"}}
    for expected in (1, 2, 3):
        with holotype.open_or_create(path) as db:
            graph = build(HolotypeSaver(db))
            before = graph.get_state(config).values or {"n": 0}
            assert graph.invoke({"n": before["n"]}, config)["n"] == expected


# ---- the store ----


def embed(texts: list[str]) -> list[list[float]]:
    return [[float(text.count(letter)) + 0.1 for letter in "abcde"] for text in texts]


def test_the_store_does_what_langgraphs_own_does(path: Path) -> None:
    from langgraph.store.memory import InMemoryStore

    index: Any = {"dims": 5, "embed": embed, "fields": ["text"]}
    draw = random.Random(7)
    namespaces = [("a",), ("a", "b"), ("a", "b", "c"), ("ab",), ("d", "b")]
    with holotype.create(path) as db:
        stores = [InMemoryStore(index=index), HolotypeStore(db, index=index, durability="none")]
        for step in range(250):
            namespace, key = draw.choice(namespaces), f"k{draw.randrange(6)}"
            text = "".join(draw.choices("abcde ", k=12))
            value = {"text": text, "n": draw.randrange(4), "deep": {"x": [1, step % 3]}}
            choice = draw.randrange(6)
            for store in stores:
                if choice <= 2:
                    index_of = [None, False, ["deep.x"]][choice] if step % 5 == 0 else None
                    # LangGraph's own store keeps vectors of the value before.
                    store.delete(namespace, key)
                    store.put(namespace, key, value, index=index_of)
                elif choice == 3:
                    store.delete(namespace, key)
            mine, own = [store.get(namespace, key) for store in (stores[1], stores[0])]
            assert (mine and mine.value) == (own and own.value), step
            if choice >= 4:
                prefix = namespace[: draw.randrange(len(namespace) + 1)]
                wanted = draw.choice([None, {"n": 1}, {"n": {"$gte": 2}}, {"deep": {"x": [1, 2]}}])
                query = draw.choice([None, "abba", "cede"])
                answers = [store.search(prefix, query=query, filter=wanted, limit=50) for store in stores]
                shown = [
                    {(item.namespace, item.key, round(item.score or 0, 4), str(item.value)) for item in answer}
                    for answer in answers
                ]
                assert shown[0] == shown[1], (step, prefix, query, wanted)
                scores = [item.score for item in answers[1] if item.score is not None]
                assert scores == sorted(scores, reverse=True)
                few = [store.search(prefix, query="abba", limit=2, offset=1) for store in stores]
                assert len(few[0]) == len(few[1])
        lists = [
            [
                store.list_namespaces(prefix=("a",)),
                store.list_namespaces(suffix=("b",)),
                store.list_namespaces(prefix=("*", "b"), max_depth=2),
                store.list_namespaces(limit=2, offset=1),
            ]
            for store in stores
        ]
        # LangGraph's own store lists namespaces that are empty by now.
        for own_names, names in zip(*lists):
            assert set(names) <= set(own_names) | {name[:2] for name in own_names}
        assert db.verify()


def test_the_store_keeps_times_and_refuses_unknown_operators(db: holotype.Database) -> None:
    store = HolotypeStore(db)
    store.put(("u",), "k", {"v": 1})
    first = store.get(("u",), "k")
    store.put(("u",), "k", {"v": 2})
    second = store.get(("u",), "k")
    assert first is not None and second is not None
    assert second.created_at == first.created_at and second.updated_at >= first.updated_at
    with pytest.raises(ValueError, match="unknown operator"):
        store.search(("u",), filter={"v": {"$above": 1}})
    assert [found.key for found in store.search(("u",), filter={"v": {"$in": [1, 2]}})] == ["k"]
    assert asyncio.run(store.aget(("u",), "k")).value == {"v": 2}


def test_a_comparison_skips_what_has_no_such_value(db: holotype.Database) -> None:
    store = HolotypeStore(db)
    store.put(("docs",), "b", {})
    scores: dict[str, Any] = {"a": 10, "c": None, "d": "high", "e": True}
    for key, score in scores.items():
        store.put(("docs",), key, {"score": score})
    for sign, keys in (("$gt", ["a"]), ("$lt", []), ("$ne", ["a", "b", "c", "d", "e"])):
        found = store.search(("docs",), filter={"score": {sign: 5}})
        assert sorted(item.key for item in found) == keys


def test_a_store_takes_what_a_dict_takes(db: holotype.Database) -> None:
    store = HolotypeStore(db)
    value = {"when": datetime(2026, 1, 5), "half": "cut \ud83d", "tuple": (1, {2}), "bytes": b"\x00\xff"}
    store.put(("a\ud83d",), "k\udc88", value)
    found = store.get(("a\ud83d",), "k\udc88")
    assert found is not None and found.value == value and found.key == "k\udc88" and found.namespace == ("a\ud83d",)
    assert store.list_namespaces() == [("a\ud83d",)]
    with pytest.raises(holotype.InputError, match="the value of 'bad'"):
        store.put(("a",), "bad", {"x": object()})


def test_namespaces_of_deleted_values_are_gone(db: holotype.Database) -> None:
    for erase in (True, False):
        store = HolotypeStore(db, erase=erase)
        for number in range(3):
            store.put(("n", str(erase), str(number)), "first", {"v": 1})
            store.put(("n", str(erase), str(number)), "second", {"v": 1})
        store.delete(("n", str(erase), "0"), "first")
        store.delete(("n", str(erase), "1"), "first")
        store.delete(("n", str(erase), "1"), "second")
        assert store.list_namespaces(prefix=("n", str(erase))) == [("n", str(erase), number) for number in ("0", "2")]


def test_a_path_is_a_connection(path: Path) -> None:
    with HolotypeStore.from_conn_string(str(path)) as store:
        store.put(("n",), "k", {"v": 1})
    with HolotypeSaver.from_conn_string(str(path)) as saver:
        saver.put(CONFIG, empty_checkpoint(), {"step": 1}, {})
        assert saver.get_tuple(CONFIG) is not None
        for wrong in (saver.prune, saver.delete_for_runs):
            with pytest.raises(TypeError, match="expected a list of ids"):
                wrong("abc")
    with HolotypeStore.from_conn_string(str(path)) as store:
        assert store.get(("n",), "k").value == {"v": 1}
