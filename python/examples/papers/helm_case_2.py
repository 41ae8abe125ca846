"""HELM, case 2, the failed trap: a run that failed is no evidence; a model that invents is told so, and cites then."""

import re

import holotype
from holotype.agent import MemoryLoop
from holotype.roles import Roles


def generator(prompt: str) -> str:
    """A scripted model: it hallucinates first, and copies the evidence with its citation when it is refused."""
    if "missing cite" not in prompt:
        return "<memory>The script processed 5000 records.</memory>"
    text, cite = re.findall(r'- "(.*?)" (\[\[CITE .*?\]\])', prompt)[0]
    return f"<memory>{text} {cite}</memory>"


with holotype.open_or_create("failed.holo") as db:
    loop = MemoryLoop(db, "job", model=Roles(generator=generator))
    loop.step("Traceback: FileNotFoundError in script process.py", tool="terminal", status="failed")
    loop.step("Script process.py: Processed 1000 records", tool="terminal", status="success")
    memory = loop.step(request="What did the script process?").memory
    print([attempt.diagnostic for attempt in memory.attempts])
    print(memory.text, "|", memory.verdict, "| left out:", dict(memory.evidence.excluded))
