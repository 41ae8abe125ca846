"""Every example in a docstring runs, and gives what it says."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from pathlib import Path

import holotype
import pytest

MODULES = sorted(module.name for module in pkgutil.iter_modules(holotype.__path__, "holotype."))


def examples() -> list[doctest.DocTest]:
    found = []
    for name in ["holotype", *MODULES]:
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError as error:
            # An adapter whose extra is not installed.
            assert not (error.name or "").startswith("holotype"), error
            continue
        found += [test for test in doctest.DocTestFinder(exclude_empty=True).find(module) if test.examples]
    return found


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.name)
def test_the_example_gives_what_it_says(example: doctest.DocTest, db: holotype.Database, tmp_path: Path) -> None:
    example.globs |= {"db": db, "path": tmp_path / "own.holo"}
    result = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(example)
    assert result.attempted > 0 and result.failed == 0


def test_there_are_examples() -> None:
    assert len(examples()) >= 15
