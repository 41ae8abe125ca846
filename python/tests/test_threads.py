"""Threads, signals and killed interpreters."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import holotype
import pytest


def run(program: str, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", textwrap.dedent(program), *arguments]
    return subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def fill(path: Path, count: int) -> None:
    text = "the quick brown fox jumps over the lazy dog " * 20
    with holotype.create(path) as db:
        for start in range(0, count, 5_000):
            with db.begin(durability="none") as tx:
                tx.record_many({"text": f"{n} {text}", "episode": "e"} for n in range(start, min(start + 5_000, count)))


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of 20,000 turns, to be copied."""
    path = tmp_path_factory.mktemp("filled") / "memory.holo"
    fill(path, 20_000)
    return path


def test_other_threads_run_during_a_statement(filled: Path) -> None:
    path = filled
    with holotype.open(path) as db:
        done = threading.Event()
        counted = 0

        def ask() -> None:
            db.query("find items where text matches '*no such text*' return key")
            done.set()

        thread = threading.Thread(target=ask)
        thread.start()
        while not done.is_set():
            counted += 1
        thread.join()
        # If the statement held the interpreter, this thread would have counted next to nothing.
        assert counted > 1_000


def test_threads_share_a_database(db: holotype.Database) -> None:
    failures: list[BaseException] = []

    def work(name: str) -> None:
        try:
            for step in range(20):
                with db.begin(durability="none") as tx:
                    tx.record(f"{name} says {step}", episode=name, key=f"{name}-{step}")
                assert db.recall(f"{name} says {step}", episode=name, limit=1)[0].key == f"{name}-{step}"
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(f"thread{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and len(db) == 82


def test_a_transaction_may_change_threads(db: holotype.Database) -> None:
    tx = db.begin()
    thread = threading.Thread(target=lambda: tx.record("from elsewhere", episode="e", key="t2"))
    thread.start()
    thread.join()
    tx.commit()
    assert "t2" in db


INTERRUPTED = """
    import signal, sys, threading
    import holotype
    # A shell that runs the tests in the background has its children ignore SIGINT.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    db = holotype.open(sys.argv[1])
    statement = sys.argv[2]
    tx = None
    if statement == "begin":
        holder = threading.Thread(target=lambda: globals().update(tx=db.begin()))
        holder.start(); holder.join()
    try:
        print("ready", flush=True)
        if statement == "begin":
            db.begin()
        elif statement == "subscribe":
            next(db.subscribe())
        elif statement == "record_columns":
            with db.begin() as tx:
                while True:
                    tx.record_columns(["lost"] * 1_000, episode="e")
        else:
            while True:
                db.query(statement)
    except KeyboardInterrupt:
        if tx is not None:
            tx.rollback()
        with db.begin() as tx:
            assert not tx.query("find turns where text = 'lost'").rows
            tx.record("after", episode="e", key="after")
        assert db.verify()
        db.close()
        print("interrupted", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
@pytest.mark.parametrize(
    "statement",
    [
        "find items where text matches '*no such text*'",
        "recall 'fox dog' through traces 20000 by words score words 1, recency 1 limit 20000",
        "verify",
        "begin",
        "record_columns",
        "subscribe",
    ],
)
def test_ctrl_c_ends_a_call_and_leaves_the_database_sound(filled: Path, path: Path, statement: str) -> None:
    shutil.copytree(filled, path)
    process = run(INTERRUPTED, str(path), statement)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60)[0] == "interrupted\n" and process.returncode == 0
    with holotype.open(path) as db:
        assert "after" in db and db.report() == []


KILLED = """
    import sys
    import holotype
    db = holotype.open_or_create(sys.argv[1], space="hashing-v1-64")
    n = len(db) // 2
    while True:
        with db.begin() as tx:
            tx.record(f"turn {n}", episode="e", key=f"t{n}")
            tx.remember(f"fact {n}", sources=[f"t{n}"], key=f"r{n}")
        print(n, flush=True)
        n += 1
"""


def test_a_killed_interpreter_loses_nothing_acknowledged(path: Path) -> None:
    for _ in range(3):
        process = run(KILLED, str(path))
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(10)]
        process.kill()
        rest = process.communicate()[0]
        acknowledged = [int(line) for line in [*lines, *rest.splitlines(keepends=True)] if line.endswith("\n")]
        with holotype.open(path) as db:
            # One more may have been committed when it was killed, and nothing is there by halves.
            count = acknowledged[-1] + 1
            assert len(db) in (2 * count, 2 * count + 2) and db.verify()
            for number in acknowledged:
                assert db[f"t{number}"].text == f"turn {number}" and db[f"r{number}"].text == f"fact {number}"
                assert [citation.verdict for citation in db.citations(f"r{number}")] == ["ok"]


def test_an_interpreter_that_ends_without_closing(path: Path) -> None:
    program = """
        import sys
        import holotype
        db = holotype.create(sys.argv[1])
        with db.begin() as tx:
            tx.record("kept", episode="e", key="kept")
        tx = db.begin()
        tx.record("lost", episode="e", key="lost")
    """
    assert run(program, str(path)).wait(timeout=60) == 0
    with holotype.open(path) as db:
        assert db.snapshot().keys() == ["kept"] and db.verify()
