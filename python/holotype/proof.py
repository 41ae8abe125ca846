"""Proofs: what somebody without the database can check about an item."""

from __future__ import annotations

from typing import Any

from . import _native

__all__ = ["SigningKey", "check_proof"]


class SigningKey:
    """A secret key under whose name proofs are signed. Keep it apart from the database.

    >>> key = SigningKey.generate(db.snapshot().origin)
    >>> proof = db.snapshot().prove("r1", key)
    >>> check_proof(proof, key.public)["citations"][0]["text"]
    'price=$450'
    """

    def __init__(self, secret: str) -> None:
        self.public = _native.verifier_key(secret)
        """The public half, by which others check proofs."""
        self.secret = secret
        """The key as text, to be kept in secret."""

    @classmethod
    def generate(cls, name: str) -> SigningKey:
        """A new key; its name is that of the database, :attr:`holotype.Snapshot.origin`."""
        return cls(_native.generate_key(name))

    def __repr__(self) -> str:
        return f"<holotype.SigningKey {self.public}>"


def check_proof(proof: str, public_key: str) -> dict[str, Any]:
    """Checks a proof without the database, and returns what it proves: the item's content and its citations.

    :raises InputError: with the code ``proof`` if it does not hold.
    """
    return _native.check_proof(proof, public_key)
