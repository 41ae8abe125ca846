"""The story that tests and the examples in docstrings begin with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import holotype
import pytest


def tell(db: holotype.Database) -> None:
    """One call and one fact that rests on it."""
    with db.begin() as tx:
        tx.record(
            "UA123 price=$450", episode="trip-42", kind="call", tool="search_flights", status="success", key="t1"
        )
        tx.remember("UA123 costs $450", sources=[holotype.Pointer("t1", quote="price=$450")], key="r1")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.holo"


@pytest.fixture
def db(path: Path) -> Iterator[holotype.Database]:
    with holotype.create(path, space="hashing-v1-256") as database:
        tell(database)
        yield database
