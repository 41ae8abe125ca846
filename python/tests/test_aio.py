"""The asyncio mirror."""

from __future__ import annotations

import asyncio
from pathlib import Path

import holotype
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


def test_a_transaction_is_waited_for_as_long_as_one_likes(path: Path) -> None:
    async def main() -> None:
        async with await aio.create(path) as db:
            begun, done = asyncio.Event(), asyncio.Event()

            async def write() -> None:
                async with db.begin(timeout=0) as tx:
                    await tx.record("one", episode="e", key="t1")
                    begun.set()
                    await done.wait()

            writer = asyncio.create_task(write())
            await begun.wait()
            for seconds in (0, 0.01):
                with pytest.raises(errors.Busy) as busy:
                    async with db.begin(timeout=seconds):
                        pass
                assert busy.value.code == "busy" and busy.value.hint == "retry, or wait longer"
            done.set()
            async with db.begin(timeout=60) as tx:
                assert await tx.get("t1") is not None
            await writer

    asyncio.run(main())


def test_a_subscriber_sees_each_commit_of_others(path: Path) -> None:
    async def main() -> list[str]:
        async with await aio.create(path) as db:
            seen: list[str] = []

            async def follow() -> None:
                async for change in db.subscribe(0):
                    if change.what == "added":
                        seen.append(change.details["key"])
                        if len(seen) == 3:
                            return

            following = asyncio.create_task(follow())
            for key in ("a", "b", "c"):
                async with db.begin() as tx:
                    await tx.record(f"turn {key}", episode="e", key=key)
            await following
            assert [change.item async for change in db.changes() if change.what == "added"] == [0, 1, 2]
            assert [change async for change in db.subscribe(timeout=0)] == []
            return seen

    assert asyncio.run(main()) == ["a", "b", "c"]


@pytest.mark.parametrize("name", ["Database", "Snapshot", "Transaction"])
def test_every_call_has_its_mirror(name: str) -> None:
    names = {call for call in dir(getattr(holotype, name)) if not call.startswith("_")}
    assert names <= set(dir(getattr(aio, name))) | {"committed"}


def test_the_mirrored_calls(path: Path) -> None:
    async def main() -> None:
        async with await aio.create(path, space="hashing-v1-64") as db:
            async with db.begin() as tx:
                await tx.episode("e", task="a trip")
                await tx.record_columns(["one", "two"], episode="e", key=["t1", "t2"])
                await tx.remember("one and two", sources=["t1", holotype.Pointer("t2", quote="tw")], key="r1")
                await tx.cite("r1", "t2")
                await tx.claim("r1", "count", 2)
                await tx.mark_utility("r1", 0.5)
                await tx.set("recency.half-life", "2d")
                found = await tx.get_many(["t1", "t9"])
                assert found[0] is not None and found[1] is None and tx.is_open
                assert await tx.keys("t") == ["t1", "t2"] and await tx.get("r1") is not None
            view = await db.snapshot()
            assert await view.episodes() == ["e"] and view.space == holotype.Space("hashing-v1-64", 64)
            assert [citation.verdict for citation in await db.citations("r1")] == ["ok"] * 3
            assert [citation.target for citation in await view.citations("r1")] == ["t1", "t2", "t2"]
            assert (await db.why("t2"))["dependents"][0]["key"] == "r1" == (await view.why("r1"))["item"]["key"]
            assert (await view.diff(0))["added_count"] == (await db.diff(0))["added_count"] == 3
            assert len(await view.get_many(["t1"])) == 1 and len(await db.get_many(["t1", "t2"])) == 2
            assert (await view.vectors(["t1", "t2"])).shape == (2, 64) and await db.vector("t1") is not None
            key = holotype.SigningKey.generate(view.origin)
            assert holotype.check_proof(await view.prove("r1", key), key.public)["fields"]["text"] == "one and two"
            answer = await db.recall("one", receipt=True)
            assert answer.receipt is not None and len(await db.replay(answer.receipt)) == len(answer)
            async with db.begin() as tx:
                assert await tx.forget(["t1"], because="test") == ["t1"]
                with pytest.raises(errors.TransactionError):
                    await db.compact()
            assert (await (await db.as_of(1)).keys()) == [] and db.head().commit >= 3 and db.report() == []
            lines, _ = await db.export(path.parent / "out.jsonl")
            assert lines > 2 and (await db.import_file(path.parent / "out.jsonl")).added == 0
            before, after = await db.compact()
            assert before > 0 and after > 0 and await db.verify() and not db.closed
        async with await aio.rebuild(path) as db:
            assert await db.get("r1") is not None and db.path == str(path)

    asyncio.run(main())
