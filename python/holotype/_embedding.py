"""Embedders: callables from texts to vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from . import _native
from ._values import Space
from .errors import InputError, VectorError

__all__ = ["Embedder", "HashingEmbedder"]

Embedder = Callable[[list[str]], Sequence[Any]]
"""Takes texts and returns one vector for each: an array of two dimensions, or a sequence of vectors."""


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


def space_of(embedder: Embedder | None, space: Space | None) -> Space | None:
    """The space of a new database: the given one, or the embedder's own."""
    own = getattr(embedder, "space", None)
    if space is not None or embedder is None or isinstance(own, Space):
        return space if space is not None else own
    hint = "say its model and dimension, as in space=Space('all-MiniLM-L6-v2', 384)"
    raise InputError(f"the space of the embedder's vectors is not known; {hint}", hint=hint)


def embed(embedder: Embedder, texts: list[str]) -> list[Any]:
    """One vector for each text."""
    vectors = embedder(texts)
    if len(vectors) != len(texts):
        hint = "it must return one vector for each text"
        raise VectorError(f"the embedder returned {len(vectors)} vectors for {len(texts)} texts; {hint}", hint=hint)
    return list(vectors)
