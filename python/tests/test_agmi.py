"""The public suite of agent memory integrity: nine edits of a store at rest, each of which must be noticed.

The attacker of these tests can do more than edit bytes: he has the program, and writes the whole database anew with all
checksums and hashes, as he would like the past to have been. He lacks the key of the witness.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path
from typing import Any

import holotype
import pytest

agmi = pytest.importorskip("agmi")
from agmi.adapters.base import MemoryAdapter, Record  # noqa: E402
from agmi.attacks.at_rest import AT_REST_ATTACKS_WITH_SNAPSHOT  # noqa: E402

OWNERS = ("user-a", "user-b")


class Store(MemoryAdapter):  # type: ignore[misc]
    """A database with a witness. Raw access writes it anew without the witness, from a copy made when it was empty."""

    supports_replay = supports_metadata = supports_snapshot = True

    def setup(self) -> None:
        self._dir = Path(tempfile.mkdtemp())
        self._path, self._witness = self._dir / "memory.holo", self._dir / "elsewhere"
        holotype.create(self._path, witness=self._witness).close()
        shutil.copytree(self._path, self._dir / "empty.holo")

    def teardown(self) -> None:
        shutil.rmtree(self._dir)

    def reload(self) -> None:
        """Every call opens the database."""

    def verify(self) -> bool:
        try:
            with holotype.open(self._path, witness=self._witness) as db:
                return bool(self.count(db, OWNERS[0])) and bool(db.verify())
        except holotype.Error as error:
            self.verify_detail = f"{error.code}: {error}"
            return False

    # What each adapter knows: how its tool writes, reads, and names what it stores.

    def write(self, db: holotype.Database, owner: str, numbers: range, text: str) -> None:
        raise NotImplementedError

    def count(self, db: holotype.Database, owner: str) -> int:
        raise NotImplementedError

    def prefix(self, owner: str) -> str:
        raise NotImplementedError

    def _write(self, owner: str, numbers: range, text: str) -> None:
        with holotype.open(self._path, witness=self._witness) as db:
            self.write(db, owner, numbers, text)

    def seed(self, n: int) -> None:
        self._write(OWNERS[0], range(n), "agmi-seed")

    def seed_other(self, n: int) -> None:
        self._write(OWNERS[1], range(n), "agmi-late")

    def append_genuine(self) -> None:
        self._write(OWNERS[0], range(90, 91), "agmi-more")

    # Raw access.

    def _records(self, owner: str) -> list[Record]:
        with holotype.open(self._path, read_only=True) as db:
            view = db.snapshot()
            # Keys count down; numbers of items are in the order in which they were written.
            items = sorted(view.get_many(view.keys(self.prefix(owner))), key=lambda item: item.id)
        return [Record(seq, _content(item)) for seq, item in enumerate(items)]

    def _rewrite(self, records: list[Record]) -> None:
        others = self._records(OWNERS[1])
        shutil.rmtree(self._path)
        shutil.copytree(self._dir / "empty.holo", self._path)
        with holotype.open(self._path) as db, db.begin() as tx:
            for record in records + others:
                given = dict(record.fields)
                tx.record(given.pop("text"), kind="turn", **given)

    def read_all_raw(self) -> list[Record]:
        return self._records(OWNERS[0])

    def read_other_raw(self) -> list[Record]:
        return self._records(OWNERS[1])

    def write_raw(self, record: Record) -> None:
        records = self.read_all_raw()
        if record.seq < len(records):
            slot = records[record.seq].fields
            records[record.seq].fields = {**record.fields, "key": slot["key"], "episode": slot["episode"]}
        else:
            records.append(Record(record.seq, {**record.fields, "key": records[-1].fields["key"][:-1] + "0"}))
        self._rewrite(records)

    def delete_raw(self, seq: int) -> None:
        self._rewrite([record for record in self.read_all_raw() if record.seq != seq])

    def replay_onto(self, victim_seq: int, donor: Record) -> None:
        self.write_raw(Record(victim_seq, dict(donor.fields)))

    def read_meta(self, seq: int) -> dict[str, Any]:
        fields = self.read_all_raw()[seq].fields
        return {"source": fields["source"], "speaker": fields["speaker"]}

    def write_meta(self, seq: int, meta: dict[str, Any]) -> None:
        fields = self.read_all_raw()[seq].fields
        if meta.get("agmi_meta_tampered"):
            meta = {"source": "user", "speaker": "somebody else"}
        self.write_raw(Record(seq, {**fields, "source": meta["source"], "speaker": meta["speaker"]}))

    def snapshot_store(self) -> object:
        return self._copy_store(self._path)

    def restore_store(self, token: object) -> None:
        self._restore_store(str(token), self._path)

    def mutate_payload(self, record: Record) -> Record:
        return Record(record.seq, _replaced(record.fields, "agmi-seed", "agmi-tamp"))

    def forge_record(self, template: Record) -> Record:
        return self.mutate_payload(Record(template.seq + 1, template.fields))

    def identity_of(self, record: Record) -> str:
        return str(record.fields["key"])

    def owner_of(self, record: Record) -> str:
        return str(record.fields["episode"])

    def payload_of(self, record: Record) -> str:
        return repr((record.fields["text"], sorted(record.fields["fields"].items())))


def _content(item: Any) -> dict[str, Any]:
    names = ("text", "key", "episode", "source", "speaker")
    others = {name: value for name, value in item.fields.items() if name != "text"}
    return {**{name: getattr(item, name) for name in names}, "fields": others}


def _replaced(value: Any, old: str, new: str) -> Any:
    if isinstance(value, dict):
        return {name: _replaced(part, old, new) for name, part in value.items()}
    if isinstance(value, bytes):
        return value.replace(old.encode(), new.encode())
    return value.replace(old, new) if isinstance(value, str) else value


class Session(Store):
    name = "openai-agents-session"

    def write(self, db: holotype.Database, owner: str, numbers: range, text: str) -> None:
        from holotype.agents import HolotypeSession

        items: Any = [{"role": "user", "content": f"{text}-{number}"} for number in numbers]
        asyncio.run(HolotypeSession(owner, db).add_items(items))

    def count(self, db: holotype.Database, owner: str) -> int:
        from holotype.agents import HolotypeSession

        return len(asyncio.run(HolotypeSession(owner, db).get_items()))

    def prefix(self, owner: str) -> str:
        return f"as.i/{owner}/"


class Checkpointer(Store):
    name = "langgraph-checkpointer"

    def write(self, db: holotype.Database, owner: str, numbers: range, text: str) -> None:
        from holotype.langgraph import HolotypeSaver
        from langgraph.checkpoint.base import empty_checkpoint

        config: Any = {"configurable": {"thread_id": owner, "checkpoint_ns": ""}}
        for number in numbers:
            checkpoint = {**empty_checkpoint(), "channel_values": {"said": f"{text}-{number}"}}
            config = HolotypeSaver(db).put(config, checkpoint, {"source": "loop", "step": number}, {})

    def count(self, db: holotype.Database, owner: str) -> int:
        from holotype.langgraph import HolotypeSaver

        return len(list(HolotypeSaver(db).list({"configurable": {"thread_id": owner, "checkpoint_ns": ""}})))

    def prefix(self, owner: str) -> str:
        return f"lg.c/{owner}/"


@pytest.mark.parametrize("store", [Session, Checkpointer], ids=lambda store: store.name)
@pytest.mark.parametrize("attack", AT_REST_ATTACKS_WITH_SNAPSHOT, ids=lambda attack: attack.name)
def test_every_edit_at_rest_is_noticed(store: type[Store], attack: Any) -> None:
    result = attack().run(store())
    assert result.status == "safe", f"{result.status}: {result.error or result.guard or result.detail}"


def test_the_suite_has_nine_attacks() -> None:
    assert len(AT_REST_ATTACKS_WITH_SNAPSHOT) == 9
