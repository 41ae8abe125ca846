"""Every example in a docstring runs, and gives what it says. So do the programs in ``examples``."""

from __future__ import annotations

import doctest
import importlib
import os
import pkgutil
import subprocess
import sys
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
    example.globs |= {"holotype": holotype, "db": db, "path": tmp_path / "own.holo"}
    result = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(example)
    assert result.attempted > 0 and result.failed == 0


def test_there_are_examples() -> None:
    assert len(examples()) >= 15


PROGRAMS = sorted(Path(__file__).parent.parent.joinpath("examples").glob("*.py"))
NEEDS = {
    "haystack_pipeline": "haystack",
    "langchain_chain": "langchain_core",
    "langgraph_agent": "langgraph",
    "openai_agents": "agents",
}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem)
def test_the_program_runs_without_a_network(program: Path, tmp_path: Path) -> None:
    if program.stem in NEEDS:
        pytest.importorskip(NEEDS[program.stem])
    # A proxy that nobody listens at: what asks for something on the network fails.
    nowhere = {name: "http://127.0.0.1:9" for name in ("http_proxy", "https_proxy", "all_proxy", "HTTPS_PROXY")}
    environment = {**os.environ, **nowhere, "PYTHONWARNINGS": "default"}
    done = subprocess.run([sys.executable, program], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout, done.stderr


def test_each_adapter_has_a_program() -> None:
    assert {program.stem for program in PROGRAMS} == {"first", *NEEDS}
