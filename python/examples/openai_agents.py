"""OpenAI Agents SDK: a session in a Holotype database. Offline, with a fake model."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import holotype
from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage
from holotype.agents import HolotypeSession
from openai.types.responses import ResponseOutputMessage, ResponseOutputText


class FakeModel(Model):
    """Says how many items of the conversation it was given."""

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> ModelResponse:
        said = f"I was given {len(input)} items."
        text = ResponseOutputText(text=said, type="output_text", annotations=[], logprobs=[])
        message = ResponseOutputMessage(id="m", content=[text], role="assistant", status="completed", type="message")
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        raise NotImplementedError("the example does not stream")


async def main(db: holotype.Database) -> None:
    agent = Agent("assistant", model=FakeModel())
    session = HolotypeSession("trip-42", db)
    for question, expected in [("Is UA123 on time?", 1), ("And UA124?", 3)]:
        result = await Runner.run(agent, question, session=session, run_config=RunConfig(tracing_disabled=True))
        print(question, "->", result.final_output)
        assert result.final_output == f"I was given {expected} items."


with tempfile.TemporaryDirectory() as folder:
    with holotype.create(Path(folder) / "memory.holo", space="hashing-v1-256") as db:
        asyncio.run(main(db))
        # The conversation is memory too: who said it, and when.
        row = db.recall("UA123", episode="agents/trip-42", limit=1)[0]
        print(row)
        assert (row.text, row.source) == ("Is UA123 on time?", "user")
