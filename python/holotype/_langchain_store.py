"""LangChain's key-value store and cache of model answers in a Holotype database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from langchain_core.caches import BaseCache
from langchain_core.messages import message_to_dict, messages_from_dict
from langchain_core.outputs import ChatGeneration, Generation
from langchain_core.stores import ByteStore

from ._codec import dumps, loads
from ._database import Database
from ._documents import Documents, Record, field_bytes, field_of, key_of, key_prefix
from ._values import listed

if TYPE_CHECKING:
    from ._types import _Durability as Durability

__all__ = ["HolotypeByteStore", "HolotypeCache"]


class HolotypeByteStore(ByteStore):
    """A LangChain key-value store: bytes under keys that are texts.

    >>> from holotype.langchain import HolotypeByteStore
    >>> store = HolotypeByteStore(db)
    >>> store.mset([("fares/lisbon", b"450"), ("fares/porto", b"300"), ("hotels", b"80")])
    >>> store.mget(["fares/lisbon", "nothing"]), list(store.yield_keys(prefix="fares/"))
    ([b'450', None], ['fares/lisbon', 'fares/porto'])
    """

    def __init__(
        self, database: Database, *, collection: str = "default", erase: bool = True, durability: Durability = "sync"
    ) -> None:
        """
        :param collection: the name under which the values of this store are kept apart from others.
        :param erase: erase deleted values from the log, instead of taking them out of use.
        :param durability: of every write: ``sync`` survives power loss, ``flush`` a crash of the process.
        """
        self._documents = Documents(database, "langchain-store", erase=erase, durability=durability)
        self._episode = f"langchain-store/{key_of(collection)}"
        self._prefix = f"lk.d/{key_of(collection)}/"

    def mget(self, keys: Sequence[str]) -> list[bytes | None]:
        """The values of keys; ``None`` for a key that there is not."""
        places = [self._prefix + key_of(key) for key in listed("keys", keys, "keys")]
        items = self._documents.read(lambda view: self._documents.get_many(view, places))
        return [None if item is None else field_bytes(item, "value") for item in items]

    def mset(self, key_value_pairs: Sequence[tuple[str, bytes]]) -> None:
        """Stores values, all or none of them."""
        records = []
        for key, value in listed("key_value_pairs", key_value_pairs, "pairs of a key and bytes"):
            if isinstance(value, (int, str)):
                raise TypeError(f"the value of {key!r}: expected bytes, found {type(value).__name__}")
            fields: dict[str, str | bytes] = {"key": key, "value": bytes(value)}
            records.append(Record(self._prefix + key_of(key), key, self._episode, fields))
        with self._documents.begin() as tx:
            self._documents.put_many(tx, records)

    def mdelete(self, keys: Sequence[str]) -> None:
        """Deletes values; unknown keys are no error."""
        with self._documents.begin() as tx:
            self._documents.delete(tx, [self._prefix + key_of(key) for key in listed("keys", keys, "keys")])

    def yield_keys(self, *, prefix: str | None = None) -> Iterator[str]:
        """The keys that begin with ``prefix``, or all, in order."""
        start = self._prefix + key_prefix(prefix or "")
        found = self._documents.read(lambda view: [item for _, item in self._documents.scan(view, start)])
        keys = sorted(field_of(item, "key") for item in found)
        yield from (key for key in keys if key.startswith(prefix or ""))


class HolotypeCache(BaseCache):
    """A LangChain cache: the answers of models, by prompt and model.

    >>> from holotype.langchain import HolotypeCache
    >>> from langchain_core.outputs import Generation
    >>> cache = HolotypeCache(db)
    >>> cache.update("What does UA123 cost?", "a model", [Generation(text="$450")])
    >>> cache.lookup("What does UA123 cost?", "a model")[0].text
    '$450'
    """

    def __init__(self, database: Database, *, erase: bool = True, durability: Durability = "sync") -> None:
        """
        :param erase: erase cleared answers from the log, instead of taking them out of use.
        :param durability: of every write: ``sync`` survives power loss, ``flush`` a crash of the process.
        """
        self._documents = Documents(database, "langchain-cache", erase=erase, durability=durability)

    def lookup(self, prompt: str, llm_string: str) -> Sequence[Any] | None:
        """The answers to a prompt; ``None`` if there are none."""
        key = _cache_key(prompt, llm_string)
        found = self._documents.read(lambda view: self._documents.get(view, key))
        return None if found is None else [_loaded(answer) for answer in loads(field_of(found, "answers"))]

    def update(self, prompt: str, llm_string: str, return_val: Sequence[Any]) -> None:
        """Stores the answers to a prompt, in the place of those before."""
        answers = dumps([_dumped(one) for one in return_val], "the answers")
        fields: dict[str, str | bytes] = {"model": llm_string, "answers": answers}
        with self._documents.begin() as tx:
            self._documents.put(tx, Record(_cache_key(prompt, llm_string), prompt, "langchain-cache", fields))

    def clear(self, **kwargs: Any) -> None:
        """Deletes all answers."""
        with self._documents.begin() as tx:
            self._documents.delete(tx, self._documents.keys(tx, "lh.d/"))


def _cache_key(prompt: str, llm_string: str) -> str:
    return f"lh.d/{key_of(prompt, llm_string)}"


def _dumped(answer: Generation) -> dict[str, Any]:
    if isinstance(answer, ChatGeneration):
        return {"message": message_to_dict(answer.message), "generation_info": answer.generation_info}
    return {"text": answer.text, "generation_info": answer.generation_info}


def _loaded(answer: dict[str, Any]) -> Generation:
    """Makes plain answers and messages alone, whatever is stored."""
    if "message" in answer:
        message = messages_from_dict([answer["message"]])[0]
        return ChatGeneration(message=message, generation_info=answer["generation_info"])
    return Generation(text=answer["text"], generation_info=answer["generation_info"])
