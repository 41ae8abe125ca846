"""First steps: two writes, a question, its evidence. Run it with ``python first.py``."""

import tempfile
from pathlib import Path

import holotype

with tempfile.TemporaryDirectory() as folder:
    with holotype.create(Path(folder) / "memory.holo", space="hashing-v1-256") as db:
        with db.begin() as tx:
            for key, price, status in [("t1", "$450", "success"), ("t2", "$120", "failed")]:
                text = f"UA123 price={price}"
                tx.record(text, episode="trip-42", kind="call", tool="search_flights", status=status, key=key)
            tx.remember("UA123 costs $450", sources=[holotype.Pointer("t1", quote="price=$450")], key="r1")

        answer = db.recall("What does UA123 cost?", episode="trip-42")
        print(answer)
        # The failed call is stored, and is no answer.
        assert [row.key for row in answer] == ["t1", "r1"]
        assert answer[1].citations[0].text == "price=$450"
