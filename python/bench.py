"""Figures of the Python package, as JSON Lines: ``python python/bench.py [--items N]``.

| figure | what is measured |
|---|---|
| ``import`` | ``import holotype`` in a new interpreter, beside an empty one; the best of five |
| ``recall`` | a recall through Python, beside the time that the engine itself reports for it |
| ``load`` | ``record_many`` with a numpy array of vectors, in transactions of 1,000 |
| ``threads`` | recalls of two threads together, over those of one |
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

# The folder of this file comes first, and holds the sources of the package, without its native module.
sys.path.pop(0)

import holotype  # noqa: E402
import numpy as np  # noqa: E402

DIM = 128


def show(bench: str, **figures: Any) -> None:
    print(json.dumps({"bench": bench, **figures}), flush=True)


def import_time() -> None:
    def best(program: str) -> float:
        def once() -> float:
            started = time.perf_counter()
            subprocess.run([sys.executable, "-c", program], check=True)
            return time.perf_counter() - started

        return min(once() for _ in range(5))

    show("import", ms=round((best("import holotype") - best("pass")) * 1000, 1))


def load(db: holotype.Database, count: int) -> np.ndarray:
    vectors = np.random.default_rng(7).standard_normal((count, DIM), dtype=np.float32)
    started = time.perf_counter()
    for first in range(0, count, 1_000):
        traces = [
            {"text": f"turn {n}: the price of flight {n % 997} is {n * 7 % 1009} euros", "episode": f"e{n // 1_000}"}
            for n in range(first, min(first + 1_000, count))
        ]
        with db.begin(durability="none") as tx:
            tx.record_many(traces, vectors[first : first + 1_000])
    db.checkpoint()
    seconds = time.perf_counter() - started
    show("load", items=count, items_per_s=round(count / seconds), seconds=round(seconds, 2))
    return vectors


def recall(db: holotype.Database, vectors: np.ndarray) -> None:
    overheads, totals = [], []
    for n in range(500):
        started = time.perf_counter()
        answer = db.recall(f"price of flight {n}", vector=vectors[n], episode=f"e{n % (len(vectors) // 1_000)}", limit=5)
        keys = [row.key for row in answer]
        total = (time.perf_counter() - started) * 1e6
        assert len(keys) <= 5
        totals.append(total)
        overheads.append(total - answer.micros)
    show("recall", p50_us=round(statistics.median(totals)), over_engine_p50_us=round(statistics.median(overheads), 1))


def threads(db: holotype.Database, vectors: np.ndarray) -> None:
    def work(first: int, count: int) -> None:
        for n in range(first, first + count):
            db.recall(f"price of flight {n % 997}", vector=vectors[n % len(vectors)], limit=5)

    def seconds(workers: int) -> float:
        running = [threading.Thread(target=work, args=(worker * 300, 300)) for worker in range(workers)]
        started = time.perf_counter()
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
        return time.perf_counter() - started

    one, two = min(seconds(1) for _ in range(3)), min(seconds(2) for _ in range(3))
    show("threads", one_per_s=round(300 / one), two_per_s=round(600 / two), scale=round(2 * one / two, 2))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=100_000)
    items = parser.parse_args().items
    import_time()
    with tempfile.TemporaryDirectory() as folder:
        with holotype.create(Path(folder) / "bench.holo", space=holotype.Space("bench", DIM)) as db:
            vectors = load(db, items)
            recall(db, vectors)
            threads(db, vectors)


if __name__ == "__main__":
    main()
