"""The file-like memory tool of agents (``memory_20250818``) over a database: six commands below ``/memories``.

>>> tool = MemoryTool(db)
>>> tool.create("/memories/preferences.txt", "Favorite color: blue")
'File created successfully at: /memories/preferences.txt'
>>> tool.call({"command": "view", "path": "/memories/preferences.txt"}).text.splitlines()[1]
'     1\\tFavorite color: blue'
>>> tool.call({"command": "view", "path": "/memories/../etc/passwd"}).is_error
True
>>> tool.tool_result("toolu_1", {"command": "delete", "path": "/memories/preferences.txt"})["content"]
'Successfully deleted /memories/preferences.txt'

A file is a fact whose key is its path. Each change is recorded as a call, on which the fact rests; nothing is lost by an
edit or a deletion, since ``db.as_of`` and the history have it. The texts are those that the tool's documentation
publishes. No package is needed beside this one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _native
from .errors import InputError

if TYPE_CHECKING:
    from ._database import Database

__all__ = ["TOOL", "MemoryTool", "ToolAnswer"]

#: The tool as a request to a model names it.
TOOL: dict[str, str] = {"type": "memory_20250818", "name": "memory"}


@dataclass(frozen=True)
class ToolAnswer:
    """The text for the model; ``is_error`` if the command was refused, and nothing changed."""

    text: str
    is_error: bool


class MemoryTool:
    """The memory tool of a database. ``episode`` is where its calls are recorded."""

    def __init__(self, database: Database, *, episode: str = "memory-tool") -> None:
        self.database = database
        self.episode = episode

    def call(self, input: Mapping[str, Any]) -> ToolAnswer:
        """Runs the input of a call as a model gives it. A wrong one is refused with a text that says so."""
        return ToolAnswer(*_native.memory_tool(self.database._native, self.episode, dict(input)))

    def tool_result(self, tool_use_id: str, input: Mapping[str, Any]) -> dict[str, Any]:
        """The same as a block for the next message to the model."""
        answer = self.call(input)
        block = {"type": "tool_result", "tool_use_id": tool_use_id, "content": answer.text}
        return {**block, "is_error": True} if answer.is_error else block

    def view(self, path: str = "/memories", view_range: Sequence[int] | None = None) -> str:
        """A directory, or the lines of a file from the first to the last of ``view_range`` (-1: its end)."""
        return self._done({"command": "view", "path": path, "view_range": view_range and list(view_range)})

    def create(self, path: str, file_text: str) -> str:
        """Makes a file, where none is."""
        return self._done({"command": "create", "path": path, "file_text": file_text})

    def str_replace(self, path: str, old_str: str, new_str: str = "") -> str:
        """Replaces a text that is once in a file."""
        return self._done({"command": "str_replace", "path": path, "old_str": old_str, "new_str": new_str})

    def insert(self, path: str, insert_line: int, insert_text: str) -> str:
        """Inserts a text behind a line, 0 for the beginning."""
        command = {"command": "insert", "path": path, "insert_line": insert_line, "insert_text": insert_text}
        return self._done(command)

    def delete(self, path: str) -> str:
        """Deletes a file, or a directory with what is in it."""
        return self._done({"command": "delete", "path": path})

    def rename(self, old_path: str, new_path: str) -> str:
        """Moves a file or directory."""
        return self._done({"command": "rename", "old_path": old_path, "new_path": new_path})

    def _done(self, command: dict[str, Any]) -> str:
        answer = self.call(command)
        if answer.is_error:
            raise InputError(answer.text)
        return answer.text
