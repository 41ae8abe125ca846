"""Every public call with values of every sort: it does its work or raises an exception of the package.

An interpreter that ends, a panic, or another exception is a failure. What is written can be read again as it was given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timezone
from typing import Any

import holotype
import pytest
from holotype import _codec, _filters

hypothesis = pytest.importorskip("hypothesis")
np = pytest.importorskip("numpy")

from hypothesis import HealthCheck, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from hypothesis.extra import numpy as hnp  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")

fuzz = settings(
    max_examples=25, deadline=None, derandomize=True, database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)  # fmt: skip

# A wrong call: of the package, or what Python raises for a wrong argument before the package sees it.
REFUSED = (holotype.Error, TypeError, OverflowError, KeyError)

texts = st.text(st.characters(codec=None), max_size=8)
scalars = (
    st.none() | st.booleans() | st.integers() | st.floats() | texts | st.binary(max_size=8) | st.decimals()
    | st.datetimes(timezones=st.none() | st.just(timezone.utc)) | st.dates() | st.times() | st.timedeltas() | st.uuids()
    | st.complex_numbers() | st.builds(object) | st.sampled_from([Ellipsis, int, holotype, np.float32(1), np.int8(1)])
)  # fmt: skip
arrays = hnp.arrays(
    dtype=hnp.scalar_dtypes() | hnp.unicode_string_dtypes(max_len=3) | st.just(np.dtype(object)),
    shape=hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
    fill=st.nothing(),
)
anything = st.recursive(
    scalars | arrays,
    lambda part: st.lists(part, max_size=4) | st.dictionaries(texts | st.integers(), part, max_size=3)
    | st.tuples(part) | st.frozensets(texts, max_size=3) | st.builds(iter, st.lists(part, max_size=2)),
    max_leaves=8,
)  # fmt: skip


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[holotype.Database]:
    path = tmp_path_factory.mktemp("fuzz") / "memory.holo"
    with holotype.create(path, space=holotype.Space("m", 4)) as db:
        with db.begin() as tx:
            tx.record("a text", episode="e", key="t1", vector=[1.0, 2.0, 3.0, 4.0])
            tx.remember("a fact", sources=["t1"], key="r1")
        yield db


READS: dict[str, Callable[[holotype.Database, Any], Any]] = {
    "query": lambda db, value: db.query(value),
    "script": lambda db, value: db.script(value),
    "params": lambda db, value: db.query("find traces", value),
    "a parameter": lambda db, value: db.query("find items where key = $v or fields.x = $v", {"v": value}),
    "a list": lambda db, value: db.query("find items where key in $v", {"v": value}),
    "a vector": lambda db, value: db.query("recall near $v", {"v": value}),
    "recall": lambda db, value: db.recall(value),
    "vector": lambda db, value: db.recall("x", vector=value),
    **{
        name: lambda db, value, name=name: db.recall("x", **{name: value})  # type: ignore[misc]
        for name in ("episode", "through", "where", "include", "exclude", "profile", "score", "relax_below", "expand",
                     "step", "time", "version", "as_of", "budget", "abstain_below", "limit", "returns", "timeout")
    },
    "get": lambda db, value: db.get(value),
    "get_many": lambda db, value: db.get_many(value),
    "contains": lambda db, value: value in db,
    "getitem": lambda db, value: db[value],
    "citations": lambda db, value: db.citations(value),
    "why": lambda db, value: db.why(value),
    "diff": lambda db, value: db.diff(value),
    "item's vector": lambda db, value: db.vector(value),
    "vectors": lambda db, value: db.snapshot().vectors(value),
    "linked": lambda db, value: db.snapshot().linked("r1", value),
    "keys": lambda db, value: db.snapshot().keys(value),
    "episodes": lambda db, value: db.snapshot().episodes(value, most=value),
    "commit": lambda db, value: db.as_of(value),
    "as_of time": lambda db, value: db.as_of(time=value),
    "changes": lambda db, value: list(db.changes(value)),
    "replay": lambda db, value: db.replay(value),
    "row": lambda db, value: db.recall("text")[value],
    "table row": lambda db, value: db.query("find items")[value],
    "space": lambda db, value: holotype.Space.of(value),
    "check_proof": lambda db, value: holotype.check_proof(value, value),
    "signing key": lambda db, value: holotype.SigningKey(value),
    "generate": lambda db, value: holotype.SigningKey.generate(value),
    "hashing": lambda db, value: holotype.HashingEmbedder(16)(value),
    "verify": lambda db, value: db.verify(bytes_per_second=value),
}  # fmt: skip


@pytest.mark.parametrize("call", READS)
@fuzz
@given(value=anything)
def test_a_reading_call_answers_or_refuses(opened: holotype.Database, call: str, value: Any) -> None:
    try:
        READS[call](opened, value)
    except (*REFUSED, IndexError):
        pass
    assert opened["t1"].text == "a text"


RECORD = ("text", "episode", "kind", "key", "step", "time", "version", "status", "source", "speaker", "tool", "log_id",
          "fields", "vector", "claims")  # fmt: skip
WRITES: dict[str, Callable[[holotype.Transaction, Any], Any]] = {
    **{
        f"record {name}": lambda tx, value, name=name: tx.record(  # type: ignore[misc]
            **{"text": "x", "episode": "e", name: value}
        )
        for name in RECORD
    },
    **{
        f"column {name}": lambda tx, value, name=name: tx.record_columns(  # type: ignore[misc]
            **{"text": ["x", "y"], "episode": "e", name: value}
        )
        for name in (*RECORD[:-2], "vectors")
    },
    **{
        f"remember {name}": lambda tx, value, name=name: tx.remember(  # type: ignore[misc]
            **{"text": "x", "sources": ["t1"], name: value}
        )
        for name in ("text", "sources", "kind", "key", "children", "ungrounded", "episode", "step", "time", "version",
                     "status", "source", "utility", "return_score", "vector", "claims")
    },
    "record_many": lambda tx, value: tx.record_many(value),
    "a trace": lambda tx, value: tx.record_many([value]),
    "vectors": lambda tx, value: tx.record_many([{"text": "x", "episode": "e"}], value),
    "update": lambda tx, value: tx.update(value, "x"),
    "update sources": lambda tx, value: tx.update("r1", "x", sources=value),
    "mark": lambda tx, value: tx.mark(value, value),
    "mark_utility": lambda tx, value: tx.mark_utility("r1", value, reports=value),
    "mark_credit": lambda tx, value: tx.mark_credit("r1", value, rollouts=value),
    "retract": lambda tx, value: tx.retract(value, because=value),
    "link": lambda tx, value: tx.link("r1", value, value),
    "unlink": lambda tx, value: tx.unlink(value, "cites", "t1"),
    "cite": lambda tx, value: tx.cite("r1", value),
    "quote": lambda tx, value: tx.cite("r1", holotype.Pointer("t1", quote=value)),
    "bytes": lambda tx, value: tx.cite("r1", holotype.Pointer("t1", bytes=value)),
    "page": lambda tx, value: tx.cite("r1", holotype.Pointer(page=value)),
    "hash": lambda tx, value: tx.cite("r1", holotype.Pointer("t1", field=value, hash=value)),
    "claim": lambda tx, value: tx.claim("t1", value, value),
    "forget": lambda tx, value: tx.forget(value, because="x"),
    "because": lambda tx, value: tx.forget(["t1"], because=value),
    "episode": lambda tx, value: tx.episode(value, task=value),
    "open": lambda tx, value: tx.episode("e", open=value),
    "set": lambda tx, value: tx.set(value, value),
    "setting": lambda tx, value: tx.set("profile", value),
    "get": lambda tx, value: tx.get(value),
    "keys": lambda tx, value: tx.keys(value, most=value),
    "query": lambda tx, value: tx.query("record turn $t in episode $t", {"t": value}),
    "commit": lambda tx, value: tx.commit(value),
}  # fmt: skip


@pytest.mark.parametrize("call", WRITES)
@fuzz
@given(value=anything)
def test_a_writing_call_works_or_refuses(opened: holotype.Database, call: str, value: Any) -> None:
    tx = opened.begin(durability="none")
    try:
        WRITES[call](tx, value)
    except REFUSED:
        pass
    finally:
        tx.rollback()
    assert call == "commit" or opened.head().commit >= 1 and opened["t1"].active


OPTIONS = (
    "space", "profile", "embedder", "witness", "page_size", "read_only", "memory_limit", "write_timeout",
    "snapshot_max_age", "background_threads", "other",
)  # fmt: skip


@pytest.mark.parametrize("option", OPTIONS)
@settings(fuzz, max_examples=15)
@given(value=anything)
def test_an_option_is_taken_or_refused(opened: holotype.Database, option: str, value: Any) -> None:
    # The database is open, so that nothing is ever created.
    with pytest.raises((*REFUSED, OSError, ValueError)):
        holotype.create(opened.path, **{option: value})


floats = st.floats(-1e3, 1e3, width=16).filter(lambda number: abs(number) > 1e-2)


@settings(fuzz, max_examples=100)
@given(st.data())
def test_a_matrix_is_stored_as_it_is_in_every_layout(opened: holotype.Database, data: st.DataObject) -> None:
    rows = data.draw(st.integers(1, 4))
    plain = np.array(data.draw(st.lists(st.lists(floats, min_size=4, max_size=4), min_size=rows, max_size=rows)))
    dtype = np.dtype(data.draw(st.sampled_from(["f2", "f4", "f8", "O"])))
    if dtype != object:
        dtype = dtype.newbyteorder(data.draw(st.sampled_from("<>")))
    steps = data.draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    shape = (rows * steps[0], 4 * steps[1])
    grid = np.zeros(shape, dtype=dtype, order=data.draw(st.sampled_from("CF")))
    signs = data.draw(st.tuples(*[st.sampled_from([1, -1])] * 2))
    view = grid[:: steps[0], :: steps[1]][:: signs[0], :: signs[1]]
    view[...] = plain
    own = type("Own", (np.ndarray,), {})
    given = data.draw(st.sampled_from([view, np.ma.masked_array(view), list(view), view.view(own)]))
    # Those of the draws before stay.
    keys = [f"m{opened.head().commit}-{row}" for row in range(rows)]
    with opened.begin(durability="none") as tx:
        tx.record_columns(["x"] * rows, episode="e", key=keys, vectors=given)
        answers = tx.recall(vector=view[0], through=f"traces {rows + 1} by near", limit=rows + 1, score="similarity 1")
    for key, row in zip(keys, plain):
        assert opened.vector(key).tolist() == row.astype(np.float32).tolist()
    assert len(answers) == rows + 1


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters(codec=None))
    | st.binary() | st.decimals(allow_nan=False) | st.datetimes(timezones=st.none() | st.just(timezone.utc))
    | st.dates() | st.times() | st.timedeltas() | st.uuids(),
    lambda part: st.lists(part) | st.dictionaries(texts, part) | st.dictionaries(st.integers(), part)
    | st.tuples(part, part) | st.sets(st.integers()) | st.frozensets(texts),
    max_leaves=12,
)  # fmt: skip


@settings(fuzz, max_examples=300)
@given(values)
def test_values_of_adapters_come_back(value: Any) -> None:
    text = _codec.dumps(value)
    text.encode()
    assert _codec.loads(text) == value


@settings(fuzz, max_examples=300)
@given(anything, anything, st.sampled_from([*_filters._OPERATORS, "$and", "$or", "x"]))
def test_a_filter_passes_or_not_and_never_raises(value: Any, other: Any, sign: str) -> None:
    wanted = {"x": {sign: other}} if sign not in ("$and", "$or") else {sign: other}
    try:
        _filters.refuse_unknown(wanted)
    except (TypeError, ValueError):
        return
    assert _filters.passes({"x": value}, wanted) in (True, False)
