"""Embedders: callables from texts to vectors."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any

from . import _native
from ._values import Space
from .errors import InputError, VectorError

__all__ = ["Embedder", "HashingEmbedder", "StaticEmbedder"]

Embedder = Callable[[list[str]], Sequence[Any]]
"""Takes texts and returns one vector for each: an array of two dimensions, or a sequence of vectors.

With an attribute ``space`` (:class:`Space`) it need not be said again when a database is created, and the engine embeds
texts of statements and imports by it. An attribute ``fingerprint`` (str) tells models of one space apart; without it the
name of the space does.
"""


class HashingEmbedder:
    """The built-in embedder: words and their parts, hashed. It needs no model and is good enough to try everything.

    >>> embed = HashingEmbedder(64)
    >>> len(embed(["a flight to Lisbon"])[0])
    64
    """

    def __init__(self, dim: int = 256) -> None:
        self.space = Space(f"hashing-v1-{dim}", dim)
        """The space of its vectors."""

    def __call__(self, texts: list[str]) -> list[list[float] | None]:
        """One vector for each text; ``None`` for a blank one."""
        return [_native.hashing_embed(self.space.model, text) for text in texts]

    def __repr__(self) -> str:
        return f"HashingEmbedder({self.space.dim})"


class StaticEmbedder:
    """A static model in a folder, as model2vec saves it (potion-base-8M and others). It needs numpy and no other package.

    :param folder: holds ``config.json``, ``tokenizer.json`` and ``model.safetensors``. The database keeps a hash of
        them as the model's fingerprint, and refuses another model.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._model = _native.StaticModel(folder)
        self.space = Space(self._model.name, self._model.dim)
        """The space of its vectors; its name is the folder's."""

    @property
    def fingerprint(self) -> str:
        """The identity of the model: a hash of its files."""
        return self._model.fingerprint

    def __call__(self, texts: list[str]) -> list[Any]:
        """One array for each text; ``None`` for a text without a word that the model knows."""
        return self._model.embed(texts)

    def __repr__(self) -> str:
        return f"StaticEmbedder({self.space.model!r}, {self.space.dim})"


def engine_embedder(embedder: Embedder | None, space: Space | None) -> Any:
    """The embedder as the engine takes it; ``None`` if the space of its vectors is not known."""
    if isinstance(embedder, StaticEmbedder):
        return embedder._model
    if isinstance(embedder, HashingEmbedder):
        return embedder.space.model
    own = getattr(embedder, "space", None)
    known = own if isinstance(own, Space) else space
    if embedder is None or known is None:
        return None
    fingerprint = getattr(embedder, "fingerprint", None)
    return embedder, fingerprint if isinstance(fingerprint, str) else known.model, known._parts()


def space_of(embedder: Embedder | None, space: Space | None) -> Space | None:
    """The space of a new database: the given one, or the embedder's own."""
    own = getattr(embedder, "space", None)
    if space is not None or embedder is None or isinstance(own, Space):
        return space if space is not None else own
    hint = "say its model and dimension, as in space=Space('all-MiniLM-L6-v2', 384)"
    raise InputError(f"the space of the embedder's vectors is not known; {hint}", hint=hint)


def embed(embedder: Embedder, texts: list[str]) -> list[Any]:
    """One vector for each text."""
    made = embedder(texts)
    hint = "it must return one vector for each text"
    if isinstance(made, (str, bytes, Mapping)) or not hasattr(made, "__iter__"):
        raise VectorError(f"the embedder returned {type(made).__name__}; {hint}", code="vector", hint=hint)
    # One more than there should be is enough to see that there are too many.
    vectors = list(islice(made, len(texts) + 1))
    if len(vectors) != len(texts):
        found = "more" if len(vectors) > len(texts) else str(len(vectors))
        message = f"the embedder returned {found} vectors for {len(texts)} texts; {hint}"
        raise VectorError(message, code="vector", hint=hint)
    return vectors
