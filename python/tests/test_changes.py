"""The history as changes, subscriptions, and transactions that wait for a time."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path

import holotype
import pytest
from holotype import errors


def test_changes_say_what_each_commit_did(db: holotype.Database) -> None:
    with db.begin() as tx:
        tx.set("recency.half-life", "2h")
        tx.mark("t1", "failed", because="withdrawn")
        tx.update("r1", "UA123 costs $460", sources=["t1"])
        tx.mark_utility("r1", 0.5, reports=2)
        tx.claim("r1", "price", "460")
        tx.cite("r1", holotype.Pointer("t1", quote="UA123"))
        tx.episode("trip-42", open=False)
    with db.begin() as tx:
        gone = tx.record("Forget me.", episode="e", key="gone")
    with db.begin() as tx:
        tx.forget(["gone"], because="asked to")
    changes = list(db.changes(2))
    assert [change.commit for change in changes] == sorted(change.commit for change in changes)
    assert all(change.time == changes[0].time for change in changes if change.commit == 3)
    said = {(change.what, change.item): change.details for change in changes}
    assert said["set", None] == {"name": "recency.half-life", "value": "2h"}
    assert said["marked", db["t1"].id] == {"status": "failed", "because": "withdrawn"}
    assert said["claimed", db["r1"].id] == {"name": "price", "value": "460"}
    assert ("cited", db["r1"].id) in said
    assert said["episode", None] == {"id": "e", "open": True}
    assert said["forgotten", gone]["because"] == "asked to"
    assert {change.what for change in db.changes()} >= {"space", "added", "retired", "rekeyed"}
    assert list(db.changes(db.head().commit)) == []
    with pytest.raises(errors.InputError) as later:
        db.changes(99)
    assert later.value.code == "future-commit"


def test_many_changes_are_read_in_pieces(db: holotype.Database) -> None:
    with db.begin() as tx:
        numbers = tx.record_columns([f"turn {n}" for n in range(1_000)], episode="e")
    assert [change.item for change in db.changes(2) if change.what == "added"] == numbers


def test_a_subscriber_of_another_process_goes_on_where_it_was(path: Path) -> None:
    program = """
        import sys
        import holotype
        with holotype.open(sys.argv[1], read_only=True) as db:
            for change in db.subscribe(int(sys.argv[2])):
                if change.what == "added":
                    print(change.commit, change.details["key"], flush=True)
    """

    def follow(since: int) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", textwrap.dedent(program), str(path), str(since)]
        return subprocess.Popen(command, text=True, stdout=subprocess.PIPE)

    def line(process: subprocess.Popen[str]) -> list[str]:
        assert process.stdout is not None
        return process.stdout.readline().split()

    with holotype.create(path) as db:
        since = db.head().commit
        for keys in (["a", "b"], ["c", "d"]):
            follower = follow(since)
            for key in keys:
                with db.begin() as tx:
                    tx.record("said", episode="e", key=key)
                commit, seen = line(follower)
                assert seen == key
                since = int(commit)
            follower.kill()
            follower.communicate()


def test_a_transaction_is_waited_for_as_long_as_one_likes(db: holotype.Database) -> None:
    tx = db.begin(timeout=0)
    with pytest.raises(errors.TransactionError):
        db.begin(timeout=0)
    with pytest.raises(errors.TransactionError):
        next(db.subscribe())
    found: list[str] = []

    def other() -> None:
        for seconds in (0, 0.01):
            try:
                db.begin(timeout=seconds)
            except errors.Busy as busy:
                found.append(busy.code)

    def run(work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    run(other)
    assert found == ["busy", "busy"]

    def use() -> None:
        tx.record("mine now", episode="e", key="mine")
        try:
            db.begin()
        except errors.TransactionError as error:
            found.append(error.code)

    run(use)
    assert found[-1] == "transaction-open"
    # The other thread used it last, so this one may wait.
    with pytest.raises(errors.Busy):
        db.begin(timeout=0)
    tx.commit()
    with pytest.raises(ValueError, match="timeout -1"):
        db.begin(timeout=-1)
    with db.begin(timeout=60):
        assert "mine" in db
