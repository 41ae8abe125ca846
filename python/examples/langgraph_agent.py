"""LangGraph: an agent whose threads and long-term memory are in one database. Offline, with a fake model."""

import tempfile
from pathlib import Path
from typing import Any

import holotype
from holotype.langgraph import HolotypeSaver, HolotypeStore
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.base import BaseStore

# A model that says these two things, in order.
model = GenericFakeChatModel(messages=iter([AIMessage("Noted: a window seat."), AIMessage("You like window seats.")]))


def answer(state: MessagesState, *, store: BaseStore) -> dict[str, Any]:
    """Keeps what the user likes for all threads, and answers."""
    said = str(state["messages"][-1].content)
    if said.startswith("I like"):
        store.put(("users", "mara"), "likes", {"text": said})
    known = store.get(("users", "mara"), "likes")
    prompt = [*([f"Known: {known.value['text']}"] if known else []), *state["messages"]]
    return {"messages": [model.invoke(prompt)]}


with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "memory.holo"
    for thread, question in [("monday", "I like window seats."), ("friday", "What do I like?")]:
        # Opened anew for each thread: everything is in the database.
        with holotype.open_or_create(path, space="hashing-v1-256") as db:
            graph = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer")
            agent = graph.compile(checkpointer=HolotypeSaver(db), store=HolotypeStore(db))
            config: Any = {"configurable": {"thread_id": thread}}
            done = agent.invoke({"messages": [("user", question)]}, config)
            print(thread, "->", done["messages"][-1].content)

    with holotype.open(path) as db:
        # The same records, asked as memory: what was kept, and the log that proves it.
        memory = db.recall("window seats", episode="langgraph-store/users/mara", limit=1)[0]
        print(memory)
        assert "I like window seats." in memory.text and db.verify()
        threads = {saved.config["configurable"]["thread_id"] for saved in HolotypeSaver(db).list(None)}
        assert threads == {"monday", "friday"}
