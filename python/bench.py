"""Figures of the Python package beside the Rust library: ``python python/bench.py [--items N] [--rust PROGRAM]``.

| figure | what is measured |
|---|---|
| ``wheel`` | the installed files, compressed as a wheel is |
| ``import`` | ``import holotype`` in a new interpreter, beside an empty one; the best of nine |
| ``load`` | ``record_columns`` with a numpy array of vectors, in transactions of 1,000; also ``record_many`` |
| ``recall`` | a recall through Python, with the keys of its rows |
| ``threads`` | recalls of two threads together, over those of one |
| ``interpreter`` | the pace of a thread that counts while another one recalls, over its pace alone |

| ``embed`` | short texts that a static model embeds in a second of one core (``holotype-bench embed``) |

``PROGRAM`` is ``holotype-bench`` (``cargo build --release -p holotype-bench``): it loads the same items and asks the same
questions in Rust, in turns with Python. Without it these figures are left out. A ratio is the median of the rounds.
"""

from __future__ import annotations

import argparse
import io
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

# The folder of this file comes first, and holds the sources of the package, without its native module.
sys.path.pop(0)

import holotype  # noqa: E402
import numpy as np  # noqa: E402

DIM = 128
BATCH = 1_000
RECALLS = 500
RUST = Path(__file__).resolve().parent.parent / "target" / "release" / "holotype-bench"

Figures = dict[str, Any]


def wheel() -> Figures:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in Path(holotype.__file__).parent.iterdir():
            if file.is_file():
                archive.write(file, file.name)
    return {"wheel_mb": round(len(packed.getvalue()) / 1e6, 2)}


def import_time() -> Figures:
    def best(program: str) -> float:
        def once() -> float:
            started = time.perf_counter()
            subprocess.run([sys.executable, "-c", program], check=True)
            return time.perf_counter() - started

        return min(once() for _ in range(9))

    return {"import_ms": round((best("import holotype") - best("pass")) * 1000, 1)}


def text_of(n: int) -> str:
    return f"turn {n}: we looked at flight {n % 997} for {n * 7 % 1009} minutes"


def load(db: holotype.Database, vectors: np.ndarray, *, columns: bool) -> tuple[float, float]:
    """Items a second, and the processor's seconds."""
    started, cpu = time.perf_counter(), time.process_time()
    for first in range(0, len(vectors), BATCH):
        rows, episode = vectors[first : first + BATCH], f"e{first // BATCH}"
        texts = [text_of(n) for n in range(first, first + len(rows))]
        with db.begin(durability="none") as tx:
            if columns:
                tx.record_columns(texts, episode=episode, vectors=rows)
            else:
                tx.record_many([{"text": text, "episode": episode} for text in texts], rows)
    db.checkpoint()
    return len(vectors) / (time.perf_counter() - started), time.process_time() - cpu


def recall(db: holotype.Database, vectors: np.ndarray) -> tuple[float, float, float]:
    """Microseconds of a recall: the median, the median of what was not the engine's part, and the processor's mean."""
    totals, around = [], []
    cpu = time.thread_time()
    episodes = max(len(vectors) // BATCH, 1)
    for n in range(min(RECALLS, len(vectors))):
        started = time.perf_counter()
        answer = db.recall(f"flight {n % 997}", vector=vectors[n], episode=f"e{n % episodes}", limit=5)
        keys = [row.key for row in answer]
        totals.append((time.perf_counter() - started) * 1e6)
        around.append(totals[-1] - answer.micros)
        assert keys, answer
    cpu = time.thread_time() - cpu
    return statistics.median(totals), statistics.median(around), cpu * 1e6 / len(totals)


def rust(program: Path, vectors: Path, database: Path) -> dict[str, Figures]:
    arguments = ["python", "--vectors", vectors, "--dim", str(DIM), "--recalls", str(RECALLS), "--database", database]
    done = subprocess.run([program, *arguments], check=True, capture_output=True, text=True)
    return {line["what"]: line for line in map(json.loads, done.stdout.splitlines())}


def beside_rust(program: Path | None, vectors: np.ndarray, rounds: int) -> Figures:
    rows: list[Figures] = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            found: Figures = {}
            for name, columns in (("load_per_s", True), ("load_dicts_per_s", False)):
                with holotype.create(Path(folder) / f"{name}.holo", space=holotype.Space("bench", DIM)) as db:
                    found[name], cpu = load(db, vectors, columns=columns)
                    if columns:
                        found["load_cpu_s"] = cpu
                        found["recall_us"], found["recall_around_us"], found["recall_cpu_us"] = recall(db, vectors)
            if program is not None:
                vectors.tofile(Path(folder) / "vectors.f32")
                theirs = rust(program, Path(folder) / "vectors.f32", Path(folder) / "rust.holo")
                found["rust_load_per_s"] = theirs["load"]["items_per_s"]
                found["rust_load_cpu_s"] = theirs["load"]["cpu_s"]
                found["rust_recall_us"] = theirs["recall"]["p50_us"]
                found["rust_recall_cpu_us"] = theirs["recall"]["cpu_us"]
                found["load_of_rust"] = found["load_per_s"] / found["rust_load_per_s"]
                found["dicts_of_rust"] = found["load_dicts_per_s"] / found["rust_load_per_s"]
                # The same questions of the same items; the part of the engine has its own clock.
                found["rust_recall_around_us"] = theirs["recall"]["around_p50_us"]
                found["recall_over_rust_us"] = found["recall_around_us"] - found["rust_recall_around_us"]
                # On a machine with other work the processor's time says more than the clock.
                found["load_of_rust_cpu"] = found["rust_load_cpu_s"] / found["load_cpu_s"]
                found["recall_over_rust_cpu_us"] = found["recall_cpu_us"] - found["rust_recall_cpu_us"]
            rows.append(found)
    return {name: round(statistics.median(row[name] for row in rows), 2) for name in rows[0]}


def embed(program: Path | None) -> Figures:
    if program is None:
        return {}
    done = subprocess.run([program, "embed"], check=True, capture_output=True, text=True)
    return {"embed_texts_per_s": round(json.loads(done.stdout)["texts_per_s"])}


def timed(work: Callable[[int], None], workers: int) -> float:
    running = [threading.Thread(target=work, args=(worker,)) for worker in range(workers)]
    started = time.perf_counter()
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return time.perf_counter() - started


def threads(db: holotype.Database, vectors: np.ndarray) -> Figures:
    def work(worker: int) -> None:
        for n in range(worker * 300, worker * 300 + 300):
            db.recall(f"flight {n % 997}", vector=vectors[n % len(vectors)], limit=5)

    scales = [2 * timed(work, 1) / timed(work, 2) for _ in range(5)]
    return {"threads_scale": round(statistics.median(scales), 2), "threads_scale_best": round(max(scales), 2)}


def interpreter(db: holotype.Database, vectors: np.ndarray) -> Figures:
    def pace(beside: Callable[[], object] | None) -> float:
        """Counts a second while a thread runs ``beside`` again and again."""
        stopped = threading.Event()

        def repeat() -> None:
            while not stopped.is_set() and beside is not None:
                beside()

        thread = threading.Thread(target=repeat)
        thread.start()
        counted, started = 0, time.perf_counter()
        while time.perf_counter() - started < 0.5:
            counted += 1
        seconds = time.perf_counter() - started
        stopped.set()
        thread.join()
        return counted / seconds

    def ask() -> object:
        return db.query("find items where text matches '*no such text*' return key")

    shares = [pace(ask) / pace(None) for _ in range(5)]
    return {"interpreter_share": round(statistics.median(shares), 2)}


TARGETS = {
    "wheel_mb": ("below", 10),
    "import_ms": ("below", 50),
    "load_of_rust": ("at least", 0.9),
    "recall_over_rust_us": ("below", 30),
    "threads_scale": ("at least", 1.8),
    "embed_texts_per_s": ("at least", 50_000),
}


def show(figures: Figures) -> None:
    """Figures that are asked for first, then those that explain them."""
    rows = [("figure", "asked", "measured", "")]
    for name in [*TARGETS, *(name for name in figures if name not in TARGETS)]:
        how, limit = TARGETS.get(name, ("", 0))
        if name not in figures:
            rows.append((name, f"{how} {limit:,}", "-", "build holotype-bench"))
            continue
        value = figures[name]
        holds = "" if not how else ("holds" if (value < limit if how == "below" else value >= limit) else "MISSED")
        rows.append((name, f"{how} {limit:,}" if how else "", f"{value:,}", holds))
    widths = [max(map(len, column)) for column in zip(*rows)]
    for name, asked, measured, holds in rows:
        print(name.ljust(widths[0]), asked.ljust(widths[1]), measured.rjust(widths[2]), holds, sep="  ")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rust", type=Path, default=RUST if RUST.exists() else None)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    vectors = np.random.default_rng(7).standard_normal((given.items, DIM), dtype=np.float32)
    figures = {**wheel(), **import_time(), **beside_rust(given.rust, vectors, given.rounds), **embed(given.rust)}
    with tempfile.TemporaryDirectory() as folder:
        with holotype.create(Path(folder) / "bench.holo", space=holotype.Space("bench", DIM)) as db:
            load(db, vectors, columns=True)
            figures |= threads(db, vectors) | interpreter(db, vectors)
    print(json.dumps({"items": given.items, **figures})) if given.json else show(figures)


if __name__ == "__main__":
    main()
