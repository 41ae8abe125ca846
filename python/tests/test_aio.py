"""The asyncio mirror."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from holotype import aio, errors


def test_tasks_share_a_database(path: Path) -> None:
    async def work(db: aio.Database, name: str) -> None:
        for step in range(5):
            async with db.begin(durability="none") as tx:
                await tx.record(f"{name} says {step}", episode=name, key=f"{name}-{step}")
                # Others wait for the transaction, and not for a thread.
                await asyncio.sleep(0)
            assert (await db.recall(f"{name} says {step}", limit=1))[0].episode is not None

    async def main() -> int:
        async with await aio.create(path) as db:
            await asyncio.gather(*(work(db, f"task{n}") for n in range(40)))
            return len((await db.query("find turns")).rows)

    assert asyncio.run(main()) == 200


def test_a_task_cannot_wait_for_itself(path: Path) -> None:
    async def main() -> None:
        async with await aio.create(path) as db:
            async with db.begin() as tx:
                await tx.record("one", episode="e", key="t1")
                with pytest.raises(errors.TransactionError):
                    await db.query("mark 't1' failed")
                with pytest.raises(errors.TransactionError):
                    async with db.begin():
                        pass
                assert (await tx.query("find turns return key")).to_dicts() == [{"key": "t1"}]
            with pytest.raises(ZeroDivisionError):
                async with db.begin() as tx:
                    await tx.record("lost", episode="e", key="lost")
                    raise ZeroDivisionError
            snapshot = await db.snapshot()
            assert await snapshot.keys() == ["t1"] and await db.get("lost") is None
            assert await db.verify()

    asyncio.run(main())
