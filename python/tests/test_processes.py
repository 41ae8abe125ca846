"""Several processes on one database: they write by turns, and a forked one opens it again."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import holotype
import pytest
from holotype import errors

WRITER = """
    import sys
    import holotype
    db = holotype.open(sys.argv[1], shared=True)
    print("ready", flush=True)
    for line in sys.stdin:
        number = int(line)
        with db.begin() as tx:
            seen = tx.keys("n")
            tx.record(f"number {number}", episode=sys.argv[2], key=f"n{number:04}")
        print(len(seen), flush=True)
    db.close()
"""


def writer(path: Path, name: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", textwrap.dedent(WRITER), str(path), name]
    return subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def answer(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_two_interpreters_write_by_turns(path: Path) -> None:
    holotype.create(path, space="hashing-v1-64").close()
    processes = [writer(path, name) for name in ("a", "b")]
    assert [answer(process) for process in processes] == ["ready", "ready"]
    with holotype.open(path, shared=True) as own:
        for number in range(20):
            process = processes[number % 2]
            assert process.stdin is not None
            process.stdin.write(f"{number}\n")
            process.stdin.flush()
            # Each sees what all others have committed.
            assert answer(process) == str(number + number // 5)
            if number % 5 == 4:
                with own.begin() as tx:
                    tx.record(f"own {number}", episode="own", key=f"n{number:04}-own")
                assert len(own) == number + 1 + number // 5 + 1
        assert own.recall("number 13", limit=1)[0].episode == "b"
        for process in processes:
            process.communicate()
            assert process.returncode == 0
    with holotype.open(path) as db:
        assert len(db) == 24 and db.verify()


def test_writers_at_the_same_time_lose_nothing(path: Path) -> None:
    holotype.create(path).close()
    processes = [writer(path, name) for name in ("a", "b")]
    for first, process in enumerate(processes):
        assert answer(process) == "ready"
        assert process.stdin is not None
        process.stdin.write("".join(f"{number}\n" for number in range(first, 60, 2)))
        process.stdin.close()
    for process in processes:
        assert process.stdout is not None
        seen = [int(line) for line in process.stdout.read().split()]
        assert len(seen) == 30 and seen == sorted(set(seen)) and process.wait() == 0
    with holotype.open(path) as db:
        assert db.snapshot().keys("n") == [f"n{number:04}" for number in range(60)] and db.verify()


def test_one_that_keeps_the_turn_and_shared_ones_exclude_each_other(path: Path) -> None:
    with holotype.create(path, shared=True):
        with holotype.open(path, shared=True) as other:
            assert not other.closed
        with pytest.raises(holotype.errors.Locked):
            holotype.open(path)
    with holotype.open(path):
        with pytest.raises(holotype.errors.Locked):
            holotype.open(path, shared=True)


def count(db: holotype.Database) -> int:
    return len(list(db.query("find traces")))


def test_a_transaction_waits_for_its_turn_and_names_who_has_it(tmp_path: Path) -> None:
    path = tmp_path / "shared.holo"
    with holotype.create(path, shared=True) as one, holotype.open(path, shared=True, write_timeout=0.01) as other:
        with one.begin() as tx:
            tx.record("slowly", key="slow", episode="e")
            with pytest.raises(errors.Locked) as refused:
                other.begin()
            assert f"this process ({os.getpid()})" in str(refused.value)
        with other.begin() as tx:
            tx.record("at last", key="last", episode="e")
        with pytest.raises(errors.Locked):
            holotype.open(path)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.parametrize("shared", [False, True])
def test_a_forked_process_is_refused_and_disturbs_nobody(tmp_path: Path, shared: bool) -> None:
    path = tmp_path / "forked.holo"
    db = holotype.create(path, shared=shared)
    with db.begin() as tx:
        tx.record("before", key="before", episode="e")
    child = os.fork()
    if child == 0:
        codes = []
        for call in (db.begin, db.checkpoint, db.verify, lambda: db.query("find traces"), db.refresh, db.close):
            try:
                call()
                codes.append("none")
            except holotype.Error as error:
                codes.append(error.code)
        del db
        os._exit(0 if codes == ["forked"] * len(codes) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    # The lock is still this process's.
    if not shared:
        with pytest.raises(errors.Locked):
            holotype.open(path)
    with db.begin() as tx:
        tx.record("after", key="after", episode="e")
    db.close()
    with holotype.open(path) as alone:
        assert count(alone) == 2 and alone.verify()


WITHOUT_MEMORY = """
    import resource
    import sys
    import holotype
    with holotype.open(sys.argv[1]) as db:
        with open("/proc/self/statm") as statm:
            now = int(statm.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + int(sys.argv[2]), resource.RLIM_INFINITY))
        try:
            db.query("find traces order by time desc return key, text")
            print("enough")
        except MemoryError as error:
            print(type(error).__name__)
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        print(len(db.query("find traces return key")))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads its size from /proc")
def test_a_statement_without_memory_raises_and_the_next_one_runs(path: Path) -> None:
    with holotype.create(path) as db, db.begin() as tx:
        for number in range(100):
            tx.record("x" * 150_000, episode="e", key=f"k{number}")
    ends = []
    for mebibytes in range(0, 48, 2):
        command = [sys.executable, "-c", textwrap.dedent(WITHOUT_MEMORY), str(path), str(mebibytes << 20)]
        done = subprocess.run(command, text=True, capture_output=True)
        # 5 says that there was no memory even to raise.
        assert done.returncode in (0, 5), done.stderr
        ends.append(done.stdout.split())
        if ends[-1] == ["OutOfMemory", "100"]:
            break
    assert ["OutOfMemory", "100"] in ends, ends
