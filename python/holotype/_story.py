"""Stories of items and differences between commits: mappings that show themselves as text, and as HTML in notebooks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from . import _display

__all__ = ["Difference", "Story"]


class _Told(Mapping[str, Any]):
    def __init__(self, data: dict[str, Any], text: str) -> None:
        self._data = data
        self._text = _display.printable(text)

    def __getitem__(self, name: str) -> Any:
        return self._data[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return self._text

    def to_dict(self) -> dict[str, Any]:
        """The same as a ``dict`` of types that JSON has."""
        return dict(self._data)


class Story(_Told):
    """The story of one item.

    Its members: ``commit``, ``item``, ``citations`` (each read and hashed again), ``sources``, ``dependents``,
    ``history``, ``conflicts``.
    """

    def _repr_html_(self) -> str:
        return _display.story_html(self._data)


class Difference(_Told):
    """The changes between two commits.

    Its members: ``from``, ``to``, ``added``, ``changed``, ``events``, ``added_count``, ``changed_count``. At most 1,000
    items are listed of each sort.
    """

    def _repr_html_(self) -> str:
        return _display.difference_html(self._data)
