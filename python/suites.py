"""Counts of the public suites that the adapters run: ``python python/suites.py``, after the commands of the README.

Each line is a suite with the version that was run, the tests that passed, and those that did not. The status is 1 if
any did not pass.
"""

from __future__ import annotations

import contextlib
import io
import sys
from collections import Counter
from importlib.metadata import version
from pathlib import Path

# The folder of this file comes first, and holds the sources of the package, without its native module.
sys.path.pop(0)

import pytest  # noqa: E402

# Suite, its distribution, and the tests that run it, by the beginning of their names.
SUITES = [
    ("checkpointer, 8 capabilities", "langgraph-checkpoint-conformance", "test_langgraph.py::test_the_conformance"),
    ("store beside InMemoryStore, 250 operations", "langgraph-checkpoint", "test_langgraph.py::test_the_store_does"),
    ("vector store", "langchain-tests", "test_langchain.py::TestVectorStore"),
    ("retriever", "langchain-tests", "test_langchain.py::TestRetriever"),
    ("indexer", "langchain-tests", "test_langchain.py::TestIndexer"),
    ("indexer, async", "langchain-tests", "test_langchain.py::TestAsyncIndexer"),
    ("key-value store", "langchain-tests", "test_langchain.py::TestByteStore"),
    ("key-value store, async", "langchain-tests", "test_langchain.py::TestAsyncByteStore"),
    ("cache", "langchain-tests", "test_langchain.py::TestCache"),
    ("cache, async", "langchain-tests", "test_langchain.py::TestAsyncCache"),
    ("record manager beside InMemoryRecordManager", "langchain-core", "test_langchain.py::test_the_record_manager"),
    ("document store, erasing", "haystack-ai", "test_haystack.py::TestStore[erase]"),
    ("document store, retracting", "haystack-ai", "test_haystack.py::TestStore[retract]"),
    ("document store, async, erasing", "haystack-ai", "test_haystack.py::TestAsyncStore[erase]"),
    ("document store, async, retracting", "haystack-ai", "test_haystack.py::TestAsyncStore[retract]"),
    ("store beside InMemoryDocumentStore", "haystack-ai", "test_haystack.py::test_it_does_what"),
    ("session beside SQLiteSession", "openai-agents", "test_agents.py::test_it_does_what"),
    ("attacks on session, of 9", "agent-memory-integrity", "test_agmi.py::test_every[openai-agents-session]"),
    ("attacks on checkpointer, of 9", "agent-memory-integrity", "test_agmi.py::test_every[langgraph-checkpointer]"),
]


class Outcomes:
    """Collects what became of each test."""

    def __init__(self) -> None:
        self.outcomes: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != "passed":
            self.outcomes[report.nodeid.rpartition("/")[2]] = report.outcome


def belongs(test: str, pattern: str) -> bool:
    """Whether a test belongs to a suite; in brackets is what its parameters contain."""
    start, _, parameter = pattern.partition("[")
    if "::Test" in start:
        start += "::"
    return test.startswith(start) and parameter.rstrip("]") in test.partition("[")[2]


def main() -> int:
    files = {pattern.partition("::")[0] for _, _, pattern in SUITES}
    tests = Path(__file__).resolve().parent / "tests"
    collected, output = Outcomes(), io.StringIO()
    with contextlib.redirect_stdout(output):
        pytest.main(["-q", "-p", "no:cacheprovider", *(str(tests / file) for file in sorted(files))], [collected])
    rows = [("suite", "distribution", "passed", "not passed")]
    for name, distribution, pattern in SUITES:
        counts = Counter(outcome for test, outcome in collected.outcomes.items() if belongs(test, pattern))
        passed = counts.pop("passed", 0)
        rows.append((name, f"{distribution} {version(distribution)}", str(passed), str(sum(counts.values()))))
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
    failed = [test for test, outcome in collected.outcomes.items() if outcome != "passed"]
    is_whole = not failed and all(row[2] != "0" for row in rows[1:])
    print(f"{len(collected.outcomes)} tests in all, {len(failed)} not passed")
    if not is_whole:
        print(output.getvalue())
    return 0 if is_whole else 1


if __name__ == "__main__":
    sys.exit(main())
