"""The session of the OpenAI Agents SDK, beside the SDK's own SQLite session as the model."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import holotype
import pytest

pytest.importorskip("agents")

from agents import Session, SQLiteSession  # noqa: E402
from agents.memory.session_settings import SessionSettings  # noqa: E402
from holotype.agents import HolotypeSession  # noqa: E402

ITEMS: list[Any] = [
    {"role": "user", "content": "Book UA123"},
    {"role": "assistant", "content": [{"type": "output_text", "text": "It costs $450"}]},
    {"type": "function_call", "name": "search_flights", "arguments": '{"to": "Lisbon"}', "call_id": "c1"},
    {"type": "function_call_output", "call_id": "c1", "output": "price=$450 ✈"},
    {"type": "reasoning", "summary": []},
]


@pytest.mark.parametrize("erase", [True, False])
def test_it_does_what_the_sdks_own_session_does(path: Path, erase: bool) -> None:
    draw = random.Random(7)

    async def main(db: holotype.Database) -> None:
        sessions: list[Any] = [
            [SQLiteSession(name, ":memory:"), HolotypeSession(name, db, erase=erase, durability="none")]
            for name in ("a", "a/b")
        ]
        for _ in range(60):
            pair = draw.choice(sessions)
            choice = draw.randrange(8)
            items = draw.choices(ITEMS, k=draw.randrange(4))
            limit = draw.choice([None, 0, 1, 3, 100])
            results = []
            for session in pair:
                if choice <= 3:
                    results.append(await session.add_items(items))
                elif choice <= 5:
                    results.append(await session.pop_item())
                results.append(await session.get_items(limit))
            assert results[: len(results) // 2] == results[len(results) // 2 :]
        for pair in sessions:
            for session in pair:
                await session.clear_session()
                assert await session.get_items() == [] and await session.pop_item() is None
                await session.add_items(ITEMS)
                assert await session.get_items() == ITEMS

    with holotype.create(path) as db:
        asyncio.run(main(db))
        assert db.verify()


def test_a_session_is_a_session_and_survives(path: Path) -> None:
    with holotype.create(path) as db:
        session = HolotypeSession("s", db, session_settings=SessionSettings(limit=2))
        assert isinstance(session, Session)
        asyncio.run(session.add_items(ITEMS))
        assert asyncio.run(session.get_items()) == ITEMS[-2:]
        row = db.recall("price", episode="agents/s", limit=1)[0]
        assert row.text == "price=$450 ✈" and row.source == "tool"
    with holotype.open(path) as db:
        assert asyncio.run(HolotypeSession("s", db).get_items()) == ITEMS


def test_a_session_takes_half_a_surrogate_pair_and_finds_the_newest(path: Path) -> None:
    async def main(erase: bool) -> None:
        with holotype.create(path.with_name(f"{erase}.holo")) as db:
            session = HolotypeSession("s\ud83d", db, erase=erase)
            items = [{"role": "user", "content": f"cut \ud83d {number}"} for number in range(9)]
            await session.add_items(items)
            assert await session.get_items() == items and await session.get_items(2) == items[-2:]
            for number in range(8, 3, -1):
                assert await session.pop_item() == items[number]
            # Those that were popped are passed over.
            assert await session.get_items(2) == items[2:4]
            await session.add_items(items[:1])
            assert await session.get_items(3) == [*items[2:4], items[0]]
            assert "cut \ufffd 0" in [row.text for row in db.recall("cut", limit=9)]
            for wrong in ("text", items[0]):
                with pytest.raises(TypeError):
                    await session.add_items(wrong)  # type: ignore[arg-type]
            await session.clear_session()
            assert await session.get_items() == [] and await session.pop_item() is None

    for erase in (True, False):
        asyncio.run(main(erase))
