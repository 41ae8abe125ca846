"""PlugMem, Table 9: events are found through facts, with their dates, and counted by a reasoner that cites them."""

import holotype
from holotype.knowledge import ask, structure
from holotype.roles import Roles

SESSIONS = {
    "s24": ("2023-10-15T04:44:00Z", "I just got back from a friend's wedding. Jen looked stunning at the barn."),
    "s6": ("2023-10-15T10:57:00Z", "My roommate's wedding in the city was beautiful. Emily tied the knot."),
    "s11": ("2023-08-20T09:00:00Z", "My cousin Rachel's wedding at a vineyard was lovely. We danced all night."),
    "s30": ("2023-09-01T09:00:00Z", "Which lens is good for portraits? I like to photograph birds."),
}


def reasoner(asked: dict) -> str:
    """A scripted model, which sees dates and the current time."""
    year = asked["current_time"][:4]
    events = [row for row in asked["information"] if "wedding" in row["text"] and row["key"] in SESSIONS]
    events = [row for row in events if row["time"].startswith(year)]
    return f"{len(events)} weddings this year: " + ", ".join(f"{row['time'][:10]} [{row['key']}]" for row in events)


with holotype.open_or_create("weddings.holo", space="hashing-v1-256") as db:
    for session, (time, said) in SESSIONS.items():
        step = {"observation": said, "speaker": "User", "source": "user", "time": time, "key": session}
        structure(db, [step], episode=session)
    question = "How many weddings have I attended in this year?"
    print(ask(db, question, model=Roles(reasoner=reasoner)).text)
    print(ask(db, question).mode, "|", ask(db, question).text)
