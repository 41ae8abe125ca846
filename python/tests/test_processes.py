"""Several processes on one database: they write in turns, and a forked one opens it again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import holotype
import pytest
from holotype import errors

WRITER = """
import sys, holotype
with holotype.open(sys.argv[1], shared=True) as db:
    for number in range(int(sys.argv[3])):
        with db.begin() as tx:
            tx.record(f"said {number}", key=f"{sys.argv[2]}{number}", episode=sys.argv[2])
"""


def count(db: holotype.Database) -> int:
    return len(list(db.query("find traces")))


def test_processes_write_in_turns(tmp_path: Path) -> None:
    path = tmp_path / "shared.holo"
    with holotype.create(path, shared=True) as db:
        writers = [subprocess.Popen([sys.executable, "-c", WRITER, path, name, "20"]) for name in "ab"]
        for number in range(20):
            with db.begin() as tx:
                tx.record(f"own {number}", key=f"own{number}", episode="own")
        assert [writer.wait() for writer in writers] == [0, 0]
        assert count(db) == 60
        assert db.verify()
    with holotype.open(path) as alone:
        assert count(alone) == 60


def test_a_transaction_waits_for_its_turn_and_names_who_has_it(tmp_path: Path) -> None:
    path = tmp_path / "shared.holo"
    with holotype.create(path, shared=True) as one, holotype.open(path, shared=True, write_timeout=0.01) as other:
        with one.begin() as tx:
            tx.record("slowly", key="slow", episode="e")
            with pytest.raises(errors.Locked) as refused:
                other.begin()
            assert f"process {os.getpid()} (" in str(refused.value)
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
