"""The file-like memory tool: a model's calls, their texts, and what stays in the database."""

from __future__ import annotations

import holotype
import pytest
from holotype.memory_tool import TOOL, MemoryTool


def test_calls_of_a_model_are_answered_and_kept(db: holotype.Database) -> None:
    tool = MemoryTool(db, episode="s1")
    assert TOOL["type"] == "memory_20250818"
    assert tool.tool_result("t1", {"command": "create", "path": "/memories/plan.md", "file_text": "a\nb"}) == {
        "type": "tool_result", "tool_use_id": "t1", "content": "File created successfully at: /memories/plan.md",
    }  # fmt: skip
    assert tool.insert("/memories/plan.md", 1, "between") == "The file /memories/plan.md has been edited."
    assert tool.view("/memories/plan.md", [2, -1]).splitlines()[1:] == ["     2\tbetween", "     3\tb"]
    assert "     1\tA" in tool.str_replace("/memories/plan.md", "a", "A")
    assert tool.rename("/memories/plan.md", "/memories/done/plan.md").startswith("Successfully renamed")
    assert [line.split("\t")[1] for line in tool.view().splitlines()[1:]] == [
        "/memories", "/memories/done", "/memories/done/plan.md",
    ]  # fmt: skip
    item = db.get("/memories/done/plan.md")
    assert item is not None and item.text == "A\nbetween\nb"
    assert tool.delete("/memories/done") == "Successfully deleted /memories/done"
    assert len(db.query("find calls in episode 's1' where tool = 'memory' return key")) == 5


@pytest.mark.parametrize(
    "command",
    [
        {},
        {"command": "view", "path": "/etc/passwd"},
        {"command": "view", "path": "/memories/../../etc/passwd"},
        {"command": "create", "path": "/memories/%2e%2e/x", "file_text": ""},
        {"command": "delete", "path": "/memories"},
        {"command": "insert", "path": "/memories/none", "insert_line": 0, "insert_text": "x"},
    ],
)
def test_what_is_refused_says_why_and_changes_nothing(db: holotype.Database, command: dict[str, object]) -> None:
    before = db.head().commit
    result = MemoryTool(db).tool_result("t", command)
    assert result["is_error"] is True and result["content"]
    assert db.head().commit == before


def test_a_method_that_is_refused_raises(db: holotype.Database) -> None:
    with pytest.raises(holotype.InputError, match="does not exist"):
        MemoryTool(db).view("/memories/none")
