"""Arguments of every sort at the door of the package: taken as they are meant, or refused with a word about them."""

from __future__ import annotations

import array
import copy
import json
import os
import pickle
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime, timezone
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import holotype
import pytest
from holotype import errors

np = pytest.importorskip("numpy")

HALF = "cut \ud83d here"


@pytest.fixture
def vectors_db(path: Path) -> Iterator[holotype.Database]:
    with holotype.create(path, space=holotype.Space("m", 4)) as database:
        yield database


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[holotype.Database]:
    """A database for calls that are refused: nothing is ever committed to it."""
    with holotype.create(tmp_path_factory.mktemp("story") / "memory.holo", space="hashing-v1-256") as database:
        with database.begin() as tx:
            tx.record("UA123 price=$450", episode="trip-42", kind="call", tool="search_flights", key="t1")
            tx.remember("UA123 costs $450", sources=["t1"], key="r1")
        yield database


@pytest.fixture
def tx(story: holotype.Database) -> Iterator[holotype.Transaction]:
    transaction = story.begin()
    yield transaction
    transaction.rollback()


# ---- vectors ----

GRID = np.arange(1, 13, dtype=np.float32).reshape(3, 4)


def unaligned() -> Any:
    record = np.zeros(3, dtype=[("pad", "u1"), ("v", "<f4", (4,))])
    record["v"] = GRID
    return record["v"]


LAYOUTS: dict[str, Callable[[], Any]] = {
    "rows": lambda: GRID,
    "fortran": lambda: np.asfortranarray(GRID),
    "transposed": lambda: np.ascontiguousarray(GRID.T).T,
    "every other row": lambda: np.repeat(GRID, 2, axis=0)[::2],
    "every other column": lambda: np.repeat(GRID, 2, axis=1)[:, ::2],
    "backwards": lambda: np.ascontiguousarray(GRID[::-1, ::-1])[::-1, ::-1],
    "big endian": lambda: GRID.astype(">f4"),
    "big endian fortran doubles": lambda: np.asfortranarray(GRID.astype(">f8")),
    "halves": lambda: GRID.astype(np.float16),
    "integers": lambda: np.asfortranarray(GRID.astype(np.int16)),
    "objects": lambda: GRID.astype(object),
    "unaligned": unaligned,
    "read only": lambda: np.frombuffer(GRID.tobytes(), dtype=np.float32).reshape(3, 4),
    "matrix": lambda: np.asmatrix(GRID),
    "unmasked": lambda: np.ma.masked_array(np.asfortranarray(GRID)),
    "array of arrays": lambda: np.array([*GRID, None], dtype=object)[:3],
    "lists": lambda: GRID.tolist(),
    "arrays of the standard library": lambda: [array.array("f", row) for row in GRID],
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_vector_is_right_in_every_layout(vectors_db: holotype.Database, layout: str) -> None:
    given = LAYOUTS[layout]()
    texts = ["a", "b", "c"]
    with vectors_db.begin() as tx:
        tx.record_columns(texts, episode="e", key=["c0", "c1", "c2"], vectors=given)
        tx.record_many([{"text": text, "episode": "e", "key": f"m{n}"} for n, text in enumerate(texts)], given)
        for n in range(3):
            row = np.asarray(given)[n] if layout == "matrix" else given[n]
            tx.record("one", episode="e", key=f"o{n}", vector=row)
    for n, row in enumerate(GRID):
        for key in (f"c{n}", f"m{n}", f"o{n}"):
            assert vectors_db.vector(key).tolist() == row.tolist(), (layout, key)
        nearest = vectors_db.recall(vector=np.asarray(given)[n] if layout == "matrix" else given[n], limit=1)
        assert nearest[0].text in (texts[n], "one")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_embedder_may_answer_in_every_layout(path: Path, layout: str) -> None:
    given = LAYOUTS[layout]()
    if layout == "matrix":
        given = np.asfortranarray(given)
    with holotype.create(path, space=holotype.Space("m", 4), embedder=lambda texts: given[: len(texts)]) as db:
        with db.begin() as tx:
            tx.record_columns(["a", "b", "c"], episode="e", key=["c0", "c1", "c2"])
            tx.record("a", episode="e", key="o0")
        for n, row in enumerate(GRID):
            assert db.vector(f"c{n}").tolist() == row.tolist()
        assert db.vector("o0").tolist() == GRID[0].tolist()


@pytest.mark.parametrize(
    "wrong",
    [
        np.ma.masked_array(GRID, mask=np.eye(3, 4, dtype=bool)),
        GRID.astype(complex),
        np.array([["1", "2", "3", "4"]] * 3),
        np.array([["1", "2", "3", "4"]] * 3, dtype=object),
        GRID.astype("datetime64[s]"),
        np.zeros(3, dtype=[("a", "f4"), ("b", "f4")]),
        GRID.ravel(),
        GRID.reshape(3, 2, 2),
        GRID[:2],
        GRID[:, :3],
        "abc",
        b"abcd",
        {"a": [1.0, 2.0, 3.0, 4.0]},
        [b"abcd"] * 3,
        [bytearray(b"abcd")] * 3,
        [memoryview(b"abcd")] * 3,
        [range(10**15)] * 3,
        ([1.0, 2.0, 3.0, 4.0] for _ in count()),
        7,
    ],
    ids=repr,
)
def test_what_is_no_matrix_is_refused_and_nothing_is_kept(vectors_db: holotype.Database, wrong: Any) -> None:
    with pytest.raises(holotype.InputError):
        with vectors_db.begin() as tx:
            tx.record_columns(["a", "b", "c"], episode="e", vectors=wrong)
    assert len(vectors_db) == 0


# ---- lists and texts ----

LISTS: dict[str, Callable[[holotype.Database, holotype.Transaction, Any], Any]] = {
    "forget": lambda db, tx, given: tx.forget(given, because="asked"),
    "transaction.get_many": lambda db, tx, given: tx.get_many(given),
    "database.get_many": lambda db, tx, given: db.get_many(given),
    "snapshot.get_many": lambda db, tx, given: db.snapshot().get_many(given),
    "snapshot.vectors": lambda db, tx, given: db.snapshot().vectors(given),
    "sources": lambda db, tx, given: tx.remember("x", sources=given),
    "children": lambda db, tx, given: tx.remember("x", kind="theme", children=given),
    "update": lambda db, tx, given: tx.update("r1", "x", sources=given),
    "record_many": lambda db, tx, given: tx.record_many(given),
    "text": lambda db, tx, given: tx.record_columns(given, episode="e"),
    "returns": lambda db, tx, given: db.recall("UA123", returns=given),
}


@pytest.mark.parametrize("call", LISTS)
@pytest.mark.parametrize("given", ["t1", b"t1", bytearray(b"t1"), 1, holotype.Pointer("t1")], ids=repr)
def test_one_value_is_no_list_of_its_parts(
    story: holotype.Database, tx: holotype.Transaction, call: str, given: Any
) -> None:
    with pytest.raises(errors.WrongType, match=r"expected a list of .*; give \["):
        LISTS[call](story, tx, given)
    assert story["t1"].active and len(story) == 2


@pytest.mark.parametrize("name", ["key", "speaker", "tool", "version", "episode", "log_id", "status"])
@pytest.mark.parametrize("given", [{"a", "b"}, frozenset("ab"), b"ab", {"a": 1, "b": 2}, count()], ids=repr)
def test_a_column_is_a_list_or_one_value(tx: holotype.Transaction, name: str, given: Any) -> None:
    with pytest.raises(holotype.InputError, match=name):
        tx.record_columns(["one", "two"], **{"episode": "e", name: given})


def test_the_row_of_a_wrong_value_is_named(tx: holotype.Transaction) -> None:
    with pytest.raises(errors.WrongType, match=r"text\[1\]: expected a str, found int"):
        tx.record_columns(["one", 2], episode="e")  # type: ignore[list-item]
    with pytest.raises(errors.WrongType, match=r"step\[1\]: expected a whole number from 0, found str"):
        tx.record_columns(["one", "two"], episode="e", step=[1, "2"])  # type: ignore[list-item]
    with pytest.raises(errors.WrongType, match=r"traces\[1\]"):
        tx.record_many([{"text": "x", "episode": "e"}, ["text"]])  # type: ignore[list-item]


def test_no_episode_is_not_every_episode(story: holotype.Database) -> None:
    with pytest.raises(holotype.InputError, match="episode"):
        story.recall("UA123", episode=[])


SURROGATES: dict[str, Callable[[holotype.Database, holotype.Transaction], Any]] = {
    "record": lambda db, tx: tx.record(HALF, episode="e"),
    "episode": lambda db, tx: tx.record("x", episode=HALF),
    "key": lambda db, tx: tx.record("x", episode="e", key=HALF),
    "speaker": lambda db, tx: tx.record("x", episode="e", speaker=HALF),
    "field": lambda db, tx: tx.record("x", episode="e", fields={"f": HALF}),
    "name of a field": lambda db, tx: tx.record("x", episode="e", fields={HALF: "f"}),
    "claim": lambda db, tx: tx.record("x", episode="e", claims={"c": HALF}),
    "columns": lambda db, tx: tx.record_columns(["fine", HALF], episode="e"),
    "a column": lambda db, tx: tx.record_columns(["fine", "fine"], episode=["e", HALF]),
    "record_many": lambda db, tx: tx.record_many([{"text": HALF, "episode": "e"}]),
    "remember": lambda db, tx: tx.remember(HALF, sources=["t1"]),
    "quote": lambda db, tx: tx.remember("x", sources=[holotype.Pointer("t1", quote=HALF)]),
    "source": lambda db, tx: tx.remember("x", sources=[HALF]),
    "update": lambda db, tx: tx.update(HALF, "x"),
    "because": lambda db, tx: tx.retract("t1", because=HALF),
    "forget": lambda db, tx: tx.forget([HALF], because="x"),
    "set": lambda db, tx: tx.set("profile", HALF),
    "episode call": lambda db, tx: tx.episode("e", task=HALF),
    "statement": lambda db, tx: db.query(f"find traces where text = '{HALF}'"),
    "parameter": lambda db, tx: db.query("find traces where text = $t", {"t": HALF}),
    "parameter in a list": lambda db, tx: db.query("find traces where text in $t", {"t": ["x", HALF]}),
    "name of a parameter": lambda db, tx: db.query("find traces", {HALF: 1}),
    "recall": lambda db, tx: db.recall(HALF),
    "recall in": lambda db, tx: db.recall("x", episode=HALF),
    "get": lambda db, tx: db.get(HALF),
    "keys": lambda db, tx: db.snapshot().keys(HALF),
    "time": lambda db, tx: tx.record("x", episode="e", time=HALF),
    "space": lambda db, tx: holotype.create(db.path + "-other", space=holotype.Space(HALF, 4)),
    "proof": lambda db, tx: holotype.check_proof(HALF, "key"),
}


@pytest.mark.parametrize("call", SURROGATES)
def test_half_a_surrogate_pair_is_refused_with_its_place(
    story: holotype.Database, tx: holotype.Transaction, call: str
) -> None:
    with pytest.raises(holotype.InputError) as refused:
        SURROGATES[call](story, tx)
    assert refused.value.code == "surrogate" and "U+D83D" in str(refused.value)
    assert "surrogatepass" in (refused.value.hint or "")


# ---- parameters ----


def cycle() -> Any:
    members: list[Any] = []
    members.append(members)
    return members


def deep(sort: str) -> Any:
    value: Any = "v"
    for _ in range(200_000):
        value = [value] if sort == "list" else (value,) if sort == "tuple" else {"vector": value}
    return value


def many() -> Any:
    value: Any = ["v"] * 1000
    for _ in range(8):
        value = [value] * 1000
    return value


DEEP: dict[str, Callable[[], Any]] = {
    "cycle": cycle,
    "cycle in a tuple": lambda: (cycle(),),
    "dict of a cycle": lambda: {"vector": cycle()},
    "deep list": lambda: deep("list"),
    "deep tuple": lambda: deep("tuple"),
    "deep dict": lambda: deep("dict"),
    "array of a cycle": lambda: np.array([cycle(), None], dtype=object),
    "many times the same": many,
}


@pytest.mark.parametrize("value", DEEP)
def test_a_value_without_an_end_is_an_error(story: holotype.Database, tx: holotype.Transaction, value: str) -> None:
    given = DEEP[value]()
    calls: list[Callable[[], Any]] = [
        lambda: story.query("find items where key in $p", {"p": given}),
        lambda: story.recall(vector=given),
        lambda: tx.record("x", episode="e", vector=given),
        lambda: tx.record("x", episode="e", fields={"f": given}),
        lambda: tx.record("x", episode="e", time=given),
        lambda: tx.record_many([{"text": given, "episode": "e"}]),
        lambda: tx.record_columns(["x"], episode="e", vectors=given),
        lambda: tx.record_columns(["x"], episode=given),
        lambda: tx.forget([given], because="x"),
        lambda: holotype.create(story.path + "-other", memory_limit=given),
    ]
    for call in calls:
        with pytest.raises(holotype.InputError):
            call()


def test_an_embedder_without_an_end_is_an_error(path: Path) -> None:
    for made in (cycle(), [cycle()], "ab", {"a": 1}, 7, None, ([1.0] for _ in count())):
        with holotype.create(f"{path}{id(made)}", space=holotype.Space("m", 4), embedder=lambda texts: made) as db:
            with db.begin() as tx, pytest.raises(holotype.InputError):
                tx.record("x", episode="e")
            with pytest.raises(holotype.InputError):
                db.recall("x")


@pytest.mark.parametrize(
    "value",
    [
        "UA123 price=$450", np.str_("UA123 price=$450"), ("UA123 price=$450",), {"UA123 price=$450"},
        np.array(["UA123 price=$450"]),
    ],
    ids=repr,
)  # fmt: skip
def test_texts_as_parameters(story: holotype.Database, value: Any) -> None:
    sign = "=" if isinstance(value, str) else "in"
    assert len(story.query(f"find traces where text {sign} $v", {"v": value})) == 1


@pytest.mark.parametrize(
    "value", [1, True, np.int64(1), np.float32(1), np.bool_(True), Decimal(1), np.array(1)], ids=repr
)
def test_numbers_as_parameters(db: holotype.Database, value: Any) -> None:
    with db.begin() as tx:
        tx.record("x", episode="e", fields={"n": "1"}, key="n")
    if isinstance(value, (bool, np.bool_)):
        assert len(db.query("find items where active = $v", {"v": value})) == 3
    else:
        assert len(db.query("find items where fields.n = $v", {"v": value})) == 1


# ---- times ----

SECOND = 1_767_605_400
INSTANT = datetime.fromtimestamp(SECOND, timezone.utc)


@pytest.mark.parametrize(
    "given",
    [SECOND, SECOND * 10**3, SECOND * 10**9, float(SECOND), SECOND * 1e3, np.int64(SECOND), np.float64(SECOND)],
    ids=repr,
)
def test_a_number_is_a_time_by_its_magnitude_with_a_warning(db: holotype.Database, given: Any) -> None:
    with db.begin() as tx:
        with pytest.warns(errors.TimeUnitWarning, match="seconds"):
            tx.record("x", episode="e", key="one", time=given)
        with pytest.warns(errors.TimeUnitWarning) as told:
            tx.record_columns(["x"] * 3, episode="e", key=["a", "b", "c"], time=[given] * 3)
        assert len(told) == 1
    assert {db[key].time for key in ("one", "a", "b", "c")} == {INSTANT}
    with pytest.warns(errors.TimeUnitWarning):
        assert db.recall("x", time=given).at["time"] == INSTANT
    with pytest.warns(errors.TimeUnitWarning):
        assert db.as_of(time=given).commit == 0


@pytest.mark.parametrize(
    "given",
    [SECOND * 10**6, INSTANT, INSTANT.isoformat(), np.datetime64(SECOND, "s"), np.datetime64(SECOND * 10**9, "ns")],
)
def test_a_time_without_doubt_gives_no_warning(
    db: holotype.Database, given: Any, recwarn: pytest.WarningsRecorder
) -> None:
    with db.begin() as tx:
        tx.record("x", episode="e", key="one", time=given)
    assert db["one"].time == INSTANT and not recwarn.list
    with db.begin() as tx:
        tx.record("x", episode="e", key="day", time=date(2026, 1, 5))
    assert db["day"].time == datetime(2026, 1, 5, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    "given",
    [True, float("nan"), float("inf"), 1e30, np.datetime64("NaT"), datetime(2026, 1, 5), "yesterday", [1]],
    ids=repr,
)
def test_what_is_no_time(tx: holotype.Transaction, given: Any) -> None:
    with pytest.raises(holotype.InputError):
        tx.record("x", episode="e", time=given)


# ---- answers as values ----


def test_an_answer_is_a_sequence(db: holotype.Database) -> None:
    answer = db.recall("UA123", episode="trip-42")
    assert isinstance(answer, Sequence) and len(answer) == 2
    assert answer[:1] == (answer[0],) and answer[::-1] == tuple(reversed(answer))
    assert answer[np.int64(1)] in answer and answer.index(answer[1]) == 1 and answer.count(answer[0]) == 1
    assert db["t1"] not in answer
    table = db.query("find items return key order by key")
    assert table[:1] == [("r1",)] and ("t1",) in table and table.index(("t1",)) == 1
    assert list(reversed(table)) == [("t1",), ("r1",)] and table.count(("none",)) == 0
    for wrong in ("0", None, 9):
        with pytest.raises((TypeError, IndexError)):
            answer[wrong]  # type: ignore[index]


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_answers_can_be_copied_and_pickled(db: holotype.Database, copied: Callable[[Any], Any]) -> None:
    recalled = db.recall("What does UA123 cost?", episode="trip-42", expand=200, receipt=True)
    escalated = db.query("recall 'What does UA123 cost?' escalate always to pages 1 up to 1 rounds budget 400 tokens")
    values = [recalled, escalated, db.query("find items return *"), db.query("show episodes"), db["t1"], db["r1"]]
    values += [recalled[0], recalled[-1], recalled[0].citations[0], db.citations("r1")[0], db.snapshot().space]
    for value in values:
        twin = copied(value)
        assert type(twin) is type(value) and twin == value and repr(twin) == repr(value)
        assert hash(twin) == hash(value)
        if hasattr(value, "to_json"):
            assert json.loads(twin.to_json()) == json.loads(value.to_json())
        if isinstance(value, holotype.Answer):
            assert twin.to_dicts() == value.to_dicts() and twin.escalation == value.escalation
    assert not recalled == escalated and db["t1"] != db["r1"]


def test_an_answer_is_written_as_json(db: holotype.Database) -> None:
    with db.begin() as tx:
        tx.record("x", episode="e", key="raw", fields={"raw": b"\xff\x00"})
    answer = db.recall("What does UA123 cost?", episode="trip-42")
    values = [answer, answer[0], answer[0].citations[0], db["raw"], db.query("find items return key, time, age")]
    for value in values:
        assert json.loads(json.dumps(value, default=holotype.jsonable))
    with pytest.raises(TypeError):
        json.dumps(object(), default=holotype.jsonable)


# ---- the process ----


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_process_closes_and_drops_without_harm(path: Path) -> None:
    db = holotype.create(path, space="hashing-v1-64")
    with db.begin() as tx:
        tx.record("before", episode="e", key="before")
    snapshot, changes, tx = db.snapshot(), db.changes(), db.begin()
    tx.record("under way", episode="e", key="way")
    child = os.fork()
    if child == 0:
        told = []
        calls: list[Callable[[], Any]] = [
            db.close, db.begin, lambda: tx.record("x", episode="e"), tx.commit, lambda: snapshot.get("before"),
            lambda: next(changes), lambda: db.recall("before"), db.close,
        ]  # fmt: skip
        for call in calls:
            try:
                call()
                told.append("nothing")
            except holotype.Error as error:
                told.append(error.code)
        tx.rollback()
        is_shut = db.closed and not tx.is_open and "closed" in repr(db)
        del snapshot, changes, tx, db, calls
        os._exit(0 if told == ["forked"] * len(told) and is_shut else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    tx.commit()
    assert db["way"].text == "under way" and snapshot.get("before") is not None and db.verify()
    db.close()


def test_a_relative_path_stays_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with holotype.create("relative.holo", space="hashing-v1-64", witness="head") as db:
        monkeypatch.chdir("/")
        with db.begin() as tx:
            tx.record("after", episode="e")
        db.checkpoint()
        assert db.recall("after") and db.verify() and Path(db.path) == tmp_path / "relative.holo"
    with holotype.open(tmp_path / "relative.holo", witness=tmp_path / "head") as again:
        assert len(again) == 1


def test_a_database_that_this_process_has_open(path: Path, tmp_path: Path) -> None:
    db = holotype.open_or_create(path, space="hashing-v1-64")
    link = tmp_path / "link.holo"
    link.symlink_to(path)
    for call in (holotype.open, holotype.rebuild):
        for place in (path, link):
            with pytest.raises(errors.Locked, match="this process has the database open") as locked:
                call(place)
            assert "close()" in (locked.value.hint or "")
    # A cell of a notebook that runs twice.
    again = holotype.open_or_create(path, space="hashing-v1-64")
    with again.begin() as tx:
        tx.record("one", episode="e", key="one")
    assert db["one"].text == "one"
    db.close()
    assert again["one"].text == "one" and not again.closed
    with pytest.raises(errors.Locked):
        holotype.open_or_create(path, memory_limit=1 << 28)
    again.close()
    with holotype.open(path) as alone:
        assert len(alone) == 1


WITHOUT_THREADS = """
    import resource, sys
    import holotype
    db = holotype.create(sys.argv[1])
    size = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmSize")) * 1024
    resource.setrlimit(resource.RLIMIT_AS, (size + (1 << 20), resource.RLIM_INFINITY))
    try:
        db.begin()
        print("begun")
    except holotype.Error as error:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        print(type(error).__name__, error.code, "/:" in str(error))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads its size from /proc")
def test_a_thread_that_cannot_start_is_told_as_that(path: Path) -> None:
    command = [sys.executable, "-c", textwrap.dedent(WITHOUT_THREADS), str(path)]
    done = subprocess.run(command, text=True, capture_output=True)
    assert done.stdout.split() == ["LimitError", "threads", "False"], done.stdout + done.stderr


MESSAGES = ("engine/src/error.rs", "storage/src/error.rs", "storage/src/features.rs", "index/src/error.rs")


@pytest.mark.parametrize("source", MESSAGES)
def test_remedies_are_those_of_this_package(source: str) -> None:
    text = Path(__file__).parents[2].joinpath(source).read_text().partition("mod tests")[0]
    lines = [line for line in text.splitlines() if not line.strip().startswith("//")]
    # A string that goes on in the next line is one string.
    messages = errors._in_python(re.sub(r"\\\s+", "", "\n".join(lines)))
    assert re.findall(r".*(?:`--\w|`holotype \w|`Holotype::|with holotype \w).*", messages) == []
