"""LangGraph: a checkpointer and a store. ``pip install 'holotype[langgraph]'``

>>> from holotype.langgraph import HolotypeSaver
>>> saver = HolotypeSaver(db)
>>> from langgraph.checkpoint.base import empty_checkpoint
>>> config = {"configurable": {"thread_id": "trip-42", "checkpoint_ns": ""}}
>>> config = saver.put(config, empty_checkpoint(), {"source": "input", "step": 0}, {})
>>> saver.get_tuple(config).metadata["step"]
0

Checkpoints and writes are traces of the database, so the log proves them and ``db.verify()`` checks their bytes. What
is deleted is erased from the log (:meth:`holotype.Transaction.forget`); with ``erase=False`` it is taken out of use.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
    get_checkpoint_metadata,
    writes_sort_key,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from ._database import Database, open_or_create
from ._documents import Documents, Record, field_bytes, field_of, key_of
from ._native import Item
from ._snapshot import Snapshot
from ._langgraph_store import HolotypeStore
from ._transaction import Transaction
from ._values import listed

if TYPE_CHECKING:
    from ._types import _Durability as Durability

__all__ = ["HolotypeSaver", "HolotypeStore"]

# Inside the class the name `list` is a method of LangGraph's interface.
Tuples = list[CheckpointTuple]
Keys = list[str]


class HolotypeSaver(BaseCheckpointSaver[str]):
    """A LangGraph checkpointer in a Holotype database, with every capability, sync and async."""

    def __init__(
        self,
        database: Database,
        *,
        serde: SerializerProtocol | None = None,
        erase: bool = True,
        durability: Durability = "sync",
    ) -> None:
        """
        :param database: an open database; it may hold other things as well.
        :param erase: erase deleted checkpoints from the log, instead of taking them out of use.
        :param durability: of every write: ``sync`` survives power loss, ``flush`` a crash of the process.
        """
        super().__init__(serde=serde)
        self._documents = Documents(database, "langgraph", erase=erase, durability=durability)

    @classmethod
    @contextmanager
    def from_conn_string(cls, conn_string: str) -> Iterator[HolotypeSaver]:
        """A checkpointer in the database at a path, which is created if there is none and closed at the end."""
        with open_or_create(conn_string) as database:
            yield cls(database)

    # ---- reading ----

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint of a config, or the latest of its thread and namespace."""
        thread, namespace = _place(config)
        checkpoint_id = get_checkpoint_id(config)

        def read(view: Snapshot) -> CheckpointTuple | None:
            if checkpoint_id:
                item = self._documents.get(view, _checkpoint_key(thread, namespace, checkpoint_id))
                return None if item is None else self._tuple(view, item)
            place: RunnableConfig = {"configurable": {"thread_id": thread, "checkpoint_ns": namespace}}
            newest = next(self._newest_first(view, place), None)
            return None if newest is None else self._tuple(view, newest)

        return self._documents.read(read)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """The checkpoints of a thread, or of all, newest first."""
        if limit is not None and limit <= 0:
            return
        earlier = get_checkpoint_id(before) if before else None
        wanted = get_checkpoint_id(config) if config else None

        def read(view: Snapshot) -> Tuples:
            found: Tuples = []
            for item in self._newest_first(view, config):
                own = field_of(item, "id")
                if (wanted and own != wanted) or (earlier and own >= earlier):
                    continue
                metadata = self._load(item, "metadata")
                if all(metadata.get(name) == value for name, value in (filter or {}).items()):
                    found.append(self._tuple(view, item))
                    if len(found) == limit:
                        break
            return found

        yield from self._documents.read(read)

    def _newest_first(self, view: Snapshot, config: RunnableConfig | None) -> Iterator[Item]:
        """The checkpoints of a config's place, each read when it is asked for."""
        prefix = "lg.c/"
        if config is not None:
            configurable = config["configurable"]
            prefix = f"lg.c/{key_of(str(configurable['thread_id']))}/"
            if configurable.get("checkpoint_ns") is not None:
                prefix = _checkpoint_key(*_place(config), "")
        keys = self._documents.keys(view, prefix)
        # The last part of a key is the checkpoint's id. A long one ends in a hash, and its order is in the record.
        if any("~" in key.rpartition("/")[2] for key in keys):
            items = [item for _, item in self._documents.scan(view, prefix)]
            yield from sorted(items, key=lambda item: field_of(item, "id"), reverse=True)
            return
        for key in sorted(keys, key=lambda key: unquote(key.rpartition("/")[2]), reverse=True):
            item = self._documents.get(view, key)
            if item is not None:
                yield item

    def _tuple(self, view: Snapshot | Transaction, item: Item) -> CheckpointTuple:
        thread, namespace, own = (field_of(item, name) for name in ("thread", "ns", "id"))
        parent = field_of(item, "parent")
        return CheckpointTuple(
            config=_config(thread, namespace, own),
            checkpoint=self._load(item, "checkpoint"),
            metadata=self._load(item, "metadata"),
            parent_config=_config(thread, namespace, parent) if parent else None,
            pending_writes=[
                (field_of(write, "task"), field_of(write, "channel"), self._load(write, "value"))
                for write in self._writes(view, thread, namespace, own)
            ],
        )

    def _writes(self, view: Snapshot | Transaction, thread: str, namespace: str, checkpoint_id: str) -> Sequence[Item]:
        """The writes of a checkpoint, in the order in which a run applies them."""

        def order(item: Item) -> tuple[str, str, int]:
            path, task, index = (field_of(item, name) for name in ("path", "task", "index"))
            return writes_sort_key(path, task, int(index))

        prefix = _write_prefix(thread, namespace, checkpoint_id)
        return sorted((item for _, item in self._documents.scan(view, prefix)), key=order)

    # ---- writing ----

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Stores a checkpoint with its channel values."""
        thread, namespace = _place(config)
        full = get_checkpoint_metadata(config, metadata)
        fields = {
            "thread": thread,
            "ns": namespace,
            "id": checkpoint["id"],
            "parent": config["configurable"].get("checkpoint_id") or "",
            **self._dump("checkpoint", checkpoint),
            **self._dump("metadata", full),
        }
        run = full.get("run_id")
        with self._documents.begin() as tx:
            key = _checkpoint_key(thread, namespace, checkpoint["id"])
            text = f"checkpoint of step {full.get('step', '?')}"
            log_id = None if run is None else str(run)
            self._documents.put(tx, Record(key, text, _episode(thread), fields, log_id))
        return _config(thread, namespace, checkpoint["id"])

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Stores the writes of a task. A write that is there already stays, unless its channel is a special one."""
        thread, namespace = _place(config)
        checkpoint_id = config["configurable"]["checkpoint_id"]
        records = []
        special = set()
        for position, (channel, value) in enumerate(writes):
            index = WRITES_IDX_MAP.get(channel, position)
            # Special channels have negative indexes; the letter keeps them apart in keys.
            place = key_of(task_id, f"{'s' if index < 0 else 'w'}{abs(index)}")
            fields = {
                "thread": thread,
                "ns": namespace,
                "checkpoint": checkpoint_id,
                "task": task_id,
                "path": task_path,
                "index": str(index),
                "channel": channel,
                **self._dump("value", value),
            }
            key = _write_prefix(thread, namespace, checkpoint_id) + place
            records.append(Record(key, f"write to {channel}", _episode(thread), fields))
            if index < 0:
                special.add(key)
        with self._documents.begin() as tx:
            there = self._documents.get_many(tx, [record.key for record in records])
            is_new = [record.key in special or item is None for record, item in zip(records, there)]
            self._documents.put_many(tx, [record for record, new in zip(records, is_new) if new])

    # ---- deleting and copying ----

    def delete_thread(self, thread_id: str) -> None:
        """Deletes the checkpoints and writes of a thread."""
        with self._documents.begin() as tx:
            self._documents.delete(tx, self._keys_of_thread(tx, thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Deletes the checkpoints and writes of runs."""
        runs = [str(run) for run in listed("run_ids", run_ids, "ids of runs")]
        if not runs:
            return
        find = "find observations where tool = 'langgraph' and log_id in $runs and not inactive return key"
        with self._documents.begin() as tx:
            rows = tx.query(find, {"runs": runs}).rows
            items = [item for (key,) in rows if (item := tx.get(key)) is not None and "checkpoint" in item.fields]
            self._delete_checkpoints(tx, items)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copies the checkpoints and writes of a thread to another."""
        source, target = str(source_thread_id), str(target_thread_id)
        with self._documents.begin() as tx:
            for prefix in ("lg.c/", "lg.w/"):
                own, other = prefix + key_of(source) + "/", prefix + key_of(target) + "/"
                records = []
                for key, item in self._documents.scan(tx, own):
                    fields = {**item.fields, "thread": target}
                    del fields["text"]
                    copy = other + key[len(own) :]
                    records.append(Record(copy, item.text, _episode(target), fields, item.log_id))
                self._documents.put_many(tx, records)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Deletes all checkpoints of threads but the latest of each namespace, or all with ``delete``.

        Kept are also the ancestors that a delta channel of the latest is made from.
        """
        if strategy not in ("keep_latest", "delete"):
            raise ValueError(f"unknown strategy {strategy!r}: expected keep_latest or delete")
        with self._documents.begin() as tx:
            for thread in map(str, listed("thread_ids", thread_ids, "ids of threads")):
                if strategy == "delete":
                    self._documents.delete(tx, self._keys_of_thread(tx, thread))
                    continue
                items = [item for _, item in self._documents.scan(tx, f"lg.c/{key_of(thread)}/")]
                namespaces = {field_of(item, "ns") for item in items}
                for namespace in namespaces:
                    own = {field_of(item, "id"): item for item in items if field_of(item, "ns") == namespace}
                    kept = self._needed(own)
                    self._delete_checkpoints(tx, [item for id, item in own.items() if id not in kept])

    def _needed(self, checkpoints: dict[str, Item]) -> set[str]:
        """The latest checkpoint, with its ancestors up to a stored value of each of its delta channels."""
        latest: str | None = max(checkpoints)
        metadata = self._load(checkpoints[max(checkpoints)], "metadata")
        wanted = set(metadata.get("counters_since_delta_snapshot") or {})
        kept = {max(checkpoints)}
        while latest in checkpoints:
            kept.add(latest)
            wanted -= self._load(checkpoints[latest], "checkpoint")["channel_values"].keys()
            if not wanted:
                break
            latest = field_of(checkpoints[latest], "parent") or None
        return kept

    def _keys_of_thread(self, tx: Transaction, thread: str) -> Keys:
        prefixes = (f"lg.c/{key_of(str(thread))}/", f"lg.w/{key_of(str(thread))}/")
        return [key for prefix in prefixes for key in self._documents.keys(tx, prefix)]

    def _delete_checkpoints(self, tx: Transaction, items: Sequence[Item]) -> None:
        keys = []
        for item in items:
            place = tuple(field_of(item, name) for name in ("thread", "ns", "id"))
            keys.append(_checkpoint_key(*place))
            keys += self._documents.keys(tx, _write_prefix(*place))
        self._documents.delete(tx, keys)

    # ---- asyncio ----

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """As :meth:`get_tuple`."""
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """As :meth:`list`."""
        found = await asyncio.to_thread(lambda: list(self.list(config, filter=filter, before=before, limit=limit)))
        for one in found:
            yield one

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """As :meth:`put`."""
        return await asyncio.to_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """As :meth:`put_writes`."""
        await asyncio.to_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """As :meth:`delete_thread`."""
        await asyncio.to_thread(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """As :meth:`delete_for_runs`."""
        await asyncio.to_thread(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """As :meth:`copy_thread`."""
        await asyncio.to_thread(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """As :meth:`prune`."""
        await asyncio.to_thread(lambda: self.prune(thread_ids, strategy=strategy))

    # ---- bytes ----

    def _dump(self, name: str, value: Any) -> dict[str, str | bytes]:
        kind, data = self.serde.dumps_typed(value)
        return {name: data, f"{name}.type": kind}

    def _load(self, item: Item, name: str) -> Any:
        return self.serde.loads_typed((field_of(item, f"{name}.type"), field_bytes(item, name)))


def _place(config: RunnableConfig) -> tuple[str, str]:
    configurable = config["configurable"]
    return str(configurable["thread_id"]), str(configurable.get("checkpoint_ns") or "")


def _config(thread: str, namespace: str, checkpoint_id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": namespace, "checkpoint_id": checkpoint_id}}


def _episode(thread: str) -> str:
    return f"langgraph/{key_of(thread)}"


def _checkpoint_key(thread: str, namespace: str, checkpoint_id: str) -> str:
    return f"lg.c/{key_of(thread, namespace, checkpoint_id)}"


def _write_prefix(thread: str, namespace: str, checkpoint_id: str) -> str:
    return f"lg.w/{key_of(thread, namespace, checkpoint_id)}/"
